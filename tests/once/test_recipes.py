"""The recipes with the real packages: servers on loopback, a worker, a test run. What a reader pastes is what runs."""

import gzip
import os
import re
import signal
import subprocess
import sys

import heapledger
import pytest
from documents import python, start, write_files
from servers import DEADLINE, descendants, free_port, get, wait_until


def end(process):
    """End a server by the signal that its reader would use; what it said."""
    process.send_signal(signal.SIGTERM)
    try:
        return process.communicate(timeout=DEADLINE)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        raise


@pytest.fixture
def flask(tmp_path):
    """serve(**variables): the address of the Flask recipe's application."""
    write_files("recipes/flask.md", tmp_path)
    servers = []

    def serve(**variables):
        port = free_port()
        command = [sys.executable, "-m", "flask", "--app", "app", "run", "--port", port]
        servers.append(start(*command, folder=tmp_path, **variables))
        return f"http://127.0.0.1:{port}"

    yield serve
    for server in servers:
        end(server)


def test_flask(flask, tmp_path):
    address = flask(HEAPLEDGER="10", MEMORY_TOKEN="secret")
    for _ in range(20):
        assert get(address) == (200, b"hello\n")
    status, text = get(f"{address}/debug/memory/top", "secret")
    assert status == 200 and len(text.splitlines()) == 20
    line = next(line for line in text.decode().splitlines() if "/app.py:11:" in line)
    assert re.search(r"count=(2\d|4\d)", line), line  # a bytearray is one block or two
    status, file = get(f"{address}/debug/memory/capture", "secret")
    (tmp_path / "live.hlsnap").write_bytes(file)
    capture = heapledger.Capture.load(tmp_path / "live.hlsnap")
    assert capture.moments == ("live", "peak", "allocated")
    status, profile = get(f"{address}/debug/memory/pprof", "secret")
    assert status == 200 and b"inuse_space" in gzip.decompress(profile) and b"app.py" in gzip.decompress(profile)
    for wrong in (None, "wrong", "secret2", "", "sécret"):
        assert get(f"{address}/debug/memory/top", wrong and wrong.encode().decode("latin-1"))[0] == 403


def test_flask_is_off_unless_asked_for(flask):
    assert get(f"{flask(HEAPLEDGER='1')}/debug/memory/top", "secret")[0] == 404
    assert get(f"{flask(MEMORY_TOKEN='secret')}/debug/memory/top", "secret")[0] == 503


def test_uvicorn(tmp_path):
    """The router of the FastAPI recipe: closed unless opened, and then what Flask's endpoint says."""
    write_files("recipes/uvicorn.md", tmp_path)
    for variables, status in (({"HEAPLEDGER": "1"}, 404), ({"MEMORY_TOKEN": "secret"}, 503), (None, 200)):
        port = free_port()
        command = [sys.executable, "-m", "uvicorn", "--port", port, "app:app"]
        given = {"HEAPLEDGER": "10", "MEMORY_TOKEN": "secret"} if variables is None else variables
        server = start(*command, folder=tmp_path, **given)
        try:
            address = f"http://127.0.0.1:{port}"
            for _ in range(20):
                assert get(address) == (200, b'"hello"')
            got, text = get(f"{address}/debug/memory/top", "secret")
            assert got == status
            wrong = [get(f"{address}/debug/memory/top", token)[0] for token in (None, "wrong", "secret2")]
            assert wrong == [404 if status == 404 else 403] * 3
            captured = get(f"{address}/debug/memory/capture", "secret")
        finally:
            end(server)
    line = next(line for line in text.decode().splitlines() if "/app.py:11:" in line)
    assert re.search(r"count=(2\d|4\d)", line), line
    (tmp_path / "live.hlsnap").write_bytes(captured[1])
    assert heapledger.Capture.load(tmp_path / "live.hlsnap").moments == ("live", "peak", "allocated")


SERVERS = {
    "gunicorn": ["gunicorn", "--bind", "127.0.0.1:PORT", "app:app"],
    "uvicorn": ["uvicorn", "--port", "PORT", "asgi:app"],
    "hypercorn": ["hypercorn", "--bind", "127.0.0.1:PORT", "asgi:app"],
}


