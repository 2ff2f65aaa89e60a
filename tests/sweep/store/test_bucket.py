"""Results in an object store: a server that speaks S3 stands in this process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sim.base import interrupt
from sim.base.errors import InputError
from sweep.cli import main
from sweep.grid import remote_results, traces
from sweep.store import bucket as bucket_module
from sweep.store import signed_put, storage, sync
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
    """Move to a machine: a working folder and a memory of its own."""

    def move(name: str) -> Path:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
        for known in (remote_results._ADDRESSES, sync._PUSHED):
            known.clear()
        storage._bucket.cache_clear()
        return tmp_path / name

    return move


@pytest.fixture
def command(tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch) -> Command:
    fake_engine(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return Command(tmp_path, capfd)


def far(command: Command, address: str, *words: str) -> Ran:
    trace = ("trace=parquet", f"trace.path={command.trace}")
    return command.bare(
        *words, *trace, "launcher=inline", "tracking=none", f'paths.results="{address}"'
    )


def sweeps(object_store: Bucket) -> dict[str, bytes | None]:
    return {name: object_store.get(name) for name in object_store.list("sweeps/")}


def test_contents(address: str) -> None:
    object_store = Bucket(address)
    assert object_store.get("a/b") is None
    assert object_store.list("a/") == {}
    object_store.put("a/b", b"one")
    object_store.put("a/b", b"three")
    object_store.put("a/c/d", b"")
    assert object_store.get("a/b") == b"three"
    assert object_store.list("a/") == {"a/b": 5, "a/c/d": 0}
    object_store.delete("a/b")
    object_store.delete("a/b")
    assert object_store.list("a/") == {"a/c/d": 0}


@pytest.mark.parametrize("is_signed", [True, False])
def test_is_created_once(address: str, is_signed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[bool | None] = []
    real = signed_put.put

    def put(*value: Any, **options: Any) -> bool | None:
        answers.append(real(*value, **options) if is_signed else None)
        return answers[-1]

    monkeypatch.setattr(signed_put, "put", put)
    monkeypatch.setattr(bucket_module, "PAUSE_S", 0.001)
    object_store = Bucket(address)
    assert object_store.put_new("a b/c", b"one")
    assert not object_store.put_new("a b/c", b"two")
    assert object_store.get("a b/c") == b"one"
    assert answers == ([True, False] if is_signed else [None, None])
    mine = Lease(object_store, "journal/x", beat_s=60)
    mine.take()
    assert mine.is_held()
    mine.release()
    assert [*object_store.list("journal/")] == ["journal/x.lease/00000001"]


def test_two_who_look_at_the_same_time_step_back(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signed_put, "put", lambda *_, **__: None)
    monkeypatch.setattr(bucket_module, "PAUSE_S", 0.001)
    object_store = Bucket(address)
    real = object_store._listed
    n_lists = itertools.count()

    def listed(prefix: str) -> Any:
        if next(n_lists) == 1:  # the other has written and not looked yet
            object_store.put("a/b~other", b"")
        return real(prefix)

    monkeypatch.setattr(object_store, "_listed", listed)
    assert not object_store.put_new("a/b", b"mine")
    assert object_store.get("a/b") is None
    object_store.delete("a/b~other")
    assert object_store.put_new("a/b", b"mine")


def test_credentials_are_found_where_other_tools_find_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    assert signed_put._secrets("a%2Fb", "c") == ("a/b", "c", "")
    assert signed_put._secrets(None, None) is None
    file.write_text("[default]\naws_access_key_id = k\naws_secret_access_key = s%\n")
    assert signed_put._secrets(None, None) == ("k", "s%", "")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "e")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "f")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "t")
    assert signed_put._secrets(None, None) == ("e", "f", "t")
    assert signed_put.put("gs://bucket/prefix", "name", b"") is None


@pytest.mark.parametrize(
    ("value", "message"),
    [("s3://bucket", "names no folder"), ("ftp://host/x", "unknown scheme 'ftp'")],
)
def test_what_can_be_no_address_is_refused(command: Command, value: str, message: str) -> None:
    ran = far(command, value, *GRID)
    assert ran.code == main.WRONG
    assert message in ran.err


def test_a_sweep_and_the_same_from_another_machine(
    command: Command, address: str, tmp_path: Path, machine: Callable[[str], Path]
) -> None:
    near = command(*GRID)
    before = {path.name for path in tmp_path.iterdir()}
    first = machine("one")
    ran = far(command, address, *GRID)
    assert ran.code == 0, ran.err
    assert (
        ran.out.splitlines()[-1] == f"s3://results/{tmp_path.name}/here/sweeps/{near.folder.name}"
    )
    assert "results are kept in s3://results" in ran.err
    assert {path.name for path in tmp_path.iterdir()} == {*before, "one"}
    actual = sweeps(Bucket(address))
    expected = every_file(near.folder)
    for name in ("cells.parquet", "verdict.json", "report.html"):
        assert actual[f"sweeps/{near.folder.name}/{name}"] == expected[name]
    machine("two")
    again = far(command, address, *GRID)
    assert "every cell is cached" in again.err
    assert "finished" in command.bare("status", f'paths.results="{address}"').out
    written = every_file(first) | {name: content or b"" for name, content in actual.items()}
    assert [name for name, content in written.items() if SECRET.encode() in content] == []
    assert SECRET not in ran.out + ran.err + again.out + again.err


def test_a_trace_that_was_read_on_a_machine_is_not_read_on_another(
    command: Command,
    address: str,
    tmp_path: Path,
    machine: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = tmp_path / "log.swf"
    log.write_text("".join(f"{n} {n} 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1\n" for n in (1, 2)))
    reads: list[object] = []
    read = traces.prepare
    monkeypatch.setattr(traces, "prepare", lambda *inputs: reads.append(inputs) or read(*inputs))
    for name, policy in (("one", "fifo"), ("two", "las")):
        machine(name)
        words = (f"policy={policy}", "trace=swf", f"trace.path={log}", "launcher=inline")
        ran = command.bare(*words, "tracking=none", f'paths.results="{address}"')
        assert ran.code == 0, ran.err
        assert "1 to run" in ran.err
        assert len(reads) == 1


@pytest.mark.long
def test_a_machine_that_is_lost(
    command: Command,
    address: str,
    machine: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    near = command(*GRID)
    machine("one")
    n_run = [0]

    def dies(*args: Any, **options: Any) -> Any:
        n_run[0] += 1
        if n_run[0] > 5:
            raise KeyboardInterrupt
        return fake_simulate(*args, **options)

    fake_engine(monkeypatch, dies)
    assert far(command, address, *GRID).code == interrupt.INTERRUPTED
    fake_engine(monkeypatch)
    machine("two")
    ran = far(command, address, *GRID)
    assert "5 cached, 7 to run" in ran.err
    name = f"sweeps/{near.folder.name}/cells.parquet"
    assert Bucket(address).get(name) == (near.folder / "cells.parquet").read_bytes()


@pytest.mark.long
def test_a_store_that_refuses_now_and_then(
    command: Command,
    address: str,
    machine: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine("one")
    monkeypatch.setattr(bucket_module, "PAUSE_S", 0.001)
    real, n_asked = Bucket._filesystem.func, itertools.count(1)

    class Refuses:
        def __init__(self, system: Any) -> None:
            self._system = system

        def open_output_stream(self, path: str) -> Any:
            if next(n_asked) % 4 == 0:
                raise OSError("When uploading: SlowDown")
            return self._system.open_output_stream(path)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._system, name)

    def filesystem(self: Bucket) -> Any:
        system, root = real(self)
        return Refuses(system), root

    monkeypatch.setattr(Bucket, "_filesystem", property(filesystem))
    ran = far(command, address, *GRID)
    assert ran.code == 0, ran.err
    assert next(n_asked) > 8


def test_a_store_that_is_not_there_is_said(
    command: Command, machine: Any, monkeypatch: Any
) -> None:
    machine("one")
    monkeypatch.setattr(bucket_module, "N_TRIES", 1)
    options = "endpoint_override=127.0.0.1:1&scheme=http&region=us-east-1&retry_limit=1"
    with pytest.raises(InputError, match="check the address"):
        Bucket(f"s3://a:{SECRET}@results/x?endpoint_override=127.0.0.1:1&nonsense=1").list("a/")
    assert options
