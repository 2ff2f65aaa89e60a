"""Replay of a sweep: its own words give its cells, their recorded metrics its answers.

No cell is run. The strategy is sent the results that ``cells.parquet`` has, so that it asks for the
same cells again and comes to the same tables; a label, a configuration or a table that does not
follow from the others is not made.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base import columns
from sim.base.errors import InputError
from sim.cluster.load import CLUSTER_COLUMNS
from sweep.driver.run_sweep import strategy_for
from sweep.execution import cells_table, plan
from sweep.execution.baseline_metrics import AGAINST_BASELINE
from sweep.execution.cell_results import CellResults
from sweep.execution.inputs import Inputs
from sweep.execution.plan import PreparedGrid
from sweep.grid import overrides
from sweep.grid import request as requests
from sweep.grid.grid import Grid
from sweep.grid.options import Options
from sweep.grid.request import Request, is_run_setting
from sweep.stats.cell_columns import AXES, ERROR, NOT_METRICS, Rows, text
from sweep.store.cache import Cache
from sweep.store.cell import CellError
from sweep.store.shards import ABSENT

MIN_PRODUCT, ROWS_RATIO = 100_000, 100
"""The values of all axes may be combined in so many ways, or so many times the rows."""


@dataclass(frozen=True)
class Replay:
    """A sweep as its own words and the recorded metrics make it."""

    prepared: PreparedGrid
    cells: pa.Table  # narrow; see `sweep.execution.cells_table`
    tables: Mapping[str, pa.Table | Mapping[str, Any]]  # what the strategy found, by file name
    from_others: tuple[str, ...] = ()  # its files from cells that are no rows


def recorded_request(config: Mapping[str, Any], options: Options, results: Path) -> Request:
    """Build the request of a sweep again from ``config.yaml``; nothing is read but options."""
    words = [word for word in config["words"] if not _is_run_setting(word)]
    words.append(overrides.quote("paths.results", str(results)))
    return dataclasses.replace(requests.read(words, options), is_recorded=True)


def _is_run_setting(word: str) -> bool:
    key = word.lstrip("+~").partition("=")[0]
    return is_run_setting(key) and key != "paths.traces"


def replay(
    request: Request, inputs: Inputs, cache: Cache, recorded: pa.Table, sweep: str
) -> Replay:
    """Send a strategy the metrics of `recorded`, a narrow table, until it has its answer.

    Raises
    ------
    InputError
        If it asks for a cell that has no row, or ends with other cells.
    """
    _check_size(request, recorded.num_rows)
    strategy = strategy_for(request)
    rows, answers = _RecordedRows(recorded, request), CellResults()
    batches = strategy.batches(inputs)
    batch = next(batches)
    from_others: tuple[str, ...] = ()
    while True:
        if len(batch.grid.cells) > recorded.num_rows:  # not planned: they may be any number
            n_cells = f"its words give {len(batch.grid.cells):,} cells"
            raise InputError(f"{n_cells}, and it has {recorded.num_rows:,} rows")
        prepared = plan.prepare(batch.grid, inputs, cache, sweep)
        rows.fill(prepared, answers.errors)
        answers.add(prepared)
        try:
            following = batches.send(answers)
        except StopIteration as end:
            whole: Grid = end.value
            break
        if following.for_files:  # nothing is known of its cells
            batches.close()
            whole, from_others = batch.grid, following.for_files
            break
        batch = following
    if whole.cells is batch.grid.cells:
        prepared.grid = whole
    else:
        prepared = plan.prepare(whole, inputs, cache, sweep)
    order = rows.fill(prepared, answers.errors)
    if len(order) != recorded.num_rows or (order != np.arange(len(order))).any():
        raise InputError(
            f"its words give {len(order)} cells in their order, and it has {recorded.num_rows} rows"
        )
    needs_jobs = request.goal is not None and request.goal.needs_jobs
    tables = {} if needs_jobs or from_others else strategy.tables()
    cached = columns.to_numpy(_is(recorded["status"], "cached"))
    cells = cells_table.narrow(prepared, answers.errors, cached)
    for name in AGAINST_BASELINE:  # they need the jobs of each cell
        if name in cells.column_names and name in recorded.column_names:
            values = columns.from_numpy(_numbers(recorded[name], math.nan))
            cells = cells.set_column(cells.column_names.index(name), name, values)
    return Replay(prepared, cells, tables, from_others)


def _check_size(request: Request, n_rows: int) -> None:
    """Refuse axes that give far more cells than there are rows, before any cell is made."""
    n_worlds = math.prod(len(request.axes[key]) for key in AXES)
    n_all = math.prod(map(len, request.axes.values()))  # a policy may lack most of the other keys
    limit = max(MIN_PRODUCT, ROWS_RATIO * n_rows)
    is_grid = not request.chooses_cells and request.precision is None
    if n_all > limit or (is_grid and n_worlds > n_rows):
        raise InputError(f"its words give {n_all:,} cells or fewer, and it has {n_rows:,} rows")


class _RecordedRows:
    """Recorded metrics and errors by the labels of cells."""

    def __init__(self, recorded: pa.Table, request: Request) -> None:
        self._swept = tuple(key for key in request.axes if key not in AXES)
        lacking = [name for name in self._swept if name not in recorded.column_names]
        if lacking:
            raise InputError(f"its words sweep {lacking[0]}, which is no column")
        labels = [recorded[name].to_pylist() for name in (*AXES, *self._swept)]
        self._row = {_label(values): row for row, values in enumerate(zip(*labels, strict=True))}
        self._is_failed = columns.to_numpy(_is(recorded["status"], "failed"))
        skipped = {*NOT_METRICS, *self._swept} - {*CLUSTER_COLUMNS}
        names = [name for name in recorded.column_names if name not in skipped]
        self._metrics = {name: _numbers(recorded[name], ABSENT) for name in names}
        self._errors = [recorded[name] for name in ERROR]

    def fill(self, prepared: PreparedGrid, errors: dict[str, CellError]) -> Rows:
        """Give a plan the metrics of its cells, and `errors` those that failed; return the rows."""
        names = (*AXES, *self._swept)
        rows = np.array(
            [self._find([cell.labels[name] for name in names]) for cell in prepared.grid.cells],
            np.int64,
        )
        is_failed = self._is_failed[rows]
        done = rows[~is_failed]
        prepared.metrics.add(
            prepared.keys[~is_failed],
            {
                name: values[done]
                for name, values in self._metrics.items()
                if name not in AGAINST_BASELINE
            },
        )
        for position in np.flatnonzero(is_failed).tolist():
            parts = [str(column[int(rows[position])].as_py() or "") for column in self._errors]
            stage, kind, message, traceback = parts
            key = prepared.keys[position : position + 1].tobytes().hex()
            errors[key] = CellError(stage=stage, type=kind, message=message, traceback=traceback)
        return rows

    def _find(self, labels: Sequence[Any]) -> int:
        row = self._row.get(_label(labels))
        if row is None:
            words = " ".join(text(label) for label in labels if label is not None)
            raise InputError(f"its words give the cell {words}, which has no row")
        return row


def _label(values: Sequence[Any]) -> tuple[str, ...]:
    policy, trace, capacity, seed, *swept = values
    return (policy, trace, repr(float(capacity)), str(int(seed)), *map(text, swept))


def _is(column: pa.ChunkedArray, value: str) -> pa.Array:
    import pyarrow.compute as pc  # 0.05 s to import

    flags: pa.Array = pc.equal(column.cast(pa.string()), value).combine_chunks()
    return flags


def _numbers(column: pa.ChunkedArray, missing: float) -> Any:
    """Return a column as numbers; `missing` where it has none."""
    kind = column.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        return np.full(len(column), missing)
    array = column.cast(pa.float64()).combine_chunks()
    return np.where(columns.to_numpy(array.is_null()), missing, columns.to_numpy(array))
