"""Counting what the improved variant knows of levels and edges, from the DAGs of a workload."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I4, I8, Mask, offsets
from sim.dags import Graphs, compact_levels, path_lengths
from sim.synth.fitted.histograms import Grid, Histogram, pooled_conditional, pooled_grid
from sim.synth.fitted.tables import FULL, NARROW, TREE, WIDE, Links, Tables
from sim.synth.fitted.tian_algorithm2 import further_stages, generators, parts, spread


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

    def take(self, keep: Mask) -> Steps:
        """Return some of them."""
        return Steps(*(getattr(self, field.name)[keep] for field in fields(self)))


class Seen:
    """The DAGs of J jobs with G stages, on M levels in all, and what follows from them."""

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
        # with children on the next level; with none, though not on the last
        self.busy: Mask = self.n_near > 0
        self.idle = ~self.busy & ~last
        # level of each stage, counted through all jobs; stages on each, (M,)
        self.level = offsets(lengths)[:-1][owner] + levels - 1
        self.size = np.bincount(self.level)
        # not on the last level, and not alone on its own
        self.may_rest = ~last & (self.size[self.level] > 1)
        tree = (self._per_job(graphs.n_children == 0) == 1) & (
            self._per_job(graphs.n_children > 1) == 0
        )
        # TREE, NARROW or WIDE, (J,)
        self.shape = np.where(tree, TREE, np.where(self._per_job(last) > 1, WIDE, NARROW))
        # far edges of each job, without the first of each idle stage
        self.far_edges = self._per_job(self.n_far - (self.idle & (self.n_far > 0)))
        self._all_steps = self._steps()

    @classmethod
    def of(cls, graphs: Graphs) -> Seen:
        """Look at some DAGs, at least one: compact levels, critical path lengths."""
        levels = compact_levels(graphs)
        return cls(graphs, levels, path_lengths(graphs, levels).astype(np.int64))

    def _per_job(self, values: NDArray[Any]) -> I8:
        return np.add.reduceat(values.astype(np.int64), self.graphs.job_stage0[:-1])

    def _steps(self) -> Steps:
        """Look at every level of all jobs but the last of each, and at the next one."""
        n = len(self.size)
        job = np.repeat(np.arange(len(self.lengths)), self.lengths)
        here = np.flatnonzero(job[:-1] == job[1:])
        first = np.append(True, job[1:] != job[:-1])

        def per_level(values: NDArray[Any]) -> I8:
            return np.bincount(self.level, weights=values, minlength=n).astype(np.int64)

        return Steps(
            job[here], first[here], per_level(self.busy & (self.n_in > 1))[here] > 0,
            per_level(self.busy)[here], self.size[here + 1], per_level(self.n_in > 0)[here + 1],
            per_level(self.n_near)[here],
        )  # fmt: skip

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

    def by_parents(self, values: NDArray[Any], stages: Mask) -> I8:
        """Add up `values` of some stages, and count these, by number of parents, (3, 2)."""
        several = np.minimum(self.n_in[stages], 2)
        sums = np.bincount(several, weights=values[stages], minlength=3)
        return np.column_stack([sums, np.bincount(several, minlength=3)]).astype(np.int64)

    def far_idle(self, stages: Mask) -> I8:
        """Count idle stages with a far edge, and idle ones, of some, (2,)."""
        rest = self.idle & stages
        return np.array([(self.n_far[rest] > 0).sum(), rest.sum()], dtype=np.int64)


HALVINGS = 7
"""How often the range of the chance that a run goes on is halved to find it."""
MOST_RUN = 0.95


def fit_links(seen: Seen, tables: Tables) -> Links:
    """Count the improved variant's tables."""
    pooled: list[str] = []
    graphs, lengths = seen.graphs, seen.lengths
    tree = seen.shape == TREE
    other_stage = ~tree[graphs.stage_job]
    steps = {"joined_tree": seen.steps(tree), **seen.steps_by_kind(~tree)}
    joined = {name: _joined(name, step, pooled) for name, step in steps.items()}
    several = lengths > 1
    deep = ~tree & (lengths > 2)
    n_stages = graphs.job_n_stages
    links = Links(
        shape=pooled_grid(
            "shape", n_stages[several], lengths[several], seen.shape[several], pooled, NARROW
        ),
        run_tree=0.0,
        run_other=0.0,
        first=np.round(_first(seen, tables), 3),
        **joined,
        surplus=pooled_conditional("surplus", *_surplus(seen, ~tree), pooled),
        far=pooled_conditional("far", n_stages[deep], seen.far_edges[deep], pooled),
        span=Histogram.of(np.append(seen.span[seen.span > 1], 2)),
        idle_tree=seen.by_parents(seen.idle, seen.may_rest & ~seen.late & ~other_stage),
        idle_other=seen.by_parents(seen.idle, seen.may_rest & ~seen.late & other_stage),
        idle_late=seen.by_parents(seen.idle, seen.may_rest & seen.late & other_stage),
        scatter=seen.by_parents(seen.n_near - 1, seen.busy & other_stage),
        far_busy=seen.by_parents(seen.n_far, seen.busy & other_stage),
        far_idle=seen.far_idle(~seen.late & other_stage),
        provenance={
            "counted": {"jobs": graphs.n_jobs, "stages": graphs.n_stages, "edges": graphs.n_edges},
            "pooled": pooled,
        },
    )
    run_tree, run_other = (
        round(_fit_run(seen, tables, links, jobs & (lengths > 2) & (n_stages > lengths)), 3)
        for jobs in (tree, ~tree)
    )
    return replace(links, run_tree=run_tree, run_other=run_other)


