"""Dataset: a workload to describe, or DAGs alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.dags.graphs import Graphs
from sim.workload.columns import stage_durations, stage_work_s
from sim.workload.inflow import stage_start_s
from sim.workload.schema import DEMAND_PREFIX, USED_PREFIX
from sim.workload.tables import values
from sim.workload.workload import Workload

LARGE = 6
"""Minimum number of stages of the jobs in §4.2, §5 and §6 of the paper."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """One column of the tables: a name, DAGs, and their workload, if any.

    Attributes
    ----------
    name : str
        Name in tables and plots.
    every : Graphs
        The DAGs of all jobs.
    workload : Workload or None
        The DAGs' workload; None for DAGs alone, which have no times, tasks or demands.
    """

    name: str
    every: Graphs
    workload: Workload | None = None

    @classmethod
    def from_workload(cls, name: str, workload: Workload) -> Dataset:
        """Build the dataset of a workload."""
        return cls(name, Graphs.from_workload(workload), workload)

    def renamed(self, name: str) -> Dataset:
        """Return the same dataset under another name."""
        return self if name == self.name else Dataset(name, self.every, self.workload)

    @cached_property
    def whole(self) -> Mask:
        """Jobs whose DAG is whole, (J,): their loader dropped no stage and no edge of them.

        Without the column ``jobs.n_lost`` all jobs count as whole.
        """
        if self.workload is None or "n_lost" not in self.workload.jobs.column_names:
            return np.ones(self.every.n_jobs, dtype=bool)
        whole: Mask = values(self.workload.jobs, "n_lost") == 0
        return whole

    @cached_property
    def dags(self) -> Graphs:
        """The DAGs of whole jobs."""
        return self.every if self.whole.all() else self.every.take(self.whole)

    @cached_property
    def spans_s(self) -> tuple[F8, F8]:
        """Start and end of each stage if no task waits for resources, (G,) s each.

        A stage starts when its job is submitted and all tasks of its parents are done (edges from
        task to task count as barriers).
        """
        assert self.workload is not None
        longest_s = stage_durations(self.workload)[1]
        submit_s = values(self.workload.jobs, "submit_s")[values(self.workload.stages, "job")]
        start_s = stage_start_s(self.workload, longest_s, submit_s)
        return start_s, start_s + longest_s

    @cached_property
    def large_rows(self) -> I8:
        """Rows of the whole jobs of at least `LARGE` stages."""
        return np.flatnonzero(self.whole & (self.every.job_n_stages >= LARGE))

    @cached_property
    def large(self) -> Graphs:
        """The DAGs of the jobs `large_rows`."""
        return self.every.take(self.large_rows)

    @cached_property
    def large_stages(self) -> I8:
        """Rows of the stages of the jobs `large_rows`, (G of `large`,)."""
        first = self.every.job_stage0[:-1][self.large_rows]
        shift = np.repeat(first - self.large.job_stage0[:-1], self.large.job_n_stages)
        return np.arange(self.large.n_stages) + shift

    @cached_property
    def stage_metrics(self) -> dict[str, F8]:
        """Metrics of each stage by name, (G,) each; NaN where unknown.

        ``duration``: mean of its tasks' durations, s; ``span``: end − start as recorded, s, where
        the workload has it; ``tasks``; ``demand_<resource>``; ``used_<resource>``. A stage whose
        recorded span is 0 s, so that its duration is unknown, has a ``duration`` of 0.
        Values that a loader filled in (bits of ``stages.guessed``: the lowest for the number of
        tasks, then one for each resource, by name) are unknown.
        """
        workload = self.workload
        if workload is None:
            return {}
        table = workload.stages
        n_tasks = values(table, "n_tasks").astype(np.float64)
        metrics = {"duration": stage_work_s(workload) / n_tasks}
        if "span_s" in table.column_names:
            span_s = table["span_s"].to_numpy().astype(np.float64)
            metrics["duration"] = np.where(
                span_s > 0, metrics["duration"], np.where(span_s == 0, 0.0, np.nan)
            )
            metrics["span"] = span_s
        metrics["tasks"] = n_tasks
        for prefix in (DEMAND_PREFIX, USED_PREFIX):
            for column in table.column_names:
                if column.startswith(prefix):
                    metrics[column] = table[column].to_numpy().astype(np.float64)
        if "guessed" in table.column_names:
            guessed = table["guessed"].to_numpy()
            demands = [DEMAND_PREFIX + resource for resource in workload.resources]
            for bit, name in enumerate(["tasks", *demands]):
                metrics[name] = np.where(guessed & (1 << bit), np.nan, metrics[name])
        return metrics
