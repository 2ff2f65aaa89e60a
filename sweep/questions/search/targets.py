"""Search for the smallest capacity at which each policy meets a target.

Each policy on each trace has a threshold search of its own
(`sweep.questions.search.threshold_search`) over whole machines. The cells that all of them need
next are one batch and run side by side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sim.metrics.common import UNBOUNDED, Span
from sweep.execution.cell_results import CellResults
from sweep.execution.inputs import Inputs
from sweep.execution.notes import count, note
from sweep.execution.strategy import ONE_SEED, Batches, Search, side_by_side
from sweep.execution.undeclared import find_undeclared
from sweep.grid.cell_factory import CellFactory, search_key, settings_text
from sweep.grid.cluster_checks import cost_month
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Cell, build_policy
from sweep.grid.request import Request
from sweep.questions.search.files import TARGETS
from sweep.questions.search.goals import MORE, Target
from sweep.questions.search.machines import KindMachines, Machines, kind_range, machine_range
from sweep.questions.search.threshold_search import (
    Probe,
    ThresholdResult,
    ThresholdSearch,
    seed_steps,
)
from sweep.stats import interval
from sweep.stats.cell_columns import AXES, text
from sweep.stats.done_jobs import FAILED, is_of_done_jobs
from sweep.stats.metric_format import style, value_text

N_FIRST = 5, 33
"""Smallest and largest number of first probes of a search."""

MAX_TASKS = 10_000_000
"""Largest number of tasks that a policy's first probes simulate, if they are more than five.

Tasks of all seeds, not seconds, so that the result is the same everywhere.
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
        ("cost_month", pa.float64()),  # of `machines`; null without a price
        *((name, pa.int64()) for name in ("seeds", "cells")),
        *((name, pa.float64()) for name in ("value", "value_low", "value_high")),
        ("is_sure", pa.bool_()),
        ("is_oracle", pa.bool_()),  # the policy can't be run: it knows a truth beforehand
        ("note", pa.string()),
        # the metric's mean at each number of machines, and half its interval
        ("probes", pa.list_(pa.struct(_PROBE))),
    ]
)


SIZE = ("capacity", MORE)
"""Labels by which the cells of a search differ."""


@dataclass
class _Case:
    """A policy on a trace, and its threshold search."""

    cell: Cell
    machines: Machines | KindMachines
    search: ThresholdSearch
    jobs_failed: dict[int, float] = field(default_factory=dict)  # mean share, by probe


