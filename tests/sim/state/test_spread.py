"""Tasks of gangs on the nodes that a log names, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sim.state.spread import Nodes, Ran, spread


def placed(
    jobs: list[tuple[float, float, tuple[int, ...], int]],
    capacity: list[int],
    weight: list[int] | None = None,
    known: list[Nodes] | None = None,
) -> list[Nodes]:
    """Place jobs (start, end, machines, tasks of one CPU) on machines of so many CPUs."""
    start_s, finish_s, machines, n_tasks = zip(*jobs, strict=True)
    ran = Ran(
        np.array(start_s), np.array(finish_s), machines, np.array(n_tasks),
        np.ones((len(jobs), 1), np.int64), known or (),
    )  # fmt: skip
    weights = np.array(weight or [1] * len(capacity))
    return spread(ran, np.array(capacity)[:, None], weights)


def test_all_room_of_the_first_nodes_and_the_rest_on_the_last() -> None:
    jobs = [(0.0, 9.0, (0,), 3), (1.0, 9.0, (0, 1), 4)]
    assert placed(jobs, [4, 4])[1] == {0: 1, 1: 3}


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        ([1, 1, 1, 1], {2: 4, 0: 1}),  # neither suffices: the row with more room first
        ([1, 1, 5, 1], {0: 2, 2: 3}),  # 0 is of the least weight
        ([9, 1, 1, 1], {2: 4, 0: 1}),
    ],
)
def test_by_weight_then_by_consecutive_best_fit(weight: list[int], expected: Nodes) -> None:
    assert placed([(0.0, 9.0, (0, 2), 5)], [2, 9, 4, 9], weight) == [expected]


def test_of_one_time_those_that_leave_nothing_open_go_first() -> None:
    jobs = [(0.0, 9.0, (0, 1), 4), (0.0, 9.0, (0,), 3)]
    assert placed(jobs, [4, 4]) == [{0: 1, 1: 3}, {0: 3}]


def test_tasks_change_places_where_a_later_job_lacks_room() -> None:
    """The gang had 3 tasks on 0, as far as its start tells; the last job says that it had 1."""
    jobs = [(0.0, 9.0, (0, 1), 4), (1.0, 9.0, (0,), 2)]
    assert placed(jobs, [3, 4]) == [{0: 1, 1: 3}, {0: 2}]


def test_they_change_places_only_where_there_was_room_ever_since() -> None:
    """Until 5 s a job held machine 1, so the gang can have had one task there, and no more."""
    jobs = [(0.0, 5.0, (1,), 3), (1.0, 9.0, (0, 1), 4), (6.0, 9.0, (0,), 2)]
    own = placed(jobs, [3, 4])
    assert own[1] == {0: 3, 1: 1}
    assert own[2] == {0: 2}  # which does not fit: the log is not of this cluster


def test_rigid_jobs_have_as_many_tasks_on_each_node() -> None:
    assert placed([(0.0, 9.0, (1, 3), 2)], [1, 1, 1, 1]) == [{1: 1, 3: 1}]


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({0: 1}, {0: 1, 1: 4, 2: 1}),  # the rest as before
        ({1: 2}, {0: 3, 1: 2, 2: 1}),
        ({0: 2, 1: 3}, {0: 2, 1: 3, 2: 1}),  # which says all
        ({0: 5}, {0: 4, 1: 1, 2: 1}),  # no task would be left for one of the others
        ({5: 2}, {0: 4, 1: 1, 2: 1}),  # not its machine
    ],
)
def test_known_tasks_count(known: Nodes, expected: Nodes) -> None:
    assert placed([(0.0, 9.0, (0, 1, 2), 6)], [4, 4, 4], known=[known]) == [expected]


def test_a_known_task_of_a_rigid_job_leaves_those_on_its_other_machines() -> None:
    assert placed([(0.0, 9.0, (0, 1, 2), 3)], [4, 4, 4], known=[{0: 1}]) == [{0: 1, 1: 1, 2: 1}]


def test_known_tasks_do_not_change_places() -> None:
    jobs = [(0.0, 9.0, (0, 1, 2), 5), (1.0, 9.0, (0,), 2)]
    assert placed(jobs, [3, 4, 4])[0] == {0: 1, 1: 3, 2: 1}
    assert placed(jobs, [3, 4, 4], known=[{0: 3}, {}])[0] == {0: 3, 1: 1, 2: 1}
    assert placed(jobs, [3, 4, 4], known=[{1: 1}, {}])[0] == {0: 1, 1: 1, 2: 3}


def test_moves_of_other_gangs_make_room_where_a_gang_can_move_nowhere() -> None:
    """The first gang has 3, 1 of 4 tasks, the second 3, 1 on the next two machines.

    The last job needs 2 of 3 on machine 0: two tasks of the first move to machine 1, of whose 4 two
    of the second move on.
    """
    jobs = [(0.0, 9.0, (0, 1), 4), (0.0, 9.0, (1, 2), 4), (1.0, 9.0, (0,), 2)]
    assert placed(jobs[:2], [3, 4, 4]) == [{0: 3, 1: 1}, {1: 3, 2: 1}]
    assert placed(jobs, [3, 4, 4]) == [{0: 1, 1: 3}, {1: 1, 2: 3}, {0: 2}]


@pytest.mark.parametrize("seed", range(20))
def test_what_ran_on_machines_has_room_there(seed: int) -> None:
    """Jobs that really ran, of whose tasks on each machine nothing is told, or little."""
    rng = np.random.default_rng(seed)
    capacity, jobs, known, truth = [8, 8, 16, 4], [], [], []
    for start_s in np.sort(rng.integers(0, 20, 25)).tolist():
        finish_s = start_s + int(rng.integers(1, 12))
        free = [
            c
            - sum(own.get(m, 0) for (_, b, *_), own in zip(jobs, truth, strict=True) if b > start_s)
            for m, c in enumerate(capacity)
        ]
        chosen = [m for m in rng.permutation(4).tolist() if free[m] > 0][: rng.integers(1, 4)]
        if not chosen:
            continue
        own = {m: int(rng.integers(1, free[m] + 1)) for m in sorted(chosen)}
        if rng.random() < 0.5:
            own = dict.fromkeys(own, 1)
        jobs.append((float(start_s), float(finish_s), tuple(own), sum(own.values())))
        truth.append(own)
        known.append({min(own): own[min(own)]} if rng.random() < 0.3 else {})
    placements = placed(jobs, capacity, known=known)
    for start_s, *_ in jobs:
        running = [
            own for (a, b, *_), own in zip(jobs, placements, strict=True) if a <= start_s < b
        ]
        for m, c in enumerate(capacity):
            assert sum(own.get(m, 0) for own in running) <= c
    for (_, _, machines, n_tasks), own, log in zip(jobs, placements, known, strict=True):
        assert (sum(own.values()), {*own}) == (n_tasks, {*machines})
        assert log.items() <= own.items()
        assert min(own.values()) >= 1
