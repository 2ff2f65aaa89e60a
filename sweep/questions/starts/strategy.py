"""Run the instants of a log; expect the starts of the jobs that wait now."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.evaluators.starts import HELD
from sim.workload.schema import NOW as NOW_KEY
from sim.workload.schema import REASON, RECORDED
from sim.workload.tables import column_or_default
from sim.workload.workload import Workload
from sweep.execution.cell_results import CellResults
from sweep.execution.inputs import Inputs
from sweep.execution.strategy import Batch, Batches
from sweep.grid import grid
from sweep.grid.grid import Cell
from sweep.grid.request import Request
from sweep.questions.starts import sentences
from sweep.questions.starts.calibration import NONE, Calibration, Past, calibration_of, joined
from sweep.questions.starts.goal import ARRIVALS, AT, NOW, STARTS, STARTS_JSON, Starts
from sweep.store.cache import Cache

ENDS = ("low_s", "median_s", "high_s")
MIN_FORECASTS = 20
"""Smallest number of past forecasts by which intervals are widened."""
_TEXTS = ("user", "account", "qos")


class ExpectedStarts:
    """Strategy of a request for expected starts."""

    def __init__(self, request: Request) -> None:
        assert isinstance(request.goal, Starts)
        self.request, self.id_part = request, ("starts", request.goal)
        self._grid = grid.build(request)
        self._tables: Callable[[], Mapping[str, Any]] = dict

    def batches(self, inputs: Inputs) -> Batches:
        """Yield all instants as one batch."""
        results = yield Batch(self._grid)
        self._tables = partial(self._results, inputs, results)
        return self._grid

    def tables(self) -> Mapping[str, Any]:
        """Return ``starts.parquet``, a row a waiting job, and ``starts.json``."""
        return self._tables()

    def _results(self, inputs: Inputs, results: CellResults) -> Mapping[str, Any]:
        cells = [cell for cell in self._grid.cells if not results.failed(cell)]
        cache = Cache(self.request.settings.results)
        jobs = {id(cell): cache.jobs(results.key(cell)) for cell in cells}
        past = {has: self._past(cells, jobs, has) for has in (True, False)}
        has_arrivals = _nearest(past)
        calibration, record = _judged(past[has_arrivals])
        workload = inputs.workload(inputs.workload_id(self._grid.cells[0]))
        now = [c for c in cells if self._instant_s(c) == NOW and c.labels[ARRIVALS] is has_arrivals]
        table = jobs[id(now[0])] if now else None
        goal = self.request.goal
        assert isinstance(goal, Starts)
        record |= {"draws": goal.draws, "arrivals": has_arrivals}
        record |= {"now": _clock(workload, [float(workload.meta[NOW_KEY])])[0]} if now else {}
        record["sentences"] = sentences.answer(record, 0 if table is None else len(table))
        return {STARTS: _rows(workload, table, calibration), STARTS_JSON: record}

    def _instant_s(self, cell: Cell) -> float:
        """Return the instant of a cell, s; no label has it if there is a single one."""
        at_s = cell.labels.get(AT, cell.evaluator.get("at_s"))
        return NOW if at_s is None else float(at_s)

    def _past(self, cells: list[Cell], jobs: Mapping[int, Any], has_arrivals: bool) -> Past:
        """Return the forecasts at past moments whose starts are known."""
        parts = [Past(np.zeros(0, np.int64), *(np.zeros(0) for _ in range(4)))]
        chosen = [
            c for c in cells if self._instant_s(c) != NOW and c.labels[ARRIVALS] is has_arrivals
        ]
        for number, cell in enumerate(sorted(chosen, key=self._instant_s)):
            table, at_s = jobs[id(cell)], self._instant_s(cell)
            columns = [table[name].to_numpy() - at_s for name in ("recorded_start_s", *ENDS)]
            known = ~np.isnan(columns[0])
            moment = np.full(int(known.sum()), number)
            parts.append(Past(moment, *(column[known] for column in columns)))
        return joined(parts)


def _nearest(past: Mapping[bool, Past]) -> bool:
    """Tell whether forecasts with arrivals were nearer to the past than without."""
    errors = {has: own.error(calibration_of(own)) for has, own in past.items()}
    if math.isnan(errors[True]) or math.isnan(errors[False]):
        return True
    return errors[True] <= errors[False]


def _judged(past: Past) -> tuple[Calibration, dict[str, Any]]:
    """Return the calibration by all past forecasts, and how far they were right.

    The cover and error are of the second half of the moments, calibrated by the first.
    """
    first, second = past.halves()
    has_enough = min(len(first.left_s), len(second.left_s)) >= MIN_FORECASTS
    calibration = calibration_of(past) if has_enough else NONE
    half = calibration_of(first)
    record = {
        "moments": len(np.unique(past.moment)),
        "forecasts": len(past.left_s),
        "covered_drawn": past.covered(NONE),
        "error_drawn": past.error(NONE),
        "covered": second.covered(half) if has_enough else math.nan,
        "error": second.error(half) if has_enough else math.nan,
        "tested_on": len(second.left_s) if has_enough else 0,
        "factor": calibration.factor,
        "widened_low": calibration.low,
        "widened_high": calibration.high,
    }
    return calibration, {k: None if math.isnan(v) else v for k, v in record.items()}


def _rows(workload: Workload, table: pa.Table | None, calibration: Calibration) -> pa.Table:
    """Return the row of each job that waits now, those that start first first; held ones last."""
    jobs = workload.jobs
    now_s = float(workload.meta.get(NOW_KEY, 0.0))
    rows = np.zeros(0, np.int64) if table is None else table["job"].to_numpy()
    ends = [np.zeros(0) if table is None else table[name].to_numpy() - now_s for name in ENDS]
    low_s, median_s, high_s = calibration.apply(*ends)
    order = np.lexsort((rows, median_s))
    held_rows = np.zeros(0, np.int64) if table is None else np.setdiff1d(_waiting(workload), rows)
    rows = np.concatenate([rows[order], held_rows])
    never = np.full(len(held_rows), np.inf)
    times_s = {
        "expected_s": np.concatenate([median_s[order], never]),
        "low_s": np.concatenate([low_s[order], never]),
        "high_s": np.concatenate([high_s[order], never]),
    }
    taken = jobs.take(pa.array(rows))
    columns: dict[str, Any] = {"job": taken["job_id"], "partition": taken["queue"]}
    columns |= {name: taken[name] for name in _TEXTS if name in taken.column_names}
    columns |= {
        name: pa.array(_clock(workload, (now_s + times_s[key]).tolist()), pa.string())
        for name, key in (("expected_start", "expected_s"), ("low", "low_s"), ("high", "high_s"))
    }
    columns |= {name: pa.array(_or_null(column)) for name, column in times_s.items()}
    if REASON.name in taken.column_names:
        columns["reason"] = taken[REASON.name]
    return pa.table({k: _plain(v) for k, v in columns.items()})


def _waiting(workload: Workload) -> Any:
    """Return the rows of the jobs that wait for a person."""
    if REASON.name not in workload.jobs.column_names:
        return np.zeros(0, np.int64)
    start_s = column_or_default(workload.jobs, RECORDED[0])
    is_held = np.isin(np.array(workload.jobs[REASON.name].to_pylist()), HELD)
    return np.flatnonzero(np.isnan(start_s) & is_held)


def _plain(column: Any) -> Any:
    is_coded = isinstance(column, pa.ChunkedArray) and pa.types.is_dictionary(column.type)
    return column.cast(pa.string()) if is_coded else column


def _or_null(times_s: F8) -> list[float | None]:
    return [time if math.isfinite(time) else None for time in times_s.tolist()]


def _clock(workload: Workload, times_s: list[float]) -> list[str | None]:
    """Write times on the log's own clock, ``2026-03-01T09:30:00``; None for never."""
    zero_s = float(workload.meta.get("offset_s", 0.0))
    return [
        datetime.fromtimestamp(zero_s + time, UTC).isoformat(timespec="seconds")[:19]
        if math.isfinite(time)
        else None
        for time in times_s
    ]
