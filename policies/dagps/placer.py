"""Placement of sets of a DAG's tasks into resource-time spaces (§4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from policies.dagps.dag import Dag, arrays_with_parents
from sim.base.arrays import F8, I4, I8


@dataclass(frozen=True)
class Space:
    """A partly filled resource-time space, possibly stored as its mirror image in time."""

    record: Any
    mirrored: bool
    span_s: float


@dataclass(frozen=True, eq=False)
class Placement:
    """Begin, end and machine of each of T tasks; only differences of times mean anything."""

    begin: F8  # s
    end: F8
    machine: I4
    span_s: float  # latest end less earliest begin


class Placer:
    """A DAG, its machines, and scratch spaces for the placements that are tried."""

    N_SPACES = 6

    def __init__(self, dag: Dag, capacity: I8, priority: F8 | None = None) -> None:
        from policies.dagps.kernels import dagrecord  # compiled: slow to import

        arrays = _arrays(dag, dag.duration if priority is None else priority)
        self.dag = dag
        self.forward_dag = dagrecord.make(arrays, len(capacity))
        self.reversed_dag = dagrecord.make(_reverse_edges(arrays), len(capacity))
        self._capacity = capacity
        self.empty = Space(self._make_space(), False, 0.0)
        self._spare: list[Any] = [None] * self.N_SPACES

    def place(
        self, label: I4, subset: int, backward: bool, start: Space, spare: int, limit: float
    ) -> Space | None:
        """Place the tasks with one label into a copy of the space `start`."""
        from policies.dagps.kernels import placement, space

        record = self._spare[spare]
        if record is None:
            record = self._spare[spare] = self._make_space()
        space.copy(start.record, record, start.mirrored != backward)
        dag = self.reversed_dag if backward else self.forward_dag
        if not placement.place(dag, record, label, subset, limit):
            return None
        begin, end = space.columns(record)["state_span"]
        return Space(record, backward, float(end - begin))

    def _make_space(self) -> Any:
        from policies.dagps.kernels import space

        return space.make(self._capacity, len(self.dag.duration), len(self.dag.order))

    def place_more_compact(
        self, label: I4, subset: int, start: Space, spares: tuple[int, int], limit: float
    ) -> Space | None:
        """Place a set forward and backward; return the more compact space, forward on a tie."""
        forward = self.place(label, subset, False, start, spares[0], limit)
        best = limit if forward is None else min(limit, forward.span_s)
        backward = self.place(label, subset, True, start, spares[1], best)
        return forward if backward is None else backward


def to_placement(space: Space) -> Placement:
    """Copy a space's placement out, with time running forward."""
    from policies.dagps.kernels.space import columns

    arrays = columns(space.record)
    begin, end = arrays["state_begin"], arrays["state_end"]
    if space.mirrored:
        begin, end = 0.0 - end, 0.0 - begin
    return Placement(begin.copy(), end.copy(), arrays["state_machine"].copy(), space.span_s)


def _arrays(dag: Dag, priority: F8) -> dict[str, Any]:
    n_tasks = len(dag.duration)
    order = np.argsort(-priority, kind="stable")
    position = np.empty(n_tasks, dtype=np.int32)
    position[order] = np.arange(n_tasks)
    return {
        **arrays_with_parents(dag),
        "order": dag.order,
        "task_at": order,
        "place": position,
        "places": position[np.lexsort((position, dag.task_stage))],
    }


def _reverse_edges(arrays: dict[str, Any]) -> dict[str, Any]:
    opposite = {"parent": "child", "child": "parent"}
    suffixes = ("0", "", "_kind")
    exchanged = {a + end: arrays[b + end] for a, b in opposite.items() for end in suffixes}
    return {**arrays, **exchanged, "order": arrays["order"][::-1]}
