"""Server of the index: the page, its changes, the files of sweeps; tags and removal of sweeps.

Any account of the machine can reach the port, so the server answers those alone who know its token:
it stands in the address that is printed, and in a cookie once that was opened.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sim.base.errors import InputError
from sim.base.reading import parse_json
from sweep.grid.tracking_uri import sqlite_uri
from sweep.questions.ui import index
from sweep.questions.ui.live_index import LiveIndex, error_text
from sweep.questions.ui.mlflow_server import DATABASE, HOST, PORT, address, ports
from sweep.store import removal, sweep_list, sync, tags
from sweep.store.sweep_summaries import size_text

MAX_BODY_BYTES = 10_000
TOKEN_HEADER = "X-Sweep-Token"
TOKEN = "token"
"""Parameter of the printed address."""
WHERE = "open the address that `python -m sweep ui` printed where it was started: it has the token"
_WAIT_S = 30.0
"""Longest wait for the next part of a request."""
_MOST_IGNORED_BYTES = 1_000_000
_COMMON_HEADERS = {
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
_SANDBOX = "sandbox allow-scripts allow-downloads allow-modals allow-popups"
"""Policy of a sweep's files: their scripts, maybe a stranger's, can't read the index's token."""


class _Server(ThreadingHTTPServer):
    """HTTP server that does not report a browser that hangs up."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the traceback of anything but a lost connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class RequestError(Exception):
    """Request that is refused, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Index:
    """The index of a folder of results, ready to be served at `address`."""

    def __init__(self, results: Path, port: int | None, mlflow_port: int | None) -> None:
        self.results, self.mlflow_port = results, mlflow_port
        self.live = LiveIndex(results, mlflow_port)
        self.token = secrets.token_urlsafe(32)
        self.server_id = secrets.token_hex(4)  # a page of an earlier server has another token
        first = PORT if mlflow_port is None else mlflow_port + 1
        self._server = _listening(self._handler(), [port] if port else ports(first))
        self.port: int = self._server.server_port
        self.address = f"http://{HOST}:{self.port}/?{TOKEN}={self.token}"
        # other servers of this machine have the same cookies, as these know no port
        self.cookie_name = f"sweep-ui-{self.port}"

    def serve(self, while_true: Callable[[], bool] = lambda: True) -> None:
        """Answer until interrupted or until `while_true`, called every second, returns False."""
        sync.fetch(self.results)
        self._server.timeout = 1.0
        with self._server:
            while while_true():
                self._server.handle_request()

    def page(self) -> str:
        """Return the current index as HTML."""
        rows = self.live.rows(fresh=True)
        mlflow = ""
        if self.mlflow_port is not None:
            mlflow = address(sqlite_uri(self.results / DATABASE), self.mlflow_port)
        server = {"token": self.token, "id": self.server_id, "version": self.live.version}
        return index.to_html(self.results, rows, mlflow, server)

    def changes(self, query: str) -> dict[str, Any]:
        """Return what changed since the version of a query, ``since=7``."""
        (since,) = parse_qs(query).get("since", ["0"])[:1]
        return {
            "server": self.server_id,
            **self.live.changes(int(since) if since.isdecimal() and len(since) < 16 else 0),
        }

    def act(self, action: str, request: Any) -> str:
        """Tag or remove a sweep; return a sentence for the reader.

        Raises
        ------
        RequestError
            If there is no such action or sweep, or it can't be done now.
        """
        sweep = request.get("sweep") if isinstance(request, dict) else None
        if not isinstance(sweep, str) or sweep not in {
            entry.sweep for entry in sweep_list.sweeps(self.results)
        }:
            raise RequestError(404, "there is no such sweep (any more)")
        try:
            if action == "/remove":
                freed = removal.remove(self.results, sweep)
                return f"{sweep} was deleted, {size_text(freed)}."
            words = {key: request.get(key, []) for key in ("add", "remove")}
            if not all(isinstance(w, list) and all(isinstance(x, str) for x in w)
                       for w in words.values()):  # fmt: skip
                raise RequestError(400, "add and remove are lists of words")
            left = tags.change(self.results, sweep, **words)
            return f"Tags of {sweep}: {', '.join(left) or 'none'}."
        except InputError as error:
            raise RequestError(409, error_text(error)) from error
        except OSError as error:
            raise RequestError(500, error_text(error)) from error

    def _handler(self) -> Callable[..., BaseHTTPRequestHandler]:
        types = SimpleHTTPRequestHandler.extensions_map | {".md": "text/plain; charset=utf-8"}
        handler = type("Handler", (_Handler,), {"served": self, "extensions_map": types})
        return partial(handler, directory=str(self.results))

    def is_token(self, text: str) -> bool:
        """Tell whether a text is the token, in the same time for any text of its length."""
        return hmac.compare_digest(text.encode(errors="replace"), self.token.encode())

    def is_allowed_host(self, host: str) -> bool:
        """Tell whether a request names this server, not a foreign name of this machine."""
        return host in (f"{HOST}:{self.port}", f"localhost:{self.port}")

    def is_public(self, path: Path) -> bool:
        """Tell whether a file is part of a sweep's, report's or comparison's folder."""
        folders = [self.results / name for name in ("sweeps", "reports", "comparisons")]
        # a null byte, half a surrogate, a name that is too long, links without end
        with contextlib.suppress(ValueError, OSError, RuntimeError):
            path = path.resolve()
            return path.is_file() and any(path.is_relative_to(folder) for folder in folders)
        return False


