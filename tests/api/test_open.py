"""heapledger open: who gets an answer, and how it ends."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.parse
import zlib

import heapledger
import pytest


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The address of a running server."""
    name = tmp_path_factory.mktemp("open") / "a.hlsnap"
    heapledger.Snapshot([(0, 100, (("a.py", 1),), 1)], 1).dump(name, format="hlsnap")
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "heapledger", "open", str(name)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield urllib.parse.urlsplit(process.stdout.readline().strip())
        process.send_signal(signal.SIGINT)
        rest, complaints = process.communicate(timeout=20)
        assert (process.returncode, rest) == (0, "")
        assert complaints.split() == ["press", "^C", "to", "stop"]
    finally:
        process.kill()
        process.communicate()


def ask(address, path, method="GET", host=None):
    """(status, headers, body)."""
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=20)
    try:
        connection.request(method, path, headers={"Host": host or address.netloc})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def test_the_address_has_a_token(served):
    assert served.hostname == "127.0.0.1"
    assert re.fullmatch(r"/[\w-]{32}/", served.path)


def test_the_page_and_its_pieces(served):
    status, headers, body = ask(served, served.path)
    assert status == 200 and headers["Content-Type"].startswith("text/html")
    assert b"connect-src &#x27;self&#x27;" in body
    assert headers["Cache-Control"] == "no-store" and headers["Referrer-Policy"] == "no-referrer"
    status, _, body = ask(served, served.path + "tree")
    text = zlib.decompress(body, -15)
    header = json.loads(text[4 : 4 + int.from_bytes(text[:4], "little")])
    assert status == 200 and header["files"] == ["a.py"] and header["columns"] == []
    status, _, body = ask(served, served.path + "column?moment=0&capture=0")
    assert status == 200 and zlib.decompress(body, -15)
    status, headers, body = ask(served, served.path, method="HEAD")
    assert (status, body) == (200, b"") and int(headers["Content-Length"]) > 10_000


@pytest.mark.parametrize(
    "path",
    ["/", "", "//", "/tree", "/wrong/", "/wrong/tree", "/wrong/column?moment=0&capture=0", "/../etc/passwd", "/%00/"],
)
def test_nothing_without_the_token(served, path):
    assert ask(served, path or "*")[0] == 404


@pytest.mark.parametrize("name", ["../x", "page.js", "tree/", "column"])
def test_nothing_else_with_it(served, name):
    assert ask(served, served.path + name)[0] == 404


@pytest.mark.parametrize(("moment", "capture"), [("1", "0"), ("-1", "0"), ("0", "9"), ("x", "0"), ("0", "")])
def test_no_other_columns(served, moment, capture):
    assert ask(served, f"{served.path}column?moment={moment}&capture={capture}")[0] == 404


def test_nothing_but_the_beginning_of_the_token(served):
    assert ask(served, served.path[:-2] + "/")[0] == 404
    assert ask(served, served.path[:-1])[0] == 404


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "127.0.0.1:1", "localhost.example.org:80", "[::1]:80"])
def test_nothing_under_another_name(served, host):
    assert ask(served, served.path, host=host)[0] == 404


def test_localhost_is_a_name_of_this_machine(served):
    assert ask(served, served.path, host=f"localhost:{served.port}")[0] == 200


def test_requests_change_nothing(served):
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert ask(served, served.path, method=method)[0] == 501


def test_only_this_machine_is_listened_to(served):
    outside = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        outside.settimeout(2)
        with pytest.raises(OSError):
            outside.connect(("127.0.0.2", served.port))
    finally:
        outside.close()


def test_a_port_that_is_taken(served, tmp_path):
    name = tmp_path / "a.hlsnap"
    heapledger.Snapshot([], 1).dump(name, format="hlsnap")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "heapledger", "open", "--port", str(served.port), str(name)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2 and "cannot listen on port" in done.stderr
