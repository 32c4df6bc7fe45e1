"""The report served on loopback, for subjects too big for one file: the tree first, then each column when it is shown.

The address contains a random token. The server answers only requests with the token, and only under this machine's own
name (a page elsewhere could make its name lead here). Requests change nothing.

Threading: each connection has a thread. The threads only read the tree, and keep what they have packed.
"""

from __future__ import annotations

import hmac
import http.server
import secrets
import threading
import urllib.parse

from heapledger.report import _data, _page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from heapledger.report._subject import Subject

HOST = "127.0.0.1"
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Pieces:
    """The answers, each made once."""

    def __init__(self, title: str, subject: Subject, options: _data.Options) -> None:
        self._title = title
        self._subject = subject
        self._options = options
        self._tree = _data.Tree(subject.snapshots)
        self._made: dict[str | int, bytes] = {}
        self._lock = threading.Lock()

    def _once(self, key: str | int, make: Callable[[], bytes]) -> bytes:
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]

    def _column(self, query: dict[str, str]) -> bytes:
        """The bytes of a column; KeyError or ValueError if it does not exist."""
        moment, capture = int(query["moment"]), int(query["capture"])
        width = len(self._subject.captures)
        if not (0 <= moment < len(self._subject.moments) and 0 <= capture < width):
            raise KeyError(moment)
        index = moment * width + capture
        return self._once(index, lambda: _data.encode_column(self._tree, index))

    def find(self, name: str, query: str) -> tuple[str, bytes] | None:
        """(content type, bytes), or None."""
        try:
            if name == "":
                page = self._once("", lambda: _page.make(self._title, "", served=True).encode("utf-8", "replace"))
                return "text/html; charset=utf-8", page
            if name == "tree":
                make = lambda: _data.encode_tree(self._subject, self._tree, self._options)  # noqa: E731
                return "application/octet-stream", self._once("tree", make)
            if name == "column":
                return "application/octet-stream", self._column(dict(urllib.parse.parse_qsl(query)))
        except (KeyError, ValueError):
            pass
        return None


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "heapledger"
    sys_version = ""
    timeout = 60

    def _is_for_us(self, token: str) -> bool:
        hosts = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        return self.headers.get("Host") in hosts and hmac.compare_digest(token.encode(), self.server.token.encode())

    def do_GET(self) -> None:
        address = urllib.parse.urlsplit(self.path)
        _, _, path = address.path.partition("/")
        token, slash, name = path.partition("/")
        found = None
        if slash and self._is_for_us(token):
            found = self.server.pieces.find(name, address.query)
        self._answer(200 if found else 404, *(found or ("text/plain; charset=utf-8", b"There is nothing here.\n")))

    do_HEAD = do_GET

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass  # the token is in every address


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, pieces: Pieces, port: int = 0) -> None:
        super().__init__((HOST, port), _Handler)
        self.pieces = pieces
        self.token = secrets.token_urlsafe(24)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a browser that has gone away
