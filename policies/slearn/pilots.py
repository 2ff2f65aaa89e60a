"""Learning in space: estimates from pilots, a job's first tasks; and SLearn's adaptive ratio."""

from __future__ import annotations

import math
from functools import cached_property

from policies.slearn.estimators import Estimator, Jobs
from policies.slearn.history import History
from sim.base.arrays import F8
from sim.engine.plan import World


class Pilots(Estimator):
    """Job sizes from the mean duration of pilots (SLearn, NSDI 2022, §5.1.2).

    max(1, ratio × S) tasks of the job's first stage of S tasks are pilots, rounded down.
    Their empirical mean is the estimate for the tasks of every stage. With a history it is the
    estimate for the first stage only, and each later stage has the mean that history predicts,
    times the ratio of the first stage's sampled mean to its predicted one (SLearn-DAG, §6). The
    ratio is 1 where history has no prediction for the first stage, or predicts 0 s. All tasks of a
    gang start together, so that a gang has at least that many pilots.
    """

    rounds_up = False
    """True if the number of pilots is rounded up instead."""

    def __init__(self, world: World, percent: float, history: History | None = None) -> None:
        self._jobs = Jobs(world)
        self._view = world.view
        self._percent = percent
        self._history = history
        self._ratio = AdaptiveRatio()
        self._used: dict[int, int] = {}
        self._predicted: dict[int, list[float]] = {}
        self._n_pilots: dict[int, int] = {}

    def arrived(self, job: int, now: float, thin: bool) -> int:
        """Choose the number of pilots; 0 for a thin job."""
        jobs = self._jobs
        if self._history is not None:
            stages = range(jobs.stage0[job], jobs.stage0[job + 1])
            predicted = [self._history.predict(g, now) for g in stages]
            if not thin:
                self._predicted[job] = predicted
        if thin:
            return 0
        return self._start_pilots(job, now)

    def _start_pilots(self, job: int, now: float) -> int:
        """Choose and store the number of pilots of a job."""
        jobs = self._jobs
        number = self._choose_n_pilots(job, jobs.n_tasks[jobs.sampled[job]], now)
        if number:
            number = self._n_pilots[job] = max(number, jobs.gang[job])
        return number

    def size_s(self, job: int, now: float) -> float:
        """Return the sum over stages of mean times tasks, from the pilots' durations."""
        jobs = self._jobs
        mean = self._mean_s(job, now)
        first, begin, end = jobs.sampled[job], jobs.stage0[job], jobs.stage0[job + 1]
        predicted = self._predicted.pop(job, None)
        if predicted is None or end - begin == 1:
            return mean * sum(jobs.n_tasks[begin:end])
        expected = predicted[first - begin]
        ratio = mean / expected if expected > 0 else 1.0
        size = mean * jobs.n_tasks[first]
        for g, history_s in zip(range(begin, end), predicted, strict=True):
            if g != first:
                later_mean = mean if math.isnan(history_s) else history_s * ratio
                size += later_mean * jobs.n_tasks[g]
        return size

    def _choose_n_pilots(self, job: int, n_tasks: int, now: float) -> int:
        """Choose the number of pilots of a first stage of `n_tasks` tasks."""
        percent = self._percent
        if percent == 0:
            percent = self._used[job] = self._ratio.percent()
        return n_pilots(n_tasks, percent, up=self.rounds_up)

    @cached_property
    def _first_work(self) -> F8:
        return self._view["first_work"]

    def _mean_s(self, job: int, now: float) -> float:
        """Estimate the mean task duration of the first stage."""
        first_work_s: float = self._first_work.item(job)
        return first_work_s / self._n_pilots.pop(job)

    def stage_done(self, stage: int, now: float) -> None:
        """Add the stage to the history."""
        if self._history is not None:
            self._history.learn(stage, self._jobs.mean_task_s(stage), now)

    def job_done(self, job: int, now: float) -> None:
        """Score the ratio that the job used, if it was sampled and has a size."""
        percent = self._used.pop(job, None)
        if percent is not None:
            score = self._jobs.normalised_jct(job, now)
            if not math.isnan(score):
                self._ratio.update(percent, score)


class TruthAfterPilots(Pilots):
    """True sizes once the pilots have ended: the best that any estimate from pilots can do."""

    def __init__(self, world: World, percent: float) -> None:
        super().__init__(world, percent)
        self._work = world.columns.job_work.tolist()

    def size_s(self, job: int, now: float) -> float:
        """Return the job's size."""
        return float(self._work[job])


def n_pilots(n_tasks: int, percent: float, *, up: bool = False) -> int:
    """Return max(1, percent of the tasks, rounded down, or up); never more than there are."""
    exact = n_tasks * percent / 100
    return min(n_tasks, max(1, math.ceil(exact - 1e-9) if up else math.floor(exact + 1e-9)))


class AdaptiveRatio:
    """SLearn's adaptive ratio: the ratio with the least recent completion times for the size.

    The algorithm of NSDI 2022, Fig. 4: the first T jobs sample 3 % of their tasks, the second T
    2 %, the third T 4 %. Then each job uses the ratio of the least score: the mean normalised
    completion time of the last T + 1 jobs that used it (the figure drops one only when there are
    more than T, then appends). If 2 % is better than 3 % by a tenth, 1 % is tried; if 4 % is, 5 %.

    The figure leaves two points open. Here a ratio without a score is skipped, and while none has
    one the ratio is 3 %; of equal scores the smallest ratio is used.
    """

    def __init__(self, recent: int = 100) -> None:
        self.recent = recent
        self._n_jobs = 0
        self._jobs: dict[int, list[float]] = {}
        self._score: dict[int, float] = {}

    def percent(self) -> int:
        """Return the ratio for the next job, percent."""
        turn = self._n_jobs // self.recent
        self._n_jobs += 1
        if turn < 3:
            return (3, 2, 4)[turn]
        score = self._score
        if not score:
            return 3
        best = min(score, key=lambda percent: (score[percent], percent))
        if best in (2, 4) and 3 in score and score[3] > 1.1 * score[best]:
            return 1 if best == 2 else 5
        return best

    def update(self, percent: int, normalised_jct: float) -> None:
        """Add the normalised completion time of a job with that ratio."""
        jobs = self._jobs.setdefault(percent, [])
        if len(jobs) > self.recent:
            del jobs[0]
        jobs.append(normalised_jct)
        self._score[percent] = sum(jobs) / len(jobs)
