"""Verification of a sweep: cells run again, files made anew, compared with the recorded ones."""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from sim.base.errors import InputError
from sim.base.text import printable
from sim.cluster.load import CLUSTER_COLUMNS
from sim.metrics import speedups
from sweep.execution import cells_table, rerun
from sweep.execution.baseline_metrics import AGAINST_BASELINE, baseline_rows
from sweep.execution.inputs import Inputs
from sweep.execution.plan import PlannedCell
from sweep.grid.options import Options
from sweep.questions.archive import recorded, remade
from sweep.questions.archive.foreign import Foreign, refuse_addresses
from sweep.questions.archive.remade import FileCheck, State
from sweep.questions.archive.replay import recorded_request, replay
from sweep.stats.cell_columns import AXES, NOT_METRICS
from sweep.store.cache import Cache
from sweep.store.cell import CellResult
from sweep.store.folder import CELLS, CONFIG, SweepFolder

_OF_THE_RUN = ("skipped", "worker", "sources", "keep")
"""Stages of failures that follow from where the cell ran, not from the cell."""


class Comparison(NamedTuple):
    """Outcome of one cell."""

    row: int
    labels: dict[str, Any]
    text: str  # ``same``, or what differs
    state: State


class Verification:
    """Runs cells of a sweep's folder again, and makes its files anew.

    Parameters
    ----------
    folder : SweepFolder
        The sweep, wherever it was computed.
    results : Path
        Results on this machine: their cache may have the tables of cells, and gets workloads.
    foreign : Foreign, optional
        Files, addresses and modules that a configuration may name; any if None.
    trusts_addresses : bool, optional
        Without it, no trace is fetched from an object store, if there is no `foreign`.
    """

    def __init__(
        self,
        folder: SweepFolder,
        results: Path,
        foreign: Foreign | None = None,
        *,
        trusts_addresses: bool = True,
    ) -> None:
        self._folder, self._config = folder, folder.config()
        self._cache, self._foreign = Cache(results), foreign
        localize: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
        if not trusts_addresses:
            localize = refuse_addresses
        if foreign is not None:
            localize = foreign.localized_trace
        self._inputs = Inputs(results, localize=localize)
        self._run = lru_cache(maxsize=8)(self._run_row)

    def compare(self, rows: Sequence[int]) -> Iterator[Comparison]:
        """Run rows of ``cells.parquet`` again, one after the other."""
        for number in rows:
            row = self._folder.row(number)
            labels = {key: row[key] for key in (*AXES, *self._config["swept"])}
            state: State = "differs"
            try:
                text, state = self._compare(number, row)
            except InputError as error:
                text = f"differs: it can't be run here: {error}"
                if row["status"] == "failed" and row["error_message"] == printable(str(error)):
                    text, state = f"same: it fails ({row['error_type']})", "same"
            yield Comparison(number, labels, text, state)

    def compare_files(self, options: Options | None, work: Path) -> Iterator[FileCheck]:
        """Make the sweep's files anew from its words and its cells' metrics.

        Parameters
        ----------
        options : Options, optional
            Its options, of the user's own folders too; None if these are not here.
        work : Path
            An empty folder, for the files.
        """
        if options is None:
            reason = "its folders of options are not here"
            yield FileCheck("labels, tables and report", "not compared", reason)
            return
        modules = None if self._foreign is None else self._foreign.modules
        try:
            if self._foreign is not None:
                self._foreign.check_options(self._config["words"], options)
            request = recorded_request(self._config, options, work)
            # a folder may have been renamed on its way here
            cells, sweep = (
                cells_table.read(self._folder),
                str(self._config.get("sweep") or self._folder.sweep),
            )
            replayed = replay(request, self._inputs, Cache(work), cells, sweep)
            target = SweepFolder.for_sweep(work, sweep)
            yield from remade.compare(self._folder, replayed, target, modules)
        except InputError as error:
            where = "" if error.file is None else f"{Path(error.file).name}: "
            reason = f"its files can't be made anew: {where}{error.message}"
            yield FileCheck(f"{CONFIG}, {CELLS}", "differs", reason)

    def _compare(self, number: int, row: Mapping[str, Any]) -> tuple[str, State]:
        planned, again = self._run(number)
        since = "" if planned.key == row["key"] else " (sources or input changed since)"
        if row["status"] == "failed":
            return _compare_failures(row, again)
        if again.error is not None:
            return f"differs: fails now: {again.error['message']}{since}", "differs"
        now = dict(again.metrics) | self._against_baseline(number, row, again)
        wrong, n_metrics = self._metrics_that_differ(row, now)
        cached = self._cache.get(row["key"])
        if cached is not None:
            wrong += _columns_that_differ(cached, again)
        if wrong:
            return f"differs in {', '.join(wrong)}{since}", "differs"
        left_out = "" if cached is not None else "; the cache has no table of its jobs"
        return f"same ({n_metrics} metrics{left_out}){since}", "same"

    def _run_row(self, number: int) -> tuple[PlannedCell, CellResult]:
        row = self._folder.row(number)
        config = recorded.parsed_config(number, row["config"])
        labels = {key: row[key] for key in (*AXES, *self._config["swept"])}
        for key in ("capacity", "seed"):
            if config.get(key) != row[key]:
                raise InputError(f"its {key} is {row[key]}, and {config.get(key)} by its config")
        try:
            if self._foreign is not None:
                self._foreign.check(config)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"row {number} has no configuration of a cell: {error}") from error
        cell = rerun.recorded_cell(labels, config, has_files=self._foreign is None)
        planned = rerun.plan_recorded(self._inputs, cell)
        return planned, rerun.rerun(self._inputs, planned)

    def _metrics_that_differ(
        self, row: Mapping[str, Any], now: Mapping[str, float]
    ) -> tuple[list[str], int]:
        """Compare each metric with its column; return the differences, and how many were equal."""
        skipped = {*NOT_METRICS, *self._config["swept"], "config"} - now.keys()
        skipped -= {*CLUSTER_COLUMNS}
        wrong, n_equal = [], 0
        for name in (name for name in {**row, **now} if name not in skipped):
            old, new = row.get(name), float(now.get(name, math.nan))
            if type(old) is float and repr(old) == repr(new):
                n_equal += name in now
            elif type(old) is float or name in now or old is not None:
                kind = "" if isinstance(old, float) else f" of type {type(old).__name__}"
                wrong.append(f"{name} ({old!r}{kind} → {new!r})")
        return wrong, n_equal

    def _against_baseline(
        self, number: int, row: Mapping[str, Any], again: CellResult
    ) -> dict[str, float]:
        """Return speed-ups over the baseline's cell, which is run again, too."""
        base = self._baseline_rows.get(number)
        jct_s = again.jct_s()
        if base is None or jct_s is None or not set(AGAINST_BASELINE) & row.keys():
            return {}
        base_jct_s = self._run(base)[1].jct_s()
        if base_jct_s is None:
            return {}
        return {name: v for name, v in speedups(jct_s, base_jct_s).items() if name in row}

    @cached_property
    def _baseline_rows(self) -> dict[int, int]:
        cells = cells_table.read(self._folder)
        return dict(baseline_rows(cells, self._config["swept"], self._config["baseline"]))


