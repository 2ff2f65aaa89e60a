"""What policies may learn from: the jobs of the past, by feature, and recorded earlier runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import I4, Mask
from sim.workload.tables import column_or_nan, names, values

NAMES = ("application", "job_name", "user", "day", "hour", "requested")
"""The features, in the order of their columns (Jajoo et al., NSDI 2022, §4.2)."""

DAY_S, HOUR_S = 86_400.0, 3600.0


@dataclass(frozen=True)
class Features:
    """The features of stages and of the jobs of the past, as codes of one vocabulary.

    The day is that of the week and the hour that of the day: those of the columns of these names,
    or else counted from time 0. A stage without an application, name or request of its own has its
    job's. A job of the past without times counts as one of the begin: that of the trace, or of the
    earliest of the past that has a time.
    """

    jobs: pa.Table  # those of the workload
    stages: pa.Table
    history: pa.Table

    @cached_property
    def codes(self) -> tuple[I4, I4]:
        """Codes by feature, of stages (G, 6) and of the history (H, 6); -1 for unknown."""
        job = values(self.stages, "job")
        now = np.full((len(job), len(NAMES)), -1, dtype=np.int32)
        past = np.full((self.history.num_rows, len(NAMES)), -1, dtype=np.int32)
        for f, name in enumerate(NAMES):
            if name in ("day", "hour"):
                now[:, f] = _moment(self.jobs, name)[job]
                past[:, f] = _moment(self.history, name)
                continue
            known: dict[str, int] = {}
            past[:, f] = _coded(self.history, name, known)
            now[:, f] = _coded(self.jobs, name, known)[job]
            own = _coded(self.stages, name, known)
            now[:, f] = np.where(own >= 0, own, now[:, f])
        return now, past

    def history_column(self, column: str) -> NDArray[Any]:
        """Return a column of numbers of the history, (H,), in the order in which its jobs end."""
        if column not in ("submit_s", "finish_s") or not self.untimed.any():
            return values(self.history, column)
        begin = np.fmin.reduce(column_or_nan(self.history, "submit_s"), initial=0.0)
        return np.where(self.untimed, begin, column_or_nan(self.history, column))

    def every_nth_job(self, every: int) -> frozenset[int]:
        """Rows of the jobs whose number is a multiple of `every`; none for 0.

        The number is what `job_id` ends in; a job whose id ends in no digit has none.
        """
        if every == 0:
            return frozenset()
        ends = [re.search(r"[0-9]+$", job_id) for job_id in self.jobs["job_id"].to_pylist()]
        return frozenset(j for j, end in enumerate(ends) if end and int(end[0]) % every == 0)

    @cached_property
    def untimed(self) -> Mask:
        """Of which jobs of the past only the order is known, (H,)."""
        return np.isnan(column_or_nan(self.history, "submit_s"))


def _moment(table: pa.Table, name: str) -> I4:
    if name in table.column_names:
        return values(table, name)
    unit, cycle = (DAY_S, 7) if name == "day" else (HOUR_S, 24)
    at = np.floor(column_or_nan(table, "submit_s") / unit) % cycle
    return np.where(np.isnan(at), -1, at).astype(np.int32)


def _coded(table: pa.Table, column: str, known: dict[str, int]) -> I4:
    """Return the codes of a column, -1 for '' or no column, and add its names to `known`."""
    if column not in table.column_names:
        return np.full(table.num_rows, -1, dtype=np.int32)
    lookup = [known.setdefault(n, len(known)) if n else -1 for n in names(table, column)]
    return np.array(lookup, dtype=np.int32)[values(table, column)] if lookup else np.zeros(0, "i4")


def available_data(jobs: pa.Table, stages: pa.Table, history: pa.Table) -> list[str]:
    """Return which of "history" and "features" (but for when jobs come) a workload has."""
    named = [name for name in NAMES if name not in ("day", "hour")]
    tables = [(table, name) for table in (jobs, stages) for name in named]
    known = any(any(names(t, name)) for t, name in tables if name in t.column_names)
    found = {"history": history.num_rows > 0, "features": known}
    return [what for what, there in found.items() if there]


@dataclass(frozen=True)
class Training:
    """The recorded tasks of earlier runs, K rows by template, run, stage and task."""

    # the workload's jobs, and its table ``training`` (`sim.workload.schema.TRAINING`)
    jobs: pa.Table
    table: pa.Table

    def __len__(self) -> int:
        """How many tasks are recorded."""
        return int(self.table.num_rows)

    @cached_property
    def template(self) -> I4:
        """Template of each row, (K,): index into the workload's `template_names`; -1 for others."""
        index = {name: i for i, name in enumerate(names(self.jobs, "template"))}
        lookup = np.array([index.get(n, -1) for n in names(self.table, "template")], np.int32)
        rows = lookup[values(self.table, "template")] if len(lookup) else np.zeros(0, np.int32)
        rows.setflags(write=False)
        return rows

    def column(self, name: str) -> NDArray[Any]:
        """Return a column of numbers, (K,), read-only; see `sim.workload.schema.TRAINING`."""
        return values(self.table, name)
