"""Fitting what the attributes of a workload's stages have to do with each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I8
from sim.base.random import stream
from sim.dags import Graphs
from sim.synth.alibaba2018.copula import Binned, correlation, taken_over
from sim.synth.alibaba2018.histograms import Histogram
from sim.synth.alibaba2018.joint import ROLES, Joint, draw_jointly

ALIKE_IN_ROLES = ("duration_s",)
"""Metrics of which stages of different roles are drawn alike: Tian et al. (SoCC 2019, §5) find
the ratio of durations symmetric; tasks and demands depend on whether a stage reads input, passes
on or joins."""

CONSTANT = 0.98
"""A metric of which this share of parents and children have the same value belongs to the job."""

PAIRS = 200_000
"""Pairs of stages of one job that are looked at."""

TRIED_JOBS = 20_000
"""Jobs that are drawn anew to find how unequal jobs are."""

UNEQUAL = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def fit_joint(graphs: Graphs, metrics: Mapping[str, F8]) -> Joint | None:
    """Fit a copula to the stages of a workload."""
    if graphs.n_edges == 0:
        return None
    parent, child = graphs.edge_parent, graphs.edge_child
    equal = [float((values[parent] == values[child]).mean()) for values in metrics.values()]
    role = np.minimum(graphs.n_parents, ROLES - 1)
    binned = [
        Binned(values, role * (name not in ALIKE_IN_ROLES and same < CONSTANT))
        for (name, values), same in zip(metrics.items(), equal, strict=True)
    ]
    every = np.arange(graphs.n_stages)
    within = _correlations(binned, every, every)
    np.fill_diagonal(within, 1.0)
    within = _nearest(within)
    linked = _correlations(binned, parent, child)
    shared = _correlations(binned, *_unlinked(graphs))
    shared = (shared + shared.T) / 2
    chances = np.zeros(len(binned))
    for m, one in enumerate(binned):
        if equal[m] < CONSTANT:
            chances[m], linked[m, m] = taken_over(one, parent, child, equal[m])
        else:
            for matrix in (linked, shared):
                matrix[m, :], matrix[:, m] = within[m, :], within[:, m]
    factors = _factors(_before(within, linked, chances, graphs), shared, linked)
    joint = Joint(
        ranks={name: one.ranks for name, one in zip(metrics, binned, strict=True)},
        **{
            name: np.round(factor, 6) + 0.0  # no negative zeros
            for name, factor in zip(("job", "root", "pull", "noise"), factors, strict=True)
        },
        taken_over=np.round(chances, 4),
        unequal=0.0,
        provenance={
            "counted": {"jobs": graphs.n_jobs, "stages": graphs.n_stages, "edges": graphs.n_edges},
            "correlations": {
                "within a stage": _shown(within),
                "of stages of a job without an edge": _shown(shared),
                "of parents (rows) with children": _shown(linked),
            },
        },
    )
    return replace(joint, unequal=_fit_unequal(joint, graphs, metrics))


def _correlations(binned: list[Binned], a: NDArray[np.integer], b: NDArray[np.integer]) -> F8:
    return np.array([[correlation(one, two, a, b) for two in binned] for one in binned])


def _unlinked(graphs: Graphs) -> tuple[I8, I8]:
    """Draw pairs of stages of one job without an edge between them, jobs by their stages."""
    random = stream(0, "fit", "joint", "pairs").random((2, PAIRS))
    a = (random[0] * graphs.n_stages).astype(np.int64)
    job = graphs.stage_job[a]
    b = graphs.job_stage0[job] + (random[1] * graphs.job_n_stages[job]).astype(np.int64)
    linked = _pair(graphs, graphs.edge_parent, graphs.edge_child)
    apart = (a != b) & ~np.isin(_pair(graphs, a, b), linked)
    if not apart.any():
        return graphs.edge_parent.astype(np.int64), graphs.edge_child.astype(np.int64)
    return a[apart], b[apart]


def _shown(matrix: F8) -> list[str]:
    return [" ".join(f"{value:.3f}" for value in row) for row in matrix]


def _pair(graphs: Graphs, a: NDArray[np.integer], b: NDArray[np.integer]) -> I8:
    """Give each pair of stages a number, whichever comes first."""
    number: I8 = np.minimum(a, b).astype(np.int64) * graphs.n_stages + np.maximum(a, b)
    return number


def _before(within: F8, linked: F8, chances: F8, graphs: Graphs) -> F8:
    """Return the correlations within a stage that are right once values are taken over.

    Where a stage takes one of two metrics over, they are as far apart as parents and children.
    """
    one, two = chances[:, None], chances[None, :]
    follows = float((graphs.n_children > 0).mean())
    mixed = linked.T * one * (1 - two) + linked * two * (1 - one)
    share = one * (1 - two) + two * (1 - one)
    before = (within - follows * mixed) / (1 - follows * share)
    np.fill_diagonal(before, 1.0)
    return _nearest((before + before.T) / 2)


def _factors(within: F8, shared: F8, linked: F8) -> tuple[F8, F8, F8, F8]:
    """Return the factors of `Joint`, nearest to the correlations that make sense together.

    What stages share must not exceed what a stage has, and what a stage has in common with its
    child, beyond that, must not exceed what the child has of its own.
    """
    whole, inverse = _power(within, 0.5), _power(within, -0.5)
    values, vectors = np.linalg.eigh(inverse @ shared @ inverse)
    shared = whole @ (vectors * np.clip(values, 0.0, 1.0)) @ vectors.T @ whole
    own = within - shared
    root, inverse = _power(own, 0.5), _power(own, -0.5)
    left, size, right = np.linalg.svd(inverse @ (linked - shared) @ inverse)
    common = (left * np.minimum(size, 0.999)) @ right
    noise = root @ _power(np.eye(len(own)) - common @ common.T, 0.5)
    return _power(shared, 0.5), root, root @ common @ inverse, noise


def _power(matrix: F8, exponent: float) -> F8:
    """Raise a symmetric matrix without negative eigenvalues to a power; 0 stays 0."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    kept = np.where(values > 1e-6, np.maximum(values, 1e-6) ** exponent, 0.0)
    raised: F8 = (vectors * kept) @ vectors.T
    return raised


