from __future__ import annotations

import pytest

from sweep.execution.compute import Work
from sweep.execution.on_ray.batches import MAX_LOST, Batch, Batches
from sweep.store.cell import CellSpec


def work(n: int, name: str = "w") -> list[Work]:
    return [Work(CellSpec(f"{name}{at}", {}, {}, {}, 0), name) for at in range(n)]


def keys(batch: Batch | None) -> list[str]:
    assert batch is not None
    return [one.spec.key for one in batch.work]


def take(batches: Batches) -> Batch:
    batch = batches.next()
    assert batch is not None
    return batch


def test_one_at_a_time_until_durations_are_known() -> None:
    batches = Batches(work(3), slots=2)
    assert [keys(batches.next()) for _ in range(3)] == [["w0"], ["w1"], ["w2"]]
    assert batches.next() is None


def test_short_cells_are_grouped_into_tasks_of_about_a_second() -> None:
    batches = Batches(work(1000), slots=2)
    batches.done(take(batches), 0.1)
    assert len(take(batches).work) == 10


def test_long_cells_stay_alone() -> None:
    batches = Batches(work(100), slots=2)
    batches.done(take(batches), 3.0)
    assert len(take(batches).work) == 1


def test_groups_shrink_so_that_all_slots_end_together() -> None:
    batches = Batches(work(41), slots=2)
    batches.done(take(batches), 0.001)
    sizes = []
    while (batch := batches.next()) is not None:
        sizes.append(len(batch.work))
    assert sizes[0] == 10
    assert sizes[-1] == 1
    assert sum(sizes) == 40


def test_cells_of_one_workload_follow_each_other() -> None:
    mixed = [one for pair in zip(work(3, "a"), work(3, "b"), strict=True) for one in pair]
    batches = Batches(mixed, slots=1)
    assert [take(batches).input for _ in range(6)] == ["a", "a", "a", "b", "b", "b"]


def test_a_workload_is_over_when_its_cells_are_settled() -> None:
    batches = Batches(work(2), slots=1)
    first, second = take(batches), take(batches)
    batches.done(first, 1.0)
    assert not batches.is_over("w")
    batches.lost(second, "broken")
    assert batches.is_over("w")


def test_a_lost_group_waits_again_cell_by_cell() -> None:
    batches = Batches(work(3), slots=1)
    assert batches.lost(Batch("w", work(3)), "lost") == []
    assert [keys(batches.next()) for _ in range(3)] == [["w0"], ["w1"], ["w2"]]


def test_a_lost_cell_has_five_more_trials() -> None:
    batches = Batches(work(1), slots=1)
    for _ in range(MAX_LOST):
        assert batches.lost(take(batches), "lost") == []
    assert MAX_LOST == 5
    assert [one.spec.key for one in batches.lost(take(batches), "lost")] == ["w0"]
    assert batches.next() is None


def test_out_of_memory_has_one_more_trial_with_twice_the_memory() -> None:
    batches = Batches(work(1), slots=1)
    first = take(batches)
    assert not first.doubled
    assert batches.lost(first, "memory") == []
    second = take(batches)
    assert second.doubled
    assert len(batches.lost(second, "memory")) == 1


@pytest.mark.parametrize("n", [1, 3])
def test_a_broken_task_is_tried_again_only_to_find_the_cell_to_blame(n: int) -> None:
    batches = Batches(work(n), slots=1)
    given_up = batches.lost(Batch("w", [take(batches).work[0] for _ in range(n)]), "broken")
    assert len(given_up) == (1 if n == 1 else 0)
    while (batch := batches.next()) is not None:
        assert len(batches.lost(batch, "broken")) == 1
    assert batches.is_over("w")


def test_a_cell_that_was_ended_is_settled_and_the_others_wait_again() -> None:
    batches = Batches(work(3), slots=1)
    all_three = Batch("w", [take(batches).work[0] for _ in range(3)])
    assert batches.ended(all_three, "w1").spec.key == "w1"
    assert [keys(batches.next()) for _ in range(2)] == [["w0"], ["w2"]]
    assert batches.next() is None
    assert not batches.is_over("w")


def test_what_could_not_be_handed_out_is_next_again() -> None:
    batches = Batches(work(3), slots=1)
    first = take(batches)
    batches.put_back(first)
    assert [keys(batches.next()) for _ in range(3)] == [["w0"], ["w1"], ["w2"]]
