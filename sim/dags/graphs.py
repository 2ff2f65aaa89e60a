"""DAGs of many jobs as three arrays, the input of every function of `sim.dags`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base.arrays import I4, I8, offsets, ranges
from sim.workload.paths import order_stages
from sim.workload.workload import Workload


@dataclass(frozen=True, eq=False)
class Graphs:
    """DAGs of J jobs with G stages and E edges in total.

    Arrays derived from these three are computed once and cached. No array may be written to.

    Attributes
    ----------
    job_stage0 : (J + 1,) int64
        First stage of each job; every job has at least one.
    edge0 : (G + 1,) int64
        First edge of each parent.
    edge_child : (E,) int32
        Child at the other end, a stage of the same job; ascending for each parent.
    """

    job_stage0: I8
    edge0: I8
    edge_child: I4

    @classmethod
    def from_workload(cls, workload: Workload) -> Graphs:
        """Build the DAGs of a workload, without its table of tasks."""
        job = workload.stages["job"].to_numpy()
        edges = workload.stage_edges
        return cls.from_edges(
            np.bincount(job, minlength=workload.n_jobs),
            edges["parent"].to_numpy(),
            edges["child"].to_numpy(),
        )

    @classmethod
    def from_edges(
        cls, n_stages: NDArray[np.integer], parent: NDArray[np.integer], child: NDArray[np.integer]
    ) -> Graphs:
        """Build the DAGs of jobs of `n_stages` stages from distinct edges in any order."""
        job_stage0 = offsets(n_stages)
        key = np.asarray(parent, dtype=np.int64) * job_stage0[-1] + child
        if len(key) and (np.diff(key) <= 0).any():
            order = np.argsort(key, kind="stable")
            child = child[order]
        counts = np.bincount(parent, minlength=int(job_stage0[-1]))
        # a copy, as kernels are compiled again for an array that is a read-only view
        return cls(job_stage0, offsets(counts), np.array(child, dtype=np.int32))

    @property
    def n_jobs(self) -> int:
        """Number of DAGs, J."""
        return len(self.job_stage0) - 1

    @property
    def n_stages(self) -> int:
        """Total number of stages, G."""
        return len(self.edge0) - 1

    @property
    def n_edges(self) -> int:
        """Total number of edges, E."""
        return len(self.edge_child)

    @cached_property
    def job_n_stages(self) -> I8:
        """Number of stages of each job, (J,) int64."""
        return np.diff(self.job_stage0)

    @cached_property
    def job_n_edges(self) -> I8:
        """Number of edges of each job, (J,) int64."""
        return np.diff(self.edge0[self.job_stage0])

    @cached_property
    def stage_job(self) -> I4:
        """Row of the job of each stage, (G,) int32."""
        return np.repeat(np.arange(self.n_jobs, dtype=np.int32), self.job_n_stages)

    @cached_property
    def n_parents(self) -> I8:
        """Number of parents of each stage, (G,) int64."""
        return np.bincount(self.edge_child, minlength=self.n_stages)

    @cached_property
    def n_children(self) -> I8:
        """Number of children of each stage, (G,) int64."""
        return np.diff(self.edge0)

    @cached_property
    def edge_parent(self) -> I4:
        """Parent of each edge, (E,) int32."""
        return np.repeat(np.arange(self.n_stages, dtype=np.int32), self.n_children)

    @cached_property
    def order(self) -> I8:
        """Stages in topological order, job by job, (G,) int64; InputError on a cycle."""
        return order_stages(self.job_stage0, self.edge0, self.edge_child)

    @cached_property
    def by_child(self) -> tuple[I8, I8]:
        """First edge of each child, (G + 1,) int64, and rows of the edges by child, (E,) int64."""
        from sim.workload.kernels import paths

        in0, in_edge = paths.by_child(self.n_stages, self.edge_child)
        return in0, in_edge

    @cached_property
    def reversed(self) -> Graphs:
        """The same DAGs with every edge reversed."""
        in0, in_edge = self.by_child
        return Graphs(self.job_stage0, in0, self.edge_parent[in_edge])

    def take(self, rows: ArrayLike) -> Graphs:
        """Return the DAGs of selected jobs.

        Parameters
        ----------
        rows : (K,) int or (J,) bool
            Rows of jobs in any order, also repeated; or a mask.
        """
        rows = np.asarray(rows)
        jobs = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
        sizes = self.job_n_stages[jobs]
        job_stage0 = offsets(sizes)
        stages = ranges(self.job_stage0[jobs], self.job_stage0[jobs + 1])
        first = self.edge0[self.job_stage0[jobs]]
        n_edges = self.job_n_edges[jobs]
        shift = np.repeat(job_stage0[:-1] - self.job_stage0[:-1][jobs], n_edges)
        return Graphs(
            job_stage0,
            offsets(self.n_children[stages]),
            (self.edge_child[ranges(first, first + n_edges)] + shift).astype(np.int32),
        )

    def at_least(self, n_stages: int) -> Graphs:
        """Return the DAGs of at least `n_stages` stages (6 in most of the paper, §4.2)."""
        return self.take(self.job_n_stages >= n_stages)
