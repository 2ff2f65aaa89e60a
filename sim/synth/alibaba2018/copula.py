"""Latent correlations behind binned values, by Mehler's expansion.

Two standard normal numbers of correlation ρ, cut into bins with scores a and b, have
E[a b] = Σ_k ρ^k a_k b_k, where a_k is the k-th coefficient of the scores in normalised Hermite
polynomials. So a correlation of scores, which ties weaken, tells the latent one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I8
from sim.synth.alibaba2018.joint import Ranks

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
        found = np.zeros((int(role.max(initial=0)) + 1, n_bins), dtype=np.int64)
        np.add.at(found, (role, self.bin), 1)
        pairs = np.bincount(group, weights=counts.astype(np.float64) ** 2)
        self.same = pairs / found.sum(axis=0).astype(np.float64) ** 2
        ends = np.cumsum(found.sum(axis=0)) / len(values)
        self.ranks = Ranks(np.concatenate([[0.0], ends]), found)
        self.bins = np.stack([_expand(row) for row in found])
        self.score = np.stack([_scores(row, at) for row, at in zip(found, self.bins, strict=True)])
        self.scores = np.einsum("rbk,rb->rk", self.bins, self.score)

    def of(self, stages: NDArray[np.integer]) -> F8:
        """Return the scores of some stages."""
        picked: F8 = self.score[self.role[stages], self.bin[stages]]
        return picked


def correlation(one: Binned, two: Binned, a: NDArray[np.integer], b: NDArray[np.integer]) -> float:
    """Return the latent correlation of `one` at stages `a` with `two` at stages `b`, (N,) each."""
    return _invert(products(one, two, a, b), float((one.of(a) * two.of(b)).mean()))


def products(one: Binned, two: Binned, a: NDArray[np.integer], b: NDArray[np.integer]) -> F8:
    """Return the expansion of the expected product of scores in powers of ρ, (K,)."""
    share = role_pairs(one, two, a, b)
    expansion: F8 = np.einsum("rq,rk,qk->k", share, one.scores, two.scores)
    return expansion


def role_pairs(one: Binned, two: Binned, a: NDArray[np.integer], b: NDArray[np.integer]) -> F8:
    """Return how often each pair of roles is among the pairs of stages, (R, R), adding up to 1."""
    share = np.zeros((len(one.score), len(two.score)))
    np.add.at(share, (one.role[a], two.role[b]), 1.0)
    share /= share.sum()
    return share


def taken_over(
    one: Binned, a: NDArray[np.integer], b: NDArray[np.integer], equal: float
) -> tuple[float, float]:
    """Split what a metric has in common at stages `a` and their children `b`."""
    share = role_pairs(one, one, a, b)
    meeting = np.einsum("rq,rbk,qbk,b->k", share, one.bins, one.bins, one.same)
    product = products(one, one, a, b)
    seen = float((one.of(a) * one.of(b)).mean())
    of_taken = float((one.score[one.role[a], one.bin[b]] * one.of(b)).mean())
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
    from scipy.special import ndtri

    cuts = ndtri(np.concatenate([[0.0], np.cumsum(counts) / counts.sum()]))
    inside = np.isfinite(cuts)
    cuts = np.where(inside, cuts, 0.0)
    density = np.where(inside, np.exp(-(cuts**2) / 2) / np.sqrt(2 * np.pi), 0.0)
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
    filled: F8 = np.interp(np.arange(len(counts)), np.flatnonzero(seen), mean[seen]) / deviation
    return filled
