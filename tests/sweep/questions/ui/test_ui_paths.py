"""Index server: malformed, escaping and aborted requests."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from sweep.questions.ui import Index

WHOLE = b"<p>whole</p>"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    results = tmp_path_factory.mktemp("results")
    folder = results / "sweeps" / "x"
    folder.mkdir(parents=True)
    (folder / "report.html").write_bytes(WHOLE)
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "out").symlink_to(results / "secret.txt")
    (results / "secret.txt").write_text("no")
    index = Index(results, None, None)
    stop = threading.Event()
    thread = threading.Thread(target=index.serve, args=(lambda: not stop.is_set(),))
    thread.start()
    yield index
    stop.set()
    thread.join()


def answer(index: Index, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", index.port), timeout=60) as connection:
        connection.sendall(request)
        parts = []
        while part := connection.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def cookie(index: Index) -> bytes:
    return f"Cookie: a=b; {index.cookie_name}={index.token}\r\n".encode()


def get(index: Index, path: bytes) -> bytes:
    host = b"Host: localhost:%d\r\n" % index.port
    return answer(index, b"GET %b HTTP/1.1\r\n%b%b\r\n" % (path, host, cookie(index)))


@pytest.mark.parametrize(
    "path",
    [
        b"/sweeps/x/%00",
        b"/sweeps/x/report.html%00",
        b"/%00",
        b"/%ff",
        b"/sweeps/x/%ED%A0%80",  # half a surrogate
        b"/..%2f",
        b"/..%2fsecret.txt",
        b"/sweeps/..%2f..%2fsecret.txt",
        b"/sweeps/../secret.txt",
        b"/sweeps/x/out",
        b"/sweeps/x/loop",
        b"/sweeps/x/report.html/",
        b"/sweeps/x/" + 300 * b"a",
        b"/sweeps/" + 3000 * b"a/",
        b"/" + 60_000 * b"a",
        b"/%",
        b"/%zz",
        b"http://[",
        b"http://[/sweeps/x/report.html",
        b"//[x",
        b"*",
        b"/\xff\xfe",
    ],
)
def test_a_path_outside_the_pages_is_not_found(
    served: Index, path: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    assert get(served, path).split(b"\r\n")[0].startswith(b"HTTP/1.0 404 ")
    assert capfd.readouterr().err == ""


def test_pages_are_served(served: Index) -> None:
    assert get(served, b"/sweeps/x/report.html").endswith(WHOLE)
    assert get(served, b"/sweeps/x/report.html?x=%00").endswith(WHOLE)
    assert get(served, b"/").startswith(b"HTTP/1.0 200 ")


def test_a_browser_that_hangs_up_leaves_no_traceback(
    served: Index, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(20):
        client = socket.create_connection(("127.0.0.1", served.port))
        # closed with a reset: the server's next read or write fails
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        head = b"GET / HTTP/1.1\r\nHost: localhost:%d\r\n" % served.port
        client.sendall(head + cookie(served) + b"\r\n")
        client.close()
    assert get(served, b"/").startswith(b"HTTP/1.0 200 ")
    assert capfd.readouterr().err == ""
