"""List schedules of one DAG on machines with overbooked fungible resources: beyond the paper.

The virtual space of §4 holds every resource to its capacity. A cluster shares fungible resources
(disk and network): demand may exceed capacity, and then slows down the tasks that use it. So a
schedule that overbooks may be shorter than any schedule in the space. Even without overbooking a
list schedule may be shorter, because BuildSchedule tries few of all orders.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.dagps.dag import Dag, arrays_with_parents, path_s, reverse, upward_rank
from policies.dagps.placer import Placement
from sim.base.arrays import I8, Mask, ranges
from sim.base.random import fixed_permutation

N_DRAWN = 16
"""Random orders of the stages that are tried."""


def without_demands(dag: Dag, fungible: Mask) -> Dag:
    """Return the DAG without its demands for fungible resources."""
    return replace(dag, demand=np.where(fungible, 0, dag.demand))


def list_keys(dag: Dag) -> Iterator[NDArray[Any]]:
    """Yield the keys of list scheduling, (G,) or (T,), lowest first.

    Breadth first; the longest path to the end first, inside a stage too; and descending
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


def shortest_placement(
    dag: Dag,
    capacity: I8,
    fungible: Mask,
    keys: list[NDArray[Any]],
    best: Placement,
    bounds_s: tuple[float, float],
) -> Placement:
    """Return the shortest of `best` and the list schedules.

    Lists are tried with all resources held to capacity, then with `fungible` ones overbooked;
    `bounds_s` are lower bounds of both.
    """
    search = ListSearch(dag, capacity, fungible)
    for checked, bound_s in zip(search.checked_choices(), bounds_s, strict=False):
        if best.span_s <= bound_s:
            continue
        for _, placement in search.trials(keys, checked):
            if placement.span_s < best.span_s:
                best = placement
            if best.span_s <= bound_s:
                break
    return best


class ListSearch:
    """Forward-backward list scheduling of a DAG on its machines."""

    def __init__(self, dag: Dag, capacity: I8, fungible: Mask) -> None:
        self._dag, self._fungible = dag, fungible
        self._standard_keys = list(list_keys(dag))
        self._forward = ListRunner(dag, capacity, fungible)
        self._backward = ListRunner(reverse(dag), capacity, fungible)

    def checked_choices(self) -> list[Mask]:
        """Return the masks of resources to check: all, then without fungible ones if there are."""
        everything = np.ones(len(self._fungible), dtype=np.bool_)
        return [everything, ~self._fungible][: 1 + self._fungible.any()]

    def trials(
        self, keys: list[NDArray[Any]], checked: Mask
    ) -> Iterator[tuple[NDArray[Any], Placement]]:
        """Yield lists, each with its schedule.

        The lists are `keys`, those of list scheduling, and random ones. Each is run as the
        simulator would run it, and then improved: backward in the order of its ends, and forward
        in the order that results, for as long as the schedule gets shorter (Li and Willis, *An
        iterative scheduling technique for resource-constrained project scheduling*, EJOR 56, 1992).
        The list of a packing run is its tasks by begin, which may lead to another schedule.
        """
        for key, first in self._first_runs([*keys, *self._standard_keys], checked):
            placement: Placement | None = first
            while placement is not None:
                yield key, placement
                mirrored = self._backward.run(-placement.end, checked)
                assert mirrored is not None  # there is no limit
                key = -mirrored.end
                placement = self._forward.run(key, checked, placement.span_s)

    def _first_runs(
        self, keys: list[NDArray[Any]], checked: Mask
    ) -> Iterator[tuple[NDArray[Any], Placement]]:
        n_stages = len(self._dag.order)
        for key in keys:
            yield key, self.follow(key, checked)
        packed = self._forward.run(np.arange(n_stages), checked, packs=True)
        assert packed is not None  # there is no limit
        yield packed.begin, packed
        for i in range(N_DRAWN):
            key = fixed_permutation(n_stages, i)
            yield key, self.follow(key, checked)

    def follow(self, key: NDArray[Any], checked: Mask) -> Placement:
        """Run the tasks in the order of one list."""
        placement = self._forward.run(key, checked)
        assert placement is not None  # there is no limit
        return placement

    def shortest_list(
        self, keys: list[NDArray[Any]], checked: Mask, bound_s: float
    ) -> tuple[float, NDArray[Any]]:
        """Return the span of the best list, s, and its keys of tasks, (T,)."""
        best, best_s = np.zeros(len(self._dag.duration)), np.inf
        for key, placement in self.trials(keys, checked):
            if placement.span_s >= best_s:
                continue
            span_s = self.follow(key, checked).span_s
            if span_s < best_s:
                best = key if len(key) == len(best) else key[self._dag.task_stage]
                best_s = span_s
            if best_s <= bound_s:
                break
        return best_s, best


class ListRunner:
    """List scheduling of a DAG on its machines."""

    def __init__(self, dag: Dag, capacity: I8, fungible: Mask) -> None:
        from policies.dagps.kernels import listrecord  # compiled: slow to import

        self._stage, self._task0 = dag.task_stage, dag.task0
        self.n_stages = len(dag.order)
        self._run = listrecord.make(arrays_with_parents(dag), capacity, fungible)

    def run(
        self, key: NDArray[Any], checked: Mask, limit: float = np.inf, packs: bool = False
    ) -> Placement | None:
        """Run the tasks by a key, (T,) or (G,), lowest first, ties by row.

        A task must fit the `checked` resources (R,). With `packs` each machine takes the task that
        fills it best, and the key breaks ties. None if the run takes as long as `limit`.
        """
        from policies.dagps.kernels import listing, listrecord

        arrays = listrecord.columns(self._run)
        arrays["state_task_at"][:] = self._in_order(key)
        arrays["state_checked"][:] = checked
        span = listing.run_list(self._run, packs, limit)
        if span == np.inf:
            return None
        names = ("out_begin", "out_end", "state_slot_machine")
        begin, end, machine = (arrays[name].copy() for name in names)
        return Placement(begin, end, machine, span)

    def _in_order(self, key: NDArray[Any]) -> I8:
        """Return the tasks by key, ties by row."""
        if len(key) == len(self._stage):
            return np.argsort(key, kind="stable")
        stages = np.argsort(key, kind="stable")
        return ranges(self._task0[stages], self._task0[stages + 1])
