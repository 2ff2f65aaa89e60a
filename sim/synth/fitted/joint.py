"""Joint distributions of the attributes of stages: copulas and cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8
from sim.base.dataclass_json import Shape
from sim.base.parameters import Below1, Between
from sim.synth.fitted.histograms import WHOLE, Histogram, Ranges

ROLES = 3
"""Stages without parents, with one, with several: they differ in tasks and demands."""


Matrix = Annotated[F8, Shape((-1, -1))]


def _check_edges(edges: F8) -> None:
    if len(edges) < 2 or edges[0] != 0 or edges[-1] != 1 or (np.diff(edges) <= 0).any():
        raise ValueError("must have edges that ascend from 0 to 1")


@dataclass(frozen=True)
class Ranks:
    """Distribution of the ranks of one metric's values, by role."""

    edges: F8  # ranks, from 0 to 1, at which bins of values begin and end
    # stages in each bin, (R, B); R is 1 if roles are not distinguished, else `ROLES`
    counts: Annotated[I8, Shape((-1, -1)), Between(0)]

    def check(self) -> None:
        """Raise ValueError on empty bins, and on roles without counts."""
        _check_edges(self.edges)
        roles, bins = self.counts.shape
        if roles not in (1, ROLES) or bins != len(self.edges) - 1:
            raise ValueError(f"must have counts of each bin, in one row or {ROLES}, one a role")
        if (self.counts.sum(axis=1) == 0).any():
            raise ValueError("must have something counted in each row of counts")

    def rank(self, uniform: F8, role: I8) -> F8:
        """Map uniform numbers within each role to ranks among all stages."""
        rank = np.empty(len(uniform))
        for r, counts in enumerate(self.counts):
            cum = np.concatenate([[0.0], np.cumsum(counts / counts.sum())])
            rows = role == r if len(self.counts) > 1 else slice(None)
            rank[rows] = maths.interp(uniform[rows], cum, self.edges)
        return rank


@dataclass(frozen=True, kw_only=True)
class Joint:
    """Joint distribution of attributes; M metrics."""

    # JSON-able: source of the numbers
    provenance: Mapping[str, Any] = field(default_factory=dict)
    # in half of the jobs the variance between stages is 1 + this times the average, in the others
    # 1 − this
    unequal: Below1
    # chance that a stage copies the value of its first child
    taken_over: Annotated[F8, Between(0, 1)]
    # the latent numbers that all stages of a job share are ``job @ e``, with e independent
    # standard normal numbers; for the others see `sim.synth.fitted.kernels.chance.follow`
    job: Matrix
    root: Matrix
    pull: Matrix
    noise: Matrix
    ranks: Mapping[str, Ranks]  # by metric: ``duration_s``, ``n_tasks``, ``demand <resource>``

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics."""
        return tuple(self.ranks)

    def check(self) -> None:
        """Raise ValueError on matrices that do not match the number of metrics."""
        n = len(self.ranks)
        if any(m.shape != (n, n) for m in (self.job, self.root, self.pull, self.noise)):
            raise ValueError(f"must have a row and a column in each matrix for each of {n} ranks")
        if len(self.taken_over) != n:
            raise ValueError(f"must have a chance taken_over for each of {n} ranks")


@dataclass(frozen=True)
class Cells:
    """Joint ranks of the attributes of jobs of one stage."""

    # by metric, as in `Joint`: ranks, from 0 to 1, at which bins of values begin and end
    edges: Mapping[str, F8]
    # the bin of each metric, in each of the K cells in which jobs are, (M, K)
    places: Annotated[I8, Shape((-1, -1)), Between(0)]
    counts: Annotated[I8, Between(1)]  # jobs in each, (K,)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics."""
        return tuple(self.edges)

    def check(self) -> None:
        """Raise ValueError on empty bins, and on cells outside of the bins."""
        for edges in self.edges.values():
            _check_edges(edges)
        last_bin = np.array([[len(edges) - 2] for edges in self.edges.values()])
        shape = (len(self.edges), len(self.counts))
        if self.places.shape != shape or not len(self.counts) or (self.places > last_bin).any():
            raise ValueError("must have a bin of every metric, and a count, for each cell")


@dataclass(frozen=True)
class SizeClass:
    """Attributes of stages in jobs of a range of stage counts, and their joint distribution."""

    tables: Mapping[str, Histogram]  # by metric, as `Tables.attributes`
    cells: Cells | None = None  # of jobs of one stage
    joint: Joint | None = None  # of others

    def check(self) -> None:
        """Raise ValueError unless the joint distribution and the tables have the same metrics."""
        distribution = self.cells or self.joint
        if distribution is None:
            raise ValueError("must have cells, or joint")
        if distribution.metrics != tuple(self.tables):
            raise ValueError(f"must have the metrics {', '.join(self.tables)}, in this order")
        n_tasks = self.tables.get("n_tasks")
        if n_tasks is not None and not WHOLE.holds(n_tasks):
            raise ValueError(f"must have, as n_tasks, {WHOLE}")


@dataclass(frozen=True)
class BySize(Ranges):
    """Attributes of stages, conditional on the number of stages of their job."""

    by_first: Mapping[int, SizeClass]
