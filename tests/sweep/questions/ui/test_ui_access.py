"""Access to the index: other accounts of the machine can neither read nor change anything."""

from __future__ import annotations

import http.client
import http.cookiejar
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sweep.questions.ui.index_server import TOKEN_HEADER, Index
from sweep.store.journal import Journal
from sweep.store.sweep_summaries import summarize

SWEEP = "a-12345678"
WHERE = "open the address that `python -m sweep ui` printed where it was started: it has the token"
REPORT = f"/sweeps/{SWEEP}/report.html"
PATHS = ["/", "/changes.json", REPORT, "/sweeps/none", "/?token=", "/?token=x&token=y", "/?q=1"]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Index]:
    Journal(tmp_path, SWEEP).append("begin", cells=7, todo=7, cached=[], argv=[])
    report = tmp_path / REPORT[1:]
    report.parent.mkdir(parents=True)
    report.write_text("<p>secret</p>")
    index, stop = Index(tmp_path, None, None), threading.Event()
    thread = threading.Thread(target=index.serve, args=(lambda: not stop.is_set(),))
    thread.start()
    yield index
    stop.set()
    thread.join()


def status_of(
    index: Index, method: str, path: str, headers: dict[str, str], body: str | None = None
) -> tuple[int, str, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", index.port, timeout=60)
    with closing(connection):
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers


@pytest.mark.parametrize("path", PATHS)
def test_who_does_not_know_the_token_gets_one_sentence(served: Index, path: str) -> None:
    name = served.cookie_name
    for cookie in ("", f"{name}=", f"{name}={served.token[:-1]}", f"{name}=\xe9", ";;=;", name):
        status, text, headers = status_of(served, "GET", path, {"Cookie": cookie})
        assert (status, text) == (403, f"{WHERE}\n")
        assert served.token not in str(headers)
        assert headers["Set-Cookie"] is None


def test_the_printed_address_gives_a_cookie_that_opens_the_rest(served: Index) -> None:
    assert served.address == f"http://127.0.0.1:{served.port}/?token={served.token}"
    status, text, headers = status_of(served, "GET", f"/?token={served.token}", {})
    assert status == 200
    assert SWEEP in text
    cookie, *attributes = headers["Set-Cookie"].split("; ")
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=Strict"]
    assert headers["Referrer-Policy"] == "no-referrer"
    for path in ("/", "/changes.json", REPORT):
        assert status_of(served, "GET", path, {"Cookie": f"a=b; {cookie}"})[0] == 200
    # the token opens nothing at another path, where it would stay in the address
    assert status_of(served, "GET", f"{REPORT}?token={served.token}", {})[0] == 403


def test_a_plain_client_keeps_the_cookie(served: Index) -> None:
    jar = http.cookiejar.CookieJar()
    client = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    with pytest.raises(urllib.error.HTTPError, match="403"):
        client.open(f"http://127.0.0.1:{served.port}/", timeout=60)
    client.open(served.address, timeout=60).close()
    with client.open(f"http://127.0.0.1:{served.port}{REPORT}", timeout=60) as answer:
        assert answer.read() == b"<p>secret</p>"


def test_a_change_needs_the_token_of_the_page(served: Index) -> None:
    cookie = {"Cookie": f"{served.cookie_name}={served.token}"}
    body = f'{{"sweep": "{SWEEP}"}}'
    for headers in ({}, cookie, {TOKEN_HEADER: "x"}, cookie | {TOKEN_HEADER: "x"}):
        status, text, _ = status_of(served, "POST", "/remove", headers, body)
        assert status == 403
        assert served.token not in text
    assert len(summarize(served.results)) == 1
    headers = cookie | {TOKEN_HEADER: served.token}
    assert status_of(served, "POST", "/remove", headers, body)[0] == 200


def test_a_tunnel_from_another_port_is_told(served: Index) -> None:
    status, text, _ = status_of(
        served, "GET", f"/?token={served.token}", {"Host": "127.0.0.1:8000"}
    )
    assert status == 403
    assert f"at 127.0.0.1:{served.port} and localhost:{served.port} alone" in text


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another account")
def test_another_account_can_neither_read_nor_delete(served: Index) -> None:
    script = f"""
import encodings.idna, http.client, os
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
for method, path in [*(("GET", p) for p in {PATHS!r}), ("POST", "/remove"), ("POST", "/tags")]:
    connection = http.client.HTTPConnection("127.0.0.1", {served.port}, timeout=60)
    connection.request(method, path, '{{"sweep": "{SWEEP}"}}')
    answer = connection.getresponse()
    print(answer.status, answer.headers["Set-Cookie"], answer.read().decode().strip())
"""
    words = [sys.executable, "-I", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(PATHS) + 2
    assert all(line.startswith("403 None") and WHERE in line for line in lines)
    assert len(summarize(served.results)) == 1
