"""Servers under `heapledger run`: started, asked for something, and stopped; what they have left behind."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field

import heapledger

DEADLINE = 60
REQUESTS = 3
KEPT = 100_000

ASGI = f"""\
kept = []
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({{"type": message["type"] + ".complete"}})
            if message["type"] == "lifespan.shutdown":
                return
    kept.append(bytearray({KEPT}))
    await send({{"type": "http.response.start", "status": 200, "headers": []}})
    await send({{"type": "http.response.body", "body": b"done"}})
"""
WSGI = f"""\
kept = []
def app(environ, start_response):
    kept.append(bytearray({KEPT}))
    start_response("200 OK", [])
    return [b"done"]
"""
FASTAPI = f"""\
from fastapi import FastAPI
app = FastAPI()
kept = []
@app.get("/")
async def root():
    kept.append(bytearray({KEPT}))
    return "done"
"""
DJANGO = f"""\
from django.http import HttpResponse
from django.urls import path
SECRET_KEY = "x"
DEBUG = True
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "app"
kept = []
def root(request):
    kept.append(bytearray({KEPT}))
    return HttpResponse("done")
urlpatterns = [path("", root)]
"""
CELERY = f"""\
import os
import celery
app = celery.Celery("app", broker="filesystem://")
folder = os.path.dirname(os.path.abspath(__file__))
app.conf.broker_transport_options = {{"data_folder_in": folder + "/queue", "data_folder_out": folder + "/queue",
    "control_folder": folder + "/control"}}
app.conf.worker_hijack_root_logger = False
kept = []
@app.task
def work():
    kept.append(bytearray({KEPT}))
    open(f"{{folder}}/done-{{len(kept)}}-{{os.getpid()}}", "w").close()
"""
# Each process that has imported the application leaves a file: gunicorn's workers lose signals that come before.
BOOTED = """
import os
open(f"{os.path.dirname(os.path.abspath(__file__))}/booted-{os.getpid()}", "w").close()
"""


@dataclass
class Case:
    """A server's command (PORT is replaced), the application in app.py, and how it is stopped."""

    name: str
    command: list
    application: str
    stop: str  # a signal; empty: it ends by itself, or by a command
    processes: int  # that the server has at least
    end: tuple = ()  # the words of a command for the interpreter that ends it
    before: str = ""  # a signal on which it replaces its workers
    group: bool = False  # the signal goes to all of them, as from a terminal
    boots: int = 1  # processes that import the application
    asks: bool = False  # it is asked for files while it runs
    killed: bool = False  # the server itself kills its other processes by SIGKILL
    variables: dict = field(default_factory=dict)

    @property
    def id(self):
        return "-".join(filter(None, [self.name, self.before, self.stop, "group" * self.group]))


@dataclass
class Outcome:
    root: int  # the first process
    status: int
    said: str
    seen: set  # the processes that were there before the end
    captures: dict  # {process: capture}
    asked: set  # the processes that have written a file when they were asked to


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def get(url, token=None):
    """(status, body) of a request; the server may still be starting."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + DEADLINE
    while True:
        try:
            with opener.open(request, timeout=10) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def descendants(root):
    """The number of a process and those of all that it has started, and they in turn."""
    parents = {}
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            facts = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if facts[0] != "Z":  # not one that has ended
            parents[int(status.parent.name)] = int(facts[1])
    found = {root}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def is_there(process):
    return os.path.exists(f"/proc/{process}")


def wait_until(condition, what, seconds=DEADLINE):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} has not happened in {seconds} seconds"
        time.sleep(0.05)


def use(case, folder, port):
    """Have the application work, so that it keeps something in some of its processes."""
    if case.application is not CELERY:
        for _ in range(REQUESTS):
            assert get(f"http://127.0.0.1:{port}/")[0] == 200
        return
    send = "import app\nfor _ in range(%d): app.work.delay()" % REQUESTS
    subprocess.run([sys.executable, "-c", send], cwd=folder, check=True, timeout=DEADLINE)
    wait_until(lambda: len(list(folder.glob("done-*"))) >= REQUESTS, "the work")
    for path in folder.glob("done-*"):
        path.unlink()


def loaded(folder, names):
    """{process: capture} of files."""
    captures = [heapledger.Capture.load(path) for path in folder.glob(names)]
    return {capture.metadata["pid"]: capture for capture in captures}


def ask(case, folder, processes, port):
    """Have each process write a file while it goes on; those that have."""
    for process in processes:
        os.kill(process, signal.SIGRTMIN + 7)
    wait_until(lambda: len(list(folder.glob("out*-0001.hlsnap"))) == len(processes), "the files that were asked for")
    use(case, folder, port)
    asked = set(loaded(folder, "out*-0001.hlsnap"))
    for path in folder.glob("out*-0001.hlsnap"):
        path.unlink()
    return asked


def send_to(root, number, group):
    if group:
        os.killpg(root, number)
    else:
        os.kill(root, number)


def run_case(case, folder, tracer):
    """Start, use and stop a server, by an interpreter with these words before the server's; its Outcome."""
    (folder / "app.py").write_text(case.application + BOOTED)
    for name in ("queue", "control"):
        (folder / name).mkdir()
    port = free_port()
    command = [sys.executable, *tracer, *(str(word).replace("PORT", str(port)) for word in case.command)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **case.variables}
    said = folder / "said"
    with said.open("wb") as output:
        server = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        use(case, folder, port)
        wait_until(lambda: len(descendants(server.pid)) >= case.processes, f"{case.processes} processes")
        wait_until(lambda: len(list(folder.glob("booted-*"))) >= case.boots, f"{case.boots} boots")
        seen = descendants(server.pid)
        asked = ask(case, folder, seen, port) if tracer and case.asks else seen
        if case.before:
            send_to(server.pid, getattr(signal, case.before), False)
            wait_until(lambda: sum(map(is_there, seen)) <= len(seen) - case.processes + 1, "the end of the workers")
            wait_until(lambda: len(descendants(server.pid)) >= case.processes, "new workers")
            wait_until(lambda: len(list(folder.glob("booted-*"))) >= 2 * case.boots, "their boots")
            use(case, folder, port)
            seen |= descendants(server.pid)
        if case.end:
            subprocess.run([sys.executable, *case.end], cwd=folder, env=environment, check=True, timeout=DEADLINE)
        if case.stop:
            send_to(server.pid, getattr(signal, case.stop), case.group)
        status = server.wait(DEADLINE)
        wait_until(lambda: not any(map(is_there, seen)), "the end of all")
    except BaseException as error:
        error.add_note(said.read_text(errors="replace"))
        raise
    finally:
        try:
            os.killpg(server.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        server.wait()
    return Outcome(server.pid, status, said.read_text(errors="replace"), seen, loaded(folder, "out*.hlsnap"), asked)
