"""Count the tables of levels and edges of the improved variant in the DAGs of a workload."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I4, I8, Mask, offsets
from sim.dags import Graphs, compact_levels, path_lengths
from sim.synth.fitted.histograms import Grid, Histogram, pooled_conditional, pooled_grid
from sim.synth.fitted.tables import FULL, NARROW, TREE, WIDE, Links, Tables
from sim.synth.fitted.tian_algorithm2 import (
    draw_level_sizes,
    further_stages,
    generators,
    level_shares,
)


@dataclass(frozen=True, eq=False)
class Steps:
    """Pairs of consecutive levels, (N,) each."""

    job: I8  # row of the job
    first: Mask  # the upper level is its job's first
    # a stage of the upper level with children on the lower has several parents on the one before
    join: Mask
    n_busy: I8  # stages of the upper level with children on the lower
    n_next: I8  # stages of the lower level
    n_joined: I8  # stages of the lower level with parents on the upper
    n_edges: I8  # edges between the two levels

    def take(self, keep: Mask) -> Steps:
        """Return the selected pairs."""
        return Steps(*(getattr(self, field.name)[keep] for field in fields(self)))


class ObservedDags:
    """DAGs of J jobs with G stages on M levels in all, and derived arrays."""

    def __init__(self, graphs: Graphs, levels: I4, lengths: I8) -> None:
        owner, n = graphs.stage_job, graphs.n_stages
        self.graphs, self.levels, self.lengths = graphs, levels, lengths
        self.span = levels[graphs.edge_child] - levels[graphs.edge_parent]  # of each edge
        near = self.span == 1
        # children on the next level and further down, parents on the level before, (G,) each
        self.n_near = np.bincount(graphs.edge_parent[near], minlength=n)
        self.n_far = np.bincount(graphs.edge_parent[self.span > 1], minlength=n)
        self.n_in = np.bincount(graphs.edge_child[near], minlength=n)
        last = levels == lengths[owner]
        self.late = levels == lengths[owner] - 1  # on the last level but one
        self.busy: Mask = self.n_near > 0  # with children on the next level
        self.idle = ~self.busy & ~last  # with none, though not on the last
        # level of each stage, counted through all jobs; number of stages on each, (M,)
        self.level = offsets(lengths)[:-1][owner] + levels - 1
        self.size = np.bincount(self.level)
        # stages that can be idle: not on the last level, and not the only one of their level
        self.can_be_idle = ~last & (self.size[self.level] > 1)
        tree = (self._per_job(graphs.n_children == 0) == 1) & (
            self._per_job(graphs.n_children > 1) == 0
        )
        # TREE, NARROW or WIDE, (J,)
        self.shape = np.where(tree, TREE, np.where(self._per_job(last) > 1, WIDE, NARROW))
        # far edges of each job, without the first of each idle stage
        self.far_edges = self._per_job(self.n_far - (self.idle & (self.n_far > 0)))
        self._all_steps = self._steps()

    @classmethod
    def observe(cls, graphs: Graphs) -> ObservedDags:
        """Compute the compact levels and critical path lengths of at least one DAG."""
        levels = compact_levels(graphs)
        return cls(graphs, levels, path_lengths(graphs, levels).astype(np.int64))

    def _per_job(self, values: NDArray[Any]) -> I8:
        return np.add.reduceat(values.astype(np.int64), self.graphs.job_stage0[:-1])

    def _steps(self) -> Steps:
        """Return all pairs of consecutive levels."""
        n = len(self.size)
        job = np.repeat(np.arange(len(self.lengths)), self.lengths)
        upper = np.flatnonzero(job[:-1] == job[1:])
        first = np.append(True, job[1:] != job[:-1])

        def per_level(values: NDArray[Any]) -> I8:
            return np.bincount(self.level, weights=values, minlength=n).astype(np.int64)

        return Steps(
            job[upper], first[upper], per_level(self.busy & (self.n_in > 1))[upper] > 0,
            per_level(self.busy)[upper], self.size[upper + 1], per_level(self.n_in > 0)[upper + 1],
            per_level(self.n_near)[upper],
        )  # fmt: skip

    def steps(self, jobs: Mask) -> Steps:
        """Return the pairs of consecutive levels of some jobs."""
        return self._all_steps.take(jobs[self._all_steps.job])

    def steps_by_kind(self, jobs: Mask) -> dict[str, Steps]:
        """Return the pairs below first levels, and below others without and with a join."""
        steps = self.steps(jobs)
        return {
            "joined_first": steps.take(steps.first),
            "joined_plain": steps.take(~steps.first & ~steps.join),
            "joined_again": steps.take(~steps.first & steps.join),
        }

    def by_parents(self, values: NDArray[Any], stages: Mask) -> I8:
        """Return the sum of `values` and the number of stages, by number of parents, (3, 2)."""
        several = np.minimum(self.n_in[stages], 2)
        sums = np.bincount(several, weights=values[stages], minlength=3)
        return np.column_stack([sums, np.bincount(several, minlength=3)]).astype(np.int64)

    def far_idle(self, stages: Mask) -> I8:
        """Count, among some stages, idle ones with a far edge, and idle ones, (2,)."""
        idle = self.idle & stages
        return np.array([(self.n_far[idle] > 0).sum(), idle.sum()], dtype=np.int64)


HALVINGS = 7
"""Steps of the bisection for the chance that a run continues."""
MAX_RUN = 0.95


def fit_links(dags: ObservedDags, tables: Tables) -> Links:
    """Fit the tables of the improved variant."""
    pooled: list[str] = []
    graphs, lengths = dags.graphs, dags.lengths
    tree = dags.shape == TREE
    other_stage = ~tree[graphs.stage_job]
    steps = {"joined_tree": dags.steps(tree), **dags.steps_by_kind(~tree)}
    joined = {name: _joined(name, step, pooled) for name, step in steps.items()}
    several = lengths > 1
    deep = ~tree & (lengths > 2)
    n_stages = graphs.job_n_stages
    links = Links(
        shape=pooled_grid(
            "shape", n_stages[several], lengths[several], dags.shape[several], pooled, NARROW
        ),
        run_tree=0.0,
        run_other=0.0,
        first=np.round(_first(dags, tables), 3),
        **joined,
        surplus=pooled_conditional("surplus", *_surplus(dags, ~tree), pooled),
        far=pooled_conditional("far", n_stages[deep], dags.far_edges[deep], pooled),
        span=Histogram.count(np.append(dags.span[dags.span > 1], 2)),
        idle_tree=dags.by_parents(dags.idle, dags.can_be_idle & ~dags.late & ~other_stage),
        idle_other=dags.by_parents(dags.idle, dags.can_be_idle & ~dags.late & other_stage),
        idle_late=dags.by_parents(dags.idle, dags.can_be_idle & dags.late & other_stage),
        scatter=dags.by_parents(dags.n_near - 1, dags.busy & other_stage),
        far_busy=dags.by_parents(dags.n_far, dags.busy & other_stage),
        far_idle=dags.far_idle(~dags.late & other_stage),
        provenance={
            "counted": {"jobs": graphs.n_jobs, "stages": graphs.n_stages, "edges": graphs.n_edges},
            "pooled": pooled,
        },
    )
    run_tree, run_other = (
        round(_fit_run(dags, tables, links, jobs & (lengths > 2) & (n_stages > lengths)), 3)
        for jobs in (tree, ~tree)
    )
    return replace(links, run_tree=run_tree, run_other=run_other)


def _joined(name: str, step: Steps, pooled: list[str]) -> Grid:
    """Count the share of stages of the next level that have parents."""
    n_max = np.minimum(step.n_busy, step.n_next) if name == "joined_tree" else step.n_next
    rows = n_max > 1
    share = _share(step.n_joined[rows] - 1, n_max[rows] - 1)
    return pooled_grid(name, step.n_busy[rows], step.n_next[rows], share, pooled, FULL // 2)


def _surplus(dags: ObservedDags, jobs: Mask) -> tuple[I8, I8]:
    """Return the number of possible edges between two levels beyond the minimum, and its share."""
    step = dags.steps(jobs)
    n_min = np.maximum(step.n_busy, step.n_joined)
    room = step.n_busy * step.n_joined - n_min
    rows = room > 0
    return room[rows], _share((step.n_edges - n_min)[rows], room[rows])


def _share(part: I8, whole: I8) -> I8:
    """Return the share in thousandths, rounded."""
    return (part * FULL + whole // 2) // whole


def _first(dags: ObservedDags, tables: Tables) -> F8:
    """Return, by shape, the first level's actual over expected number of further stages."""
    n_further = dags.graphs.job_n_stages - dags.lengths
    on_first = dags.size[offsets(dags.lengths)[:-1]] - 1
    factors = np.ones(WIDE)
    for shape in (TREE, NARROW, WIDE):
        jobs = (dags.shape == shape) & (dags.lengths > 2)
        expected = 0.0
        for length in np.unique(dags.lengths[jobs]).tolist():
            part = level_shares(further_stages(tables, length), 1.0, shape == WIDE)[0]
            expected += part * n_further[jobs & (dags.lengths == length)].sum()
        if expected > 0:
            factors[shape - TREE] = on_first[jobs].sum() / expected
    return factors


