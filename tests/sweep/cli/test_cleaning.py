from __future__ import annotations

import threading

import pytest

from sweep.driver.sweep_loop import SweepLoop
from sweep.store.cache import Cache
from sweep.store.journal import Journal
from sweep.store.lease import Lease
from sweep.store.storage import FolderStorage
from tests.sweep.small import Command, Ran, fake_engine, fake_simulate, interrupted_after, keys_kept

A = ("policy=fifo,las", "capacity=0.5", "seed=0,1", "name=a")
B = ("policy=las,srpt", "capacity=0.5", "seed=0,1", "name=b")


@pytest.fixture
def both(fake: Command) -> tuple[Ran, Ran]:
    """Two sweeps of four cells, which share two."""
    return fake(*A), fake(*B)


def test_nothing_goes_that_a_sweep_reaches(fake: Command, both: tuple[Ran, Ran]) -> None:
    before = keys_kept(fake.results)
    assert len(before) == 6
    assert "sweeps need everything" in fake.verb("gc", "--delete").out
    assert keys_kept(fake.results) == before


def test_a_removed_sweep_leaves_cells_that_no_other_reaches(
    fake: Command, both: tuple[Ran, Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = both
    assert fake.verb("report", "a", "baseline=las").code == 0
    assert fake.verb("report", "a", "b").code == 0
    removed = fake.verb("rm", "a")
    pages = f"{a.folder.name}: removed with 1 report and 1 comparison, "
    assert (removed.code, pages in removed.out) == (0, True)
    assert not [*(fake.results / "comparisons").glob("*")]
    assert not a.folder.exists()
    assert not [*(fake.results / "journal").glob(f"{a.folder.name}*")]
    assert not [*(fake.results / "reports").glob("*")]
    assert b.folder.name in fake.verb("list").out
    assert a.folder.name not in fake.verb("list").out
    listed = fake.verb("gc")
    assert "2 cells" in listed.out
    assert "nothing was deleted" in listed.out
    assert len(keys_kept(fake.results)) == 6
    assert "nothing beyond that size" in fake.verb("gc", "--keep", "1GB", "--delete").out
    deleted = fake.verb("gc", "--delete")
    assert (deleted.code, "deleted" in deleted.out) == (0, True)
    assert sorted(keys_kept(fake.results)) == sorted({row["key"] for row in b.rows})
    assert all(Cache(fake.results).get(row["key"]) is not None for row in b.rows)
    assert "sweeps need everything" in fake.verb("gc").out
    fake_engine(monkeypatch)
    assert "4 cells, 4 cached" in fake("plan", *B).out
    assert "4 cells, 2 cached" in fake("plan", *A).out


def test_cells_of_an_interrupted_sweep_stay(fake: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_engine(monkeypatch, interrupted_after(fake_simulate, 2))
    assert fake(*A).code == 130
    before = keys_kept(fake.results)
    assert before
    assert fake.verb("gc", "--delete").code == 0
    assert keys_kept(fake.results) == before
    fake_engine(monkeypatch)
    (journal,) = (fake.results / "journal").glob("a-*.jsonl")
    assert fake.verb("rm", journal.stem).code == 0
    assert fake.verb("gc", "--delete").code == 0
    assert not keys_kept(fake.results)


def test_nothing_is_deleted_while_a_sweep_runs(fake: Command, both: tuple[Ran, Ran]) -> None:
    assert fake.verb("rm", "a").code == 0
    with Journal(fake.results, "other-00000000").locked(lambda: None):
        refused = fake.verb("gc", "--delete")
        assert (refused.code, "is running: nothing is deleted" in refused.err) == (2, True)
        removed = fake.verb("rm", "b")
        assert removed.code == 0
    assert len(keys_kept(fake.results)) == 6
    assert fake.verb("gc", "--delete").code == 0
    assert not keys_kept(fake.results)


def test_a_running_sweep_is_not_removed(fake: Command, both: tuple[Ran, Ran]) -> None:
    a, _ = both
    with Journal(fake.results, a.folder.name).locked(lambda: None):
        refused = fake.verb("rm", "a")
    assert (refused.code, "is running; end it first" in refused.err) == (2, True)
    assert a.folder.exists()


def test_a_sweep_that_begins_waits_and_looks_again(fake: Command, both: tuple[Ran, Ran]) -> None:
    from sweep.driver.run_sweep import strategy_for

    loop = SweepLoop(strategy_for(fake.request(*A)))
    assert loop.first.is_cached().all()
    for name in ("a", "b"):
        assert fake.verb("rm", name).code == 0
    lease = Lease(FolderStorage(fake.results), "cache/gc")
    lease.take()
    threading.Timer(0.5, lease.release).start()
    with loop.locked():
        assert not lease.may_be_held()
    assert fake.verb("gc", "--delete").code == 0
    with loop.locked():
        assert not loop.first.is_cached().any()


def test_sizes(fake: Command, both: tuple[Ran, Ran]) -> None:
    listed = fake.verb("list").out
    assert " kB" in listed
    assert "cells and traces in the cache: " in listed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gc", "all"), "gc takes no 'all'"),
        (("gc", "--keep", "much"), "a size such as 500MB"),
        (("rm",), "name the sweep"),
        (("rm", "c"), "unknown sweep 'c'"),
    ],
)
def test_wrong_words(
    fake: Command, both: tuple[Ran, Ran], words: tuple[str, ...], message: str
) -> None:
    refused = fake.verb(*words)
    assert (refused.code, message in refused.err) == (2, True)