def _compare_failures(row: Mapping[str, Any], again: CellResult) -> tuple[str, State]:
    """Compare a recorded failure with what the cell does now."""
    old = {part: row[f"error_{part}"] for part in ("stage", "type", "message")}
    where = f"{old['type']} in {old['stage']}"
    if old["stage"] in _OF_THE_RUN:
        return f"not checked: it failed by where it ran ({where})", "not compared"
    if again.error is None:
        return f"differs: recorded as failed ({where}), and runs now", "differs"
    now: Mapping[str, Any] = again.error
    if all(now[part] == old[part] for part in old):
        return f"same: it fails ({where})", "same"
    return f"differs: failed ({where}), and fails now: {now['message']}", "differs"


def _columns_that_differ(old: CellResult, new: CellResult) -> list[str]:
    assert old.jobs is not None
    assert new.jobs is not None
    names = dict.fromkeys((*old.jobs.column_names, *new.jobs.column_names))
    return [f"column {name}" for name in names if not _is_same_column(old.jobs, new.jobs, name)]


def _is_same_column(old: Any, new: Any, name: str) -> bool:
    if not {name} <= {*old.column_names} & {*new.column_names}:
        return False
    before, now = old[name].to_numpy(), new[name].to_numpy()
    if object in (before.dtype, now.dtype):  # texts or lists, whose bytes are addresses
        return repr(before.tolist()) == repr(now.tolist())
    is_same: bool = before.tobytes() == now.tobytes()
    return is_same


def sample(n_rows: int, n: int, seed: int) -> list[int]:
    """Choose rows by a hash, so that the same seed chooses the same ones."""

    def rank(row: int) -> bytes:
        return hashlib.sha256(f"{seed}:{row}".encode()).digest()

    return sorted(heapq.nsmallest(n, range(n_rows), key=rank))