def _joined(name: str, step: Steps, pooled: list[str]) -> Grid:
    """Count how many stages of the next level have parents."""
    most = np.minimum(step.n_busy, step.n_next) if name == "joined_tree" else step.n_next
    some = most > 1
    share = _share(step.n_joined[some] - 1, most[some] - 1)
    return pooled_grid(name, step.n_busy[some], step.n_next[some], share, pooled, FULL // 2)


def _surplus(seen: Seen, jobs: Mask) -> tuple[I8, I8]:
    """Return how many edges fit between two levels beyond the least, and how many there are."""
    step = seen.steps(jobs)
    least = np.maximum(step.n_busy, step.n_joined)
    room = step.n_busy * step.n_joined - least
    some = room > 0
    return room[some], _share((step.n_edges - least)[some], room[some])


def _share(part: I8, whole: I8) -> I8:
    """Return the nearest thousandths."""
    return (part * FULL + whole // 2) // whole


def _first(seen: Seen, tables: Tables) -> F8:
    """Return what the first level has of further stages, over what the table gives, by shape."""
    n_further = seen.graphs.job_n_stages - seen.lengths
    on_first = seen.size[offsets(seen.lengths)[:-1]] - 1
    factors = np.ones(WIDE)
    for shape in (TREE, NARROW, WIDE):
        jobs = (seen.shape == shape) & (seen.lengths > 2)
        expected = 0.0
        for length in np.unique(seen.lengths[jobs]).tolist():
            part = parts(further_stages(tables, length), 1.0, shape == WIDE)[0]
            expected += part * n_further[jobs & (seen.lengths == length)].sum()
        if expected > 0:
            factors[shape - TREE] = on_first[jobs].sum() / expected
    return factors


def _fit_run(seen: Seen, tables: Tables, links: Links, jobs: Mask) -> float:
    """Find the chance that runs of further stages go on with which `jobs` have as many ends.

    An end is where a level has more further stages than the next. Their number over that of all
    further stages, averaged over jobs, is to be what is seen, when the sizes of levels are drawn
    anew from the tables.
    """
    if not jobs.any():
        return 0.0
    wanted = _ends(seen.size, seen.lengths)[jobs].mean()
    low, high = 0.0, MOST_RUN
    n_stages = seen.graphs.job_n_stages
    for _ in range(HALVINGS):
        run = (low + high) / 2
        tried = replace(links, run_tree=run, run_other=run)
        random = generators(0, len(n_stages))
        size, _ = spread(tables, tried, n_stages, seen.lengths, random, seen.shape)
        if _ends(size, seen.lengths)[jobs].mean() > wanted:
            low = run
        else:
            high = run
    return (low + high) / 2


def _ends(size: I8, lengths: I8) -> F8:
    """Return each job's ends of runs over its further stages."""
    further = size - 1
    after = np.append(further[1:], 0)
    begin = offsets(lengths)[:-1]
    after[begin[1:] - 1] = 0
    ends = np.add.reduceat(np.maximum(further - after, 0), begin)
    return ends / np.maximum(np.add.reduceat(further, begin), 1)
