"""Results in an object store: an S3 server runs in this process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sim.base import interrupt
from sim.base.errors import InputError
from sweep.cli import main
from sweep.grid import remote_results, traces
from sweep.questions import ui
from sweep.store import bucket as bucket_module
from sweep.store import object_store, storage, sweep_list, sync
from sweep.store.bucket import Bucket
from sweep.store.lease import Lease
from tests.sweep import s3
from tests.sweep.s3 import SECRET
from tests.sweep.small import Command, Ran, every_file, fake_engine, fake_simulate

GRID = ("policy=fifo,las", "capacity=0.5,1", "seed=range(0,3)", "baseline=fifo")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3.serving() as endpoint:
        yield endpoint


@pytest.fixture
def address(server: str, tmp_path: Path) -> str:
    _, options = s3.bucket(server, "results")
    return f"s3://someone:{SECRET}@results/{tmp_path.name}/here?{options}"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Switch to another machine: its own working folder and empty in-process caches."""

    def move(name: str) -> Path:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
        for memo in (remote_results._ADDRESSES, sync._PUSHED):
            memo.clear()
        storage._bucket.cache_clear()
        return tmp_path / name

    return move


@pytest.fixture
def command(tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch) -> Command:
    fake_engine(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return Command(tmp_path, capfd)


def run_remote(command: Command, address: str, *words: str) -> Ran:
    trace = ("trace=parquet", f"trace.path={command.trace}")
    return command.bare(
        *words, *trace, "launcher=inline", "tracking=none", f'paths.results="{address}"'
    )


def sweep_files(bucket: Bucket) -> dict[str, bytes | None]:
    return {name: bucket.get(name) for name in bucket.list("sweeps/")}


def test_put_get_list_and_delete(address: str) -> None:
    bucket = Bucket(address)
    assert bucket.get("a/b") is None
    assert bucket.list("a/") == {}
    bucket.put("a/b", b"one")
    bucket.put("a/b", b"three")
    bucket.put("a/c/d", b"")
    assert bucket.get("a/b") == b"three"
    assert {name: entry.n_bytes for name, entry in bucket.list("a/").items()} == {
        "a/b": 5,
        "a/c/d": 0,
    }
    bucket.delete("a/b")
    bucket.delete("a/b")
    assert [*bucket.list("a/")] == ["a/c/d"]


def test_put_new_creates_an_object_once(address: str) -> None:
    bucket = Bucket(address)
    assert bucket.put_new("a b/c", b"one")
    assert not bucket.put_new("a b/c", b"two")
    assert bucket.get("a b/c") == b"one"
    lease = Lease(bucket, "journal/x", beat_s=60)
    lease.take()
    assert lease.is_held()
    lease.release()
    assert [*bucket.list("journal/")] == ["journal/x.lease/00000001"]


def test_of_many_that_create_an_object_one_does(address: str) -> None:
    with ThreadPoolExecutor(16) as threads:
        contents = [bytes([n]) for n in range(16)]
        bucket = Bucket(address)
        created = [*threads.map(lambda content: bucket.put_new("a", content), contents)]
    assert sum(created) == 1
    assert bucket.get("a") == contents[created.index(True)]


@pytest.mark.parametrize(
    ("address", "message"),
    [("s3://bucket", "names no folder"), ("ftp://host/x", "unknown scheme 'ftp'")],
)
def test_an_invalid_address_is_refused(command: Command, address: str, message: str) -> None:
    ran = run_remote(command, address, *GRID)
    assert ran.code == main.WRONG
    assert message in ran.err


def test_a_second_machine_finds_every_cell_cached(
    command: Command, address: str, tmp_path: Path, machine: Callable[[str], Path]
) -> None:
    local = command(*GRID)
    before = {path.name for path in tmp_path.iterdir()}
    local_copy = machine("one")
    ran = run_remote(command, address, *GRID)
    assert ran.code == 0, ran.err
    assert (
        ran.out.splitlines()[-1] == f"s3://results/{tmp_path.name}/here/sweeps/{local.folder.name}"
    )
    assert "results are kept in s3://results" in ran.err
    assert {path.name for path in tmp_path.iterdir()} == {*before, "one"}
    stored = sweep_files(Bucket(address))
    expected = every_file(local.folder)
    for name in ("cells.parquet", "verdict.json", "report.html"):
        assert stored[f"sweeps/{local.folder.name}/{name}"] == expected[name]
    machine("two")
    again = run_remote(command, address, *GRID)
    assert "every cell is cached" in again.err
    assert "finished" in command.bare("status", f'paths.results="{address}"').out
    written = every_file(local_copy) | {name: content or b"" for name, content in stored.items()}
    assert [name for name, content in written.items() if SECRET.encode() in content] == []
    assert SECRET not in ran.out + ran.err + again.out + again.err


def test_the_index_fetches_by_itself(
    command: Command,
    address: str,
    machine: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not before it is served, maybe in a process that is forked."""
    machine("one")
    assert run_remote(command, address, *GRID).code == 0
    machine("two")
    listed, serve = list[list[str]](), ui.Index.serve

    def listen(index: ui.Index) -> None:
        for action in (lambda: None, lambda: serve(index, while_true=lambda: False)):
            action()
            listed.append([entry.sweep for entry in sweep_list.sweeps(index.results)])

    monkeypatch.setattr(ui.Index, "serve", listen)
    assert main.main(["ui", "--no-mlflow", f'paths.results="{address}"']) == 0
    before, after = listed
    assert (before, len(after)) == ([], 1)


def test_a_trace_is_parsed_once_for_all_machines(
    command: Command,
    address: str,
    tmp_path: Path,
    machine: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = tmp_path / "log.swf"
    log.write_text("".join(f"{n} {n} 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1\n" for n in (1, 2)))
    reads: list[object] = []
    prepare = traces.prepare
    monkeypatch.setattr(traces, "prepare", lambda *args: reads.append(args) or prepare(*args))
    for name, policy in (("one", "fifo"), ("two", "las")):
        machine(name)
        words = (f"policy={policy}", "trace=swf", f"trace.path={log}", "launcher=inline")
        ran = command.bare(*words, "tracking=none", f'paths.results="{address}"')
        assert ran.code == 0, ran.err
        assert "1 to run" in ran.err
        assert len(reads) == 1


@pytest.mark.long
def test_another_machine_resumes_an_interrupted_sweep(
    command: Command,
    address: str,
    machine: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    local = command(*GRID)
    machine("one")
    n_run = [0]

    def interrupted_simulate(*args: Any, **options: Any) -> Any:
        n_run[0] += 1
        if n_run[0] > 5:
            raise KeyboardInterrupt
        return fake_simulate(*args, **options)

    fake_engine(monkeypatch, interrupted_simulate)
    assert run_remote(command, address, *GRID).code == interrupt.INTERRUPTED
    fake_engine(monkeypatch)
    machine("two")
    ran = run_remote(command, address, *GRID)
    assert "5 cached, 7 to run" in ran.err
    name = f"sweeps/{local.folder.name}/cells.parquet"
    assert Bucket(address).get(name) == (local.folder / "cells.parquet").read_bytes()


@pytest.mark.long
def test_a_store_that_refuses_some_writes(
    command: Command,
    address: str,
    machine: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine("one")
    monkeypatch.setattr(bucket_module, "PAUSE_S", 0.001)
    connect, n_writes = object_store.connect, itertools.count(1)

    class RefusingStore:
        def __init__(self, *where: Any) -> None:
            self._store = connect(*where)

        def put(self, name: str, content: bytes, **options: Any) -> Any:
            if next(n_writes) % 4 == 0:
                raise OSError("When uploading: SlowDown")
            return self._store.put(name, content, **options)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._store, name)

    monkeypatch.setattr(object_store, "connect", RefusingStore)
    ran = run_remote(command, address, *GRID)
    assert ran.code == 0, ran.err
    assert next(n_writes) > 8


def test_an_unreachable_store_is_reported(command: Command, machine: Any, monkeypatch: Any) -> None:
    machine("one")
    monkeypatch.setattr(bucket_module, "N_TRIES", 1)
    with pytest.raises(InputError, match="check the address"):
        Bucket(f"s3://a:{SECRET}@results/x?endpoint_override=127.0.0.1:1&nonsense=1").list("a/")
