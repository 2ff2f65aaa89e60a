"""Grid of changes, and search for the machines that bring a metric back to what it is today.

Each policy, trace, capacity and change has a threshold search of its own
(`sweep.questions.search.threshold_search`), whose bound is the metric's mean without the change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.errors import InputError
from sweep.execution.cell_results import CellResults
from sweep.execution.inputs import Inputs
from sweep.execution.strategy import Batch, Batches, Search, side_by_side
from sweep.grid import cluster_size, grid, what_ifs
from sweep.grid.cell_factory import CellFactory, settings_text
from sweep.grid.changes import PREFIX, Change
from sweep.grid.cluster_checks import cost_month
from sweep.grid.cluster_size import EXTRA
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Cell
from sweep.grid.machine_kinds import EXTRA_KIND, described_change
from sweep.grid.request import Request
from sweep.questions.search.files import WHAT_IF, WHAT_IF_GROUPS
from sweep.questions.search.group_waits import GROUPS_SCHEMA, Key, SeedWaits, rows_of, waits_of
from sweep.questions.search.machines import Machines, machine_range
from sweep.questions.search.threshold_search import ThresholdSearch
from sweep.stats import interval
from sweep.stats.cell_columns import ALL_METRICS, AXES
from sweep.stats.done_jobs import FAILED, is_of_done_jobs
from sweep.stats.metric_format import style
from sweep.store.cache import Cache

RANGE = 4
"""Machines are searched up to this many times today's, or down to today's over it."""
SHOWN = ("wait_mean_s", "wait_p95_s", "jct_mean_s", "utilization")
"""Metrics of each row, beside the one that is restored."""

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("policy", "trace", "settings")),
        ("capacity", pa.float64()),
        ("what_if", pa.string()),  # such as ``load=1.3 nodes=+20``; empty for today
        ("change", pa.string()),  # the change in words; empty for today
        ("adds", pa.string()),  # machines that the change adds or removes, by kind; else empty
        ("note", pa.string()),  # a sentence on what the change did; else empty
        ("machines", pa.float64()),
        ("unit", pa.string()),
        *((name, pa.float64()) for name in SHOWN),
        ("metric", pa.string()),  # that is restored
        *((name, pa.float64()) for name in ("value", "half")),  # of it, with half its interval
        ("restored_by", pa.float64()),  # machines that restore it; null if none was found
        *((name, pa.float64()) for name in ("restored_low", "restored_high")),
        ("status", pa.string()),  # as in ``targets.parquet``; empty without a search
        ("cost_month", pa.float64()),
        ("restored_cost_month", pa.float64()),
        # seeds on which no row of these policy, trace and capacity failed, of which all values are
        ("seeds", pa.int64()),
        ("seeds_planned", pa.int64()),
        ("jobs_failed", pa.float64()),  # share, if the metric is of the jobs done; else 0
    ]
)


@dataclass
class _Case:
    """A cell of a change, for the first seed, and the search for the machines that restore it."""

    cell: Cell
    seeds: tuple[int, ...]  # common to all changes of its policy, trace and capacity
    machines: Machines | None = None
    search: ThresholdSearch | None = None


class WhatIfs:
    """Strategy of a request with what-ifs: the grid, then a threshold search a change."""

    def __init__(self, request: Request) -> None:
        assert request.what_if is not None
        self.request, self.id_part = request, request.what_if
        self._metric = request.what_if.restore
        self._seeds: tuple[int, ...] = request.axes["seed"]
        self._points = CellFactory(request)
        self._grid = grid.build(request)
        self._cases: list[_Case] = []
        self._results = CellResults()
        self._inputs: Inputs | None = None

    @property
    def is_fixed(self) -> bool:
        """True if no seed changes anything."""
        return self._grid.is_fixed

    def batches(self, inputs: Inputs) -> Batches:
        """Yield the grid, then the cells of all searches."""
        self._results, self._inputs = (yield Batch(self._grid)), inputs
        cells = [cell for cell in self._grid.cells if cell.seed == self._seeds[0]]
        self._cases = [_Case(cell, self._common_seeds(cell, cells)) for cell in cells]
        if self._metric is not None:
            for case in self._cases:
                self._add_search(case, inputs)
            searches = [self._search(case) for case in self._cases if case.search is not None]
            if searches:
                words = f"machines that restore {self._metric}"
                yield from side_by_side(
                    self.request, searches, words, _order,
                    is_fixed=self._grid.is_fixed, for_files=(WHAT_IF,),
                )  # fmt: skip
        return self._grid

    def tables(self) -> Mapping[str, pa.Table]:
        """Return ``what_if.parquet``, a row a policy, trace, capacity and change; and by group."""
        rows = [self._row(case) for case in self._cases]
        own = [pa.field(name, pa.float64()) for name in self._named]
        return {
            WHAT_IF: pa.Table.from_pylist(rows, pa.schema([*SCHEMA, *own])),
            WHAT_IF_GROUPS: pa.Table.from_pylist(self._group_rows(), GROUPS_SCHEMA),
        }

    @property
    def _named(self) -> list[str]:
        """Metrics of the tables, by ``metrics=``, that no row has anyway."""
        return [m for m in self.request.metrics if m != ALL_METRICS and m not in SCHEMA.names]

    def _group_rows(self) -> list[dict[str, Any]]:
        """Compare the waits of each group of jobs with today's, in the jobs of all seeds."""
        assert self._inputs is not None
        cache = Cache(self.request.settings.results)
        waits: dict[str, dict[Key, SeedWaits]] = {}
        rows: list[dict[str, Any]] = []
        for case in self._cases:
            words = what_ifs.words(case.cell.labels)
            place = canonical(_without_changes(case.cell))
            case_waits = waits_of(self._with(case, {}), self._results, self._inputs, cache)
            if not words:
                waits[place] = case_waits
            elif place in waits:
                about = {**_about(case.cell), "what_if": words}
                is_bootstrap = self.request.bootstrap is not None
                rows += rows_of(about, waits[place], case_waits, is_bootstrap=is_bootstrap)
        return rows

    def _common_seeds(self, cell: Cell, cells: Sequence[Cell]) -> tuple[int, ...]:
        """Return the seeds on which no change of a cell failed; none if fewer than half."""
        world = [other for other in cells if _without_changes(other) == _without_changes(cell)]
        by_change = [self._points.cells(other, self._seeds) for other in world]
        common = tuple(
            seed
            for seed, *seed_cells in zip(self._seeds, *by_change, strict=True)
            if not any(self._results.failed(c) for c in seed_cells)
        )
        return common if 2 * len(common) >= len(self._seeds) else ()

    def _add_search(self, case: _Case, inputs: Inputs) -> None:
        """Prepare the search of a change, unless it is one of machines alone."""
        assert self._metric is not None
        today = self._mean(self._with(case, dict.fromkeys(_changes(case.cell))), self._metric)
        now = self._mean(self._with(case, _no_nodes(case.cell)), self._metric)
        bare = {key: value for key, value in _changes(case.cell).items() if key != what_ifs.NODES}
        if math.isnan(today) or math.isnan(now) or not any(v is not None for v in bare.values()):
            return
        is_most = style(self._metric).better != "higher"
        capacity = case.cell.capacity
        is_worse = now > today if is_most else now < today
        ends = (capacity, RANGE * capacity) if is_worse else (capacity / RANGE, capacity)
        (bare_cell, *_) = self._with(case, _no_nodes(case.cell))
        try:
            name = inputs.workload_id(bare_cell)
            machines = inputs.query(name, partial(machine_range, bare_cell.cluster, *ends))
        except InputError:  # a job that fits no such cluster, or less than one machine
            return
        case.machines = machines
        case.search = ThresholdSearch(
            machines.first,
            machines.last,
            today,
            is_most,
            (len(case.seeds),),
            lambda n: max(1, n // 100),
            is_bootstrap=self.request.bootstrap is not None,
        )

    def _search(self, case: _Case) -> Search:
        search, machines = case.search, case.machines
        assert search is not None
        assert machines is not None
        while probes := search.next_probes():
            numbers = [n for n, _ in probes]
            for n in numbers:
                if n in machines.too_few:
                    search.record_miss(n, "too few", is_sure=True)
            cells = {
                n: self._points.cells(
                    case.cell, case.seeds, capacity=machines.capacity(n), **_no_nodes(case.cell)
                )
                for n in numbers
                if n not in machines.too_few
            }
            if not cells:
                continue
            results = yield [cell for seed_cells in cells.values() for cell in seed_cells]
            for n, seed_cells in cells.items():
                if any(results.failed(cell) for cell in seed_cells):
                    search.record_miss(n, "cells failed", is_sure=False)
                else:
                    values = [results.metric(cell, str(self._metric)) for cell in seed_cells]
                    search.record(n, values)

    def _note(self, cell: Cell, changes: Sequence[Change]) -> str:
        """Say what the changes did to the jobs, of the first seed."""
        assert self._inputs is not None
        name = self._inputs.workload_id(cell)
        transforms = (self._inputs.known(name) or {}).get("meta", {}).get("transforms", ())
        notes = [
            change.module.note(change, cell.cluster, transforms)
            for change in changes
            if hasattr(change.module, "note")
        ]
        return " ".join(filter(None, notes))

    def _with(self, case: _Case, labels: Mapping[str, Any]) -> list[Cell]:
        """Return the cells of the common seeds that differ from a case in these labels."""
        return self._points.cells(case.cell, case.seeds, **labels) if case.seeds else []

    def _values(self, cells: Sequence[Cell], metric: str) -> list[float]:
        return [self._results.metric(cell, metric) for cell in cells]

    def _mean(self, cells: Sequence[Cell], metric: str) -> float:
        values = self._values(cells, metric)
        return float(np.mean(values)) if values else math.nan

    def _row(self, case: _Case) -> dict[str, Any]:
        cell, cells = case.cell, self._with(case, {})
        labels, unit = cell.labels, "slots" if cell.cluster["shape"] == "slots" else "machines"
        machines = self._mean(cells, "n_machines")
        changes = what_ifs.changes(labels)
        row: dict[str, Any] = {
            **_about(cell),
            "what_if": what_ifs.words(labels),
            "change": " and ".join(change.module.phrase(change) for change in changes),
            "adds": _added(cell),
            "note": self._note(cell, changes),
            "machines": _finite(machines),
            "unit": unit,
            **{name: _finite(self._mean(cells, name)) for name in (*SHOWN, *self._named)},
            "metric": self._metric,
            "status": "",
            "cost_month": _cost(cell, machines),
            "seeds": len(cells),
            "seeds_planned": len(self._seeds),
            "jobs_failed": _finite(self._mean(cells, FAILED))
            if self._metric is not None and is_of_done_jobs(self._metric)
            else 0.0,
        }
        values = [] if self._metric is None else self._values(cells, self._metric)
        if values:
            mean, low, _ = interval(values, is_bootstrap=self.request.bootstrap is not None)
            row |= {"value": _finite(mean), "half": _finite(mean - low)}
        if case.search is not None and case.machines is not None:
            result, count = case.search.result(), case.machines.count
            ends = {"by": result.threshold, "low": result.low, "high": result.high}
            row |= {f"restored_{k}": None if n is None else count(n) for k, n in ends.items()}
            row["status"] = result.status
            if result.threshold is not None:
                row["restored_cost_month"] = _cost(cell, count(result.threshold))
        return row


def _about(cell: Cell) -> dict[str, Any]:
    """Return the columns that say of which policy, trace and capacity a row is."""
    labels = cell.labels
    return {
        "policy": labels["policy"],
        "trace": labels["trace"],
        "settings": settings_text(labels, (*AXES, *_changes(cell))),
        "capacity": cell.capacity,
    }


def _changes(cell: Cell) -> dict[str, Any]:
    """Return the labels of a cell that are what-ifs."""
    return {key: v for key, v in cell.labels.items() if key.startswith(PREFIX)}


def _without_changes(cell: Cell) -> dict[str, Any]:
    return {key: v for key, v in cell.labels.items() if not key.startswith(PREFIX)}


def _no_nodes(cell: Cell) -> dict[str, Any]:
    return {what_ifs.NODES: None} if what_ifs.NODES in cell.labels else {}


def _added(cell: Cell) -> str:
    """Name the machines that a cell has more than today, or fewer; empty if it has as many."""
    config = cell.cluster
    if not config.get(EXTRA):
        return ""
    if config["shape"] == "slots" or config.get("count") is None:
        full = max(float(config.get("count") or 0), abs(config[EXTRA]) + 1.0)
    else:
        full = float(config["count"])
    bare = {k: v for k, v in config.items() if k not in (EXTRA, EXTRA_KIND)}
    sizes = [cluster_size.at_capacity(c, full, cell.capacity) for c in (bare, config)]
    return described_change(*sizes)


def _order(cell: Cell) -> Any:
    return canonical(cell.labels)


def _cost(cell: Cell, machines: float) -> float | None:
    return None if math.isnan(machines) else cost_month(cell.cluster, machines)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
