from __future__ import annotations

import numpy as np
import pytest

from sweep.execution.on_ray.task_queue import (
    MAX_BATCHES_PER_S,
    MAX_CELLS,
    MAX_LOST,
    MAX_S,
    MIN_S,
    MIN_WAITING,
    N_DRAW,
    Batch,
    Loss,
    TaskQueue,
)
from sweep.execution.plan import PlannedCell
from sweep.execution.result_batch import FlushPolicy
from tests.sweep.small import planned


def work(n: int, name: str = "w") -> list[PlannedCell]:
    return [planned(f"{name}{index}", name) for index in range(n)]


def keys(batch: Batch | None) -> list[str]:
    assert batch is not None
    return [cell.key for cell in batch.cells]


def take(batches: TaskQueue) -> Batch:
    batch = batches.next()
    assert batch is not None
    return batch


def test_a_chunk_leaves_the_other_slots_their_part() -> None:
    batches = TaskQueue(work(41), slots=2)
    sizes = []
    while (batch := batches.next()) is not None:
        sizes.append(len(batch.cells))
    assert sizes[0] == 11
    assert sizes[-1] == 1
    assert sum(sizes) == 41
    assert len(take(TaskQueue(work(100_000), slots=2)).cells) == MAX_CELLS


def test_what_a_task_had_no_time_for_is_next() -> None:
    batches = TaskQueue(work(20), slots=1)
    first = take(batches)
    assert keys(first) == [f"w{index}" for index in range(10)]
    batches.done(first, 4, 1.0)
    batches.requeue(first)
    assert keys(batches.next())[:2] == ["w4", "w5"]
    over = take(batches)
    batches.done(over, len(over.cells), 1.0)
    batches.requeue(over)
    assert not over.cells


def test_tasks_are_long_where_much_is_left() -> None:
    batches = TaskQueue(work(10_000), slots=2)
    first = take(batches)
    assert batches.flush_policy(first) == FlushPolicy(
        flush_s=MIN_S, stop_s=MIN_S
    )  # nothing is known
    batches.done(first, 100, 100 * 0.002)
    assert batches.flush_policy(take(batches)).stop_s == pytest.approx(0.002 * 5_964 / 4)
    batches.done(first, 100, 100 * 1.0)
    assert batches.flush_policy(first).stop_s == MAX_S
    while batches.next() is not None:
        pass
    assert batches.flush_policy(first).stop_s == MIN_S
    assert batches.flush_policy(Batch("w", work(2), one_by_one=True)).flush_s == 0.0


def test_parts_are_rarer_where_slots_are_many() -> None:
    batches = TaskQueue(work(1_000), slots=12_800)
    batches.done(take(batches), 1, 1.0)
    assert batches.flush_policy(take(batches)).flush_s == pytest.approx(12_800 / MAX_BATCHES_PER_S)


def test_cells_of_one_workload_follow_each_other() -> None:
    mixed = [cell for pair in zip(work(3, "a"), work(3, "b"), strict=True) for cell in pair]
    batches = TaskQueue(mixed, slots=2)
    taken = []
    while (batch := batches.next()) is not None:
        taken.append((batch.workload, len(batch.cells)))
    assert taken == [("a", 2), ("a", 1), ("b", 1), ("b", 1), ("b", 1)]


def test_a_workload_is_over_when_its_cells_are_settled() -> None:
    batches = TaskQueue(work(2), slots=2)
    first, second = take(batches), take(batches)
    batches.done(first, 1, 1.0)
    assert batches.pop_completed() == []
    batches.lost(second, "broken")
    assert batches.pop_completed() == ["w"]
    assert batches.pop_completed() == []


def test_a_workload_is_not_over_while_more_of_it_may_come() -> None:
    batches = TaskQueue([*work(MIN_WAITING + N_DRAW, "a"), *work(1, "b")], slots=1)
    settled, over = 0, []
    while (batch := batches.next()) is not None:
        settled += len(batch.cells)
        batches.done(batch, len(batch.cells), 1.0)
        over += [(name, settled) for name in batches.pop_completed()]
    assert over == [("a", MIN_WAITING + N_DRAW), ("b", MIN_WAITING + N_DRAW + 1)]


def test_few_cells_wait_at_a_time() -> None:
    drawn: list[PlannedCell] = []
    batches = TaskQueue(work(100_000), slots=2, on_draw=drawn.extend)
    taken = sum(len(take(batches).cells) for _ in range(10))
    assert taken == 10 * MAX_CELLS
    assert MIN_WAITING <= len(drawn) - taken + MAX_CELLS < MIN_WAITING + N_DRAW


def test_of_very_many_tasks_the_first_end_one_after_the_other_and_so_do_all() -> None:
    batches = TaskQueue(work(500_000), slots=12_800)
    first = [take(batches) for _ in range(1_000)]
    longest = 12_800 / MAX_BATCHES_PER_S
    parts = [batches.flush_policy(batch).flush_s for batch in first]
    ends = np.histogram(parts, bins=10, range=(0.0, longest))[0]
    assert set(ends) <= {99, 100, 101}
    # as many cells as there is time for, of a second each as long as nothing is known
    for batch, part_s in zip(first, parts, strict=True):
        assert part_s - 1.0 <= len(batch.cells) <= part_s + 1.0
    batches.done(first[0], 1, 0.5)
    later = [take(batches) for _ in range(3)]
    assert {batches.flush_policy(batch).stop_s for batch in later} == {longest}
    assert {len(batch.cells) for batch in later} == {2 * (longest - 1.0)}


