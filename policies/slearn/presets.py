"""Pairings of the generic scheduler and an estimator, each a policy of its own name.

A pairing is `policies.slearn.gs.GenericScheduler` with other defaults and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.las import LeastAttainedService
from policies.registry import register
from policies.slearn.gs import GenericScheduler, Later, Name, Statistic


@register("slearn")
@dataclass(frozen=True)
class SLearn(GenericScheduler):
    """Learning in space: a few tasks of each job run first (NSDI 2022, §5.1.2)."""

    estimator: Name = "pilots"
    thin_limit: int = 3


@register("threesigma")
@dataclass(frozen=True)
class ThreeSigma(GenericScheduler):
    """Learning in time as 3Sigma does, with the utility 1/r² (NSDI 2022, §4.3 and §5.1.3)."""

    estimator: Name = "history"


@register("threesigma_tl")
@dataclass(frozen=True)
class ThreeSigmaThin(GenericScheduler):
    """3Sigma that treats thin jobs as SLearn does (NSDI 2022, §5.1.3)."""

    estimator: Name = "history"
    thin_limit: int = 3


@register("point")
@dataclass(frozen=True)
class PointEstimate(GenericScheduler):
    """3Sigma that goes by the median of history (Point-Est in NSDI 2022, §5.1.3)."""

    estimator: Name = "history"
    statistic: Statistic = "median"


@register("oracle")
@dataclass(frozen=True)
class OracleScheduler(GenericScheduler):
    """The generic scheduler told every job's size (NSDI 2022, §5.1.3)."""


@register("slearn_dag")
@dataclass(frozen=True)
class SLearnDag(SLearn):
    """SLearn for DAGs: the sampled first stage corrects what history says of later ones (§6)."""

    later_stages: Later = "history"


@register("threesigma_dag")
@dataclass(frozen=True)
class ThreeSigmaDag(ThreeSigma):
    """3Sigma for DAGs: each stage is predicted by itself, and a job is their sum (§6)."""


@register("point_dag")
@dataclass(frozen=True)
class PointEstimateDag(PointEstimate):
    """Point-Est for DAGs: each stage is predicted by itself, and a job is their sum (§6)."""


@register("las_dag")
@dataclass(frozen=True)
class LasDag(LeastAttainedService):
    """LAS for DAGs: what all stages of a job were served counts (NSDI 2022, §6)."""


@register("bayes")
@dataclass(frozen=True)
class Bayes(GenericScheduler):
    """Learning in time and space: history is the prior, pilots are the evidence.

    The posterior is that of NSDI 2022, §4.1.2; how many pilots run is chosen by expected gain
    (`policies.slearn.estimators.posterior`), which the paper leaves open (§7).
    """

    estimator: Name = "posterior"
    thin_limit: int = 3
    later_stages: Later = "history"
    statistic: Statistic = "mean"


@register("adaptive_thin")
@dataclass(frozen=True)
class AdaptiveThin(SLearn):
    """SLearn whose limit for thin jobs falls as the load rises (open in NSDI 2022, §7)."""

    thin_limit: int = 6
    adaptive_thin: bool = True
