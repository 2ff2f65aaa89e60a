"""Which tasks could be the troublesome ones (§4.1): CandidateTroublesomeTasks, and its scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from policies.dagps.board import Board
from policies.dagps.dag import Dag
from sim.base.arrays import F8, I4, I8, Mask

T, O, P, C = range(4)  # noqa: E741  # the paper's names
"""Labels: troublesome tasks, others, ancestors, descendants."""


def time_alone(board: Board) -> F8:
    """Measure how long a greedy packer takes for each stage alone, (G,) s."""
    stage = board.dag.task_stage
    stages = range(len(board.dag.order))
    spans = [board.place(stage, g, False, board.empty, 0, np.inf) for g in stages]
    return np.array([0.0 if space is None else space.span_s for space in spans])


def stage_load(dag: Dag, capacity: I8) -> F8:
    """Measure each stage's work against the capacity of all machines, (G, R) s."""
    work = np.add.reduceat(dag.duration, dag.task0[:-1])
    load: F8 = work[:, None] * (dag.demand / np.maximum(capacity.sum(axis=0), 1))
    return load


def frag_score(dag: Dag, capacity: I8, alone: F8) -> F8:
    """Score how well each stage packs: its work over the time it takes alone (§4.1)."""
    score = np.ones(len(alone))
    np.divide(stage_load(dag, capacity).max(axis=1), alone, out=score, where=alone > 0)
    return score


def candidates(
    duration: F8, frag_score: F8, ahead: Any, back: Any, max_candidates: int | None
) -> list[I4]:
    """Divide a DAG's tasks in every way that a discriminative pair of thresholds (l, f) gives.

    Troublesome are the tasks at least as long as l times the longest or of a FragScore of at most
    f, and whatever lies on a path between two of them. l takes every LongScore there is, the
    largest first, and for each of them f first a value below every FragScore, then each of them,
    the smallest first. A set that was seen before is left out.
    """
    labels: dict[bytes, I4] = {}
    seen: set[bytes] = set()
    for picked in _picked(duration, frag_score, max_candidates):
        key = np.packbits(picked).tobytes()
        if key in seen:
            continue
        seen.add(key)
        label = divide(picked, ahead, back)
        labels.setdefault((label == T).tobytes(), label)
    return _spread(list(labels.values()), max_candidates)


def divide(picked: Mask, ahead: Any, back: Any) -> I4:
    """Label the tasks, given those that were `picked` as troublesome."""
    from policies.dagps.kernels.dagrecord import reach  # compiled: slow to import

    below, above = np.empty_like(picked), np.empty_like(picked)
    reach(ahead, picked, below)
    reach(back, picked, above)
    label = np.full(len(picked), O, dtype=np.int32)
    label[above] = P
    label[below] = C
    label[picked | (above & below)] = T
    return label


def _picked(duration: F8, frag_score: F8, max_candidates: int | None) -> Iterator[Mask]:
    longs, frags = np.unique(duration)[::-1], np.unique(frag_score)
    if max_candidates is not None:
        frags = np.array(_spread(list(frags), 2 * max_candidates))
        longs = np.array(_spread(list(longs), max(1, 4 * max_candidates // (1 + len(frags)))))
    hard = [np.zeros(len(duration), dtype=np.bool_)] + [frag_score <= f for f in frags]
    for shortest in longs:
        long = duration >= shortest
        for packs_badly in hard:
            yield long | packs_badly


def _spread(items: list[Any], n: int | None) -> list[Any]:
    """Return `n` of the items, evenly spread, the first included."""
    if n is None or len(items) <= n:
        return items
    return [items[i * len(items) // n] for i in range(n)]
