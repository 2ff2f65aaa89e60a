"""Learning in time and space: pilots run where history's estimate is too uncertain."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import numpy as np

from policies.estimates.priors import SHORTEST_S, UNKNOWN, Priors
from policies.slearn.pilots import Pilots, n_pilots
from sim.base import maths
from sim.base.arrays import F8
from sim.base.random import Normal, posterior
from sim.engine.plan import World
from sim.workload.history import NAMES

MAX_PERCENT = 3
"""SLearn's initial ratio (NSDI 2022, §5.1.2)."""

RECENT = 100
"""Number of jobs in the mean stretch: the T of SLearn's Fig. 4."""

MAX_SURPRISE = 10.0
"""Cap on one prior's squared error over its variance."""

_NODES = (1.0232556637891326, 2.07684797867783, 3.20542900285647, 4.512745863399783)
_WEIGHTS = (
    1.0185664100087874, 0.6118617025232777, 0.12512187656567728, 0.006991340497741218,
    5.6012724410311303e-05,
)  # fmt: skip
NODES = np.array([*(-node for node in reversed(_NODES)), 0.0, *_NODES])
WEIGHTS = np.array([*reversed(_WEIGHTS[1:]), *_WEIGHTS])
"""Gauss-Hermite nodes and weights, for the weight function exp(-x**2 / 2)."""