def test_of_few_tasks_all_are_as_long() -> None:
    batches = TaskQueue(work(8_000), slots=100)
    first = [take(batches) for _ in range(50)]
    assert {batches.flush_policy(batch).flush_s for batch in first} == {MIN_S}
    assert [len(batch.cells) for batch in first[:2]] == [40, 40]


def test_no_task_is_given_more_than_it_has_time_for() -> None:
    batches = TaskQueue(work(100_000), slots=2)
    batches.done(take(batches), 1, 0.1)
    assert len(take(batches).cells) == MAX_S / 0.1


def test_a_lost_chunk_waits_again_with_care() -> None:
    batches = TaskQueue(work(3), slots=1)
    assert batches.lost(Batch("w", work(3)), "lost") == []
    again = take(batches)
    assert (keys(again), again.one_by_one) == (["w0", "w1", "w2"], True)
    assert [batches.n_losses(cell) for cell in again.cells] == [0, 0, 0]


def test_with_care_the_first_is_to_blame() -> None:
    batches = TaskQueue(work(0), slots=1)
    batches._n_unfinished["w"] = 3
    chunk = Batch("w", work(3), one_by_one=True)
    batches.done(chunk, 1, 0.1)
    assert batches.lost(chunk, "lost") == []
    cell, second = take(batches), take(batches)
    assert (keys(cell), keys(second)) == (["w1"], ["w2"])
    assert batches.n_losses(cell.cells[0]) == 1
    assert batches.n_losses(second.cells[0]) == 0


@pytest.mark.parametrize("poison", [0, 13, 39])
@pytest.mark.parametrize(("loss", "runs"), [("lost", 2 + MAX_LOST + 1), ("memory", 3)])
def test_one_cell_takes_no_other_with_it(poison: int, loss: Loss, runs: int) -> None:
    """The poison cell fails after a few tries, and no other cell fails, in any order."""
    batches = TaskQueue(work(40), slots=2)
    done, given_up, n_runs = [], [], 0
    while (batch := batches.next()) is not None:
        bad = [index for index, cell in enumerate(batch.cells) if cell.key == f"w{poison}"]
        n = bad[0] if bad else len(batch.cells)
        n_seen = n if batch.one_by_one else n // 2 if bad else n
        done += [cell.key for cell in batch.cells[:n_seen]]
        if n_seen:
            batches.done(batch, n_seen, 0.1)
        if bad:
            n_runs += 1
            given_up += batches.lost(batch, loss)
        else:
            batches.requeue(batch)
    assert [cell.key for cell in given_up] == [f"w{poison}"]
    assert sorted([*done, f"w{poison}"]) == sorted(cell.key for cell in work(40))
    assert n_runs <= runs
    assert batches.pop_completed() == ["w"]


def test_a_lost_cell_has_five_more_trials() -> None:
    batches = TaskQueue(work(1), slots=1)
    for _ in range(MAX_LOST):
        assert batches.lost(take(batches), "lost") == []
    assert MAX_LOST == 5
    assert [cell.key for cell in batches.lost(take(batches), "lost")] == ["w0"]
    assert batches.next() is None


def test_out_of_memory_has_one_more_trial_with_twice_the_memory() -> None:
    batches = TaskQueue(work(1), slots=1)
    first = take(batches)
    assert not first.double_memory
    assert batches.lost(first, "memory") == []
    second = take(batches)
    assert second.double_memory
    assert len(batches.lost(second, "memory")) == 1


@pytest.mark.parametrize("n", [1, 3])
def test_a_broken_task_is_tried_again_only_to_find_the_cell_to_blame(n: int) -> None:
    batches = TaskQueue(work(n), slots=2)
    given_up = batches.lost(Batch("w", [take(batches).cells[0] for _ in range(n)]), "broken")
    assert len(given_up) == (1 if n == 1 else 0)
    while (batch := batches.next()) is not None:
        assert len(batches.lost(batch, "broken")) == 1
    assert batches.pop_completed() == ["w"]


def test_a_cell_that_was_ended_is_settled_and_the_others_wait_again() -> None:
    batches = TaskQueue(work(3), slots=1)
    all_three = Batch("w", [cell for _ in range(2) for cell in take(batches).cells])
    assert batches.timed_out(all_three, "w1").key == "w1"
    assert keys(batches.next()) == ["w0", "w2"]
    assert batches.next() is None
    assert batches.pop_completed() == []


def test_what_could_not_be_handed_out_is_next_again() -> None:
    batches = TaskQueue(work(3), slots=2)
    first = take(batches)
    batches.put_back(first)
    assert [keys(batches.next()) for _ in range(3)] == [["w0"], ["w1"], ["w2"]]
