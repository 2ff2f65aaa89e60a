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

    Demands are all looked at, or those of `fungible` resources left out.
    """
    ways = Ways(dag, capacity, fungible)
    for looks in ways.looks():
        for _, found in ways.tried(keys, looks):
            if found.span_s < best.span_s:
                best = found
            if best.span_s <= least_s:
                return best
    return best


class Ways:
    """A DAG and its machines, ready to be run there and back in the order of lists."""

    def __init__(self, dag: Dag, capacity: I8, fungible: Mask) -> None:
        self._dag, self._fungible = dag, fungible
        self._known = list(lists_of(dag))
        self._ahead = Lists(dag, capacity, fungible)
        self._back = Lists(turned(dag), capacity, fungible)

    def looks(self) -> list[Mask]:
        """Tell which demands must fit, in the two ways that there are; in one if none is shared."""
        everything = np.ones(len(self._fungible), dtype=np.bool_)
        return [everything, ~self._fungible][: 1 + self._fungible.any()]

    def tried(self, keys: list[NDArray[Any]], looks: Mask) -> Iterator[tuple[NDArray[Any], Placed]]:
        """Give lists, each with the schedule that it leads to.

        Lists are the `keys` that are given, those of list scheduling and random ones. Each is run
        as the simulator would, and then there and back: by its ends, backward, and by what that
        gives forward again, for as long as it gets shorter (Li and Willis, *An iterative scheduling
        technique for resource-constrained project scheduling*, EJOR 56, 1992). With machines that
        pack comes what begins first, which may lead to another schedule.
        """
        for key, first in self._firsts([*keys, *self._known], looks):
            found: Placed | None = first
            while found is not None:
                yield key, found
                mirrored = self._back.run(-found.end, looks)
                assert mirrored is not None  # there is no limit
                key = -mirrored.end
                found = self._ahead.run(key, looks, found.span_s)

    def _firsts(
        self, keys: list[NDArray[Any]], looks: Mask
    ) -> Iterator[tuple[NDArray[Any], Placed]]:
        n_stages = len(self._dag.order)
        for key in keys:
            yield key, self.follow(key, looks)
        packed = self._ahead.run(np.arange(n_stages), looks, packs=True)
        assert packed is not None  # there is no limit
        yield packed.begin, packed
        for i in range(N_DRAWN):
            key = fixed_permutation(n_stages, i)
            yield key, self.follow(key, looks)

    def follow(self, key: NDArray[Any], looks: Mask) -> Placed:
        """Run the tasks in the order of a list."""
        found = self._ahead.run(key, looks)
        assert found is not None  # there is no limit
        return found

    def shortest(
        self, keys: list[NDArray[Any]], looks: Mask, least_s: float
    ) -> tuple[float, NDArray[Any]]:
        """Return how long the best list takes, s, and its key of each task, (T,)."""
        best, best_s = np.zeros(len(self._dag.duration)), np.inf
        for key, found in self.tried(keys, looks):
            if found.span_s >= best_s:
                continue
            span_s = self.follow(key, looks).span_s
            if span_s < best_s:
                best = key if len(key) == len(best) else key[self._dag.task_stage]
                best_s = span_s
            if best_s <= least_s:
                break
        return best_s, best


class Lists:
    """A DAG and its machines, ready to be run in the order of a list."""

    def __init__(self, dag: Dag, capacity: I8, fungible: Mask) -> None:
        from policies.dagps.kernels import listrecord  # compiled: slow to import

        self._stage = dag.task_stage
        self.n_stages = len(dag.order)
        self._run = listrecord.make(both_ways(dag), capacity, fungible)

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
        names = ("out_begin", "out_end", "state_slot_machine")
        begin, end, machine = (arrays[name].copy() for name in names)
        return Placed(begin, end, machine, span)
