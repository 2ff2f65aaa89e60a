"""S3 server in this process, and a front that makes requests fail."""

from __future__ import annotations

import logging
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from moto.s3.models import s3_backends
from moto.server import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from pyarrow import fs
from werkzeug.serving import make_server

SECRET = "not-for-any-eyes"
RESET = 0
"""An answer that is none: the connection is reset."""
CODES = {400: "ExpiredToken", 403: "AccessDenied", 500: "InternalError", 503: "SlowDown"}


@dataclass(frozen=True)
class Request:
    """An HTTP request to the server."""

    method: str
    path: str
    query: str
    user: str  # whose key it is signed with


def _passes(_: Request) -> int | None:
    return None


@dataclass
class Front:
    """Passes requests on to the server, or answers in its place with a status."""

    refuse: Callable[[Request], int | None] = _passes  # None passes a request on
    lose: Callable[[Request], int | None] = _passes  # the same, but the server carries it out first
    n_requests: int = 0
    n_failed: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _app: Any = field(default_factory=lambda: DomainDispatcherApplication(create_backend_app))

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        user = re.search("Credential=([^/]*)/", environ.get("HTTP_AUTHORIZATION", ""))
        names = ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING")
        request = Request(*(environ[name] for name in names), user[1] if user else "")
        with self._lock:
            status, lost = self.refuse(request), self.lose(request)
            self.n_requests += 1
            self.n_failed += status is not None or lost is not None
        if status is None and lost is None:
            return self._app(environ, start)
        if status is None:
            list(self._app(environ, lambda *_: None))
            status = lost
        else:
            is_chunked = environ.get("wsgi.input_terminated")
            n_bytes = -1 if is_chunked else int(environ.get("CONTENT_LENGTH") or 0)
            environ["wsgi.input"].read(n_bytes)
        if status == RESET:
            connection = environ["werkzeug.socket"]
            at_once = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
            connection.shutdown(socket.SHUT_RD)  # or the server would wait for another request
            raise ConnectionResetError
        content = f"<Error><Code>{CODES.get(status, '')}</Code></Error>".encode()
        start(f"{status} No", [("Content-Type", "application/xml")])
        return [] if request.method == "HEAD" else [content]


@contextmanager
def serving(front: Front | None = None) -> Iterator[str]:
    """Serve, with nothing kept at first; give the address."""
    s3_backends.reset()  # what an earlier server of this process kept
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app: Any = Front() if front is None else front
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=MotoRequestHandler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.port}"
    server.shutdown()
    server.server_close()
    thread.join()


def bucket(endpoint: str, name: str) -> tuple[fs.S3FileSystem, str]:
    """Make a bucket; give a client, and the options of its addresses."""
    system = fs.S3FileSystem(
        access_key="someone",
        secret_key=SECRET,
        endpoint_override=endpoint,
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
    )
    system.create_dir(name)
    return system, f"endpoint_override={endpoint}&scheme=http&region=us-east-1"