class _Handler(SimpleHTTPRequestHandler):
    """Answers requests to `served`."""

    served: Index
    timeout = _WAIT_S
    _policy = ""  # Content-Security-Policy of the answer
    _cookie = ""  # Set-Cookie of the answer

    def do_GET(self) -> None:
        """Answer with the page, its changes, or a file of a sweep."""
        url = self._url()
        try:
            self._check_sender(url)
        except RequestError as error:
            self._answer(error.status, f"{error}\n", "text/plain")
            return
        if url is None:
            self.send_error(404)
        elif url.path == "/":
            self._answer(200, self.served.page(), "text/html")
        elif url.path == "/changes.json":
            self._answer(200, json.dumps(self.served.changes(url.query)), "application/json")
        elif url.path and self.served.is_public(Path(self.translate_path(self.path))):
            self._policy = _SANDBOX
            super().do_GET()
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        """Tag or remove a sweep, if the request comes from the page that this server wrote."""
        try:
            message, status = self.served.act(*self._checked_request()), 200
        except RequestError as error:
            message, status = str(error), error.status
        self._answer(status, json.dumps({"message": message}), "application/json")
        if status == 413:
            self._ignore_rest()

    def _check_sender(self, url: Any) -> None:
        """Refuse a request that does not prove who sends it; let a browser keep the token."""
        if not self.served.is_allowed_host(self.headers.get("Host", "")):
            # a foreign page whose name resolves to this machine, or a tunnel
            hosts = f"{HOST}:{self.served.port} and localhost:{self.served.port}"
            raise RequestError(403, f"this server answers at {hosts} alone: forward the same port")
        if url is not None and url.path == "/":
            tokens = parse_qs(url.query).get(TOKEN, [])
            if any(map(self.served.is_token, tokens)):
                attributes = "HttpOnly; SameSite=Strict; Path=/"
                self._cookie = f"{self.served.cookie_name}={self.served.token}; {attributes}"
                return
        for part in self.headers.get("Cookie", "").split(";"):
            name, _, value = part.strip().partition("=")
            if name == self.served.cookie_name and self.served.is_token(value):
                return
        raise RequestError(403, WHERE)

    def _checked_request(self) -> tuple[str, Any]:
        """Return path and body of a POST; refuse those of other pages."""
        headers, own = self.headers, self.headers.get("Host", "")
        length = headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 9 or int(length) > MAX_BODY_BYTES:
            raise RequestError(413, f"a request gives its length, at most {MAX_BODY_BYTES} bytes")
        try:
            body = self.rfile.read(int(length))  # in any case: else the browser may miss the answer
        except TimeoutError:
            raise RequestError(408, "the request is shorter than it says") from None
        token = headers.get(TOKEN_HEADER, "")
        if not token:
            raise RequestError(403, WHERE)
        is_own = (
            self.served.is_allowed_host(own)
            and headers.get("Origin", f"http://{own}") == f"http://{own}"
            and self.served.is_token(token)
        )
        if not is_own:
            raise RequestError(403, "this page is out of date; load it again")
        url = self._url()
        if url is None or url.path not in ("/tags", "/remove"):
            raise RequestError(404, "there is no such action")
        try:
            return url.path, parse_json(body)
        except ValueError as error:
            raise RequestError(400, "the request is not JSON, or nested too deeply") from error

    def _ignore_rest(self) -> None:
        """Read on for a moment: a client that still sends would miss the answer."""
        with contextlib.suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(1.0)
            n_bytes = 0
            while n_bytes < _MOST_IGNORED_BYTES and (part := self.connection.recv(1 << 16)):
                n_bytes += len(part)

    def _url(self) -> Any:
        with contextlib.suppress(ValueError):  # http://[ is no URL
            return urlsplit(self.path)
        return None

    def _answer(self, status: int, text: str, kind: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def end_headers(self) -> None:
        """Add the headers of every answer."""
        for name, value in _COMMON_HEADERS.items():
            self.send_header(name, value)
        for name, value in (
            ("Content-Security-Policy", self._policy),
            ("Set-Cookie", self._cookie),
        ):
            if value:
                self.send_header(name, value)
        super().end_headers()

    def do_HEAD(self) -> None:
        """Refuse: nothing here needs it."""
        self.send_error(405)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def _listening(
    handler: Callable[..., BaseHTTPRequestHandler], ports_tried: Sequence[int]
) -> ThreadingHTTPServer:
    """Listen on the first port that is free: another process may take one at any moment."""
    reason = "none is left"
    for port in ports_tried:
        try:
            return _Server((HOST, port), handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
    first = ports_tried[0]
    tried = f"port {first}" if len(ports_tried) == 1 else f"a port from {first} on"
    raise InputError(f"{tried}: {reason}; name another: --index-port N")