def _fit_run(dags: ObservedDags, tables: Tables, links: Links, jobs: Mask) -> float:
    """Fit the chance that runs of further stages continue, by bisection on their number of ends.

    A run ends where a level has more further stages than the next. The number of ends over that of
    all further stages, averaged over `jobs`, must be the same in the workload and in levels that
    are redrawn from the tables.
    """
    if not jobs.any():
        return 0.0
    target = _ends(dags.size, dags.lengths)[jobs].mean()
    low, high = 0.0, MAX_RUN
    n_stages = dags.graphs.job_n_stages
    for _ in range(HALVINGS):
        run = (low + high) / 2
        trial = replace(links, run_tree=run, run_other=run)
        random = generators(0, len(n_stages))
        size, _ = draw_level_sizes(tables, trial, n_stages, dags.lengths, random, dags.shape)
        if _ends(size, dags.lengths)[jobs].mean() > target:
            low = run
        else:
            high = run
    return (low + high) / 2


def _ends(size: I8, lengths: I8) -> F8:
    """Return each job's number of ends of runs over that of its further stages."""
    further = size - 1
    after = np.append(further[1:], 0)
    begin = offsets(lengths)[:-1]
    after[begin[1:] - 1] = 0
    ends = np.add.reduceat(np.maximum(further - after, 0), begin)
    return ends / np.maximum(np.add.reduceat(further, begin), 1)