@pytest.mark.parametrize("server", SERVERS)
def test_signal_of_the_web_service(tmp_path, server):
    """The handler in the document, in real servers: they write a file and go on."""
    write_files("howto/web-service.md", tmp_path)
    (tmp_path / "app.py").write_text(
        "import memory_signal, os\n"
        "def app(environ, start_response):\n"
        "    start_response('200 OK', [])\n"
        "    return [str(os.getpid()).encode()]\n"
    )
    (tmp_path / "asgi.py").write_text(
        "import memory_signal, os\n"
        "async def app(scope, receive, send):\n"
        "    assert scope['type'] == 'http'\n"
        "    await send({'type': 'http.response.start', 'status': 200, 'headers': []})\n"
        "    await send({'type': 'http.response.body', 'body': str(os.getpid()).encode()})\n"
    )
    port = free_port()
    command = [str(word).replace("PORT", str(port)) for word in SERVERS[server]]
    process = start(sys.executable, "-m", *command, folder=tmp_path, HEAPLEDGER="10")
    try:
        worker = int(get(f"http://127.0.0.1:{port}/")[1])
        assert worker in descendants(process.pid)
        for number in (1, 2):
            os.kill(worker, signal.SIGRTMIN + 7)
            get(f"http://127.0.0.1:{port}/")  # Python's handlers wait for the main thread
            wait_until(lambda: len(list(tmp_path.glob(f"capture-{worker}-*.hlsnap"))) == number, "the file")  # noqa: B023
        assert int(get(f"http://127.0.0.1:{port}/")[1]) == worker
    finally:
        end(process)
    for path in tmp_path.glob("capture-*.hlsnap"):
        assert heapledger.Capture.load(path).metadata["pid"] == worker


def test_gunicorn(tmp_path):
    write_files("recipes/gunicorn.md", tmp_path)
    # 1 MB before the fork, which both workers inherit, and 100 KB for each request.
    (tmp_path / "app.py").write_text(
        "import os\n"
        "inherited = bytearray(1_000_000)\n"
        "kept = []\n"
        "def app(environ, start_response):\n"
        "    kept.append(bytearray(100_000))\n"
        "    start_response('200 OK', [])\n"
        "    return [str(os.getpid()).encode()]\n"
    )
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--workers", 2, "--bind", f"127.0.0.1:{port}", "app:app"]
    server = start(*command, folder=tmp_path, HEAPLEDGER="10")
    try:
        requests = [get(f"http://127.0.0.1:{port}/") for _ in range(30)]
        assert {status for status, _ in requests} == {200}
    finally:
        said = end(server)
    assert len(list(tmp_path.glob("worker-*.hlsnap"))) == 2, said
    assert python("merge_workers.py", folder=tmp_path).startswith("2 workers, live:\n")
    merged = heapledger.Capture.load(tmp_path / "workers.hlsnap")
    files = sorted(path.name for path in tmp_path.glob("worker-*.hlsnap"))
    python("-m", "heapledger", "merge", *files, "-o", "command.hlsnap", folder=tmp_path)
    by_command = heapledger.Capture.load(tmp_path / "command.hlsnap")
    assert by_command.live.statistics("traceback") == merged.live.statistics("traceback")
    sizes = {statistic.traceback[0].lineno: statistic.size for statistic in only(merged.live, "*/app.py")}
    assert sizes[2] == pytest.approx(1_000_000, abs=200)  # once
    assert sizes[5] == pytest.approx(len(requests) * 100_000, rel=0.01)


def only(snapshot, pattern):
    return snapshot.filter_traces([heapledger.Filter(True, pattern)]).statistics("lineno")


def test_django(tmp_path):
    write_files("recipes/django.md", tmp_path)
    settings = "SECRET_KEY = 'x'\nDATABASES = {}\nTEST_RUNNER = 'memory_runner.MemoryRunner'\n"
    (tmp_path / "settings.py").write_text(settings)
    said = python("-m", "django", "test", folder=tmp_path, expect=1, DJANGO_SETTINGS_MODULE="settings")
    assert re.search(r"^(\.F|F\.)$", said, re.M), said  # one character for each test
    assert "Ran 2 tests" in said and "FAILED (failures=1)" in said, said
    assert "FAIL: test_large " in said and "FAIL: test_small" not in said
    assert re.search(r"AssertionError: 5,0\d\d,\d\d\d bytes at the peak, 1,000,000 allowed", said), said
    assert re.search(r"tests\.py:11: size=4883 KiB", said), said
    assert re.search(r"^ +5,0\d\d,\d\d\d  tests\.\S+_large\n +1\d\d,\d\d\d  tests\.\S+_small$", said, re.M), said


def test_celery(tmp_path):
    """One process, as the memory broker wants it: a worker in a thread, with the pool that has one task at a time."""
    write_files("recipes/celery.md", tmp_path)
    (tmp_path / "run.py").write_text(
        "from celery.contrib.testing.worker import start_worker\n"
        "from jobs import app, resize\n"
        "with start_worker(app, pool='solo', perform_ping_check=False, loglevel='INFO'):\n"
        "    print([resize.delay(3_000_000).get(timeout=30) for _ in range(3)])\n"
    )
    said = python("run.py", folder=tmp_path)
    assert "[3000000, 3000000, 3000000]" in said
    logged = re.findall(r"jobs\.resize: peak (\d+) bytes, left behind (\d+)", said)
    assert len(logged) == 3, said
    for peak, left in logged:
        assert 3_000_000 < int(peak) < 3_100_000 and 1_000 <= int(left) < 50_000, said
    assert re.search(r"/jobs\.py:10: size=", said), said
