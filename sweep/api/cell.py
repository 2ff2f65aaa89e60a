"""`Cell`: labels, metrics, configuration and jobs of one cell of a sweep."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sweep import driver
from sweep.api import frames
from sweep.execution import job_facts, notes, rerun
from sweep.grid import plugins
from sweep.stats.cell_columns import AXES, NOT_METRICS, text
from sweep.store.cache import Cache
from sweep.store.folder import SweepFolder

if TYPE_CHECKING:
    import pandas as pd


class Cell:
    """One cell of a sweep."""

    def __init__(self, folder: SweepFolder, cache: Cache, swept: Sequence[str], row: int) -> None:
        self._folder = folder
        self._cache = cache
        self._swept = swept
        self._number = row
        self._row = folder.row(row)

    @property
    def labels(self) -> dict[str, Any]:
        """Policy, trace, capacity, seed, and the other swept parameters."""
        return {key: self._row[key] for key in (*AXES, *self._swept)}

    @property
    def status(self) -> str:
        """``done``, ``cached`` or ``failed``."""
        return str(self._row["status"])

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics by name."""
        skip = {*NOT_METRICS, *self.labels}
        return {k: v for k, v in self._row.items() if k not in skip and isinstance(v, float)}

    @property
    def config(self) -> dict[str, Any]:
        """Resolved configuration."""
        config: dict[str, Any] = json.loads(self._row["config"])
        return config

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """A row a job: who it is, and ``submit_s``, ``start_s``, ``finish_s``, ``failed``, ...

        ``job_id``, ``user``, ``queue``, ``width`` (slots of its gang, or tasks), ``n_tasks``,
        ``work_s`` and ``requested_s`` come from the workload (`sweep.execution.job_facts`), which
        is made or read again; times and ``estimate_s`` (the policy's estimate of ``work_s``) from
        the cache. If they are no longer there, the cell runs again in this process. A note on
        standard error says so, and if the workload is another one or can't be had.
        """
        if self.status == "failed":
            row = self._row
            reason = f"{row['error_type']} ({row['error_stage']}): {row['error_message']}"
            raise InputError(f"this cell failed: {reason}; {row['reproduce']} shows it")
        cached = self._cache.get(self._row["key"])
        table = self._run_again() if cached is None else cached.jobs
        assert table is not None
        known = self._facts(table.num_rows)
        for name in () if known is None else reversed(known.column_names):
            if name not in table.column_names:
                table = table.add_column(0, name, known[name])
        return frames.from_arrow(table)

    def _facts(self, n_jobs: int) -> Any:
        """Return the facts of the workload's jobs; None if it is not what the cell ran."""
        try:
            prepared, planned = driver.plan_cell(driver.repeat_request(self._folder), self.labels)
            if planned.key == self._row["key"]:
                facts = job_facts.facts(prepared.inputs.workload(planned.workload))
                return facts if facts.num_rows == n_jobs else None
            reason = "its code or trace changed since"
        except InputError as error:
            reason = error.message
        notes.note(f"{self!r}: without names and sizes of jobs: {reason}")
        return None

    def _run_again(self) -> Any:
        notes.note(f"{self!r}: no longer in the cache; running it again")
        prepared, planned = driver.plan_cell(driver.repeat_request(self._folder), self.labels)
        return rerun.rerun_and_store(prepared, planned, self._row["key"]).jobs

    def timeline(self, beside: Cell | None = None) -> Any:
        """Run the cell again and draw who ran where and when, what waited, and why.

        Parameters
        ----------
        beside : Cell, optional
            A second cell, drawn below and moving in step.

        Returns
        -------
        Page
            It shows itself in a notebook; ``write(path)`` keeps it.

        Raises
        ------
        InputError
            If a run has more than a million tasks.
        """
        cells = [self] if beside is None else [self, beside]
        return _plug_in("draw").draw([cell._capture() for cell in cells])

    def why(self, against: str | int | None = None, *, recorded: bool = False) -> Any:
        """Run this cell again, and say why its jobs waited, or why it loses against another.

        Parameters
        ----------
        against : str or int, optional
            The other policy, of a cell that differs in nothing else; or the row of that cell.
        recorded : bool
            Without `against`: of the log's own schedule, by its recorded starts.

        Returns
        -------
        Answer or WaitAnswer
            ``summary`` is two sentences; with `against` ``jobs`` and ``behind`` are data frames,
            without it ``jobs`` and ``by("user")``. It shows its page in a notebook, and
            ``write(path)`` keeps it.

        Raises
        ------
        InputError
            If no cell, or several, are of that policy; or the log has no starts.
        """
        if against is None:
            plug_in = _plug_in("explain_waits")
            return plug_in.explain_waits(self._folder, self._number, is_log=recorded)
        return _plug_in("explain").explain(self._folder, self._number, against)

    def perfetto(self, path: str | Path) -> None:
        """Run the cell again and write it in Chrome's trace format (.json or .json.gz)."""
        _plug_in("write_perfetto").write_perfetto(self._capture(), Path(path).expanduser())

    def _capture(self) -> Any:
        from sweep.driver.captured_run import capture_cell  # brings numba

        return capture_cell(self._folder, self._row)

    def __repr__(self) -> str:
        labels = (f"{key}={text(value)}" for key, value in self.labels.items() if value is not None)
        return f"Cell {' '.join(labels)}: {self.status}"


def _plug_in(function: str) -> Any:
    """Import the plug-in that has a function."""
    plug_in = plugins.having(plugins.SECTIONS, function)
    if plug_in is None:
        raise InputError(f"no plug-in that has `{function}` is installed")
    return plug_in
