"""Fit a Gaussian copula to the attributes of a workload's stages.

The latent correlations of binned values follow from Mehler's expansion: two standard normal numbers
of correlation ρ, cut into bins with scores a and b, have E[a b] = Σ_k ρ^k a_k b_k, where a_k is the
k-th coefficient of the scores in normalised Hermite polynomials. So a correlation of scores, which
ties weaken, determines the latent one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.polynomial.polynomial import polyval
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
RHO_MAX = 0.9999
"""Largest correlation in the search."""
BINS = 64


class Binned:
    """One metric in bins of ranks: bin of each stage, scores and their expansions by role."""

    def __init__(self, values: F8, role: I8) -> None:
        _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
        begin = np.cumsum(counts) - counts
        slot = begin * BINS // len(values)
        large = counts * BINS >= len(values)  # a frequent value has a bin of its own
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
        in_bins[in_bins.sum(axis=1) == 0] = in_bins.sum(axis=0)  # a role that no stage has
        self.ranks = Ranks(np.concatenate([[0.0], ends]), in_bins)
        self.bins = np.stack([_expand(row) for row in in_bins])
        self.score = np.stack(
            [_scores(row, expansion) for row, expansion in zip(in_bins, self.bins, strict=True)]
        )
        self.scores = (self.bins * self.score[:, :, None]).sum(axis=1)

    def stage_scores(self, stages: NDArray[np.integer]) -> F8:
        """Return the scores of some stages."""
        scores: F8 = self.score[self.role[stages], self.bin[stages]]
        return scores


def correlation(
    left: Binned, right: Binned, a: NDArray[np.integer], b: NDArray[np.integer]
) -> float:
    """Return the latent correlation of `left` at stages `a` with `right` at stages `b`."""
    mean_product = float((left.stage_scores(a) * right.stage_scores(b)).mean())
    return _invert(products(left, right, a, b), mean_product)


def products(left: Binned, right: Binned, a: NDArray[np.integer], b: NDArray[np.integer]) -> F8:
    """Return the expansion of the expected product of scores in powers of ρ, (K,)."""
    share = role_pairs(left, right, a, b)
    expansion: F8 = (maths.dot(share, right.scores) * left.scores).sum(axis=0)
    return expansion


def role_pairs(left: Binned, right: Binned, a: NDArray[np.integer], b: NDArray[np.integer]) -> F8:
    """Return the share of each pair of roles among the pairs of stages, (R, R)."""
    share = np.zeros((len(left.score), len(right.score)))
    np.add.at(share, (left.role[a], right.role[b]), 1.0)
    share /= share.sum()
    return share


def copying_chance(
    metric: Binned, a: NDArray[np.integer], b: NDArray[np.integer], equal: float
) -> tuple[float, float]:
    """Split the dependence of a metric between stages `a` and their children `b`.

    Returns the chance that a stage copies its child's value, and the latent correlation otherwise;
    `equal` is the share of pairs with the same value.
    """
    share = role_pairs(metric, metric, a, b)
    tie_expansion = sum(
        part * (left * right * metric.same[:, None]).sum(axis=0)
        for parts, left in zip(share, metric.bins, strict=True)
        for part, right in zip(parts, metric.bins, strict=True)
    )
    expansion = products(metric, metric, a, b)
    child_scores = metric.stage_scores(b)
    actual = float((metric.stage_scores(a) * child_scores).mean())
    copied = float((metric.score[metric.role[a], metric.bin[b]] * child_scores).mean())
    chance = 0.0
    for _ in range(30):
        rho = _invert(expansion, (actual - chance * copied) / (1.0 - chance))
        ties = float(polyval(rho, tie_expansion))
        chance = 0.5 * (chance + min(max((equal - ties) / (1.0 - ties), 0.0), 0.9))
    return chance, rho


def _invert(expansion: F8, target: float) -> float:
    """Find the ρ at which an expansion has the value `target`, by bisection."""
    low, high = -RHO_MAX, RHO_MAX
    if not expansion.any():
        return 0.0
    for _ in range(40):
        middle = (low + high) / 2
        if polyval(middle, expansion) < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _expand(counts: I8) -> F8:
    """Return the expansion of each bin's indicator, (B, K)."""
    cuts = maths.normal_quantile(np.concatenate([[0.0], np.cumsum(counts) / counts.sum()]))
    inside = np.isfinite(cuts)
    cuts = np.where(inside, cuts, 0.0)
    density = np.where(inside, maths.exp(-(cuts**2) / 2) / np.sqrt(2 * np.pi), 0.0)
    expansion = np.empty((len(counts), ORDER))
    expansion[:, 0] = counts / counts.sum()
    h2, h1 = np.zeros(len(cuts)), np.ones(len(cuts))  # Hermite polynomials k − 2 and k − 1
    for k in range(1, ORDER):
        edge = h1 * density
        expansion[:, k] = (edge[:-1] - edge[1:]) / np.sqrt(k)
        h2, h1 = h1, (cuts * h1 - np.sqrt(k - 1) * h2) / np.sqrt(k)
    return expansion


