"""Counting what the improved variant knows of levels and edges, from the DAGs of a workload."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.synth.alibaba2018.histograms import Grid, Histogram
from sim.synth.alibaba2018.improved import further_stages, generators, parts, spread
from sim.synth.alibaba2018.links import FULL, NARROW, TREE, WIDE, Links
from sim.synth.alibaba2018.pooling import pooled_conditional, pooled_grid
from sim.synth.alibaba2018.seen import Seen, Steps
from sim.synth.alibaba2018.tables import Tables

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
    begin = np.cumsum(seen.lengths) - seen.lengths
    on_first = seen.size[begin] - 1
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
    begin = np.cumsum(lengths) - lengths
    after[begin[1:] - 1] = 0
    ends = np.add.reduceat(np.maximum(further - after, 0), begin)
    ratio: F8 = ends / np.maximum(np.add.reduceat(further, begin), 1)
    return ratio
