"""A DAG on a board: spaces that are tried, and sets of tasks placed into them (§4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from policies.dagps.dag import Dag, both_ways
from sim.base.arrays import F8, I4, I8


@dataclass(frozen=True)
class Space:
    """A partly filled resource-time space, perhaps kept as its mirror image in time."""

    record: Any
    mirrored: bool
    span_s: float


@dataclass(frozen=True, eq=False)
class Placed:
    """When and where each of T tasks runs; times are relative to each other only."""

    begin: F8  # s
    end: F8
    machine: I4
    span_s: float  # greatest end less least begin


class Board:
    """A DAG and some machines, ready for placing, and room for the spaces that are tried."""

    N_SPACES = 6

    def __init__(self, dag: Dag, capacity: I8, priority: F8 | None = None) -> None:
        from policies.dagps.kernels import dagrecord, space  # compiled: slow to import

        arrays = _arrays(dag, dag.duration if priority is None else priority)
        self.dag = dag
        self.ahead = dagrecord.make(arrays, len(capacity))
        self.back = dagrecord.make(_turned(arrays), len(capacity))
        n_tasks, n_stages = len(dag.duration), len(dag.order)
        self.empty = Space(space.make(capacity, n_tasks, n_stages), False, 0.0)
        self._spare = [space.make(capacity, n_tasks, n_stages) for _ in range(self.N_SPACES)]

    def place(
        self, label: I4, subset: int, backward: bool, on: Space, into: int, limit: float
    ) -> Space | None:
        """Place a set of tasks on what a space holds already."""
        from policies.dagps.kernels import placement, space

        record = self._spare[into]
        space.copy(on.record, record, on.mirrored != backward)
        dag = self.back if backward else self.ahead
        if not placement.place(dag, record, label, subset, limit):
            return None
        begin, end = space.columns(record)["state_span"]
        return Space(record, backward, float(end - begin))

    def either_way(
        self, label: I4, subset: int, on: Space, into: tuple[int, int], limit: float
    ) -> Space | None:
        """Place a set forward and backward; return the more compact, forward where they tie."""
        forward = self.place(label, subset, False, on, into[0], limit)
        best = limit if forward is None else min(limit, forward.span_s)
        backward = self.place(label, subset, True, on, into[1], best)
        return forward if backward is None else backward


def placed(space: Space) -> Placed:
    """Copy out what a space holds, in time that runs forward."""
    from policies.dagps.kernels.space import columns

    arrays = columns(space.record)
    begin, end = arrays["state_begin"], arrays["state_end"]
    if space.mirrored:
        begin, end = 0.0 - end, 0.0 - begin
    return Placed(begin.copy(), end.copy(), arrays["state_machine"].copy(), space.span_s)


def _arrays(dag: Dag, priority: F8) -> dict[str, Any]:
    n_tasks = len(dag.duration)
    order = np.argsort(-priority, kind="stable")
    place = np.empty(n_tasks, dtype=np.int32)
    place[order] = np.arange(n_tasks)
    return {
        **both_ways(dag),
        "order": dag.order,
        "task_at": order,
        "place": place,
        "places": place[np.lexsort((place, dag.task_stage))],
    }


def _turned(arrays: dict[str, Any]) -> dict[str, Any]:
    other = {"parent": "child", "child": "parent"}
    ends = ("0", "", "_kind")
    turned = {a + end: arrays[b + end] for a, b in other.items() for end in ends}
    return {**arrays, **turned, "order": arrays["order"][::-1]}
