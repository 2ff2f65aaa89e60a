from __future__ import annotations

import pytest

from sweep.store import stale, sweep_summaries
from sweep.store.cache import Cache
from sweep.store.folder import SweepFolder
from tests.sweep.small import Command, keys_kept, lose
from tests.sweep.store.edits import STATEMENT, Sources

GRID = ("policy=fifo,las", "seed=0,1,2", "capacity=0.5,1")


@pytest.fixture(autouse=True)
def read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_summaries, "_FINISHED", {})


def test_cells_of_changed_code_are_said_until_they_have_run_again(
    fake: Command, edited: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(*GRID)
    assert "stale" not in fake.verb("list").out + fake.verb("status").out
    edited.edit("policies.orders", added=STATEMENT)  # fifo's module alone
    monkeypatch.setattr(sweep_summaries, "_FINISHED", {})
    assert "  stale: 6 cells (fifo changed)" in fake.verb("list").out
    assert "stale: 6 cells (fifo changed): the same command runs them again" in (
        fake.verb("status").out
    )
    fake(*GRID)  # another sweep: the old one stays as it was
    assert fake.verb("list").out.count("stale") == 1
    assert "stale" not in fake.verb("status").out
    edited.edit("policies.base", added=STATEMENT)
    assert "stale: 12 cells (fifo, las changed)" in fake.verb("status").out


def test_cells_that_failed_or_are_not_cached_do_not_count(fake: Command, edited: Sources) -> None:
    folder = SweepFolder(fake("policy=fifo,las").folder)
    edited.edit("policies.base", added=STATEMENT)
    assert stale.stale_cells(folder, Cache(fake.results)) == {"fifo": 1, "las": 1}
    for key in keys_kept(fake.results):
        lose(fake.results, key)
    assert stale.stale_cells(folder, Cache(fake.results)) == {}


def test_cells_of_modules_that_are_not_here_do_not_count(
    fake: Command, edited: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code of a folder that no word names may have changed or not."""
    folder, cache = SweepFolder(fake("policy=fifo").folder), Cache(fake.results)
    edited.edit("policies.base", added=STATEMENT)
    config = cache.config

    def in_own_module(key: str) -> object:
        known = config(key)
        assert known is not None
        return known | {"evaluator": {"name": "late", "module": "folder_of_ones_own.late"}}

    monkeypatch.setattr(cache, "config", in_own_module)
    assert stale.stale_cells(folder, cache) == {}


def test_many_policies_are_counted() -> None:
    counts = {f"p{k}": 1_000 for k in range(5)}
    assert stale.stale_words(counts) == "stale: 5,000 cells (p0, p1, p2, 2 more changed)"
    assert stale.stale_words({"fifo": 1}) == "stale: 1 cell (fifo changed)"
    assert stale.stale_words({}) == ""
