"""Outage of an object store: heartbeats, the running sweep, and expired credentials."""

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
from sweep.store import journal, lease, storage, sync
from sweep.store.bucket import Bucket, waiting
from sweep.store.lease import Lease
from tests.sweep import s3
from tests.sweep.s3 import RESET, SECRET, Front, Request
from tests.sweep.small import Command, Ran, fake_engine, fake_simulate

GRID = ("policy=fifo,las", "capacity=0.5,1", "seed=range(0,3)", "baseline=fifo")
PATIENT_S = 60.0
"""Limit of waits: a step of milliseconds can take this long on a busy machine."""


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
def bucket(address: str) -> Bucket:
    return Bucket(address)


def wait_until(condition: Callable[[], object], event: str) -> None:
    end_s = time.monotonic() + PATIENT_S
    while not condition():
        assert time.monotonic() < end_s, f"waited in vain until {event}"
        time.sleep(0.01)


def has_changed(bucket: Bucket, name: str) -> Callable[[], bool]:
    content = bucket.get(name)
    return lambda: bucket.get(name) != content


def wait_for_failures(front: Front, n: int = 3) -> None:
    """Wait until `n` more rounds of tries have failed."""
    n_before = front.n_failed
    wait_until(
        lambda: front.n_failed > n_before + n * bucket_module.N_TRIES, "requests have failed"
    )


@pytest.mark.parametrize("status", [403, 400])
def test_a_heartbeat_survives_an_outage(front: Front, bucket: Bucket, status: int) -> None:
    first_lease = Lease(bucket, "journal/x", beat_s=0.02)
    first_lease.take()
    front.refuse = lambda _: status
    wait_for_failures(front)
    front.refuse = Front().refuse
    wait_until(has_changed(bucket, "journal/x.lease/00000001"), "the lease's heart beats")
    first_lease.confirm()
    assert first_lease.is_held()
    first_lease.release()
    assert not Lease(bucket, "journal/x").is_held_by_any()


def test_a_late_holder_confirms_its_lease_before_continuing(front: Front, bucket: Bucket) -> None:
    first_lease = Lease(bucket, "journal/x", beat_s=60, expires_s=0.1)
    first_lease.take()
    time.sleep(0.15)
    front.refuse = lambda _: 403
    with pytest.raises(InputError, match="check the address"):
        first_lease.confirm()
    front.refuse = Front().refuse
    first_lease.confirm()
    other = Lease(bucket, "journal/x", beat_s=0.05, expires_s=0.2)
    other.take()
    wait_until(
        lambda: time.monotonic() - first_lease._last_beat_s > first_lease.expires_s,
        "its heart was silent",
    )
    with pytest.raises(lease.LeaseLostError):
        first_lease.confirm()
    first_lease.release()
    assert other.is_held()
    other.release()


def test_a_store_that_never_answered_is_an_error(front: Front, address: str) -> None:
    front.refuse = lambda _: 403
    messages: list[str] = []
    with waiting(messages.append), pytest.raises(InputError, match="check the address"):
        Bucket(address).get("a")
    assert messages == []


def test_a_store_that_answered_before_is_retried_until_the_outage_limit(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_module, "PAUSE_S", 0.0)
    numbers = itertools.count()

    def fails_often() -> str:
        if 0 < next(numbers) < 2000:
            raise OSError("no route to host")
        return "here"

    messages: list[str] = []
    with waiting(messages.append):
        assert [bucket._retry(fails_often) for _ in range(2)] == ["here", "here"]
    assert len(messages) == 2
    monkeypatch.setattr(bucket_module, "OUTAGE_S", 0.0)
    numbers = itertools.count(1)
    with waiting(messages.append), pytest.raises(InputError, match="no route to host"):
        bucket._retry(fails_often)
    assert next(numbers) == 1 + bucket_module.N_TRIES


