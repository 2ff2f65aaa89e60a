"""BuildSchedule for one totally ordered part of a DAG (§4.3, Figs. 5 and 7)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from policies.dagps.board import Board, Placed, Space, placed
from policies.dagps.dag import Dag
from policies.dagps.scores import frag_score, least_span, time_alone
from policies.dagps.troublesome import C, O, P, T, candidates
from sim.base.arrays import I4, I8

SLACK = 1e-12
"""A span within this of a lower bound, relative to it, is as good as the bound."""


def orders(board: Board, label: I4, limit: float) -> Iterator[Placed]:
    """Try the four orders of subsets that have no dead ends."""
    trouble = board.either_way(label, T, board.empty, (0, 1), limit)
    if trouble is None:
        return
    others = board.either_way(label, O, trouble, (2, 3), limit)
    sequences: list[tuple[Space | None, tuple[tuple[int, bool], ...]]]
    sequences = [(others, ((C, False), (P, True))), (others, ((P, True), (C, False)))]
    if (label == O).any():  # else they are the same again
        sequences += [
            (trouble, ((C, False), (O, True), (P, True))),
            (trouble, ((P, True), (O, False), (C, False))),
        ]
    for start, steps in sequences:
        space = start
        for i, (which, backward) in enumerate(steps):
            if space is not None:
                space = board.place(label, which, backward, space, 4 + i % 2, limit)
        if space is not None:
            limit = space.span_s
            yield placed(space)


def most_compact(dag: Dag, capacity: I8, max_candidates: int | None) -> Placed:
    """Build the most compact schedule that some choice of troublesome tasks leads to."""
    board = Board(dag, capacity)
    alone = time_alone(board)
    best: Placed | None = None
    least = least_span(dag, capacity, alone) * (1 + SLACK)
    score = frag_score(dag, capacity, alone)[dag.task_stage]
    for label in candidates(dag.duration, score, board.ahead, board.back, max_candidates):
        for found in orders(board, label, np.inf if best is None else best.span_s):
            best = found
        if best is not None and best.span_s <= least:
            break
    assert best is not None  # the first set is placed without a limit, and no order has dead ends
    return best
