"""Learning in time and space: pilots run where history does not tell enough."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import numpy as np

from policies.slearn.pilots import Pilots, n_pilots
from policies.slearn.priors import SHORTEST_S, UNKNOWN, Priors
from sim.base import maths
from sim.base.arrays import F8
from sim.base.random import Normal, posterior
from sim.engine.plan import World
from sim.workload.history import NAMES

MOST_PERCENT = 3
"""The ratio that SLearn begins with (NSDI 2022, §5.1.2)."""

RECENT = 100
"""How many jobs the mean stretch is taken over: the T of SLearn's Fig. 4."""

MOST_OFF = 10.0
"""How much the squared error of one prior over its variance counts at most."""

_NODES = (1.0232556637891326, 2.07684797867783, 3.20542900285647, 4.512745863399783)
_WEIGHTS = (
    1.0185664100087874, 0.6118617025232777, 0.12512187656567728, 0.006991340497741218,
    5.6012724410311303e-05,
)  # fmt: skip
NODES = np.array([*(-node for node in reversed(_NODES)), 0.0, *_NODES])
WEIGHTS = np.array([*reversed(_WEIGHTS[1:]), *_WEIGHTS])
"""Gauss and Hermite's, for the weight exp(-x**2 / 2)."""


class Posterior(Pilots):
    """The posterior of §4.1.2 of SLearn: history is the prior, the pilots are the evidence.

    Durations spread over orders of magnitude, so that it is their logarithms that are taken to be
    normal. The prior of a job's mean task duration is that of `policies.slearn.priors`. A task's
    variance around its job's mean is that of the logarithm at the mean squared coefficient
    of variation of the tasks of like jobs that have ended (`Spread`).

    Jobs change, so that a prior may be surer than it is right. The variance of priors is multiplied
    by the mean squared error of recent ones over their own variance, where that is above 1 (Birge,
    Phys. Rev. 40, 1932, of measurements that disagree), each counting `MOST_OFF` at most.

    The number of pilots, up to `MOST_PERCENT` of the tasks, is that of greatest expected gain
    (`gain`), and none where no number gains anything: then the prior's mean is the estimate. Where
    pilots ran, they alone are: a job that history was not sure of is often unlike it, and to weigh
    both by their variances was no better (docs/decisions/0023-slearn-bayes.md).
    """

    def __init__(
        self, world: World, percent: float, priors: Priors, thresholds: Sequence[float]
    ) -> None:
        super().__init__(world, percent)
        self._priors = priors
        self._bounds = maths.log(thresholds)
        self._spread = Spread(world, priors.codes)
        self._stretch: deque[float] = deque(maxlen=RECENT)
        self._prior: dict[int, Normal] = {}
        self._told: dict[int, Normal] = {}
        self._surprise: deque[float] = deque(maxlen=RECENT)
        self._there: deque[int] = deque(maxlen=RECENT)

    def arrived(self, job: int, now: float, thin: bool) -> int:
        """Want as many pilots as gain most; what is known of a thin job is judged later too."""
        jobs = self._jobs
        stages = range(jobs.stage0[job], jobs.stage0[job + 1])
        told = [self._priors.prior(g, now) for g in stages]
        if thin:
            return 0
        first = jobs.sampled[job]
        if len(stages) > 1:
            self._predicted[job] = [
                math.nan if math.isinf(each.variance) else maths.exp(each.mean) for each in told
            ]
        known = self._told[first] = told[first - stages[0]]
        self._prior[job] = Normal(known.mean, known.variance * self._distrust())
        return self._begun(job, now)

    def _wanted(self, job: int, n_tasks: int, now: float) -> int:
        prior = self._prior[job]
        if self._percent > 0 or math.isinf(prior.variance):
            return n_pilots(n_tasks, self._percent or 3)
        jobs, stage = self._jobs, self._jobs.sampled[job]
        stretch = sum(self._stretch) / len(self._stretch) if self._stretch else math.inf
        size = sum(jobs.n_tasks[jobs.stage0[job] : jobs.stage0[job + 1]])
        self._there.append(int(np.count_nonzero(self._view["left"][:job])))
        # in a lull many others come later all the same
        others = max(self._there[-1], sum(self._there) / len(self._there))
        most = n_pilots(n_tasks, MOST_PERCENT)
        chance = chances_of_other_queue(
            prior, most, maths.log1p(self._spread.of(stage)), self._bounds - maths.log(size)
        ).tolist()
        best, gained = 0, 0.0
        for m in range(1, most + 1):
            gains = gain(chance[0] - chance[m], stretch, size, jobs.slots[job], others, m)
            if gains > gained:
                best, gained = m, gains
        return best

    def _mean_s(self, job: int, now: float) -> float:
        prior = self._prior.pop(job)
        if job in self._n_pilots:
            return super()._mean_s(job, now)
        mean_s = maths.exp(prior.mean)
        return mean_s if mean_s > SHORTEST_S * (1 + 1e-9) else 0.0

    def stage_done(self, stage: int, now: float) -> None:
        """Add it to the history, and how its tasks differed."""
        took = self._jobs.mean_task_s(stage)
        self._priors.learn(stage, took, now)
        self._spread.learn(stage)
        told = self._told.pop(stage, UNKNOWN)
        if 0 < told.variance < math.inf and took > 0:
            off = (maths.log(took) - told.mean) ** 2 / told.variance
            self._surprise.append(min(off, MOST_OFF))

    def _distrust(self) -> float:
        """Return by how much the variance of priors is to be multiplied, at least 1."""
        return max(1.0, sum(self._surprise) / len(self._surprise)) if self._surprise else 1.0

    def job_done(self, job: int, now: float) -> None:
        """Note how much longer it took than it would alone."""
        stretch = self._jobs.normalised_jct(job, now)
        if not math.isnan(stretch):
            self._stretch.append(stretch)


