"""A store that is away for a while: heartbeats, the sweep itself, and its credentials."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sim.base.errors import InputError
from sweep.cli import main
from sweep.grid import remote_results
from sweep.store import bucket as bucket_module
from sweep.store import journal, lease, signed_put, storage, sync
from sweep.store.bucket import Bucket, waiting
from sweep.store.lease import Lease
from tests.sweep import s3
from tests.sweep.s3 import RESET, SECRET, Asked, Front
from tests.sweep.small import Command, Ran, fake_engine, fake_simulate

GRID = ("policy=fifo,las", "capacity=0.5,1", "seed=range(0,3)", "baseline=fifo")
PATIENT_S = 60.0
"""Limit for steps that take moments, on a busy machine."""


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Front, str]]:
    front = Front()
    with s3.serving(front) as endpoint:
        _, options = s3.bucket(endpoint, "results")
        yield front, options


@pytest.fixture
def front(served: tuple[Front, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Front]:
    monkeypatch.setattr(bucket_module, "PAUSE_S", 0.001)
    monkeypatch.setattr(bucket_module, "MAX_PAUSE_S", 0.02)
    yield served[0]
    served[0].refuse, served[0].lose = Front().refuse, Front().lose


@pytest.fixture
def address(served: tuple[Front, str], tmp_path: Path) -> str:
    return f"s3://someone:{SECRET}@results/{tmp_path.name}/here?{served[1]}"


@pytest.fixture
def object_store(address: str) -> Bucket:
    return Bucket(address)


def until(true: Callable[[], object], description: str) -> None:
    end_s = time.monotonic() + PATIENT_S
    while not true():
        assert time.monotonic() < end_s, f"waited in vain until {description}"
        time.sleep(0.01)


def changes(object_store: Bucket, name: str) -> Callable[[], bool]:
    before = object_store.get(name)
    return lambda: object_store.get(name) != before


def fails_again(front: Front, n: int = 3) -> None:
    """Wait until requests have failed many times from now on."""
    begin = front.n_failed
    until(lambda: front.n_failed > begin + n * bucket_module.N_TRIES, "requests have failed")


@pytest.mark.parametrize("status", [403, 400])
def test_a_heartbeat_outlives_an_outage(front: Front, object_store: Bucket, status: int) -> None:
    mine = Lease(object_store, "journal/x", beat_s=0.02)
    mine.take()
    front.refuse = lambda _: status
    fails_again(front)
    front.refuse = Front().refuse
    until(changes(object_store, "journal/x.lease/00000001"), "the lease's heart beats")
    mine.confirm()
    assert mine.is_held()
    mine.release()
    assert not Lease(object_store, "journal/x").is_held_by_any()


def test_who_was_silent_for_long_asks_before_going_on(front: Front, object_store: Bucket) -> None:
    mine = Lease(object_store, "journal/x", beat_s=60, expires_s=0.1)
    mine.take()
    time.sleep(0.15)
    front.refuse = lambda _: 403
    with pytest.raises(InputError, match="check the address"):
        mine.confirm()
    front.refuse = Front().refuse
    mine.confirm()
    other = Lease(object_store, "journal/x", beat_s=0.05, expires_s=0.2)
    other.take()
    until(lambda: time.monotonic() - mine._last_beat_s > mine.expires_s, "its heart was silent")
    with pytest.raises(lease.LeaseLostError):
        mine.confirm()
    mine.release()
    assert other.is_held()
    other.release()


def test_a_store_that_never_answered_is_not_waited_for(front: Front, address: str) -> None:
    front.refuse = lambda _: 403
    lines: list[str] = []
    with waiting(lines.append), pytest.raises(InputError, match="check the address"):
        Bucket(address).get("a")
    assert lines == []


def test_one_that_has_is_waited_for_however_often_it_fails(
    object_store: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_module, "PAUSE_S", 0.0)
    numbers = itertools.count()

    def fails_often() -> str:
        if 0 < next(numbers) < 2000:
            raise OSError("no route to host")
        return "here"

    lines: list[str] = []
    with waiting(lines.append):
        assert [object_store._retry(fails_often) for _ in range(2)] == ["here", "here"]
    assert len(lines) == 2
    monkeypatch.setattr(bucket_module, "OUTAGE_S", 0.0)
    numbers = itertools.count(1)
    with waiting(lines.append), pytest.raises(InputError, match="no route to host"):
        object_store._retry(fails_often)
    assert next(numbers) == 1 + bucket_module.N_TRIES


def test_one_that_has_is_waited_for_until_it_is_interrupted(
    front: Front, object_store: Bucket
) -> None:
    assert object_store.get("a") is None
    front.refuse = lambda _: 403
    lines: list[str] = []

    def report(line: str) -> None:
        lines.append(line)
        raise KeyboardInterrupt

    with waiting(report):
        with pytest.raises(KeyboardInterrupt):
            object_store.put("a", b"1")
        with pytest.raises(InputError):  # on the way out
            object_store.put("a", b"1")
    (line,) = lines
    assert "does not answer, waiting for it" in line
    assert SECRET not in line


@pytest.mark.parametrize("status", [500, RESET])
def test_what_came_through_and_was_not_answered_is_ours(
    front: Front, object_store: Bucket, status: int
) -> None:
    numbers = itertools.count()
    front.lose = lambda inquiry: (
        status if inquiry.method == "PUT" and next(numbers) % 2 == 0 else None
    )
    assert object_store.put_new("a", b"mine")
    assert not object_store.put_new("a", b"other")
    mine = Lease(object_store, "journal/x", beat_s=60)
    mine.take(lambda: pytest.fail("waits for itself"))
    assert mine.token == 1


def test_expired_credentials_are_no_store_without_conditions(front: Front, address: str) -> None:
    front.refuse = lambda _: 400
    with pytest.raises(OSError, match="answers 400"):
        signed_put.put(address, "a", b"", is_new=True)


@pytest.mark.parametrize("kept_in", ["environment", "file"])
def test_credentials_are_renewed(
    front: Front,
    served: tuple[Front, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kept_in: str,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    file = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))

    def renew(user: str) -> None:
        if kept_in == "file":
            text = f"[default]\naws_access_key_id = {user}\naws_secret_access_key = s\n"
            (tmp_path / "new").write_text(text)
            (tmp_path / "new").replace(file)
        else:
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", user)
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")

    renew("first")
    object_store = Bucket(f"s3://results/{tmp_path.name}/here?{served[1]}")
    mine = Lease(object_store, "journal/x", beat_s=0.02)
    mine.take()
    seen: set[str] = set()

    def refuse(inquiry: Asked) -> int | None:
        seen.add(inquiry.user)
        return 403 if inquiry.user == "first" else None

    front.refuse = refuse
    fails_again(front)
    assert seen == {"first"}
    lines: list[str] = []
    threading.Timer(0.5, renew, ["second"]).start()
    with waiting(lines.append):
        object_store.put("a", b"1")
        assert object_store.put_new("b", b"2")
    assert seen == {"first", "second"}
    assert [line.split(" answer")[1][:6] for line in lines] == [", wait", "s agai"]
    until(changes(object_store, "journal/x.lease/00000001"), "the lease's heart beats")
    mine.release()


@pytest.mark.parametrize("n_bytes", [1, 11_000_000])
def test_an_object_is_put_in_one_request(
    front: Front, object_store: Bucket, capfd: Any, n_bytes: int
) -> None:
    """Arrow logs answers that it does not understand to the last of several."""
    content, requests = bytes(n_bytes), list[str]()
    numbers = itertools.count()

    def refuse(inquiry: Asked) -> int | None:
        requests.append(f"{inquiry.method} {inquiry.query}")
        is_end = inquiry.method == "POST" and "uploadId" in inquiry.query
        return 200 if is_end and next(numbers) < 2 else None  # with another page in its place

    front.refuse = refuse
    object_store.put("a", content)
    assert requests == ["PUT "]
    assert object_store.get("a") == content
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def far(
    tmp_path: Path, capfd: Any, address: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Ran]]:
    """Run a sweep whose results lie in the store."""
    fake_engine(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    command = Command(tmp_path, capfd)

    def run(*words: str, results: str = address) -> Ran:
        trace = ("trace=parquet", f"trace.path={command.trace}")
        where = ("launcher=inline", "tracking=none", f'paths.results="{results}"')
        return command.bare(*words, *trace, *where)

    yield run
    for known in (remote_results._ADDRESSES, sync._PUSHED):
        known.clear()
    storage._bucket.cache_clear()


def at_cell(number: int, happens: Callable[[], object]) -> Callable[..., Any]:
    """Make a simulation in which something happens while a cell runs."""
    numbers = itertools.count()

    def simulate(*args: Any, **options: Any) -> Any:
        if next(numbers) == number:
            happens()
        return fake_simulate(*args, **options)

    return simulate


def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have sweeps' hearts beat fast."""
    build_lease = journal.Journal.lease

    def lease_of(self: journal.Journal) -> Lease:
        leased = build_lease(self)
        leased.beat_s = 0.02
        return leased

    monkeypatch.setattr(journal.Journal, "lease", lease_of)


