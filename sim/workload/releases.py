"""Releases: begin times, dependencies on other jobs, and one job at a time of a user and name.

A job that is submitted is *eligible*, that is, may be started by a policy, from the latest of its
submission, its ``begin_s``, and the time at which its dependencies are met. A dependency is an edge
of ``job_edges`` of one of these kinds; its upstream job is *not ok* if it failed, was killed or was
cancelled.

=============  ==========================  ==============================
kind           is met when the upstream    can never be met once it
=============  ==========================  ==============================
``after``      starts, or is not ok
``afterok``    is done                     is not ok
``afternotok`` is not ok                   is done
``afterany``   is done, or not ok
=============  ==========================  ==============================

Each by ``delay_s`` later. A job starts when the first of its tasks takes room. What was met stays
met, and what can never be met stays so, even if the upstream job is stopped and runs again. A job
needs all of its dependencies, or any of them (``after_needs``).

A ``singleton`` is a dependency, too: it is met when no earlier job (by row) of the same user and
``job_name`` is left, and no later one runs. A job runs from its first task until it ends.

A job whose dependencies can never be met waits for ever, or is cancelled
(`sim.Cluster.unmet_dependencies`).

Source: the manual of sbatch (https://slurm.schedmd.com/sbatch.html, ``--dependency``, ``--begin``,
``--kill-on-invalid-dep``): "All dependencies must be satisfied if the ',' separator is used. Any
dependency may be satisfied if the '?' separator is used"; "after the specified jobs start or are
cancelled and 'time' in minutes from job start or cancellation happens"; "once a job dependency
fails due to the termination state of a preceding job, the dependent job will never be run, even if
the preceding job is requeued". That a singleton counts among alternatives, and waits for later jobs
of its name only while they run, is so in Slurm's ``src/slurmctld/job_scheduler.c``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I1, I4, I8, Mask, offsets
from sim.workload.schema import (
    AFTER_NEEDS,
    BEGIN,
    DELAY,
    DEPENDENCY_KINDS,
    FEATURES,
    JOB_EDGE_KINDS,
    SINGLETON,
)
from sim.workload.tables import codes, column_or_default, values, with_column

NAME = FEATURES[1].name
SOFT = JOB_EDGE_KINDS.index("soft")


@dataclass(frozen=True)
class Releases:
    """Columns of begin times and dependencies of J jobs, made on first use.

    Attributes
    ----------
    jobs, job_edges : pyarrow.Table
        Of the workload.
    """

    jobs: pa.Table
    job_edges: pa.Table

    @cached_property
    def exist(self) -> bool:
        """True if a job has a begin time, or depends on another or is a singleton."""
        return bool(self.begin_s.any() or self.is_singleton.any() or self._is_dependency.any())

    @cached_property
    def begin_s(self) -> F8:
        """Time before which each job is not eligible, (J,) s; 0 for none."""
        begin_s: F8 = np.nan_to_num(column_or_default(self.jobs, BEGIN))
        return begin_s

    @cached_property
    def needs_any(self) -> I1:
        """1 for jobs that need any of their dependencies, 0 for all: (J,)."""
        if AFTER_NEEDS.name not in self.jobs.column_names:
            return np.zeros(self.jobs.num_rows, np.int8)
        return codes(self.jobs, AFTER_NEEDS.name, AFTER_NEEDS.choices)

    @cached_property
    def is_singleton(self) -> Mask:
        """True for singletons, (J,)."""
        return column_or_default(self.jobs, SINGLETON).astype(bool)

    @cached_property
    def n_needed(self) -> tuple[I4, I4]:
        """Number of dependencies that must be met, and of those there are: (J,) each."""
        downstream = values(self.job_edges, "downstream")[self._is_dependency]
        n = np.bincount(downstream, minlength=self.jobs.num_rows) + self.is_singleton
        needed = np.where(self.needs_any == 1, np.minimum(n, 1), n)
        return needed.astype(np.int32), n.astype(np.int32)

    @cached_property
    def edges(self) -> tuple[I8, I4, I1, F8]:
        """Edges that a job waits for: first of each upstream (J+1,), downstream, kind, delay (s).

        A kind is an index into `JOB_EDGE_KINDS`; soft edges are left out.
        """
        rows = np.flatnonzero(self._kind != SOFT)
        upstream, downstream = (values(self.job_edges, k)[rows] for k in ("upstream", "downstream"))
        first = offsets(np.bincount(upstream, minlength=self.jobs.num_rows))
        return first, downstream, self._kind[rows], column_or_default(self.job_edges, DELAY)[rows]

    @cached_property
    def namesakes(self) -> tuple[I4, I8, I4]:
        """Groups of jobs of the same user and name: of each job (-1: none), first rows, jobs.

        Only groups with a singleton; the jobs of a group ascend.
        """
        n_jobs = self.jobs.num_rows
        group = np.full(n_jobs, -1, np.int32)
        if not self.is_singleton.any():
            return group, np.zeros(1, np.int64), np.zeros(0, np.int32)
        user, name = values(self.jobs, "user"), values(self.jobs, NAME)
        key = user.astype(np.int64) * (int(name.max()) + 1) + name
        used = np.unique(key[self.is_singleton])
        position = np.minimum(np.searchsorted(used, key), len(used) - 1)
        has_group = used[position] == key
        group[has_group] = position[has_group]
        jobs = np.flatnonzero(has_group)[np.argsort(group[has_group], kind="stable")]
        first = offsets(np.bincount(group[has_group], minlength=len(used)))
        return group, first, jobs.astype(np.int32)

    @cached_property
    def _kind(self) -> I1:
        return codes(self.job_edges, "kind", JOB_EDGE_KINDS)

    @cached_property
    def _is_dependency(self) -> Mask:
        return self._kind >= len(JOB_EDGE_KINDS) - len(DEPENDENCY_KINDS)


def shift_begins(jobs: pa.Table, by_s: F8 | float) -> pa.Table:
    """Return the table of jobs with begin times `by_s` later, at the earliest at 0."""
    if BEGIN.name not in jobs.column_names:
        return jobs
    begin_s = np.maximum(column_or_default(jobs, BEGIN) + by_s, 0.0)  # NaN stays
    return with_column(jobs, BEGIN.name, pa.array(begin_s, BEGIN.type, from_pandas=True))