class TargetSearches:
    """Strategy of a request with a target: one threshold search a policy and trace."""

    def __init__(self, request: Request) -> None:
        assert isinstance(request.goal, Target)
        self.request, self.id_part = request, request.goal
        self._goal = request.goal
        self.is_fixed = False  # no seed changes anything, so that one is enough
        self._seeds: tuple[int, ...] = request.axes["seed"]
        self._points = CellFactory(request)
        self._cases: list[_Case] = []
        self._is_bootstrap = request.bootstrap is not None

    def batches(self, inputs: Inputs) -> Batches:
        """Yield the next cells of all searches, until all are finished."""
        self._cases = self._all_cases(inputs)
        searches = [self._search(case) for case in self._cases]
        return (
            yield from side_by_side(
                self.request, searches, self._goal.words, self._order, is_fixed=self.is_fixed
            )
        )

    def tables(self) -> Mapping[str, pa.Table]:
        """Return ``targets.parquet``: a row a policy and trace."""
        return {TARGETS: pa.Table.from_pylist([self._row(case) for case in self._cases], SCHEMA)}

    def _order(self, cell: Cell) -> Any:
        """Return a cell's sort key: policy, trace and settings, then capacity, then seed."""
        case_index = [search_key(case.cell, *SIZE) for case in self._cases].index(
            search_key(cell, *SIZE)
        )
        size = cell.capacity, cell.labels.get(MORE) or 0
        return case_index, *size, self._seeds.index(cell.seed)

    def _all_cases(self, inputs: Inputs) -> list[_Case]:
        """Build a search for each policy, trace and setting of the grid."""
        cases, goal = [], self._goal
        machines_by_world: dict[str, Machines | KindMachines] = {}
        high = goal.high if goal.nodes is None else 1.0
        axes = self.request.axes | {"capacity": (high,), "seed": self._seeds[:1]}
        first_cells = self._points.grid(axes, is_strict=True)
        self.is_fixed = self._points.is_fixed
        if self.is_fixed and len(self._seeds) > 1:
            self._seeds = self._seeds[:1]
            note(f"{ONE_SEED}: the search takes one")
        n_seeds = len(self._seeds)
        seeds = (n_seeds,) if self._is_bootstrap else seed_steps(n_seeds)
        for cell in first_cells:
            name = inputs.workload_id(cell)
            world = canonical([name, cell.cluster])
            if world not in machines_by_world:
                ends = goal.low, goal.high
                machines_by_world[world] = (
                    inputs.query(name, partial(machine_range, cell.cluster, *ends))
                    if goal.nodes is None
                    else inputs.query(name, partial(kind_range, cell.cluster, goal.nodes, *ends))
                )
            machines = machines_by_world[world]
            cheap = MAX_TASKS // (seeds[0] * max(1, inputs.describe(name)["n_tasks"]))
            n_first = min(max(cheap, N_FIRST[0]), N_FIRST[1])
            search = ThresholdSearch(
                machines.first,
                machines.last,
                goal.bound,
                goal.is_most,
                seeds,
                self._max_gap,
                n_first,
                is_bootstrap=self._is_bootstrap,
            )
            cases.append(_Case(cell, machines, search))
        return cases

    def _max_gap(self, n: int) -> int:
        tolerance = 0.01 if self._goal.tolerance is None else self._goal.tolerance
        return max(1, int(tolerance * n))

    def _search(self, case: _Case) -> Search:
        search, machines = case.search, case.machines
        while probes := search.next_probes():
            for n, _ in probes:
                if n not in search.probes and n in machines.too_few:
                    search.record_miss(n, "too few", is_sure=True)
            cells = {
                n: self._points.cells(case.cell, self._seeds[:k], **machines.labels(n))
                for n, k in probes
                if n not in search.probes or not search.probes[n].is_done
            }
            if not cells:
                continue
            results = yield [cell for seed_cells in cells.values() for cell in seed_cells]
            for n, seed_cells in cells.items():
                self._take_in(case, n, seed_cells, results)

    def _take_in(self, case: _Case, n: int, cells: Sequence[Cell], results: CellResults) -> None:
        search = case.search
        if any(results.failed(cell) for cell in cells):
            search.record_miss(n, "cells failed", is_sure=False)
            return
        results.check_metric("target.metric", self._goal.metric, cells)
        search.record(n, [results.metric(cell, self._goal.metric) for cell in cells])
        if is_of_done_jobs(self._goal.metric):
            failed = np.array([results.metric(cell, FAILED) for cell in cells], np.float64)
            case.jobs_failed[n] = float(np.nan_to_num(failed).mean())

    def _row(self, case: _Case) -> dict[str, Any]:
        result, labels = case.search.result(), case.cell.labels
        probes = {n: probe for n, probe in sorted(case.search.probes.items()) if probe.values}
        shown = probes.get(case.search.high if result.threshold is None else result.threshold)
        span = style(self._goal.metric).span
        value = (None,) * 3 if shown is None else map(_finite, self._interval(shown, span))
        ends = {"": result.threshold, "low": result.low, "high": result.high, "safe": result.safe}
        names = {"": ("capacity", "machines"), "safe": ("capacity_safe", "machines_safe")}
        row: dict[str, Any] = {}
        policy = build_policy(case.cell.policy)
        for end, n in ends.items():
            capacity, machines = names.get(end, (end, f"machines_{end}"))
            row[capacity] = None if n is None else case.machines.capacity(n)
            row[machines] = None if n is None else case.machines.count(n)
        return row | {
            "policy": labels["policy"],
            "trace": labels["trace"],
            "settings": settings_text(labels, (*AXES, MORE)),
            "target": self._goal.words,
            "status": result.status,
            "machines_most": case.machines.count(case.search.high),  # of the range
            "unit": case.machines.unit,
            "cost_month": None
            if result.threshold is None
            else cost_month(case.cell.cluster, case.machines.total(result.threshold)),
            "seeds": max((len(probe.values) for probe in probes.values()), default=0),
            "cells": sum(len(probe.values) for probe in probes.values()),
            **dict(zip(("value", "value_low", "value_high"), value, strict=True)),
            "is_sure": result.is_sure,
            "is_oracle": policy is not None
            and (policy.may_know.is_oracle or bool(find_undeclared([case.cell.policy]))),
            "note": "; ".join(self._notes(case, result)),
            "probes": [
                _probe(case.machines, n, probe, self._interval(probe))
                for n, probe in probes.items()
            ],
        }

    def _interval(self, probe: Probe, span: Span = UNBOUNDED) -> tuple[float, float, float]:
        return interval(probe.values, span=span, is_bootstrap=self._is_bootstrap)

    def _notes(self, case: _Case, result: ThresholdResult) -> list[str]:
        """Write remarks: failed cells, too few seeds, a metric that is not monotone, large jobs."""
        notes, probes, too_few = [], case.search.probes, case.machines.too_few

        def count_text(n: int) -> str:
            return text(round(case.machines.count(n), 4))

        failed = [n for n, probe in probes.items() if probe.reason and not probe.is_sure]
        small = [n for n, probe in probes.items() if probe.reason and probe.is_sure]
        missing = [
            n
            for n, probe in probes.items()
            if not probe.is_met and n > (result.threshold or math.inf)
        ]
        if failed:
            notes.append(f"cells failed at {count_text(max(failed))}")
        elif not result.is_sure and not self._is_bootstrap:
            notes.append(
                f"{count(len(self._seeds), 'seeds')} (seeds_max) are too few for 95 % confidence"
            )
        if missing:
            safe = result.safe
            from_safe = f", all tried from {count_text(safe)} on meet it" if safe else ""
            notes.append(f"not monotone: {count_text(max(missing))} misses the target{from_safe}")
        elif result.rises:
            below, above = result.rises[0]
            means = [value_text(self._goal.metric, probes[n].mean) for n in (below, above)]
            notes.append(
                f"not monotone: {means[0]} at {count_text(below)}, but {means[1]} at "
                f"{count_text(above)}"
            )
        shown = case.search.high if result.threshold is None else result.threshold
        if case.jobs_failed.get(shown):
            share = f"{100 * case.jobs_failed[shown]:.2g} %"
            notes.append(f"{share} of the jobs fail with {count_text(shown)} and are not counted")
        if small:
            n = next(n for n in range(max(small), case.search.high + 1) if n not in too_few)
            number, unit = count_text(n), case.machines.unit
            one_unit = unit.removesuffix("s") if number == "1" else unit
            notes.append(f"its largest job needs {number} {one_unit}")
        return notes


def _probe(
    machines: Machines | KindMachines, n: int, probe: Probe, ends: tuple[float, float, float]
) -> dict[str, Any]:
    mean, low, _ = ends
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
