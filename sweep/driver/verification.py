"""Verification: cells of a finished sweep are run again and compared with what is recorded."""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sim.base.errors import InputError
from sim.cluster.load import CLUSTER_COLUMNS
from sim.metrics import speedups
from sweep.driver import recorded
from sweep.driver.foreign import Foreign
from sweep.execution import cells_table, rerun
from sweep.execution.baseline_metrics import AGAINST_BASELINE, baseline_rows
from sweep.execution.inputs import Inputs
from sweep.execution.plan import PlannedCell
from sweep.stats.cell_columns import AXES, NOT_METRICS, Rows
from sweep.store.cache import Cache
from sweep.store.cell import CellResult
from sweep.store.folder import SweepFolder


class Comparison(NamedTuple):
    """Outcome of one cell."""

    row: int
    labels: dict[str, Any]
    text: str  # ``same``, or what differs
    is_same: bool


class Verification:
    """Runs cells of a sweep's folder again, as the folder records them.

    Parameters
    ----------
    folder : SweepFolder
        The sweep, wherever it was computed.
    results : Path
        Results on this machine: their cache may have the tables of cells, and gets workloads.
    foreign : Foreign, optional
        Files, addresses and modules that a configuration may name; any if None.
    """

    def __init__(
        self,
        folder: SweepFolder,
        results: Path,
        foreign: Foreign | None = None,
    ) -> None:
        self._folder, self._config = folder, folder.config()
        self._inputs, self._cache = Inputs(results), Cache(results)
        self._foreign = foreign
        self._run = lru_cache(maxsize=8)(self._run_row)

    def compare(self, rows: Sequence[int]) -> Iterator[Comparison]:
        """Run rows of ``cells.parquet`` again, one after the other."""
        for number in rows:
            row = self._folder.row(number)
            labels = {key: row[key] for key in (*AXES, *self._config["swept"])}
            try:
                text, is_same = self._compare(number, row)
            except InputError as error:
                text, is_same = f"differs: it can't be run here: {error}", False
            yield Comparison(number, labels, text, is_same)

    def _compare(self, number: int, row: Mapping[str, Any]) -> tuple[str, bool]:
        planned, again = self._run(number)
        since = "" if planned.key == row["key"] else " (sources or input changed since)"
        if again.error is not None:
            return f"differs: fails now: {again.error['message']}{since}", False
        now = dict(again.metrics) | self._against_baseline(number, row, again)
        wrong, n_metrics = self._metrics_that_differ(row, now)
        cached = self._cache.get(row["key"])
        if cached is not None:
            wrong += _columns_that_differ(cached, again)
        if wrong:
            return f"differs in {', '.join(wrong)}{since}", False
        left_out = "" if cached is not None else "; the cache has no table of its jobs"
        return f"same ({n_metrics} metrics{left_out}){since}", True

    def _run_row(self, number: int) -> tuple[PlannedCell, CellResult]:
        row = self._folder.row(number)
        try:
            config = recorded.parsed_config(number, row["config"])
            labels = {key: row[key] for key in (*AXES, *self._config["swept"])}
            if self._foreign is not None:
                config = self._foreign.localized(config)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"row {number} has no configuration of a cell: {error}") from error
        planned = rerun.plan_recorded(self._inputs, rerun.recorded_cell(labels, config))
        return planned, rerun.rerun(self._inputs, planned)

    def _metrics_that_differ(
        self, row: Mapping[str, Any], now: Mapping[str, float]
    ) -> tuple[list[str], int]:
        """Compare each metric with its column; return the differences, and how many were equal."""
        skipped = {*NOT_METRICS, *self._config["swept"], "config"} - {*CLUSTER_COLUMNS}
        names = [n for n, value in row.items() if n not in skipped and isinstance(value, float)]
        wrong, n_equal = [], 0
        for name in names:
            old, new = row[name], now.get(name, math.nan)
            if repr(old) == repr(float(new)):
                n_equal += name in now
            else:
                wrong.append(f"{name} ({old!r} → {new!r})")
        return wrong, n_equal

    def _against_baseline(
        self, number: int, row: Mapping[str, Any], again: CellResult
    ) -> dict[str, float]:
        """Return speed-ups over the baseline's cell, which is run again, too."""
        if not any(_is_number(row.get(name)) for name in AGAINST_BASELINE):
            return {}
        base = self._baseline_rows.get(number)
        jct_s = again.jct_s()
        if base is None or jct_s is None:
            return {}
        base_jct_s = self._run(base)[1].jct_s()
        return {} if base_jct_s is None else dict(speedups(jct_s, base_jct_s))

    @cached_property
    def _baseline_rows(self) -> dict[int, int]:
        cells = cells_table.read(self._folder)
        return dict(baseline_rows(cells, self._config["swept"], self._config["baseline"]))


def _is_number(value: object) -> bool:
    return isinstance(value, float) and not math.isnan(value)


def _columns_that_differ(old: CellResult, new: CellResult) -> list[str]:
    assert old.jobs is not None
    assert new.jobs is not None
    names = dict.fromkeys((*old.jobs.column_names, *new.jobs.column_names))
    return [f"column {name}" for name in names if not _is_same_column(old.jobs, new.jobs, name)]


def _is_same_column(old: Any, new: Any, name: str) -> bool:
    if not {name} <= {*old.column_names} & {*new.column_names}:
        return False
    before, now = old[name].to_numpy(), new[name].to_numpy()
    is_same: bool = before.tobytes() == now.tobytes()
    return is_same


def sample(folder: SweepFolder, n: int, seed: int) -> list[int]:
    """Choose rows that did not fail by a hash, so that the same seed chooses the same ones."""
    rows: Rows = np.flatnonzero(~folder.failed())
    if not len(rows):
        raise InputError(f"every cell of {folder.sweep} failed; nothing can be compared")

    def rank(row: int) -> bytes:
        return hashlib.sha256(f"{seed}:{row}".encode()).digest()

    return sorted(heapq.nsmallest(n, map(int, rows), key=rank))