def _scores(counts: I8, expansion: F8) -> F8:
    mass = expansion[:, 0]
    has_mass = mass > 0
    mean = np.zeros(len(counts))
    mean[has_mass] = expansion[has_mass, 1] / mass[has_mass]
    deviation = np.sqrt((mass * mean**2).sum())
    if deviation < 1e-9:
        return np.zeros(len(counts))
    scores: F8 = (
        maths.interp(np.arange(len(counts)), np.flatnonzero(has_mass), mean[has_mass]) / deviation
    )
    return scores


SAME_IN_ROLES = ("duration_s",)
"""Metrics with one distribution for all roles: Tian et al. (SoCC 2019, §5) find the ratio of
durations symmetric; tasks and demands depend on whether a stage reads input, passes on or joins."""
CONSTANT = 0.98
"""A metric of which this share of parents and children have the same value belongs to the job."""
PAIRS = 200_000
"""Number of pairs of stages of one job in the sample."""
TRIED_JOBS = 20_000
"""Number of jobs that are redrawn to fit `Joint.unequal`."""
UNEQUAL = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Correlations:
    """Correlations of a copula; M metrics."""

    names: tuple[str, ...]
    binned: list[Binned]
    within: F8  # metrics of one stage, (M, M)
    shared: F8  # metrics of two stages of a job without an edge, (M, M)
    linked: F8  # metrics of parents (rows) with those of children, (M, M)
    chances: F8  # chance of copying a value from the child, (M,)
    is_constant: Mask  # metrics with one value per job, (M,)

    @classmethod
    def estimate(
        cls, graphs: Graphs, metrics: Mapping[str, F8], same_in_roles: Sequence[str] = ()
    ) -> Correlations:
        """Estimate the correlations in a workload in which some job has several stages.

        Metrics in `same_in_roles` have one distribution for all roles.
        """
        parent: NDArray[np.integer] = graphs.edge_parent
        child: NDArray[np.integer] = graphs.edge_child
        apart = _unlinked(graphs)
        if not len(parent):  # no stage will follow a child
            parent, child = apart
        equal = [float((values[parent] == values[child]).mean()) for values in metrics.values()]
        role = np.minimum(graphs.n_parents, ROLES - 1)
        binned = [
            Binned(values, role * (name not in same_in_roles and same < CONSTANT))
            for (name, values), same in zip(metrics.items(), equal, strict=True)
        ]
        stages = np.arange(graphs.n_stages)
        within = _correlations(binned, stages, stages)
        np.fill_diagonal(within, 1.0)
        within = _nearest_correlation(within)
        linked = _correlations(binned, parent, child)
        shared = _correlations(binned, *apart)
        shared = (shared + shared.T) / 2
        chances = np.zeros(len(binned))
        for m, metric in enumerate(binned):
            if equal[m] < CONSTANT:
                chances[m], linked[m, m] = copying_chance(metric, parent, child, equal[m])
            else:
                for matrix in (linked, shared):
                    matrix[m, :], matrix[:, m] = within[m, :], within[:, m]
        is_constant = np.array(equal) >= CONSTANT
        return cls(tuple(metrics), binned, within, shared, linked, chances, is_constant)

    def moved(self, within: F8, shared: F8) -> Correlations:
        """Add to the correlations within a stage and of any two stages, (M, M) symmetric each."""
        off = within * (1 - np.eye(len(within)))
        moved = _nearest_correlation(self.within + off)
        matrices = self.shared + shared, self.linked + shared
        for matrix in matrices:
            matrix[self.is_constant, :], matrix[:, self.is_constant] = (
                moved[self.is_constant],
                moved[:, self.is_constant],
            )
        return replace(self, within=moved, shared=matrices[0], linked=matrices[1])

    def joint(self, graphs: Graphs, unequal: float = 0.0) -> Joint:
        """Return the copula."""
        before_copying = _correlations_before_copying(
            self.within, self.linked, self.chances, graphs
        )
        factors = _factors(before_copying, self.shared, self.linked)
        names = ("job", "root", "pull", "noise")
        counted = {"jobs": graphs.n_jobs, "stages": graphs.n_stages, "edges": graphs.n_edges}
        return Joint(
            ranks={
                name: binned_metric.ranks
                for name, binned_metric in zip(self.names, self.binned, strict=True)
            },
            **{
                name: np.round(factor, 6) + 0.0  # no negative zeros
                for name, factor in zip(names, factors, strict=True)
            },
            taken_over=np.round(self.chances, 4),
            unequal=unequal,
            provenance={
                "counted": counted,
                "correlations": {
                    "within a stage": _to_text(self.within),
                    "of stages of a job without an edge": _to_text(self.shared),
                    "of parents (rows) with children": _to_text(self.linked),
                },
            },
        )


