"""Recorded runs of programs (``training``), divided among the stages of a DAG like their jobs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8, offsets, ranges
from sim.dags import Graphs
from sim.transforms.parts import stage_ready_s
from sim.workload.tables import names, take_rows, values, with_column
from sim.workload.workload import Workload


@dataclass(frozen=True, eq=False)
class Parts:
    """Stages into which jobs are divided, G of them, in order of jobs and levels."""

    graphs: Graphs
    stage: I8  # among the stages of all DAGs
    n_tasks: I8
    begin: I8  # first task, counted from the job's first
    factor: F8  # of the durations of its tasks


@dataclass(frozen=True, eq=False)
class RecordedRuns:
    """R recorded runs of programs, whose tasks are rows of `table`, run by run."""

    table: pa.Table
    first_row: I8  # of each run, and the number of rows: (R+1,)
    first_job: I8  # first job of the run's program, -1 if the workload has none: (R,)

    @classmethod
    def from_workload(cls, workload: Workload) -> RecordedRuns:
        """Find the runs in a workload's training table."""
        table = workload.training
        if not table.num_rows:
            return cls(table, np.zeros(1, np.int64), np.empty(0, np.int64))
        template = values(table, "template").astype(np.int64)
        is_first = np.append(True, np.diff(template) != 0)
        is_first[1:] |= np.diff(values(table, "run")) != 0
        first_row = np.append(np.flatnonzero(is_first), table.num_rows)
        codes, jobs = np.unique(values(workload.jobs, "template"), return_index=True)
        job_names = names(workload.jobs, "template")
        first = {job_names[code]: job for code, job in zip(codes, jobs.tolist(), strict=True)}
        template_job = np.array(
            [first.get(name, -1) for name in names(table, "template")], np.int64
        )
        return cls(table, first_row, template_job[template[first_row[:-1]]])

    @property
    def n_tasks(self) -> I8:
        """Number of recorded tasks of each run, (R,)."""
        return np.diff(self.first_row)

    def cut(self, runs: I8, parts: Parts) -> pa.Table:
        """Divide some of the runs into stages; return the whole table.

        A task keeps its wait and its run time. Its stage is ready when those before it have ended.
        """
        if not len(runs):
            return self.table
        owner = parts.graphs.stage_job
        begin = self.first_row[runs][owner] + parts.begin
        rows = ranges(begin, begin + parts.n_tasks)
        stage = np.repeat(np.arange(len(owner)), parts.n_tasks)
        old = {name: values(self.table, name) for name in ("ready_s", "start_s", "finish_s")}
        init_s = values(self.table, "init_s")[rows] * parts.factor[stage]
        wait_s = (old["start_s"] - old["ready_s"])[rows]
        took_s = (old["finish_s"] - old["start_s"])[rows] * parts.factor[stage]
        first = offsets(parts.n_tasks)
        longest_s: F8 = np.maximum.reduceat(wait_s + took_s, first[:-1])
        ready_s = stage_ready_s(parts.graphs, longest_s)[stage]
        cut = take_rows(self.table, rows)
        number = np.arange(len(owner)) - parts.graphs.job_stage0[owner]
        for name, column in {
            "stage": number[stage].astype(np.int32),
            "task": (np.arange(len(rows)) - first[stage]).astype(np.int32),
            "ready_s": ready_s,
            "start_s": ready_s + wait_s,
            "finish_s": ready_s + wait_s + took_s,
            "init_s": init_s,
        }.items():
            cut = with_column(cut, name, column)
        uncut = np.setdiff1d(np.arange(len(self.n_tasks)), runs)
        uncut_rows = ranges(self.first_row[uncut], self.first_row[uncut + 1])
        return pa.concat_tables([take_rows(self.table, uncut_rows), cut])
