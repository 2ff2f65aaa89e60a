"""Time left, by a clock that the tests turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from sweep.execution import time_left
from sweep.execution.time_left import TimeLeft


class Clock:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def sweep(
    clock: Clock, rows: int | Sequence[int], slots: int = 1, n_seeds: int = 1, n_capacities: int = 1
) -> TimeLeft:
    todo = np.arange(rows) if isinstance(rows, int) else np.asarray(rows)
    return TimeLeft(todo, n_seeds, n_capacities, lambda: slots, clock)


def test_nothing_is_told_before_a_cell_is_done() -> None:
    clock = Clock()
    left = sweep(clock, 3)
    clock.now = 30.0
    assert left.seconds() is None


def test_cells_that_are_alike_take_as_long_as_each_other() -> None:
    clock = Clock()
    left = sweep(clock, 10, n_seeds=10)
    for row in range(4):
        clock.now += 2.0
        left.done([row], [2.0])
    assert left.seconds() == pytest.approx(12.0)
    clock.now += 1.5
    assert left.seconds() == pytest.approx(10.5)


def test_two_slow_cells_of_a_policy_never_make_it_grow() -> None:
    """Of two policies of four seeds on two slots the second takes 300 s a cell."""
    clock = Clock()
    left = sweep(clock, 8, slots=2, n_seeds=4)
    for rows in ((0, 1), (2, 3)):
        clock.now += 1.0
        left.done(rows, [1.0, 1.0])
    clock.now += 300.0
    left.done([4, 5], [300.0, 300.0])
    estimates = []
    for _ in range(60):
        estimates.append(left.seconds())
        clock.now += 5.0
    assert estimates[0] == pytest.approx(300.0)
    assert estimates == [pytest.approx(300.0 - 5.0 * index) for index in range(60)]
    assert left.seconds() is None  # for longer than any like them
    clock.now += 400.0
    assert left.seconds() is None


def test_of_cells_like_none_before_nothing_is_told_for_long() -> None:
    clock = Clock()
    left = sweep(clock, 152, slots=2, n_seeds=1)
    for row in range(150):
        clock.now += 0.2
        left.done([row], [0.4])
    estimates = []
    for _ in range(12):
        clock.now += 60.0
        estimates.append(left.seconds())
    assert estimates == [None] * 12  # it said 60 s at first, and 147 s in the end


def test_the_longest_cell_counts_where_there_are_slots_for_all() -> None:
    clock = Clock()
    left = sweep(clock, 20, slots=64, n_seeds=10)
    clock.now = 50.0
    left.done([0, 10], [5.0, 50.0])
    assert left.seconds() == pytest.approx(50.0)
    clock.now = 60.0
    left.done([*range(1, 10)], [5.0] * 9)
    clock.now = 70.0
    assert left.seconds() == pytest.approx(40.0)


def test_another_capacity_of_the_same_policy_is_nearer_than_another_policy() -> None:
    clock = Clock()
    left = sweep(clock, 8, n_seeds=2, n_capacities=2)  # two policies
    clock.now = 20.0
    left.done([0, 1, 2, 3], [1.0] * 4)
    left.done([4, 5], [100.0] * 2)
    assert left.seconds() == pytest.approx(200.0, rel=0.01)


def test_what_a_cell_costs_beyond_its_own_time_counts_too() -> None:
    clock = Clock()
    left = sweep(clock, 1000, n_seeds=1000)
    for begin in range(0, 500, 50):
        clock.now += 0.2  # 4 ms a cell, of which it took 1
        left.done([*range(begin, begin + 50)], [0.001] * 50)
    assert left.seconds() == pytest.approx(500 * 0.004, rel=0.01)


def test_cells_that_failed_tell_nothing_of_the_others() -> None:
    clock = Clock()
    left = sweep(clock, 10, n_seeds=10)
    left.done([0, 1, 2], [0.0] * 3)
    assert left.seconds() is None
    left.done([3, 4], [6.0, 6.0])
    assert left.seconds() == pytest.approx(30.0)


def test_the_first_cell_of_a_policy_may_have_compiled() -> None:
    clock = Clock()
    left = sweep(clock, 12, n_seeds=6)  # two policies
    clock.now = 60.0
    left.done([0], [60.0])
    assert left.seconds() is None
    clock.now = 60.2
    left.done([1], [0.2])
    assert left.seconds() == pytest.approx(10 * 0.2)
    clock.now = 100.2
    left.done([6], [40.0])
    known = 4 * 0.2 + 5 * 40.0  # nothing else is known of the second policy
    assert left.seconds() == pytest.approx(left._overhead * known)
    left.done([7], [0.2])
    assert left.seconds() == pytest.approx(left._overhead * 8 * 0.2)


def test_all_done_leaves_nothing() -> None:
    clock = Clock()
    left = sweep(clock, [3, 5, 9])
    left.done([3, 5, 9], [1.0] * 3)
    assert left.seconds() is None


def test_of_very_many_cells_kinds_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_left, "MAX_KINDS", 100)
    left = sweep(Clock(), 10_000)
    assert len(left._kinds) <= 100
    left.done([*range(10_000)], [1.0] * 10_000)
    assert left.seconds() is None
