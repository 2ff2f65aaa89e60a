"""Data that policies learn from: features of jobs and of past jobs, and recorded earlier runs."""

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
    """Features of stages and of past jobs, as codes of one vocabulary.

    Day of the week and hour of the day are the columns of these names, or else counted from time 0.
    A stage without an application, name or request of its own has its job's. A past job without
    times counts as submitted at the start of the trace, or with the earliest past job that has a
    time.
    """

    jobs: pa.Table  # jobs of the workload
    stages: pa.Table
    history: pa.Table

    @cached_property
    def codes(self) -> tuple[I4, I4]:
        """Codes by feature, of stages (G, 6) and of the history (H, 6); -1 for unknown."""
        job = values(self.stages, "job")
        stages = np.full((len(job), len(NAMES)), -1, dtype=np.int32)
        past = np.full((self.history.num_rows, len(NAMES)), -1, dtype=np.int32)
        for f, name in enumerate(NAMES):
            if name in ("day", "hour"):
                stages[:, f] = calendar(self.jobs, name)[job]
                past[:, f] = calendar(self.history, name)
                continue
            vocabulary: dict[str, int] = {}
            past[:, f] = _encode(self.history, name, vocabulary)
            job_codes = _encode(self.jobs, name, vocabulary)[job]
            stage_codes = _encode(self.stages, name, vocabulary)
            stages[:, f] = np.where(stage_codes >= 0, stage_codes, job_codes)
        return stages, past

    def history_column(self, column: str) -> NDArray[Any]:
        """Return a numeric column of the history, (H,), in the order in which its jobs ended."""
        if column not in ("submit_s", "finish_s") or not self.untimed.any():
            return values(self.history, column)
        begin = np.fmin.reduce(column_or_nan(self.history, "submit_s"), initial=0.0)
        return np.where(self.untimed, begin, column_or_nan(self.history, column))

    def every_nth_job(self, every: int) -> frozenset[int]:
        """Return the rows of the jobs whose number is a multiple of `every`; none for 0.

        The number is the digits at the end of `job_id`; without them a job has no number.
        """
        if every == 0:
            return frozenset()
        numbers = [re.search(r"[0-9]+$", job_id) for job_id in self.jobs["job_id"].to_pylist()]
        return frozenset(j for j, n in enumerate(numbers) if n and int(n[0]) % every == 0)

    @cached_property
    def untimed(self) -> Mask:
        """Mask of the past jobs of which only the order is known, (H,)."""
        return np.isnan(column_or_nan(self.history, "submit_s"))


def calendar(table: pa.Table, name: str) -> I4:
    """Return the ``day`` or the ``hour`` of each job: the column, or counted from time 0."""
    if name in table.column_names:
        return values(table, name)
    unit, cycle = (DAY_S, 7) if name == "day" else (HOUR_S, 24)
    index = np.floor(column_or_nan(table, "submit_s") / unit) % cycle
    return np.where(np.isnan(index), -1, index).astype(np.int32)


def _encode(table: pa.Table, column: str, vocabulary: dict[str, int]) -> I4:
    """Return the codes of a column, -1 for '' or no column; add its names to `vocabulary`."""
    if column not in table.column_names:
        return np.full(table.num_rows, -1, dtype=np.int32)
    lookup = [vocabulary.setdefault(n, len(vocabulary)) if n else -1 for n in names(table, column)]
    return np.array(lookup, dtype=np.int32)[values(table, column)] if lookup else np.zeros(0, "i4")


def available_data(jobs: pa.Table, stages: pa.Table, history: pa.Table) -> list[str]:
    """List which of "history" and "features" (other than day and hour) a workload has."""
    columns = [name for name in NAMES if name not in ("day", "hour")]
    tables = [(table, name) for table in (jobs, stages) for name in columns]
    has_features = any(any(names(t, name)) for t, name in tables if name in t.column_names)
    available = {"history": history.num_rows > 0, "features": has_features}
    return [name for name, is_available in available.items() if is_available]


@dataclass(frozen=True)
class Training:
    """Recorded tasks of earlier runs, K rows by template, run, stage and task."""

    # the workload's jobs, and its table ``training`` (`sim.workload.schema.TRAINING`)
    jobs: pa.Table
    table: pa.Table

    def __len__(self) -> int:
        """Return the number of recorded tasks."""
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
        """Return a numeric column, (K,), read-only; see `sim.workload.schema.TRAINING`."""
        return values(self.table, name)