def test_waiting_for_a_store_can_be_interrupted(front: Front, bucket: Bucket) -> None:
    assert bucket.get("a") is None
    front.refuse = lambda _: 403
    messages: list[str] = []

    def report(line: str) -> None:
        messages.append(line)
        raise KeyboardInterrupt

    with waiting(report):
        with pytest.raises(KeyboardInterrupt):
            bucket.put("a", b"1")
        with pytest.raises(InputError):  # after an interrupt nothing is waited for
            bucket.put("a", b"1")
    (line,) = messages
    assert "does not answer, waiting for it" in line
    assert SECRET not in line


@pytest.mark.parametrize("status", [500, RESET])
def test_a_write_whose_answer_was_lost_counts_as_written(
    front: Front, bucket: Bucket, status: int
) -> None:
    numbers = itertools.count()
    front.lose = lambda request: (
        status if request.method == "PUT" and next(numbers) % 2 == 0 else None
    )
    assert bucket.put_new("a", b"mine")
    assert not bucket.put_new("a", b"other")
    first_lease = Lease(bucket, "journal/x", beat_s=60)
    first_lease.take(lambda: pytest.fail("waits for itself"))
    assert first_lease.token == 1


def test_a_store_without_conditional_writes_is_refused(front: Front, bucket: Bucket) -> None:
    bucket.put("a", b"")
    front.refuse = lambda _: 501
    with waiting(pytest.fail), pytest.raises(InputError, match="501 Not Implemented"):
        bucket.put_new("b", b"")


@pytest.mark.parametrize("source", ["environment", "file"])
def test_credentials_are_renewed(
    front: Front,
    served: tuple[Front, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    file = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))

    def renew(user: str) -> None:
        if source == "file":
            text = f"[default]\naws_access_key_id = {user}\naws_secret_access_key = s\n"
            (tmp_path / "new").write_text(text)
            (tmp_path / "new").replace(file)
        else:
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", user)
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")

    renew("first")
    bucket = Bucket(f"s3://results/{tmp_path.name}/here?{served[1]}")
    first_lease = Lease(bucket, "journal/x", beat_s=0.02)
    first_lease.take()
    seen: set[str] = set()

    def refuse(request: Request) -> int | None:
        seen.add(request.user)
        return 403 if request.user == "first" else None

    front.refuse = refuse
    wait_for_failures(front)
    assert seen == {"first"}
    messages: list[str] = []
    threading.Timer(0.5, renew, ["second"]).start()
    with waiting(messages.append):
        bucket.put("a", b"1")
        assert bucket.put_new("b", b"2")
    assert seen == {"first", "second"}
    assert [line.split(" answer")[1][:6] for line in messages] == [", wait", "s agai"]
    wait_until(has_changed(bucket, "journal/x.lease/00000001"), "the lease's heart beats")
    first_lease.release()


@pytest.mark.parametrize("n_bytes", [1, 11_000_000])
def test_an_object_is_put_in_one_request(front: Front, bucket: Bucket, n_bytes: int) -> None:
    """Not in several, as the parts of one that failed would stay in the store."""
    content, requests = bytes(n_bytes), list[str]()
    front.refuse = lambda request: requests.append(f"{request.method} {request.query}")
    bucket.put("a", content)
    assert requests == ["PUT "]
    assert bucket.get("a") == content


