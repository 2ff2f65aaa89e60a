"""Slots of jobs on several nodes, shared out so that the nodes can have held them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import sim
from sim.base.arrays import offsets
from sweep.backtest.capacity import logged_size
from sweep.backtest.node_lists import Nodes
from sweep.backtest.node_shares import least_size, shares

SIZE, N_NODES = 8, 4


def nodes_of(lists: list[list[int]]) -> Nodes:
    count = np.array([len(nodes) for nodes in lists])
    stage = np.repeat(np.arange(len(lists)), count)
    return Nodes(stage, np.array([node for nodes in lists for node in nodes]), count, N_NODES)


def world(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, Nodes]:
    """Draw uses that nodes of `SIZE` slots can have held, begin by begin."""
    rng = np.random.default_rng(seed)
    begin, end, slots, lists = [], [], [], []
    running: list[tuple[float, dict[int, int]]] = []
    for time in range(30):
        running = [entry for entry in running if entry[0] > time]
        free = np.full(N_NODES, SIZE)
        for _, part in running:
            for node, n in part.items():
                free[node] -= n
        with_room = np.flatnonzero(free > 0)
        if not len(with_room):
            continue
        n_nodes = int(rng.integers(1, len(with_room) + 1))
        chosen = rng.choice(with_room, n_nodes, replace=False).tolist()
        part = {node: int(rng.integers(1, free[node] + 1)) for node in chosen}
        length = float(rng.integers(1, 9))
        running.append((time + length, part))
        begin.append(float(time))
        end.append(time + length)
        slots.append(sum(part.values()))
        lists.append(sorted(part))
    return np.array(begin), np.array(end), np.array(slots), nodes_of(lists)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10_000))
def test_the_size_is_never_above_that_of_the_nodes_and_shares_add_up(seed: int) -> None:
    begin, end, slots, nodes = world(seed)
    stage = np.arange(len(slots))
    size, _ = least_size(begin, end, slots, stage, nodes)
    assert size <= SIZE
    room = np.full((N_NODES, 1), SIZE)
    use0, node, share = shares(begin, end, slots[:, None], stage, nodes, room)
    assert use0.tolist() == offsets(nodes.count).tolist()
    assert np.add.reduceat(share[:, 0], use0[:-1]).tolist() == slots.tolist()
    assert (share >= 0).all()
    assert node.tolist() == nodes.node.tolist()


def test_no_node_holds_more_than_what_the_log_allows() -> None:
    lists = [[0], [0, 1]]
    begin, end, slots = np.zeros(2), np.ones(2), np.array([20, 28])
    size, is_guess = least_size(begin, end, slots, np.arange(2), nodes_of(lists))
    assert (size, is_guess) == (24, True)
    room = np.full((N_NODES, 1), size)
    _, _, share = shares(begin, end, slots[:, None], np.arange(2), nodes_of(lists), room)
    assert share[:, 0].tolist() == [20, 4, 24]


def test_a_log_of_uneven_jobs_has_two_machines_of_24_cpus() -> None:
    stage = {"n_tasks": [20, 28], "duration_s": [3600.0, 3600.0], "node_list": ["m0", "m[0-1]"]}
    recorded = {"recorded_start_s": [0.0, 0.0], "recorded_finish_s": [3600.0, 3600.0]}
    workload = sim.Workload.from_tables(
        jobs={"job_id": ["1", "2"], "submit_s": [0.0, 0.0], "min_tasks": [20, 28], **recorded},
        stages={"job": [0, 1], **stage, **recorded},
    )
    size = logged_size(workload)
    assert (size.n_slots, size.n_machines) == (48, 2)
    assert "is a guess" in size.sentence
