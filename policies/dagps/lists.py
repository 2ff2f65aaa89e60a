"""Schedules of one DAG by lists, on machines whose fungible resources stretch: beyond the paper.

The virtual space of §4 holds every resource to its capacity. A cluster shares what is fungible
(disk and network): more of it may be demanded than there is, and who demands it is slowed down. So
a schedule that overbooks may be shorter than any that the space holds; and of those that do not,
one that a list gives may be, as the search tries few of all orders.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.dagps.board import Placed
from policies.dagps.dag import Dag, both_ways, path_s, turned, upward_rank
from sim.base.arrays import I8, Mask
from sim.base.random import fixed_permutation

N_DRAWN = 16
"""How many random orders of the stages are tried."""


def without(dag: Dag, fungible: Mask) -> Dag:
    """Return the DAG as it is where its fungible demands are none."""
    return replace(dag, demand=np.where(fungible, 0, dag.demand))


def lists_of(dag: Dag) -> Iterator[NDArray[Any]]:
    """Give the keys of list scheduling, (G,) or (T,), the least first.

    Breadth first, the longest path to the end first, inside a stage too, and falling
    Coffman-Graham labels (`policies.list_scheduling`).
    """
    from sim.dags.kernels.levels import coffman_graham_labels  # compiled: slow to import
    from sim.workload.kernels.paths import depths

    yield depths(dag.order, dag.edge0, dag.edge_child)
    stage, turn = dag.task_stage, np.empty(len(dag.duration), dtype=np.int64)
    turn[np.lexsort((-upward_rank(dag), stage, -path_s(dag)[stage]))] = np.arange(len(turn))
    yield turn
    one_job = np.array([0, len(dag.order)])
    yield -coffman_graham_labels(one_job, dag.order, dag.edge0, dag.edge_child)


def improved(
    dag: Dag, capacity: I8, fungible: Mask, keys: list[NDArray[Any]], best: Placed, least_s: float
) -> Placed:
    """Return the shortest of `best` and the schedules by lists; stop at one of `least_s`.

    Lists are the `keys` that are given, those of list scheduling and random ones. Each is run as
    the simulator would, with all demands looked at, and with those of `fungible` resources left
    out; and then there and back: by its ends, backward, and by what that gives forward again, for
    as long as it gets shorter (Li and Willis, *An iterative scheduling technique for
    resource-constrained project scheduling*, EJOR 56, 1992).
    """
    ahead, back = Lists(dag, capacity, fungible), Lists(turned(dag), capacity, fungible)
    everything = np.ones(len(fungible), dtype=np.bool_)
    keys = [*keys, *lists_of(dag)]
    for looks in (everything, ~fungible)[: 1 + fungible.any()]:
        for found in _firsts(ahead, keys, looks):
            while found is not None:
                if found.span_s < best.span_s:
                    best = found
                if best.span_s <= least_s:
                    return best
                mirrored = back.run(-found.end, looks)
                assert mirrored is not None  # there is no limit
                found = ahead.run(-mirrored.end, looks, found.span_s)
    return best


def _firsts(ahead: Lists, keys: list[NDArray[Any]], looks: Mask) -> Iterator[Placed | None]:
    for key in keys:
        yield ahead.run(key, looks)
    by_row = np.arange(ahead.n_stages)
    yield ahead.run(by_row, looks, packs=True)
    for i in range(N_DRAWN):
        yield ahead.run(fixed_permutation(ahead.n_stages, i), looks)


class Lists:
    """A DAG and its machines, ready to be run in the order of a list."""

    def __init__(self, dag: Dag, capacity: I8, fungible: Mask) -> None:
        from policies.dagps.kernels import listrecord  # compiled: slow to import

        self._stage = dag.task_stage
        self.n_stages = len(dag.order)
        given = {"capacity": capacity, "fungible": fungible, "duration": dag.duration}
        self._run = listrecord.make({**both_ways(dag), **given})

    def run(
        self, key: NDArray[Any], looks: Mask, limit: float = np.inf, packs: bool = False
    ) -> Placed | None:
        """Run the tasks by a key, (T,) or (G,), the least first, ties by row.

        Of a task's demands those of the resources that `looks` tells must fit. With `packs` the
        machines take what fills them best, and the key decides between equals. None if the run
        takes as long as `limit`.
        """
        from policies.dagps.kernels import listing, listrecord

        arrays = listrecord.columns(self._run)
        of_task = key if len(key) == len(self._stage) else key[self._stage]
        arrays["state_task_at"][:] = np.argsort(of_task, kind="stable")
        arrays["state_looks"][:] = looks
        span = listing.run_list(self._run, packs, limit)
        if span == np.inf:
            return None
        begin, end, machine = (arrays[f"out_{name}"].copy() for name in ("begin", "end", "machine"))
        return Placed(begin, end, machine, span)