@pytest.fixture
def run_remote(
    tmp_path: Path, capfd: Any, address: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Ran]]:
    """Run a sweep whose results are in the object store."""
    fake_engine(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    command = Command(tmp_path, capfd)

    def run(*words: str, results: str = address) -> Ran:
        trace = ("trace=parquet", f"trace.path={command.trace}")
        options = ("launcher=inline", "tracking=none", f'paths.results="{results}"')
        return command.bare(*words, *trace, *options)

    yield run
    for memo in (remote_results._ADDRESSES, sync._PUSHED):
        memo.clear()
    storage._bucket.cache_clear()


def simulate_with_event(number: int, action: Callable[[], object]) -> Callable[..., Any]:
    """Return a fake simulation that calls `action` while cell `number` runs."""
    numbers = itertools.count()

    def simulate(*args: Any, **options: Any) -> Any:
        if next(numbers) == number:
            action()
        return fake_simulate(*args, **options)

    return simulate


def speed_up_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the interval between heartbeats of sweeps."""
    make_lease = journal.Journal.lease

    def fast_lease(self: journal.Journal) -> Lease:
        lease = make_lease(self)
        lease.beat_s = 0.02
        return lease

    monkeypatch.setattr(journal.Journal, "lease", fast_lease)


@pytest.mark.slow
def test_a_sweep_survives_an_outage(
    run_remote: Callable[..., Ran],
    front: Front,
    bucket: Bucket,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    speed_up_heartbeats(monkeypatch)
    local = run_remote(*GRID, results=str(tmp_path / "near"))

    def start_outage() -> None:
        front.refuse = lambda _: 403
        threading.Timer(1.0, setattr, [front, "refuse", Front().refuse]).start()

    numbers = itertools.count()
    fake_engine(monkeypatch, lambda *args, **options: (next(numbers), fake(*args, **options))[1])
    fake = simulate_with_event(5, start_outage)
    ran = run_remote(*GRID)
    assert ran.code == 0, ran.err
    assert next(numbers) == 12  # each cell was computed once
    assert "does not answer, waiting for it" in ran.err
    assert "answers again after" in ran.err
    assert "Traceback" not in ran.err
    name = f"sweeps/{local.folder.name}/cells.parquet"
    assert bucket.get(name) == (local.folder / "cells.parquet").read_bytes()


def test_a_sweep_that_lost_its_lease_stops_writing(
    run_remote: Callable[..., Ran], bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    speed_up_heartbeats(monkeypatch)
    written: list[dict[str, bytes | None]] = []

    def objects() -> dict[str, bytes | None]:
        return {name: bucket.get(name) for name in bucket.list("")}

    def take_over() -> None:
        (lease,) = journal._HELD.values()
        bucket.put(f"{lease.name}.lease/{lease.token + 1:08d}", b'{"id": "other"}')
        wait_until(lambda: lease._is_lost, "the heartbeat notices the loss")
        written.append(objects())

    numbers = itertools.count()
    fake_engine(monkeypatch, lambda *args, **options: (next(numbers), fake(*args, **options))[1])
    fake = simulate_with_event(5, take_over)
    ran = run_remote(*GRID)
    assert ran.code == main.WRONG
    assert next(numbers) == 6  # no cell was started after the loss was known
    (line,) = [line for line in ran.err.splitlines() if "error" in line]
    assert "was taken over by another process" in line
    assert "Traceback" not in ran.err
    assert [objects()] == written


@pytest.mark.long
def test_a_waiting_sweep_takes_over_only_after_the_outage(
    run_remote: Callable[..., Ran],
    served: tuple[Front, str],
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    front, _ = served
    local = run_remote(*GRID, results=str(tmp_path / "near"))
    other, has_waited = Lease(Bucket(address), f"journal/{local.folder.name}"), threading.Event()

    def take_lease() -> None:
        with waiting(lambda _: None):
            other.take(has_waited.set)

    thread = threading.Thread(target=take_lease)
    end_s = 0.0

    def refuse(_: Request) -> int | None:
        remaining_s = end_s - time.monotonic()
        return None if remaining_s < 0 else 503 if remaining_s < 30 else 403

    def start_outage() -> None:
        nonlocal end_s
        thread.start()
        assert has_waited.wait(PATIENT_S)
        end_s = time.monotonic() + 60
        front.refuse = refuse

    fake_engine(monkeypatch, simulate_with_event(5, start_outage))
    ran = run_remote(*GRID)
    thread.join(PATIENT_S)
    front.refuse = Front().refuse
    assert ran.code == 0, ran.err
    assert time.monotonic() > end_s > 0
    assert other.token == 2  # the other took it once it was released
    other.release()
    assert "Traceback" not in ran.err
    name = f"sweeps/{local.folder.name}/cells.parquet"
    assert Bucket(address).get(name) == (local.folder / "cells.parquet").read_bytes()