class Posterior(Pilots):
    """The posterior of §4.1.2 of SLearn: history is the prior, the pilots are the evidence.

    Durations spread over orders of magnitude, so that their logarithms are modelled as normal. The
    prior of a job's mean task duration is that of `policies.estimates.priors`. A task's variance
    around its job's mean follows from the mean squared coefficient of variation of the tasks of
    similar finished jobs (`Spread`), in logarithms.

    Jobs change, so that a prior may be overconfident. The variance of priors is multiplied by the
    mean ratio of recent priors' squared errors to their variances, where that is above 1 (Birge,
    Phys. Rev. 40, 1932, on measurements that disagree); each ratio is capped at `MAX_SURPRISE`.

    The number of pilots, up to `MAX_PERCENT` of the tasks, is the one with the greatest expected
    gain (`gain`), and 0 if no number has a positive gain: then the prior's mean is the estimate.
    If pilots ran, they alone are the estimate: a job with an uncertain prior often differs from
    history, and weighing both by their variances was no better
    (docs/decisions/0023-slearn-bayes.md).
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
        self._stage_prior: dict[int, Normal] = {}
        self._surprise: deque[float] = deque(maxlen=RECENT)
        self._n_waiting: deque[int] = deque(maxlen=RECENT)

    def arrived(self, job: int, now: float, thin: bool) -> int:
        """Choose the number of pilots; score the priors of thin jobs later, too."""
        jobs = self._jobs
        stages = range(jobs.stage0[job], jobs.stage0[job + 1])
        priors = [self._priors.prior(g, now) for g in stages]
        if thin:
            return 0
        first = jobs.sampled[job]
        if len(stages) > 1:
            self._predicted[job] = [
                math.nan if math.isinf(prior.variance) else maths.exp(prior.mean)
                for prior in priors
            ]
        first_prior = self._stage_prior[first] = priors[first - stages[0]]
        self._prior[job] = Normal(first_prior.mean, first_prior.variance * self._inflation())
        return self._start_pilots(job, now)

    def _choose_n_pilots(self, job: int, n_tasks: int, now: float) -> int:
        prior = self._prior[job]
        if self._percent > 0 or math.isinf(prior.variance):
            return n_pilots(n_tasks, self._percent or 3)
        jobs, stage = self._jobs, self._jobs.sampled[job]
        stretch = sum(self._stretch) / len(self._stretch) if self._stretch else math.inf
        size = sum(jobs.n_tasks[jobs.stage0[job] : jobs.stage0[job + 1]])
        self._n_waiting.append(int(np.count_nonzero(self._view["left"][:job])))
        # after a lull other jobs still arrive
        n_others = max(self._n_waiting[-1], sum(self._n_waiting) / len(self._n_waiting))
        n_max = n_pilots(n_tasks, MAX_PERCENT)
        chances = chances_of_other_queue(
            prior, n_max, maths.log1p(self._spread.expected(stage)), self._bounds - maths.log(size)
        ).tolist()
        best, best_gain = 0, 0.0
        for m in range(1, n_max + 1):
            expected_gain = gain(
                chances[0] - chances[m], stretch, size, jobs.slots[job], n_others, m
            )
            if expected_gain > best_gain:
                best, best_gain = m, expected_gain
        return best

    def _mean_s(self, job: int, now: float) -> float:
        prior = self._prior.pop(job)
        if job in self._n_pilots:
            return super()._mean_s(job, now)
        mean_s = maths.exp(prior.mean)
        return mean_s if mean_s > SHORTEST_S * (1 + 1e-9) else 0.0

    def stage_done(self, stage: int, now: float) -> None:
        """Add the stage to the history, and the spread of its tasks."""
        mean_s = self._jobs.mean_task_s(stage)
        self._priors.add(stage, mean_s, now)
        self._spread.learn(stage)
        prior = self._stage_prior.pop(stage, UNKNOWN)
        if 0 < prior.variance < math.inf and mean_s > 0:
            surprise = (maths.log(mean_s) - prior.mean) ** 2 / prior.variance
            self._surprise.append(min(surprise, MAX_SURPRISE))

    def _inflation(self) -> float:
        """Return the factor on the variance of priors, at least 1."""
        return max(1.0, sum(self._surprise) / len(self._surprise)) if self._surprise else 1.0

    def job_done(self, job: int, now: float) -> None:
        """Record the stretch: its completion time over that on an empty cluster."""
        stretch = self._jobs.normalised_jct(job, now)
        if not math.isnan(stretch):
            self._stretch.append(stretch)


class Spread:
    """Spread of task durations within a stage: mean squared coefficient of variation.

    Taken by the first feature of `sim.workload.history.NAMES` with three similar finished stages,
    else over all finished stages; 1, as of an exponential distribution, before any. Stages of one
    task or of zero length do not count.
    """

    def __init__(self, world: World, codes: list[list[int]]) -> None:
        columns = world.columns
        first, sizes = columns.stage_task0[:-1], np.diff(columns.stage_task0)
        mean = columns.stage_work / sizes
        deviation = columns.task_duration - np.repeat(mean, sizes)
        variance = np.add.reduceat(deviation * deviation, first) / np.maximum(sizes - 1, 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            squared = variance / mean**2
        squared[(sizes < 2) | (mean == 0)] = np.nan
        self._squared_cv: list[float] = squared.tolist()
        self._codes = codes
        self._groups: list[dict[int, tuple[int, float]]] = [{} for _ in NAMES]
        self._all = (0, 0.0)

    def learn(self, stage: int) -> None:
        """Add a finished stage."""
        value = self._squared_cv[stage]
        if math.isnan(value):
            return
        for groups, code in zip(self._groups, self._codes[stage], strict=True):
            if code >= 0:
                n, total = groups.get(code, (0, 0.0))
                groups[code] = (n + 1, total + value)
        self._all = (self._all[0] + 1, self._all[1] + value)

    def expected(self, stage: int) -> float:
        """Return the expected squared coefficient of variation of a stage."""
        for groups, code in zip(self._groups, self._codes[stage], strict=True):
            n, total = groups.get(code, (0, 0.0))
            if n >= 3:
                return total / n
        n, total = self._all
        return total / n if n else 1.0


def chances_of_other_queue(prior: Normal, n_max: int, task_variance: float, bounds: F8) -> F8:
    """Return the probability that x and its estimate from 0 to `n_max` samples differ in queue.

    The estimate is normal with the variance that the samples remove from the prior's; x is normal
    around it with the remaining variance. The mean over the estimate uses nine Gauss-Hermite nodes.
    All values are logarithms.
    """
    m = np.arange(n_max + 1)
    left = np.array([posterior(prior, n, prior.mean, task_variance).variance for n in m.tolist()])
    estimate = prior.mean + np.sqrt(np.maximum(0.0, prior.variance - left))[:, None] * NODES
    queue = np.searchsorted(bounds, estimate, side="right")
    ends = np.append(bounds, -math.inf)[np.stack([queue, queue - 1])]
    deviation = np.where(left > 0, np.sqrt(left), 1.0)[:, None]
    above, below = maths.normal_cdf((ends - estimate) / deviation)
    chances: F8 = ((1.0 - (above - below)) * WEIGHTS).sum(axis=1) / math.sqrt(2 * math.pi)
    chances[left == 0] = 0.0
    return chances


def gain(
    chance_gain: float, stretch: float, n_tasks: int, slots: int, n_others: float, m: int
) -> float:
    """Return the gain from m pilots, in mean task durations of the job.

    The rest of a job in a wrong queue loses about its completion time: the ideal one of
    ``(n_tasks - m) / slots`` task durations times the current stretch. So do, one by one, the jobs
    that it wrongly lets pass, or that let it pass: half of the `n_others`, which wait now or arrive
    meanwhile. Pilots cost one task duration, for which the rest of the job waits, and the slots
    that they use ahead of their turn.
    """
    if chance_gain <= 0:
        return 0.0
    return chance_gain * stretch * (n_tasks - m) / slots * (1 + n_others / 2) - 1.0 - m / slots
