"""Learning in time and space: pilots run where history's estimate is too uncertain."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from policies.estimates.priors import UNKNOWN, Priors
from policies.estimates.weights import SHORTEST_S
from policies.slearn.pilots import Pilots, n_pilots
from sim.base import maths
from sim.base.arrays import F8
from sim.base.random import Normal
from sim.engine.plan import World

MAX_PERCENT = 3
"""SLearn's initial ratio (NSDI 2022, §5.1.2)."""

RECENT = 100
"""Number of jobs in the mean stretch: the T of SLearn's Fig. 4."""

MAX_SURPRISE = 10.0
"""Cap on one prior's squared error over its variance."""


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
        columns = world.columns
        n_tasks = np.diff(columns.stage_task0[columns.job_stage0])
        self._n_tasks: list[int] = n_tasks.tolist()
        self._log_n_tasks: list[float] = maths.log(n_tasks).tolist()
        self._spread = Spread(world, priors)
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
        size = self._n_tasks[job]
        self._n_waiting.append(int(np.count_nonzero(self._view["left"][:job])))
        # after a lull other jobs still arrive
        n_others = max(self._n_waiting[-1], sum(self._n_waiting) / len(self._n_waiting))
        n_max = n_pilots(n_tasks, MAX_PERCENT)
        bounds = self._bounds - self._log_n_tasks[job]
        chances = chances_of_other_queue(prior, n_max, self._spread.task_variance(stage), bounds)
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

    def __init__(self, world: World, priors: Priors) -> None:
        from policies.slearn.kernels import pilots  # numba is loaded where a kernel runs
        from sim.base.jit import compiled

        columns = world.columns
        first, sizes = columns.stage_task0[:-1], np.diff(columns.stage_task0)
        mean = columns.stage_work / sizes
        deviation = columns.task_duration - np.repeat(mean, sizes)
        variance = np.add.reduceat(deviation * deviation, first) / np.maximum(sizes - 1, 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            squared = variance / mean**2
        squared[(sizes < 2) | (mean == 0)] = np.nan
        self._squared_cv: list[float] = squared.tolist()
        self._arrays = priors.group, np.zeros((priors.n_groups, 2))
        self._add: Callable[..., None] = compiled(pilots.add_spread, *self._arrays, 0, 0.0)
        self._variance: Callable[..., float] = compiled(pilots.task_variance, *self._arrays, 0)

    def learn(self, stage: int) -> None:
        """Add a finished stage."""
        value = self._squared_cv[stage]
        if not math.isnan(value):
            self._add(*self._arrays, stage, value)

    def task_variance(self, stage: int) -> float:
        """Return the expected variance of the logarithms of a stage's task durations."""
        return self._variance(*self._arrays, stage)


def chances_of_other_queue(
    prior: Normal, n_max: int, task_variance: float, bounds: F8
) -> list[float]:
    """Return the probability that x and its estimate from 0 to `n_max` samples differ in queue.

    The estimate is normal with the variance that the samples remove from the prior's; x is normal
    around it with the remaining variance. The mean over the estimate uses nine Gauss-Hermite nodes.
    All values are logarithms.
    """
    from policies.slearn.kernels import pilots  # numba is loaded where a kernel runs

    chances = np.empty(n_max + 1)
    pilots.chances_of_other_queue(prior.mean, prior.variance, task_variance, bounds, chances)
    values: list[float] = chances.tolist()
    return values


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
