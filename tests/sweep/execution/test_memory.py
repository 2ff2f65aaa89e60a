"""Freed memory goes back to the operating system."""

from __future__ import annotations

import gc
import weakref

import pytest

from sweep.execution import memory
from tests.sweep.small import Command


class Circle:
    """A reference cycle, which only a garbage collection frees."""

    def __init__(self) -> None:
        self.itself = self


def test_what_nobody_holds_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "gc", gc)  # tests/sweep/conftest.py leaves it out
    reference = weakref.ref(Circle())
    memory.return_memory()
    assert reference() is None


def test_all_that_is_held_is_looked_through_seldom_and_what_is_young_as_before() -> None:
    before = gc.get_threshold()
    with memory.rare_full_collections():
        assert gc.get_threshold()[:2] == before[:2]
        assert gc.get_threshold()[2] > before[2]
    assert gc.get_threshold() == before


def test_a_sweep_gives_it_back(fake: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(memory.gc, "collect", lambda: calls.append(0))
    fake("policy=fifo")
    assert calls
