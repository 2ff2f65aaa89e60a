"""Learning in time and space: pilots run where history's estimate is too uncertain."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from policies.estimates.priors import UNKNOWN, Priors
from policies.estimates.weights import SHORTEST_S
from policies.slearn.estimators import mean_task_s
from policies.slearn.pilots import Pilots, n_pilots
from sim.base import maths
from sim.base.arrays import F8
from sim.engine.plan import World
from sim.workload.columns import Columns

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
    gain (`policies.slearn.kernels.pilots`), and 0 if no number has a positive gain: then the
    prior's mean is the estimate. If pilots ran, they alone are the estimate: a job with an
    uncertain prior often differs from history, and weighing both by their variances was no better
    (policies/slearn/decisions/0023-slearn-bayes.md).
    """

    def __init__(
        self, world: World, percent: float, priors: Priors, thresholds: Sequence[float]
    ) -> None:
        super().__init__(world, percent)
        self._priors = priors
        self._n_done, self._last, self._in_order = 0, -1, True
        columns = world.columns
        n_tasks = np.diff(columns.stage_task0[columns.job_stage0])
        self._n_tasks: list[int] = n_tasks.tolist()
        self._log_n_tasks: list[float] = maths.log(n_tasks).tolist()
        self._spread = Spread(world, priors, thresholds)
        self._stretch: deque[float] = deque(maxlen=RECENT)
        self._prior: dict[int, tuple[float, float, float]] = {}  # with the median, s
        self._stage_prior: dict[int, tuple[float, float]] = {}
        self._surprise: deque[float] = deque(maxlen=RECENT)
        self._n_waiting: deque[int] = deque([0] * RECENT)
        self._n_asked, self._sum_waiting = 0, 0

    def arrived(self, job: int, now: float, thin: bool) -> int:
        """Choose the number of pilots; score the priors of thin jobs later, too."""
        jobs, predict = self._jobs, self._priors.predict
        begin, end = jobs.stage0[job], jobs.stage0[job + 1]
        priors = [predict(g, now) for g in range(begin, end)]
        self._in_order &= job > self._last
        self._last = job
        if thin:
            return 0
        first = jobs.sampled[job]
        if end - begin > 1:
            self._predicted[job] = [prior[2] for prior in priors]
        mean, variance, median_s = priors[first - begin]
        self._stage_prior[first] = mean, variance
        self._prior[job] = mean, variance * self._inflation(), median_s
        return self._start_pilots(job, now)

    def _choose_n_pilots(self, job: int, n_tasks: int, now: float) -> int:
        mean, variance, _ = self._prior[job]
        if self._percent > 0 or math.isinf(variance):
            return n_pilots(n_tasks, self._percent or 3)
        jobs, stage = self._jobs, self._jobs.sampled[job]
        stretch = sum(self._stretch) / len(self._stretch) if self._stretch else math.inf
        n_waiting = job - self._n_done  # of the jobs before it
        if not self._in_order:
            n_waiting = int(np.count_nonzero(self._view["left"][:job]))
        self._n_waiting.append(n_waiting)
        self._sum_waiting += n_waiting - self._n_waiting.popleft()
        self._n_asked += 1
        # after a lull other jobs still arrive
        n_others = max(n_waiting, self._sum_waiting / min(self._n_asked, RECENT))
        return self._spread.choose_n_pilots(
            stage, mean, variance, n_pilots(n_tasks, MAX_PERCENT), stretch,
            self._n_tasks[job], self._log_n_tasks[job], jobs.slots[job], float(n_others),
        )  # fmt: skip

    def _mean_s(self, job: int, now: float) -> float:
        mean_s = self._prior.pop(job)[2]
        if job in self._n_pilots:
            return super()._mean_s(job, now)
        return mean_s if mean_s > SHORTEST_S * (1 + 1e-9) else 0.0

    def stage_done(self, stage: int, now: float) -> None:
        """Add the stage to the history, and the spread of its tasks."""
        mean_s = self._jobs.mean_task_s(stage)
        log_s = self._priors.add(stage, mean_s, now)
        self._spread.learn(stage)
        mean, variance = self._stage_prior.pop(stage, UNKNOWN)
        if 0 < variance < math.inf and mean_s > 0:
            log_s = log_s if mean_s >= SHORTEST_S else maths.log(mean_s)
            surprise = (log_s - mean) ** 2 / variance
            self._surprise.append(min(surprise, MAX_SURPRISE))

    def _inflation(self) -> float:
        """Return the factor on the variance of priors, at least 1."""
        return max(1.0, sum(self._surprise) / len(self._surprise)) if self._surprise else 1.0

    def job_done(self, job: int, now: float) -> None:
        """Record the stretch: its completion time over that on an empty cluster."""
        self._n_done += 1
        stretch = self._jobs.normalised_jct(job, now)
        if not math.isnan(stretch):
            self._stretch.append(stretch)


class Spread:
    """Spread of task durations within a stage: mean squared coefficient of variation.

    Taken by the first feature of `sim.workload.history.NAMES` with three similar finished stages,
    else over all finished stages; 1, as of an exponential distribution, before any. Stages of one
    task or of zero length do not count.
    """

    def __init__(self, world: World, priors: Priors, thresholds: Sequence[float]) -> None:
        from policies.slearn.kernels import pilots  # numba is loaded where a kernel runs
        from sim.base.jit import compiled

        self._squared_cv: list[float] = world.once_ended(squared_cv).values.tolist()
        self._arrays = priors.group, np.zeros((priors.n_groups, 2))
        self._add: Callable[..., None] = compiled(pilots.add_spread, *self._arrays, 0, 0.0)
        bounds = maths.log(thresholds)
        self._known = *self._arrays, bounds
        numbers = 0, 0.0, 0.0, 0, 0.0, 0, 0.0, 0, 0.0
        self._choose: Callable[..., int] = compiled(pilots.choose_n_pilots, *self._known, *numbers)

    def learn(self, stage: int) -> None:
        """Add a finished stage."""
        value = self._squared_cv[stage]
        if not math.isnan(value):
            self._add(*self._arrays, stage, value)

    def choose_n_pilots(self, stage: int, *numbers: float) -> int:
        """Return the number of pilots of a stage with the highest expected gain.

        Further arguments are those of `policies.slearn.kernels.pilots.choose_n_pilots`.
        """
        return self._choose(*self._known, stage, *numbers)


def squared_cv(columns: Columns) -> F8:
    """Return the squared coefficient of variation of each stage's task durations, (G,).

    NaN for stages of one task or of zero length.
    """
    first, sizes = columns.stage_task0[:-1], np.diff(columns.stage_task0)
    mean = mean_task_s(columns)
    deviation = columns.task_duration - np.repeat(mean, sizes)
    variance = np.add.reduceat(deviation * deviation, first) / np.maximum(sizes - 1, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        squared: F8 = variance / mean**2
    squared[(sizes < 2) | (mean == 0)] = np.nan
    return squared
