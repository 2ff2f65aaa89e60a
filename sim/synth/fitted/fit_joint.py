"""Fitting what the attributes of a workload's stages have to do with each other.

Latent correlations behind binned values are told by Mehler's expansion: two standard normal numbers
of correlation ρ, cut into bins with scores a and b, have E[a b] = Σ_k ρ^k a_k b_k, where a_k is the
k-th coefficient of the scores in normalised Hermite polynomials. So a correlation of scores, which
ties weaken, tells the latent one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from sim.base import maths
from sim.base.arrays import F8, I8, Mask
from sim.base.maths.matrices import eigh, svd
from sim.base.random import stream
from sim.dags import Graphs
from sim.dags.properties import distance
from sim.synth.fitted.draw_joint import draw_jointly
from sim.synth.fitted.histograms import Histogram
from sim.synth.fitted.joint import ROLES, Joint, Ranks

ORDER = 60
"""Terms of the expansion."""
MOST = 0.9999
"""Largest correlation looked for."""
BINS = 64


class Binned:
    """One metric in bins of ranks: scores and their expansions, by role."""

    def __init__(self, values: F8, role: I8) -> None:
        _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
        begin = np.cumsum(counts) - counts
        slot = begin * BINS // len(values)
        large = counts * BINS >= len(values)  # a value of its own bin
        new = (np.diff(slot) > 0) | large[1:] | large[:-1]
        group = np.concatenate([[0], np.cumsum(new)])
        self.role = role
        self.bin = group[place]
        n_bins = int(group[-1]) + 1
        n_roles = ROLES if role.any() else 1
        in_bins = np.zeros((n_roles, n_bins), dtype=np.int64)
        np.add.at(in_bins, (role, self.bin), 1)
        pairs = np.bincount(group, weights=counts.astype(np.float64) ** 2)
        self.same = pairs / in_bins.sum(axis=0).astype(np.float64) ** 2
        ends = np.cumsum(in_bins.sum(axis=0)) / len(values)
        in_bins[in_bins.sum(axis=1) == 0] = in_bins.sum(axis=0)  # a role that nobody has
        self.ranks = Ranks(np.concatenate([[0.0], ends]), in_bins)
        self.bins = np.stack([_expand(row) for row in in_bins])
        self.score = np.stack(
            [_scores(row, at) for row, at in zip(in_bins, self.bins, strict=True)]
        )
        self.scores = (self.bins * self.score[:, :, None]).sum(axis=1)

    def of(self, stages: NDArray[np.integer]) -> F8:
        """Return the scores of some stages."""
        picked: F8 = self.score[self.role[stages], self.bin[stages]]
        return picked


def correlation(
    left: Binned, right: Binned, a: NDArray[np.integer], b: NDArray[np.integer]
) -> float:
    """Return the latent correlation of `left` at stages `a` with `right` at stages `b`."""
    return _invert(products(left, right, a, b), float((left.of(a) * right.of(b)).mean()))


def products(left: Binned, right: Binned, a: NDArray[np.integer], b: NDArray[np.integer]) -> F8:
    """Return the expansion of the expected product of scores in powers of ρ, (K,)."""
    share = role_pairs(left, right, a, b)
    expansion: F8 = (maths.dot(share, right.scores) * left.scores).sum(axis=0)
    return expansion


def role_pairs(left: Binned, right: Binned, a: NDArray[np.integer], b: NDArray[np.integer]) -> F8:
    """Return how often each pair of roles is among the pairs of stages, (R, R), adding up to 1."""
    share = np.zeros((len(left.score), len(right.score)))
    np.add.at(share, (left.role[a], right.role[b]), 1.0)
    share /= share.sum()
    return share


def taken_over(
    metric: Binned, a: NDArray[np.integer], b: NDArray[np.integer], equal: float
) -> tuple[float, float]:
    """Split what a metric has in common at stages `a` and their children `b`."""
    share = role_pairs(metric, metric, a, b)
    meeting = sum(
        part * (one * other * metric.same[:, None]).sum(axis=0)
        for parts, one in zip(share, metric.bins, strict=True)
        for part, other in zip(parts, metric.bins, strict=True)
    )
    product = products(metric, metric, a, b)
    seen = float((metric.of(a) * metric.of(b)).mean())
    of_taken = float((metric.score[metric.role[a], metric.bin[b]] * metric.of(b)).mean())
    chance = 0.0
    for _ in range(30):
        rho = _invert(product, (seen - chance * of_taken) / (1.0 - chance))
        meet = float(np.polynomial.polynomial.polyval(rho, meeting))
        chance = 0.5 * (chance + min(max((equal - meet) / (1.0 - meet), 0.0), 0.9))
    return chance, rho


def _invert(expansion: F8, wanted: float) -> float:
    """Find the ρ at which an expansion has a value."""
    low, high = -MOST, MOST
    at = np.polynomial.polynomial.polyval
    if not expansion.any():
        return 0.0
    for _ in range(40):
        middle = (low + high) / 2
        if at(middle, expansion) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _expand(counts: I8) -> F8:
    """Return the expansion of being in each of the bins that hold `counts`, (B, K)."""
    cuts = maths.normal_quantile(np.concatenate([[0.0], np.cumsum(counts) / counts.sum()]))
    inside = np.isfinite(cuts)
    cuts = np.where(inside, cuts, 0.0)
    density = np.where(inside, maths.exp(-(cuts**2) / 2) / np.sqrt(2 * np.pi), 0.0)
    out = np.empty((len(counts), ORDER))
    out[:, 0] = counts / counts.sum()
    before, here = np.zeros(len(cuts)), np.ones(len(cuts))  # Hermite polynomials k − 2 and k − 1
    for k in range(1, ORDER):
        edge = here * density
        out[:, k] = (edge[:-1] - edge[1:]) / np.sqrt(k)
        before, here = here, (cuts * here - np.sqrt(k - 1) * before) / np.sqrt(k)
    return out


def _scores(counts: I8, expansion: F8) -> F8:
    mass = expansion[:, 0]
    seen = mass > 0
    mean = np.zeros(len(counts))
    mean[seen] = expansion[seen, 1] / mass[seen]
    deviation = np.sqrt((mass * mean**2).sum())
    if deviation < 1e-9:
        return np.zeros(len(counts))
    filled: F8 = maths.interp(np.arange(len(counts)), np.flatnonzero(seen), mean[seen]) / deviation
    return filled


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


@dataclass(frozen=True)
class Together:
    """The correlations that a copula is made of; M metrics."""

    names: tuple[str, ...]
    binned: list[Binned]
    within: F8  # of a stage's, of those of two stages of a job, of parents' with children's, (M, M)
    shared: F8
    linked: F8
    chances: F8  # of taking a value over from the child, (M,)
    of_job: Mask  # metrics that belong to the job, (M,)

    @classmethod
    def of(cls, graphs: Graphs, metrics: Mapping[str, F8], alike: Sequence[str] = ()) -> Together:
        """Look at the stages of a workload in which some job has several.

        Metrics in `alike` are drawn alike for stages of all roles.
        """
        parent: NDArray[np.integer] = graphs.edge_parent
        child: NDArray[np.integer] = graphs.edge_child
        apart = _unlinked(graphs)
        if not len(parent):  # nobody will follow a child
            parent, child = apart
        equal = [float((values[parent] == values[child]).mean()) for values in metrics.values()]
        role = np.minimum(graphs.n_parents, ROLES - 1)
        binned = [
            Binned(values, role * (name not in alike and same < CONSTANT))
            for (name, values), same in zip(metrics.items(), equal, strict=True)
        ]
        every = np.arange(graphs.n_stages)
        within = _correlations(binned, every, every)
        np.fill_diagonal(within, 1.0)
        within = _nearest(within)
        linked = _correlations(binned, parent, child)
        shared = _correlations(binned, *apart)
        shared = (shared + shared.T) / 2
        chances = np.zeros(len(binned))
        for m, one in enumerate(binned):
            if equal[m] < CONSTANT:
                chances[m], linked[m, m] = taken_over(one, parent, child, equal[m])
            else:
                for matrix in (linked, shared):
                    matrix[m, :], matrix[:, m] = within[m, :], within[:, m]
        of_job = np.array(equal) >= CONSTANT
        return cls(tuple(metrics), binned, within, shared, linked, chances, of_job)

    def moved(self, within: F8, shared: F8) -> Together:
        """Add to correlations within a stage, and to those of any two, (M, M) symmetric each."""
        off = within * (1 - np.eye(len(within)))
        moved = _nearest(self.within + off)
        matrices = self.shared + shared, self.linked + shared
        for matrix in matrices:
            matrix[self.of_job, :], matrix[:, self.of_job] = (
                moved[self.of_job],
                moved[:, self.of_job],
            )
        return replace(self, within=moved, shared=matrices[0], linked=matrices[1])

    def joint(self, graphs: Graphs, unequal: float = 0.0) -> Joint:
        """Make the copula."""
        before = _before(self.within, self.linked, self.chances, graphs)
        factors = _factors(before, self.shared, self.linked)
        names = ("job", "root", "pull", "noise")
        counted = {"jobs": graphs.n_jobs, "stages": graphs.n_stages, "edges": graphs.n_edges}
        return Joint(
            ranks={name: one.ranks for name, one in zip(self.names, self.binned, strict=True)},
            **{
                name: np.round(factor, 6) + 0.0  # no negative zeros
                for name, factor in zip(names, factors, strict=True)
            },
            taken_over=np.round(self.chances, 4),
            unequal=unequal,
            provenance={
                "counted": counted,
                "correlations": {
                    "within a stage": _shown(self.within),
                    "of stages of a job without an edge": _shown(self.shared),
                    "of parents (rows) with children": _shown(self.linked),
                },
            },
        )


def fit_joint(graphs: Graphs, metrics: Mapping[str, F8]) -> Joint:
    """Fit a copula to the stages of a workload in which some job has several."""
    joint = Together.of(graphs, metrics, ALIKE_IN_ROLES).joint(graphs)
    return rounded(replace(joint, unequal=fit_unequal(joint, graphs, metrics)))


def rounded(joint: Joint) -> Joint:
    """Return what a file keeps of a copula: edges of bins with nine digits."""
    ranks = {name: replace(of, edges=np.round(of.edges, 9)) for name, of in joint.ranks.items()}
    return replace(joint, ranks=ranks)


def _correlations(binned: list[Binned], a: NDArray[np.integer], b: NDArray[np.integer]) -> F8:
    return np.array([[correlation(left, right, a, b) for right in binned] for left in binned])


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
    left, right = chances[:, None], chances[None, :]
    follows = float((graphs.n_children > 0).mean())
    mixed = linked.T * left * (1 - right) + linked * right * (1 - left)
    share = left * (1 - right) + right * (1 - left)
    before = (within - follows * mixed) / (1 - follows * share)
    np.fill_diagonal(before, 1.0)
    return _nearest((before + before.T) / 2)


def _factors(within: F8, shared: F8, linked: F8) -> tuple[F8, F8, F8, F8]:
    """Return the factors of `Joint`, nearest to the correlations that make sense together.

    What stages share must not exceed what a stage has, and what a stage has in common with its
    child, beyond that, must not exceed what the child has of its own.
    """
    whole, inverse = _power(within, 0.5), _power(within, -0.5)
    values, vectors = eigh(_product(inverse, shared, inverse))
    kept = vectors * np.clip(values, 0.0, 1.0)
    shared = _product(whole, kept, vectors.T, whole)
    own = within - shared
    root, inverse = _power(own, 0.5), _power(own, -0.5)
    left, size, right = svd(_product(inverse, linked - shared, inverse))
    common = _product(left * np.minimum(size, 0.999), right)
    noise = _product(root, _power(np.eye(len(own)) - _product(common, common.T), 0.5))
    return _power(shared, 0.5), root, _product(root, common, inverse), noise


def _product(*matrices: F8) -> F8:
    return reduce(maths.dot, matrices)


def _power(matrix: F8, exponent: float) -> F8:
    """Raise a symmetric matrix without negative eigenvalues to a power; 0 stays 0."""
    values, vectors = eigh((matrix + matrix.T) / 2)
    kept = np.where(values > 1e-6, maths.power(np.maximum(values, 1e-6), exponent), 0.0)
    return _product(vectors * kept, vectors.T)


def _nearest(matrix: F8) -> F8:
    """Return a correlation matrix near a symmetric one."""
    values, vectors = eigh((matrix + matrix.T) / 2)
    raised = _product(vectors * np.maximum(values, 1e-4), vectors.T)
    scale = np.sqrt(np.diag(raised))
    return raised / scale[:, None] / scale[None, :]


def fit_unequal(joint: Joint, graphs: Graphs, metrics: Mapping[str, F8]) -> float:
    """Find how unequal jobs are, by the factors by which parents and children differ (§5)."""
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


def _apart(parent: F8, child: F8) -> F8:
    return np.abs(maths.log(child / parent))
