"""Real servers under `heapledger run`, each stopped in every way it knows: all of their processes leave a file.

A server takes seconds to start, and most of that is waiting: all cases run at once, some at a time, and each test looks
at the outcome of one.
"""

import concurrent.futures
import os

import pytest
from servers import ASGI, CELERY, DJANGO, FASTAPI, KEPT, REQUESTS, WSGI, Case, run_case

UVICORN = ["-m", "uvicorn", "--port", "PORT", "app:app"]
GUNICORN = ["-m", "gunicorn", "--no-control-socket", "--bind", "127.0.0.1:PORT", "--workers", "2", "app:app"]
HYPERCORN = ["-m", "hypercorn", "--bind", "127.0.0.1:PORT", "app:app"]
CELERY_WORKER = ["-m", "celery", "--app", "app", "worker", "--loglevel", "INFO", "--without-gossip", "--without-mingle"]
RUNSERVER = ["-m", "django", "runserver", "127.0.0.1:PORT", "--skip-checks"]
SETTINGS = {"DJANGO_SETTINGS_MODULE": "app"}
TRACED = ("-m", "heapledger", "run", "-o", "out.hlsnap")
ROOT_MAY = {"C_FORCE_ROOT": "1"}


def cases():
    def each(stops, name, command, application, processes, **more):
        for stop in stops:
            group = stop.endswith("!")
            number = stop and f"SIG{stop.rstrip('!')}"
            asks = stop in ("INT", "INT!") or name == "runserver-noreload"  # once for each kind of server
            yield Case(name, command, application, number, processes, group=group, asks=asks, **more)

    usual = ("TERM", "INT!", "QUIT")
    yield from each(usual, "uvicorn", [*UVICORN, "--loop", "asyncio"], FASTAPI, 1)
    yield from each(["TERM"], "uvicorn-uvloop", [*UVICORN, "--loop", "uvloop"], ASGI, 1)
    yield from each([""], "uvicorn-limit", [*UVICORN, "--limit-max-requests", REQUESTS], ASGI, 1)
    # The first process ignores QUIT, traced or not.
    yield from each(["TERM", "INT!"], "uvicorn-workers", [*UVICORN, "--workers", "2"], ASGI, 3, boots=2)
    yield from each(["TERM"], "uvicorn-workers", [*UVICORN, "--workers", "2"], ASGI, 3, boots=2, before="SIGHUP")
    yield from each(usual, "gunicorn-sync", GUNICORN, WSGI, 3, boots=2)
    yield from each(["TERM"], "gunicorn-sync", GUNICORN, WSGI, 3, boots=2, before="SIGHUP")
    yield from each(["TERM"], "gunicorn-preload", [*GUNICORN, "--preload"], WSGI, 3)
    yield from each(["TERM"], "gunicorn-limit", [*GUNICORN, "--max-requests", "1"], WSGI, 3, boots=2 + REQUESTS)
    # To the arbiter alone: these workers do not survive a second signal while they handle the first, traced or not.
    gthread = [*GUNICORN, "--worker-class", "gthread", "--threads", "2"]
    yield from each(["TERM", "INT", "QUIT"], "gunicorn-gthread", gthread, WSGI, 3, boots=2)
    worker = "uvicorn_worker.UvicornWorker"
    yield from each(["TERM", "INT!"], "gunicorn-uvicorn", [*GUNICORN, "--worker-class", worker], ASGI, 3, boots=2)
    # These workers take no notice of SIGQUIT, and after a while gunicorn kills them.
    impatient = [*GUNICORN, "--worker-class", worker, "--graceful-timeout", "1"]
    yield from each(["QUIT"], "gunicorn-uvicorn", impatient, ASGI, 3, boots=2, killed=True)
    yield from each(["TERM", "INT!", "QUIT!"], "hypercorn", HYPERCORN, ASGI, 2)
    yield from each(["TERM", "INT!", "QUIT!"], "hypercorn-workers", [*HYPERCORN, "--workers", "2"], ASGI, 3, boots=2)
    solo = [*CELERY_WORKER, "--pool", "solo"]
    yield from each(usual, "celery-solo", solo, CELERY, 1, variables=ROOT_MAY)
    prefork = [*CELERY_WORKER, "--pool", "prefork", "--concurrency", "2"]
    yield from each(usual, "celery-prefork", prefork, CELERY, 3, variables=ROOT_MAY)
    shutdown = ("-c", "import app; app.app.control.shutdown()")
    yield from each([""], "celery-prefork-shutdown", prefork, CELERY, 3, variables=ROOT_MAY, end=shutdown)
    yield from each(["INT!", "QUIT!"], "runserver", RUNSERVER, DJANGO, 2, variables=SETTINGS)
    # The reloader leaves by sys.exit, from subprocess.run, which kills the server then.
    yield from each(["TERM"], "runserver", RUNSERVER, DJANGO, 2, variables=SETTINGS, killed=True)
    alone = [*RUNSERVER, "--noreload"]
    yield from each(["TERM", "INT", "QUIT"], "runserver-noreload", alone, DJANGO, 1, variables=SETTINGS)


CASES = {case.id: case for case in cases()}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, request):
    """{case: the futures of its outcomes, traced and not}"""
    wanted = [item.callspec.params["case"] for item in request.session.items if "outcomes" in item.fixturenames]
    with concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
        yield {
            name: [pool.submit(run_case, CASES[name], tmp_path_factory.mktemp(name), tracer) for tracer in (TRACED, ())]
            for name in dict.fromkeys(wanted)
        }


def kept_by(capture):
    """Bytes that the application keeps for its users."""
    return sum(
        statistic.size
        for statistic in capture.live.statistics("lineno")
        if statistic.traceback[0].filename.endswith("/app.py") and statistic.size >= KEPT
    )


@pytest.mark.parametrize("case", CASES)
def test_every_process_leaves_a_file(outcomes, case):
    outcome, plain = (future.result() for future in outcomes[case])
    assert outcome.status == plain.status
    assert "heapledger: written to " in outcome.said and "cannot write" not in outcome.said
    if CASES[case].killed:
        assert outcome.root in outcome.captures
        return
    assert outcome.seen <= set(outcome.captures), outcome.said
    assert outcome.asked == outcome.seen or not CASES[case].asks
    assert sum(map(kept_by, outcome.captures.values())) >= REQUESTS * KEPT, outcome.said
    if CASES[case].stop != "SIGQUIT" or not CASES[case].group:  # where the first process does not wait for the others
        assert "/app.py:" in outcome.said.rpartition("lines that held most")[2], outcome.said
