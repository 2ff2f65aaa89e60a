"""Index server: tags and removal, and the requests of other pages that it refuses."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweep.questions.ui.index_server import MAX_BODY_BYTES, TOKEN_HEADER, Index
from sweep.questions.ui.live_index import LiveIndex
from sweep.store import tags
from sweep.store.journal import Journal
from sweep.store.lease import Lease
from sweep.store.storage import FolderStorage
from sweep.store.sweep_summaries import Heartbeats, summarize

ANY = {"sweep": "b-12345678"}


def begin(results: Path, sweep: str) -> Journal:
    journal = Journal(results, sweep)
    journal.append("begin", cells=7, todo=7, cached=[], argv=[])
    return journal


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Index]:
    begin(tmp_path, "a-12345678")
    begin(tmp_path, "b-12345678")
    index = Index(tmp_path, None, None)
    stop = threading.Event()
    thread = threading.Thread(target=index.serve, args=(lambda: not stop.is_set(),))
    thread.start()
    yield index
    stop.set()
    with contextlib.suppress(OSError, http.client.HTTPException):
        get(index, "/")  # wakes it
    thread.join()


def exchange(index: Index, *request: Any) -> tuple[http.client.HTTPResponse, str]:
    with contextlib.closing(
        http.client.HTTPConnection("127.0.0.1", index.port, timeout=60)
    ) as connection:
        connection.request(*request)
        answer = connection.getresponse()
        return answer, answer.read().decode()


def cookie(index: Index) -> dict[str, str]:
    return {"Cookie": f"{index.cookie_name}={index.token}"}


def get(index: Index, path: str) -> str:
    answer, text = exchange(index, "GET", path, None, cookie(index))
    assert answer.status == 200
    return text


def post(index: Index, path: str, body: Any, **headers: str) -> tuple[int, str]:
    names = {"token": TOKEN_HEADER, "origin": "Origin", "host": "Host", "length": "Content-Length"}
    sent = {names[name]: value for name, value in ({"token": index.token} | headers).items()}
    text = body if isinstance(body, str) else json.dumps(body)
    answer, received = exchange(index, "POST", path, text, sent)
    return answer.status, json.loads(received)["message"]


def test_changes_since_a_version(served: Index) -> None:
    page = get(served, "/")
    assert f'data-version="{served.live.version}"' in page
    changes = json.loads(get(served, f"/changes.json?since={served.live.version}"))
    assert (changes["server"], changes["rows"], changes["removed"]) == (served.server_id, {}, [])
    tags.change(served.results, "b-12345678", ["paper"])
    served.live.rows(fresh=True)
    changes = json.loads(get(served, f"/changes.json?since={changes['version']}"))
    assert [*changes["rows"]] == ["b-12345678"]
    assert 'data-tags="paper"' in changes["rows"]["b-12345678"]
    assert len(json.loads(get(served, "/changes.json?since=x"))["rows"]) == 2


def test_tags_and_removal(served: Index) -> None:
    assert post(served, "/tags", {**ANY, "add": ["x", "y"]}) == (200, "Tags of b-12345678: x, y.")
    assert post(served, "/tags", {**ANY, "remove": ["x"]}) == (200, "Tags of b-12345678: y.")
    status, message = post(served, "/tags", {**ANY, "add": ["two words"]})
    assert (status, message.partition(":")[0]) == (409, "'two words' is no tag")
    assert tags.read(served.results, "b-12345678") == ["y"]
    version = served.live.changes(0)["version"]
    status, message = post(served, "/remove", ANY)
    assert status == 200
    assert message.startswith("b-12345678 was deleted, ")
    assert not (served.results / "journal" / "b-12345678.jsonl").exists()
    assert not (served.results / "sweeps" / "b-12345678").exists()
    served.live.rows(fresh=True)
    assert served.live.changes(version)["removed"] == ["b-12345678"]
    assert post(served, "/remove", ANY)[0] == 404


def test_a_running_sweep_is_not_removed(served: Index) -> None:
    journal = Journal(served.results, "b-12345678")
    with journal.locked(lambda: None):
        status, message = post(served, "/remove", ANY)
        assert (status, message) == (
            409, "b-12345678 is running; end it first (Ctrl-C there)",
        )  # fmt: skip
    assert journal.file.exists()


def test_other_pages_can_change_nothing(served: Index) -> None:
    for refused in (
        {"token": ""},
        {"token": served.token[:-1]},
        {"token": "\xe9"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"http://127.0.0.1:{served.port + 1}"},
        {"host": "evil.example"},
    ):
        assert post(served, "/remove", ANY, **refused)[0] == 403
    assert len(summarize(served.results)) == 2
    assert (
        post(served, "/tags", {**ANY, "add": []}, origin=f"http://127.0.0.1:{served.port}")[0]
        == 200
    )


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/remove", "{", 400),
        ("/remove", "[" * MAX_BODY_BYTES, 400),
        ("/remove", '{"sweep":' * 1000, 400),
        ("/remove", "\xff", 400),
        ("/tags", {**ANY, "add": ["\ud800"]}, 409),
        ("/remove", [], 404),
        ("/remove", {"sweep": ["b-12345678"]}, 404),
        ("/remove", {"sweep": "../b-12345678"}, 404),
        ("/remove", {"sweep": "b"}, 404),
        ("/tags", {**ANY, "add": "word"}, 400),
        ("/tags", {**ANY, "add": [1]}, 400),
        ("/elsewhere", ANY, 404),
    ],
)
def test_a_malformed_request_changes_nothing(
    served: Index, path: str, body: Any, status: int
) -> None:
    assert post(served, path, body)[0] == status
    assert [(s.sweep, s.tags) for s in summarize(served.results)] == [
        ("b-12345678", []), ("a-12345678", []),
    ]  # fmt: skip


def test_a_long_request_is_not_read(served: Index) -> None:
    assert post(served, "/tags", "{}", length=str(MAX_BODY_BYTES + 1))[0] == 413
    for length in ("-1", "", "1" * 5000, "1e3"):
        assert post(served, "/tags", "{}", length=length)[0] == 413
    # all of it was on its way: the answer arrives nevertheless
    status, message = post(served, "/tags", "[" * 40 * MAX_BODY_BYTES)
    assert (status, message) == (413, "a request gives its length, at most 10000 bytes")


def test_a_request_that_is_shorter_than_it_says_is_answered(
    served: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sweep.questions.ui.index_server._Handler.timeout", 0.2)
    assert post(served, "/tags", "{}", length="100")[0] == 408


def test_files_of_sweeps_can_not_read_the_token(served: Index) -> None:
    folder = served.results / "sweeps" / "a-12345678"
    folder.mkdir(parents=True)
    (folder / "report.html").write_text("<script></script>")
    answer, _ = exchange(served, "GET", "/sweeps/a-12345678/report.html", None, cookie(served))
    policy = answer.getheader("Content-Security-Policy") or ""
    assert policy.startswith("sandbox ")
    assert "allow-same-origin" not in policy
    assert answer.getheader("X-Frame-Options") == "DENY"


def test_a_holder_on_another_machine_stops_without_heartbeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(tmp_path, "b-12345678")
    now_s = [0.0]
    monkeypatch.setattr("sweep.store.sweep_summaries.time.monotonic", lambda: now_s[0])

    def beat(number: int) -> None:
        holder = {"id": "o", "process": ["0" * 16, 1, 1], "beat": number, "released": False}
        FolderStorage(tmp_path).put(
            "journal/b-12345678.lease/00000001", json.dumps(holder).encode()
        )

    heartbeats = Heartbeats()

    def phase() -> str:
        return summarize(tmp_path, heartbeats.is_alive)[0].phase

    beat(1)
    assert phase() == "running"
    now_s[0] = 29.0
    assert phase() == "running"
    beat(2)
    now_s[0] = 35.0
    assert phase() == "running"
    now_s[0] = 66.0
    assert phase() == "stopped"


def test_a_process_that_died_leaves_a_stopped_sweep(tmp_path: Path) -> None:
    journal = begin(tmp_path, "b-12345678")
    live = LiveIndex(tmp_path, None)
    pid = os.fork()
    if not pid:  # a process that is killed while it holds the sweep
        lease = journal.lease()
        lease.take()
        journal.append_cells([{"status": "done", "row": 0, "seconds": 1.0}])
        os._exit(9)
    os.waitpid(pid, 0)
    assert isinstance(journal.lease(), Lease)
    ((summary, _),) = live.rows(fresh=True)
    assert (summary.phase, summary.state) == ("stopped", "stopped after 1 of 7 cells")
