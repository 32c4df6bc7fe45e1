"""Leaks planted in real programs: after `heapledger run`, the leak is the first line of `summary` and of the page."""

import json
import os
import pathlib
import subprocess
import sys

import looking
import pytest

TIMEOUT = 120

# lru_cache on a method keeps each object, and all that its methods have ever returned.
CACHED_METHOD = """
import functools

from sqlalchemy import create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    number: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str]
    text: Mapped[str]


class Customers:
    def __init__(self, session):
        self.session = session

    @functools.lru_cache(maxsize=None)
    def orders(self, name):
        return self.session.scalars(select(Order).where(Order.customer == name)).all()  # planted


def main():
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all(Order(customer=f"c{number % 20}", text=f"order {number} " * 20) for number in range(400))
        session.commit()
    for request in range(300):
        with Session(engine) as session:
            Customers(session).orders(f"c{request % 20}")


main()
"""

# A server that remembers every request.
GROWING_DICT = """
import socket
import threading
import urllib.request

import uvicorn
from fastapi import FastAPI

app = FastAPI()
visits = {}


@app.get("/items/{number}")
def item(number: int):
    visits[number] = [f"visit {number} {step}" for step in range(200)]  # planted
    return {"number": number}


def visit(server, port):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while not server.started:
        pass
    for number in range(300):
        opener.open(f"http://127.0.0.1:{port}/items/{number}", timeout=10).read()
    server.should_exit = True


with socket.socket() as listening:
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    threading.Thread(target=visit, args=(server, listening.getsockname()[1]), daemon=True).start()
    server.run(sockets=[listening])
"""

# An exception keeps the frames it went through, and what their variables name.
KEPT_EXCEPTIONS = """
import json

failed = []


def read(text):
    order = json.loads(text)  # planted
    return order["total"]


def handle(number):
    try:
        return read(json.dumps({"number": number, "lines": [f"line {n} of {number}" for n in range(50)]}))
    except KeyError as error:
        failed.append(error)


for number in range(500):
    handle(number)
"""
PROGRAMS = {"cached_method": CACHED_METHOD, "growing_dict": GROWING_DICT, "kept_exceptions": KEPT_EXCEPTIONS}


@pytest.fixture
def packages(tmp_path):
    """Where the packages are, under the name that folders of packages have."""
    folder = tmp_path / "site-packages"
    folder.symlink_to(pathlib.Path(os.environ["HEAPLEDGER_PACKAGES"]))
    return folder


def heapledger(*arguments, **options):
    command = [sys.executable, "-P", "-m", "heapledger", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=True, timeout=TIMEOUT, **options)


def paths(node, above=()):
    """The places of each frame and its callers, of a tree as JSON."""
    for child in node["children"]:
        path = (*above, (child.get("file"), child.get("line")))
        yield path
        yield from paths(child, path)


def test_cut_stacks_of_a_server_are_joined(tmp_path, packages):
    """Of a handler 30 frames down, 12 are kept; which line of the program runs the server is known from others."""
    program = tmp_path / "server.py"
    program.write_text(GROWING_DICT.replace("def item", "async def item"))
    command = ["run", "-n", 12, "-o", "server.hlsnap", program]
    heapledger(*command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(packages)})
    answer = json.loads(heapledger("tree", "--json", "--threshold", 0.1, tmp_path / "server.hlsnap").stdout)
    lines = {text: number for number, text in enumerate(GROWING_DICT.splitlines(), 1)}
    (planted,) = [number for text, number in lines.items() if text.endswith("# planted")]
    serves = (str(program), lines["    server.run(sockets=[listening])"])
    found = [path for path in paths(answer["root"]) if path[-1] == (str(program), planted)]
    assert found and all(path[0] == serves and ("<cut>", 0) in path for path in found), found


@pytest.fixture(scope="module")
def browser():
    with looking.started_browser() as started:
        yield started


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_leak_is_the_first_line(tmp_path, packages, browser, name):
    program = tmp_path / f"{name}.py"
    program.write_text(PROGRAMS[name])
    heapledger("run", program, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(packages)})
    (capture,) = tmp_path.glob("*.hlsnap")
    source = PROGRAMS[name].splitlines()
    (planted,) = [number for number, line in enumerate(source, 1) if line.endswith("# planted")]
    lines = json.loads(heapledger("summary", "--json", capture).stdout)["lines"]["live"]
    assert lines["own"]
    first = lines["lines"][0]
    assert (first["file"], first["line"]) == (str(program), planted), json.dumps(lines, indent=1)
    assert first["source"] == source[planted - 1].strip()
    # By much: nobody has to guess which of the lines it is.
    assert first["size"] > 2 * lines["lines"][1]["size"]
    text = heapledger("summary", capture).stdout.decode()
    assert text.index(f"{program}:{planted}") < text.index(f"{program}:{lines['lines'][1]['line']}")
    heapledger("report", capture, "-o", tmp_path / "report.html")
    page = browser.new_page()
    looking.go_to(page, (tmp_path / "report.html").as_uri())
    _, _, place, text, _ = looking.fixes(page)[0]
    assert (place, text) == (f"{tmp_path.name}/{name}.py:{planted}", first["source"])
