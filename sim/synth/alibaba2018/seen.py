"""What there is to count of the edges of DAGs, a value a job, a stage, an edge, or a level."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I4, I8, Mask
from sim.dags import Graphs, compact_levels, path_lengths
from sim.synth.alibaba2018.links import NARROW, TREE, WIDE


@dataclass(frozen=True, eq=False)
class Steps:
    """Levels and the next ones, (N,) each."""

    job: I8  # row of the job
    # whether the level is its job's first; whether a stage of it that has children on the next
    # level has several parents on the one before
    first: Mask
    join: Mask
    # stages with children on the next level; the size of that; stages of it with such parents;
    # edges between the two
    n_busy: I8
    n_next: I8
    n_joined: I8
    n_edges: I8

    def take(self, which: Mask) -> Steps:
        """Return some of them."""
        return Steps(*(getattr(self, field.name)[which] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class Seen:
    """The DAGs of J jobs with G stages, on M levels in all, and what follows from them."""

    graphs: Graphs  # the DAGs
    levels: I4  # compact levels of the stages
    lengths: I8  # critical path lengths of the jobs

    @classmethod
    def of(cls, graphs: Graphs) -> Seen:
        """Look at some DAGs, at least one."""
        levels = compact_levels(graphs)
        return cls(graphs, levels, path_lengths(graphs, levels).astype(np.int64))

    @cached_property
    def span(self) -> I4:
        """Levels that each edge goes down, (E,)."""
        return self.levels[self.graphs.edge_child] - self.levels[self.graphs.edge_parent]

    @cached_property
    def n_near(self) -> I8:
        """Children on the next level, (G,)."""
        return self._count(self.graphs.edge_parent, self.span == 1)

    @cached_property
    def n_far(self) -> I8:
        """Children further down, (G,)."""
        return self._count(self.graphs.edge_parent, self.span > 1)

    @cached_property
    def n_in(self) -> I8:
        """Parents on the level before, (G,)."""
        return self._count(self.graphs.edge_child, self.span == 1)

    def _count(self, end: I4, which: Mask) -> I8:
        return np.bincount(end[which], minlength=self.graphs.n_stages)

    @cached_property
    def last(self) -> Mask:
        """On the last level of its job, (G,)."""
        last: Mask = self.levels == self.lengths[self.graphs.stage_job]
        return last

    @cached_property
    def late(self) -> Mask:
        """On the last level but one of its job, (G,)."""
        late: Mask = self.levels == self.lengths[self.graphs.stage_job] - 1
        return late

    @cached_property
    def busy(self) -> Mask:
        """With children on the next level, (G,)."""
        return self.n_near > 0

    @cached_property
    def idle(self) -> Mask:
        """With none, though not on the last level, (G,)."""
        return ~self.busy & ~self.last

    @cached_property
    def level(self) -> I8:
        """The level of each stage, counted through all jobs, (G,)."""
        begin = np.cumsum(self.lengths) - self.lengths
        return begin[self.graphs.stage_job] + self.levels - 1

    @cached_property
    def size(self) -> I8:
        """Stages on each level, (M,)."""
        return np.bincount(self.level)

    @cached_property
    def may_rest(self) -> Mask:
        """Not on the last level, and not alone on its own, (G,)."""
        return ~self.last & (self.size[self.level] > 1)

    @cached_property
    def shape(self) -> I8:
        """TREE, NARROW or WIDE, (J,)."""
        graphs = self.graphs
        sinks = self._per_job(graphs.n_children == 0)
        tree = (sinks == 1) & (self._per_job(graphs.n_children > 1) == 0)
        wide = self._per_job(self.last) > 1
        return np.where(tree, TREE, np.where(wide, WIDE, NARROW))

    @cached_property
    def far_edges(self) -> I8:
        """Far edges of each job, without the first of each idle stage, (J,)."""
        return self._per_job(self.n_far - (self.idle & (self.n_far > 0)))

    def _per_job(self, values: NDArray[Any]) -> I8:
        return np.add.reduceat(values.astype(np.int64), self.graphs.job_stage0[:-1])

    @cached_property
    def _all_steps(self) -> Steps:
        """Every level of all jobs but the last of each, and the next one."""
        n = len(self.size)
        job = np.repeat(np.arange(len(self.lengths)), self.lengths)
        here = np.flatnonzero(job[:-1] == job[1:])
        first = np.append(True, job[1:] != job[:-1])

        def per_level(values: NDArray[Any]) -> I8:
            return np.bincount(self.level, weights=values, minlength=n).astype(np.int64)

        return Steps(
            job[here],
            first[here],
            per_level(self.busy & (self.n_in > 1))[here] > 0,
            per_level(self.busy)[here],
            self.size[here + 1],
            per_level(self.n_in > 0)[here + 1],
            per_level(self.n_near)[here],
        )

    def steps(self, jobs: Mask) -> Steps:
        """Look at each level of some jobs but the last, and at the next."""
        return self._all_steps.take(jobs[self._all_steps.job])

    def steps_by_kind(self, jobs: Mask) -> dict[str, Steps]:
        """Look at steps below first levels, and below others without and with a join."""
        steps = self.steps(jobs)
        return {
            "joined_first": steps.take(steps.first),
            "joined_plain": steps.take(~steps.first & ~steps.join),
            "joined_again": steps.take(~steps.first & steps.join),
        }

    def by_parents(self, values: NDArray[Any], which: Mask) -> I8:
        """Add up `values` of some stages, and count these, by number of parents, (3, 2)."""
        several = np.minimum(self.n_in[which], 2)
        found = np.bincount(several, weights=values[which], minlength=3)
        return np.column_stack([found, np.bincount(several, minlength=3)]).astype(np.int64)

    def far_idle(self, which: Mask) -> I8:
        """Count idle stages with a far edge, and idle ones, of some, (2,)."""
        rest = self.idle & which
        return np.array([(self.n_far[rest] > 0).sum(), rest.sum()], dtype=np.int64)
