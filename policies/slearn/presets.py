"""Pairings of the generic scheduler and an estimator, each a policy of its own name.

A pairing is `policies.slearn.gs.GenericScheduler` with other defaults and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.registry import register
from policies.slearn.gs import EstimatorName, GenericScheduler, LaterStages, Statistic
from sim.base.parameters import Whole


@register("slearn")
@dataclass(frozen=True)
class SLearn(GenericScheduler):
    """Learning in space: a few tasks of each job run first (SLearn, NSDI 2022, §5.1.2)."""

    estimator: EstimatorName = "pilots"
    thin_limit: Whole = 3


@register("slearn_dag")
@dataclass(frozen=True)
class SLearnDag(SLearn):
    """SLearn for DAGs: the sampled first stage corrects what history says of later ones.

    SLearn-DAG of NSDI 2022, §6.
    """

    later_stages: LaterStages = "history"


@register("adaptive_thin")
@dataclass(frozen=True)
class AdaptiveThin(SLearn):
    """SLearn whose limit for thin jobs falls as the load rises (open in NSDI 2022, §7)."""

    thin_limit: Whole = 6
    adaptive_thin: bool = True


@register("threesigma")
@register("threesigma_dag")
@dataclass(frozen=True)
class ThreeSigma(GenericScheduler):
    """Learning in time as 3Sigma does, with the utility 1/r² (SLearn, NSDI 2022, §4.3, §5.1.3).

    Each stage is predicted by itself, and a job is their sum: so it is 3Sigma-DAG (§6) too.
    """

    estimator: EstimatorName = "history"


@register("threesigma_tl")
@dataclass(frozen=True)
class ThreeSigmaThin(ThreeSigma):
    """3Sigma that treats thin jobs as SLearn does (NSDI 2022, §5.1.3)."""

    thin_limit: Whole = 3


@register("point")
@register("point_dag")
@dataclass(frozen=True)
class PointEstimate(ThreeSigma):
    """3Sigma that goes by the median of history.

    Point-Est and Point-Est-DAG of SLearn (NSDI 2022, §5.1.3, §6).
    """

    statistic: Statistic = "median"


@register("bayes")
@dataclass(frozen=True)
class Bayes(GenericScheduler):
    """Learning in time and space: history is the prior, pilots are the evidence.

    The posterior is that of SLearn, NSDI 2022, §4.1.2; how many pilots run is chosen by expected
    gain (`policies.slearn.posterior`), which the paper leaves open (§7).
    """

    estimator: EstimatorName = "posterior"
    thin_limit: Whole = 3
    later_stages: LaterStages = "history"
    statistic: Statistic = "mean"