def _nearest(matrix: F8) -> F8:
    """Return a correlation matrix near a symmetric one."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    raised = (vectors * np.maximum(values, 1e-4)) @ vectors.T
    scale = np.sqrt(np.diag(raised))
    nearest: F8 = raised / scale[:, None] / scale[None, :]
    return nearest


def _fit_unequal(joint: Joint, graphs: Graphs, metrics: Mapping[str, F8]) -> float:
    """Find how unequal jobs are, by the factors by which parents and children differ (§5)."""
    from sim.dags.properties import distance

    some = graphs.take(np.arange(min(TRIED_JOBS, graphs.n_jobs)))
    parent, child = some.edge_parent, some.edge_child
    if not len(parent):
        return 0.0
    tables = {name: Histogram.of(values) for name, values in metrics.items()}
    names = [n for n, v in metrics.items() if (v > 0).all() and not _constant(joint, n)]
    seen = {n: _apart(metrics[n][parent], metrics[n][child]) for n in names}
    best = (np.inf, 0.0)
    for unequal in UNEQUAL:
        drawn = draw_jointly(replace(joint, unequal=unequal), tables, some, 0)
        off = [distance(_apart(drawn[n][parent], drawn[n][child]), seen[n]) for n in names]
        best = min(best, (float(np.mean(off)) if off else 0.0, unequal))
    return best[1]


def _constant(joint: Joint, name: str) -> bool:
    m = list(joint.ranks).index(name)
    return bool((joint.root[m] ** 2).sum() < 1e-3)


def _apart(one: F8, two: F8) -> F8:
    apart: F8 = np.abs(np.log(two / one))
    return apart
