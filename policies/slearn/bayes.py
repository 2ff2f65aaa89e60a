"""Bayesian estimates of job sizes: history and pilots together."""

from __future__ import annotations

from dataclasses import dataclass

from policies.registry import register
from policies.slearn.gs import EstimatorName
from policies.slearn.rules import PublishedScheduler
from sim.base.parameters import Whole


@register("bayes")
@dataclass(frozen=True)
class Bayes(PublishedScheduler):
    """Learning in time and space: history is the prior, pilots are the evidence.

    The posterior is that of SLearn, NSDI 2022, §4.1.2. The number of pilots, possibly none, is
    chosen by expected gain (`policies.slearn.posterior`), which the paper leaves open (§7). The
    prior and its variance come from `policies.estimates.priors`; `statistic` and the other options
    of history are ignored. The queues may be those of the published simulator.
    """

    estimator: EstimatorName = "posterior"
    thin_limit: Whole = 3