def fit_joint(graphs: Graphs, metrics: Mapping[str, F8]) -> Joint:
    """Fit a copula to the stages of a workload in which some job has several."""
    joint = Correlations.estimate(graphs, metrics, SAME_IN_ROLES).joint(graphs)
    return round_edges(replace(joint, unequal=fit_unequal(joint, graphs, metrics)))


def round_edges(joint: Joint) -> Joint:
    """Round the edges of bins to the nine digits that a file has."""
    ranks = {name: replace(r, edges=np.round(r.edges, 9)) for name, r in joint.ranks.items()}
    return replace(joint, ranks=ranks)


def _correlations(binned: list[Binned], a: NDArray[np.integer], b: NDArray[np.integer]) -> F8:
    return np.array([[correlation(left, right, a, b) for right in binned] for left in binned])


def _unlinked(graphs: Graphs) -> tuple[I8, I8]:
    """Draw pairs of stages of one job without an edge between them."""
    random = stream(0, "fit", "joint", "pairs").random((2, PAIRS))
    a = (random[0] * graphs.n_stages).astype(np.int64)
    job = graphs.stage_job[a]
    b = graphs.job_stage0[job] + (random[1] * graphs.job_n_stages[job]).astype(np.int64)
    linked = _pair_number(graphs, graphs.edge_parent, graphs.edge_child)
    apart = (a != b) & ~np.isin(_pair_number(graphs, a, b), linked)
    if not apart.any():
        return graphs.edge_parent.astype(np.int64), graphs.edge_child.astype(np.int64)
    return a[apart], b[apart]


def _to_text(matrix: F8) -> list[str]:
    return [" ".join(f"{value:.3f}" for value in row) for row in matrix]


def _pair_number(graphs: Graphs, a: NDArray[np.integer], b: NDArray[np.integer]) -> I8:
    """Return a unique number for each unordered pair of stages."""
    number: I8 = np.minimum(a, b).astype(np.int64) * graphs.n_stages + np.maximum(a, b)
    return number


