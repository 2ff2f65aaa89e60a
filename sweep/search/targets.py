"""Search for the smallest capacity at which each policy meets a target.

Each policy on each trace has a threshold search of its own (`sweep.search.threshold_search`) over
whole machines. The cells that all of them need next are one batch and run side by side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sweep.execution.inputs import Inputs
from sweep.execution.notes import count
from sweep.grid.config_tree import canonical
from sweep.grid.goals import Target
from sweep.grid.grid import Cell
from sweep.grid.request import Request
from sweep.search.cell_factory import CellFactory, search_key, settings_text
from sweep.search.cell_results import CellResults
from sweep.search.machines import Machines, between
from sweep.search.strategy import Batches, Search, side_by_side
from sweep.search.threshold_search import Probe, ThresholdResult, ThresholdSearch, seed_steps
from sweep.stats import interval
from sweep.stats.cell_columns import AXES, text
from sweep.store.folder import TARGETS

FIRST = 5, 33
"""Numbers of machines that are looked at first: at least so many, if there are, and at most."""

MOST_TASKS = 10_000_000
"""What a policy's first looks simulate at most, with all their seeds, if they are more than five.

Tasks, not seconds, as the answer is the same everywhere.
"""

_PROBE = [
    *((name, pa.float64()) for name in ("capacity", "machines", "mean", "half")),
    *((name, pa.bool_()) for name in ("is_met", "is_sure")),
]
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("policy", "trace", "settings", "target")),
        *((name, pa.float64()) for name in ("capacity", "low", "high", "capacity_safe")),
        ("status", pa.string()),
        ("machines", pa.float64()),
        *((f"machines_{end}", pa.float64()) for end in ("low", "high", "safe", "most")),
        ("unit", pa.string()),
        *((name, pa.int64()) for name in ("seeds", "cells")),
        *((name, pa.float64()) for name in ("value", "value_low", "value_high")),
        ("is_sure", pa.bool_()),
        ("note", pa.string()),
        # what was looked at: the metric's mean at each number of machines, and half its interval
        ("probes", pa.list_(pa.struct(_PROBE))),
    ]
)


@dataclass
class _Case:
    """A policy on a trace, and the hunt for what it needs there."""

    cell: Cell
    machines: Machines
    hunt: ThresholdSearch


class TargetSearches:
    """All hunts of a request."""

    def __init__(self, request: Request) -> None:
        assert isinstance(request.goal, Target)
        self.request, self.id_part = request, request.goal
        self._goal = request.goal
        self._seeds: tuple[int, ...] = request.axes["seed"]
        self._points = CellFactory(request)
        self._cases: list[_Case] = []

    def batches(self, inputs: Inputs) -> Batches:
        """Ask for what all hunts want next, until every answer is known."""
        self._cases = self._all_cases(inputs)
        hunts = [self._hunt(case) for case in self._cases]
        return (yield from side_by_side(self.request, hunts, self._goal.words, self._order))

    def tables(self) -> Mapping[str, pa.Table]:
        """Return ``targets.parquet``: a row a policy and trace."""
        return {TARGETS: pa.Table.from_pylist([self._row(case) for case in self._cases], SCHEMA)}

    def _order(self, cell: Cell) -> Any:
        """Give a cell's place among the rows: by policy, trace and settings, capacity, seed."""
        at = [search_key(case.cell, "capacity") for case in self._cases].index(
            search_key(cell, "capacity")
        )
        return at, cell.capacity, self._seeds.index(cell.seed)

    def _all_cases(self, inputs: Inputs) -> list[_Case]:
        """Make a hunt for each policy and world of the grid."""
        cases, known, goal = [], dict[str, Machines](), self._goal
        seeds = seed_steps(len(self._seeds))
        axes = self.request.axes | {"capacity": (goal.high,), "seed": self._seeds[:1]}
        for cell in self._points.grid(axes, is_strict=True):
            name = inputs.id_of(cell)
            world = canonical([name, cell.cluster])
            if world not in known:
                question = partial(between, cell.cluster, goal.low, goal.high)
                known[world] = inputs.ask(name, question)
            machines = known[world]
            cheap = MOST_TASKS // (seeds[0] * max(1, inputs.describe(name)["n_tasks"]))
            n_first = min(max(cheap, FIRST[0]), FIRST[1])
            hunt = ThresholdSearch(
                machines.first, machines.last, goal.bound, goal.is_most, seeds, self._apart, n_first
            )
            cases.append(_Case(cell, machines, hunt))
        return cases

    def _apart(self, n: int) -> int:
        tolerance = 0.01 if self._goal.tolerance is None else self._goal.tolerance
        return max(1, int(tolerance * n))

    def _hunt(self, case: _Case) -> Search:
        hunt, machines = case.hunt, case.machines
        while wanted := hunt.wants():
            for n, _ in wanted:
                if n not in hunt.probes and n in machines.too_few:
                    hunt.refuse(n, "too few", is_sure=True)
            cells = {
                n: self._points.cells(case.cell, self._seeds[:k], capacity=machines.capacity(n))
                for n, k in wanted
                if n not in hunt.probes or not hunt.probes[n].is_over
            }
            if not cells:
                continue
            answers = yield [cell for of_number in cells.values() for cell in of_number]
            for n, of_number in cells.items():
                self._take_in(hunt, n, of_number, answers)

    def _take_in(
        self, hunt: ThresholdSearch, n: int, cells: Sequence[Cell], answers: CellResults
    ) -> None:
        if any(answers.failed(cell) for cell in cells):
            hunt.refuse(n, "cells failed", is_sure=False)
            return
        answers.check_metric("target.metric", self._goal.metric, cells)
        hunt.tell(n, [answers.metric(cell, self._goal.metric) for cell in cells])

    def _row(self, case: _Case) -> dict[str, Any]:
        found, labels = case.hunt.answer(), case.cell.labels
        probes = {n: probe for n, probe in sorted(case.hunt.probes.items()) if probe.values}
        shown = probes.get(case.hunt.high if found.at is None else found.at)
        value = (None,) * 3 if shown is None else map(_finite, interval(shown.values))
        ends = {"": found.at, "low": found.low, "high": found.high, "safe": found.safe}
        names = {"": ("capacity", "machines"), "safe": ("capacity_safe", "machines_safe")}
        row: dict[str, Any] = {}
        for end, n in ends.items():
            capacity, machines = names.get(end, (end, f"machines_{end}"))
            row[capacity] = None if n is None else case.machines.capacity(n)
            row[machines] = None if n is None else case.machines.count(n)
        return row | {
            "policy": labels["policy"],
            "trace": labels["trace"],
            "settings": settings_text(labels, AXES),
            "target": self._goal.words,
            "status": found.status,
            "machines_most": case.machines.count(case.hunt.high),  # of the range
            "unit": "slots" if case.cell.cluster["shape"] == "slots" else "machines",
            "seeds": max((len(probe.values) for probe in probes.values()), default=0),
            "cells": sum(len(probe.values) for probe in probes.values()),
            **dict(zip(("value", "value_low", "value_high"), value, strict=True)),
            "is_sure": found.is_sure,
            "note": "; ".join(self._notes(case, found)),
            "probes": [_probe(case.machines, n, probe) for n, probe in probes.items()],
        }

    def _notes(self, case: _Case, found: ThresholdResult) -> list[str]:
        """Say what else there is to know."""
        notes, probes = [], case.hunt.probes

        def said(n: int) -> str:
            return text(round(case.machines.count(n), 4))

        failed = [n for n, probe in probes.items() if probe.why and not probe.is_sure]
        small = [n for n, probe in probes.items() if probe.why and probe.is_sure]
        missing = [
            n for n, probe in probes.items() if not probe.is_met and n > (found.at or math.inf)
        ]
        if failed:
            notes.append(f"cells failed at {said(max(failed))}")
        elif not found.is_sure:
            notes.append(f"{count(len(self._seeds), 'seeds')} (seeds_max) were not enough")
        if missing:
            then = f", all looked at from {said(found.safe)} on meet it" if found.safe else ""
            notes.append(f"not monotone: {said(max(missing))} miss it{then}")
        elif found.worse:
            less, more = found.worse[0]
            notes.append(
                f"not monotone: {probes[more].mean:.4g} at {said(more)}, after "
                f"{probes[less].mean:.4g} at {said(less)}"
            )
        if small:
            notes.append(f"{said(max(small))} are too few for its jobs")
        return notes


def _probe(machines: Machines, n: int, probe: Probe) -> dict[str, Any]:
    mean, low, _ = interval(probe.values)
    return {
        "capacity": machines.capacity(n),
        "machines": machines.count(n),
        "mean": _finite(mean),
        "half": _finite(mean - low),
        "is_met": probe.is_met,
        "is_sure": probe.is_sure,
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