class Spread:
    """How much the tasks of a stage differ: the mean of their squared coefficient of variation.

    By the first feature of `sim.workload.history.NAMES` by which three like stages have ended,
    else over all that have; 1, as of an exponential distribution, before any has. Stages of one
    task or of no length say nothing.
    """

    def __init__(self, world: World, codes: list[list[int]]) -> None:
        columns = world.columns
        first, sizes = columns.stage_task0[:-1], np.diff(columns.stage_task0)
        mean = columns.stage_work / sizes
        off = columns.task_duration - np.repeat(mean, sizes)
        variance = np.add.reduceat(off * off, first) / np.maximum(sizes - 1, 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            squared = variance / mean**2
        squared[(sizes < 2) | (mean == 0)] = np.nan
        self._of_ended: list[float] = squared.tolist()
        self._codes = codes
        self._groups: list[dict[int, tuple[int, float]]] = [{} for _ in NAMES]
        self._all = (0, 0.0)

    def learn(self, stage: int) -> None:
        """Take in a stage that has ended."""
        value = self._of_ended[stage]
        if math.isnan(value):
            return
        for groups, code in zip(self._groups, self._codes[stage], strict=True):
            if code >= 0:
                n, total = groups.get(code, (0, 0.0))
                groups[code] = (n + 1, total + value)
        self._all = (self._all[0] + 1, self._all[1] + value)

    def of(self, stage: int) -> float:
        """Return what is expected of a stage whose tasks are not known."""
        for groups, code in zip(self._groups, self._codes[stage], strict=True):
            n, total = groups.get(code, (0, 0.0))
            if n >= 3:
                return total / n
        n, total = self._all
        return total / n if n else 1.0


def chances_of_other_queue(prior: Normal, most: int, task_variance: float, bounds: F8) -> F8:
    """Return how likely x and its estimate from 0 to `most` samples lie in different queues.

    The estimate is normal with what the samples take from the prior's variance; around it, x is
    normal with what they leave. The mean over the estimate is by nine nodes of Gauss and Hermite.
    All is in logarithms.
    """
    m = np.arange(most + 1)
    left = np.array([posterior(prior, n, prior.mean, task_variance).variance for n in m.tolist()])
    estimate = prior.mean + np.sqrt(np.maximum(0.0, prior.variance - left))[:, None] * NODES
    queue = np.searchsorted(bounds, estimate, side="right")
    ends = np.append(bounds, -math.inf)[np.stack([queue, queue - 1])]
    deviation = np.where(left > 0, np.sqrt(left), 1.0)[:, None]
    above, below = maths.normal_cdf((ends - estimate) / deviation)
    chances: F8 = ((1.0 - (above - below)) * WEIGHTS).sum(axis=1) / math.sqrt(2 * math.pi)
    chances[left == 0] = 0.0
    return chances


def gain(better: float, stretch: float, n_tasks: int, slots: int, others: float, m: int) -> float:
    """Return what m pilots gain, in mean task durations of the job.

    What is left of a job in a wrong queue loses about its completion time, which is its ideal one,
    of ``(n_tasks - m) / slots`` task durations, times the stretch that jobs now see; so do, one by
    one, the jobs that it lets pass, or that have to let it pass, wrongly: half of the `others`,
    which are there or will come while it is. Pilots cost one task duration, for which the others
    wait, and what they use before their turn.
    """
    if better <= 0:
        return 0.0
    return better * stretch * (n_tasks - m) / slots * (1 + others / 2) - 1.0 - m / slots