def test_a_sweep_outlasts_an_outage(
    far: Callable[..., Ran],
    front: Front,
    object_store: Bucket,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quick(monkeypatch)
    near = far(*GRID, results=str(tmp_path / "near"))

    def lose_answer() -> None:
        front.refuse = lambda _: 403
        threading.Timer(1.0, setattr, [front, "refuse", Front().refuse]).start()

    numbers = itertools.count()
    fake_engine(monkeypatch, lambda *args, **options: (next(numbers), fake(*args, **options))[1])
    fake = at_cell(5, lose_answer)
    ran = far(*GRID)
    assert ran.code == 0, ran.err
    assert next(numbers) == 12  # each cell was computed once
    assert "does not answer, waiting for it" in ran.err
    assert "answers again after" in ran.err
    assert "Traceback" not in ran.err
    name = f"sweeps/{near.folder.name}/cells.parquet"
    assert object_store.get(name) == (near.folder / "cells.parquet").read_bytes()


def test_a_sweep_that_was_taken_over_stops_writing(
    far: Callable[..., Ran], object_store: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    written: list[dict[str, bytes | None]] = []

    def everything() -> dict[str, bytes | None]:
        return {name: object_store.get(name) for name in object_store.list("")}

    def taken_over() -> None:
        (active,) = journal._HELD.values()
        object_store.put(f"{active.name}.lease/{active.token + 1:08d}", b'{"id": "other"}')
        until(lambda: active._is_lost, "the heart finds it lost")
        written.append(everything())

    numbers = itertools.count()
    fake_engine(monkeypatch, lambda *args, **options: (next(numbers), fake(*args, **options))[1])
    fake = at_cell(5, taken_over)
    ran = far(*GRID)
    assert ran.code == main.WRONG
    assert next(numbers) == 6  # no cell was begun after it was known
    (line,) = [line for line in ran.err.splitlines() if "error" in line]
    assert "was taken over by another process" in line
    assert "Traceback" not in ran.err
    assert [everything()] == written


@pytest.mark.long
def test_a_minute_without_the_store_and_another_who_waits(
    far: Callable[..., Ran],
    served: tuple[Front, str],
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    front, _ = served
    near = far(*GRID, results=str(tmp_path / "near"))
    other, has_waited = Lease(Bucket(address), f"journal/{near.folder.name}"), threading.Event()

    def wait() -> None:
        with waiting(lambda _: None):
            other.take(has_waited.set)

    thread = threading.Thread(target=wait)
    end_s = 0.0

    def refuse(_: Asked) -> int | None:
        left_s = end_s - time.monotonic()
        return None if left_s < 0 else 503 if left_s < 30 else 403

    def lose_answer() -> None:
        nonlocal end_s
        thread.start()
        assert has_waited.wait(PATIENT_S)
        end_s = time.monotonic() + 60
        front.refuse = refuse

    fake_engine(monkeypatch, at_cell(5, lose_answer))
    ran = far(*GRID)
    thread.join(PATIENT_S)
    front.refuse = Front().refuse
    assert ran.code == 0, ran.err
    assert time.monotonic() > end_s > 0
    assert other.token == 2  # the other got it once it was given up
    other.release()
    assert "Traceback" not in ran.err
    assert "s3fs.cc" not in ran.err
    name = f"sweeps/{near.folder.name}/cells.parquet"
    assert Bucket(address).get(name) == (near.folder / "cells.parquet").read_bytes()
