"""The schemes as in the simulator that SLearn's authors published, where it differs from the paper.

The rules are read from its source, and each is checked against its figures on the workload that it
ships with (experiment slearn/authors; docs/slearn.md has the effect of each). This module contains
defaults only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from policies.attained_service import LeastAttainedService
from policies.registry import register
from policies.slearn.gs import PointEstimate, SLearn, ThreeSigma
from policies.slearn.history import Statistic
from policies.slearn.rules import PublishedQueues, PublishedScheduler
from sim.base.parameters import Between, Whole


@register("oracle_code")
@dataclass(frozen=True)
class PublishedOracle(PublishedScheduler):
    """The oracle, with strict priorities (simulator of Jajoo et al., NSDI 2022)."""

    between: Literal["weights", "strict"] = "strict"


@register("las_code")
@dataclass(frozen=True)
class PublishedLas(PublishedQueues, LeastAttainedService):
    """LAS, with strict priorities (simulator of Jajoo et al., NSDI 2022).

    There a job's service is updated only when one of its tasks crosses a threshold; here it is
    updated continuously.
    """

    between: Literal["weights", "strict"] = "strict"


@register("slearn_code")
@dataclass(frozen=True)
class PublishedSLearn(SLearn, PublishedScheduler):
    """SLearn with 3 % of the tasks, rounded up, in the trace's order (simulator of NSDI 2022).

    The first tasks to end are the evidence, jobs go in the order of entry into their queue, and
    priorities are strict. No order is random.
    """

    between: Literal["weights", "strict"] = "strict"
    turns: Literal["submitted", "entered"] = "entered"
    sampling_percent: Annotated[float, Between(0, 100)] = 3.0
    pilots_up: bool = True
    pilot_order: Literal["random", "given"] = "given"
    evidence: Literal["pilots", "ended"] = "ended"


@register("threesigma_code")
@dataclass(frozen=True)
class PublishedThreeSigma(ThreeSigma, PublishedScheduler):
    """3Sigma by means, from the group with the best point estimator (simulator of NSDI 2022).

    A group without past estimates is not used, a third of the jobs are known on arrival, and
    priorities are strict.
    """

    between: Literal["weights", "strict"] = "strict"
    statistic: Statistic = "mean"
    judged_by: Literal["statistic", "points"] = "points"
    unscored: Literal["last", "first", "never"] = "never"
    unknown: Literal["all", "first", "last"] = "last"
    leak_every: Whole = 3


@register("threesigma_tl_code")
@dataclass(frozen=True)
class PublishedThreeSigmaThin(PublishedThreeSigma):
    """`threesigma_code` with thin jobs first as in SLearn (simulator of NSDI 2022)."""

    thin_limit: Whole = 3


@register("point_code")
@dataclass(frozen=True)
class PublishedPoint(PointEstimate, PublishedScheduler):
    """Point-Est by the user's jobs, or by all for an unknown user (simulator of NSDI 2022).

    A third of the jobs are known on arrival, and priorities are strict.
    """

    between: Literal["weights", "strict"] = "strict"
    statistic: Statistic = "quantile"
    judged_by: Literal["statistic", "points"] = "points"
    features: Literal["all", "user"] = "user"
    unscored: Literal["last", "first", "never"] = "never"
    leak_every: Whole = 3
