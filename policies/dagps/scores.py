"""How hard a stage is to pack, and how short a schedule can be at best (§4.1, §6)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.dagps.board import Board
from policies.dagps.dag import Dag, read_only
from sim.base.arrays import F8, I8


def time_alone(board: Board) -> F8:
    """Measure how long a greedy packer takes for each stage alone, (G,) s."""
    stage = board.dag.task_stage
    stages = range(len(board.dag.order))
    spans = [board.place(stage, g, False, board.empty, 0, np.inf) for g in stages]
    return np.array([0.0 if space is None else space.span_s for space in spans])


def stage_work(dag: Dag) -> F8:
    """Sum the durations of each stage's tasks, (G,) s."""
    work: F8 = np.add.reduceat(dag.duration, dag.task0[:-1])
    return work


def frag_score(dag: Dag, capacity: I8, alone: F8) -> F8:
    """Score how well each stage packs: its work over the time it takes alone (§4.1)."""
    score = np.ones(len(alone))
    np.divide(_load(dag, capacity).max(axis=1), alone, out=score, where=alone > 0)
    return score


def least_span(dag: Dag, capacity: I8, alone: F8) -> float:
    """Bound the span of any schedule from below, s.

    The greatest of CPLen, TWork and ModCP (§6); a stage whose tasks are alike can't take less than
    it takes alone, as never more of them run at once than the greedy packer runs.
    """
    from sim.bounds.kernels.bounds import whole_stage_paths
    from sim.workload.kernels.paths import tails

    first = dag.task0[:-1]
    longest = np.maximum.reduceat(dag.duration, first)
    shortest = np.minimum.reduceat(dag.duration, first)
    load = _load(dag, capacity)
    whole = np.maximum(load.max(axis=1), longest)
    whole = np.where(longest == shortest, np.maximum(whole, alone), whole)
    group = np.zeros(len(first), dtype=np.int64)
    shape: list[NDArray[Any]] = [dag.order, group, dag.edge0, dag.edge_child, dag.edge_kind]
    shape = [read_only(array) for array in (*shape, dag.task0)]
    times = [read_only(array) for array in (longest, dag.duration, shortest, whole)]
    tail = tails(*shape, *times[:2])
    path = whole_stage_paths(*shape, *times[2:])
    return float(max(tail.max(), path.max(), load.sum(axis=0).max()))


def _load(dag: Dag, capacity: I8) -> F8:
    """Measure each stage's work against the capacity of all machines, (G, R) s."""
    total = capacity.sum(axis=0)
    share = dag.demand / np.maximum(total, 1)
    load: F8 = stage_work(dag)[:, None] * share
    return load