def _correlations_before_copying(within: F8, linked: F8, chances: F8, graphs: Graphs) -> F8:
    """Return the correlations within a stage before values are copied from children.

    Where a stage copies one of two metrics, these have the correlation of parents with children.
    """
    left, right = chances[:, None], chances[None, :]
    follows = float((graphs.n_children > 0).mean())
    mixed = linked.T * left * (1 - right) + linked * right * (1 - left)
    share = left * (1 - right) + right * (1 - left)
    before_copying = (within - follows * mixed) / (1 - follows * share)
    np.fill_diagonal(before_copying, 1.0)
    return _nearest_correlation((before_copying + before_copying.T) / 2)


def _factors(within: F8, shared: F8, linked: F8) -> tuple[F8, F8, F8, F8]:
    """Return the factors of `Joint` for the nearest consistent correlations.

    The covariance that all stages share must not exceed that of a stage, and the further covariance
    of a stage with its child must not exceed the child's own.
    """
    whole, inverse = _power(within, 0.5), _power(within, -0.5)
    values, vectors = eigh(_product(inverse, shared, inverse))
    clipped = vectors * np.clip(values, 0.0, 1.0)
    shared = _product(whole, clipped, vectors.T, whole)
    own = within - shared
    root, inverse = _power(own, 0.5), _power(own, -0.5)
    left, size, right = svd(_product(inverse, linked - shared, inverse))
    common = _product(left * np.minimum(size, 0.999), right)
    noise = _product(root, _power(np.eye(len(own)) - _product(common, common.T), 0.5))
    return _power(shared, 0.5), root, _product(root, common, inverse), noise


def _product(*matrices: F8) -> F8:
    return reduce(maths.dot, matrices)


def _power(matrix: F8, exponent: float) -> F8:
    """Raise a positive semidefinite matrix to a power; zero eigenvalues stay 0."""
    values, vectors = eigh((matrix + matrix.T) / 2)
    powers = np.where(values > 1e-6, maths.power(np.maximum(values, 1e-6), exponent), 0.0)
    return _product(vectors * powers, vectors.T)


def _nearest_correlation(matrix: F8) -> F8:
    """Return a positive definite correlation matrix near a symmetric one."""
    values, vectors = eigh((matrix + matrix.T) / 2)
    raised = _product(vectors * np.maximum(values, 1e-4), vectors.T)
    scale = np.sqrt(np.diag(raised))
    return raised / scale[:, None] / scale[None, :]


def fit_unequal(joint: Joint, graphs: Graphs, metrics: Mapping[str, F8]) -> float:
    """Fit how unequal jobs are to the distribution of parent-child ratios (§5)."""
    sample = graphs.take(np.arange(min(TRIED_JOBS, graphs.n_jobs)))
    parent, child = sample.edge_parent, sample.edge_child
    if not len(parent):
        return 0.0
    tables = {name: Histogram.count(values) for name, values in metrics.items()}
    names = [n for n, v in metrics.items() if (v > 0).all() and not _is_constant(joint, n)]
    actual = {n: _log_ratio(metrics[n][parent], metrics[n][child]) for n in names}
    best = (np.inf, 0.0)
    for unequal in UNEQUAL:
        drawn = draw_jointly(replace(joint, unequal=unequal), tables, sample, 0)
        distances = [
            distance(_log_ratio(drawn[n][parent], drawn[n][child]), actual[n]) for n in names
        ]
        best = min(best, (float(np.mean(distances)) if distances else 0.0, unequal))
    return best[1]


def _is_constant(joint: Joint, name: str) -> bool:
    m = list(joint.ranks).index(name)
    return bool((joint.root[m] ** 2).sum() < 1e-3)


def _log_ratio(parent: F8, child: F8) -> F8:
    return np.abs(maths.log(child / parent))
