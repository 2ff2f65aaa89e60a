"""Learning over time: what jobs like this one took before, as 3Sigma and Point-Est predict by."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from policies.slearn.estimators import Estimator, Jobs
from policies.slearn.histogram import Histogram, by_mean, by_median, by_quantile, by_utility
from sim.engine.plan import World
from sim.workload.history import DAY_S, NAMES, Features

NAN = float("nan")
NOTHING: list[tuple[float, ...]] = [()] * len(NAMES)
RECENT = 200
"""How many estimates of each of its points a group is judged by (3Sigma, EuroSys 2018)."""
LONGEST_DAYS = 14.0
"""The longest window that the paper looks at (NSDI 2022, §4.2)."""
STATISTICS: dict[str, Callable[[Histogram], float]] = {
    "utility": by_utility,
    "median": by_median,
    "quantile": by_quantile,
    "mean": by_mean,
}


class Points:
    """How wrong the best of a group's point estimators was, whatever its estimate is made of.

    As SLearn's authors' simulator has them: the mean; a moving mean, of which each job is 0.4; and
    the first value, which is what becomes there of the mean and of the median of the last 20. How
    wrong one was is the mean of its last `RECENT` absolute errors over the mean of all truths.
    """

    __slots__ = ("_errors", "_n", "_truths_s", "now", "told")

    def __init__(self) -> None:
        self.now: tuple[float, ...] = ()
        self._n = self.told = 0
        self._truths_s = 0.0
        self._errors: list[deque[float]] = [deque(maxlen=RECENT) for _ in range(3)]

    def add(self, value: float, told: tuple[float, ...]) -> None:
        """Take in what a job took, and what the points were when it came, () for nothing."""
        if told:
            self.told += 1
            self._truths_s += value
            for errors, point in zip(self._errors, told, strict=True):
                errors.append(abs(point - value))
        mean, moving, first = self.now or (value, value, value)
        n = self._n = self._n + 1
        self.now = (mean + (value - mean) / n, 0.6 * moving + 0.4 * value, first)

    @property
    def wrong(self) -> float:
        """How wrong the best of them was; inf if there was no estimate."""
        if not self.told or self._truths_s == 0.0:
            return math.inf
        mean = self._truths_s / self.told
        return min(sum(errors) / len(errors) for errors in self._errors) / mean


class Day:
    """What a group saw end on one day: runtimes, and how wrong its own estimates of them were."""

    __slots__ = ("_held", "_waiting", "error_s", "number", "told", "truth_s")

    def __init__(self, number: int, held: Histogram) -> None:
        self.number = number
        self._held = held
        self._waiting: list[float] = []
        self.told = 0
        self.error_s = self.truth_s = 0.0

    @property
    def runtimes(self) -> Histogram:
        """Their distribution; what has ended is put into it when it is looked at."""
        for value in self._waiting:
            self._held.add(value)
        self._waiting.clear()
        return self._held

    def add(self, mean_task_s: float, told: float) -> None:
        """Take in what a job took, and what it was expected to take, NaN if nothing."""
        self._waiting.append(mean_task_s)
        if not math.isnan(told):
            self.told += 1
            self.error_s += abs(told - mean_task_s)
            self.truth_s += mean_task_s

    @property
    def wrong(self) -> float:
        """How wrong its estimates were; inf if it gave none."""
        if not self.told:
            return math.inf
        if self.error_s == 0.0:
            return 0.0
        return self.error_s / self.truth_s if self.truth_s > 0.0 else math.inf


class Group:
    """The jobs that share one value of one feature: by the day on which they ended, and together.

    All days of the window are one histogram, which is made anew when one of them leaves it. Where
    the group is judged by `points`, these forget by themselves.
    """

    __slots__ = ("_bins", "_days", "points", "window")

    def __init__(self, bins: int, points: Points | None = None) -> None:
        self._bins = bins
        self._days: list[Day] = []
        self.window = Day(0, Histogram(bins))
        self.points = points

    def add(self, today: int, mean_task_s: float, told: tuple[float, ...]) -> None:
        """Take in a job that ended today, and what was told of it when it came, if anything."""
        days = self._days
        if not days or days[-1].number != today:
            days.append(Day(today, Histogram(self._bins)))
        expected = told[0] if told else NAN
        if self.points is not None:
            self.points.add(mean_task_s, told)
            expected = NAN
        days[-1].add(mean_task_s, expected)
        self.window.add(mean_task_s, expected)

    def since(self, first: int) -> Day:
        """Forget the days before `first`; return the others as one."""
        days = self._days
        if days and days[0].number < first:
            days = self._days = [day for day in days if day.number >= first]
            self.window = Day(0, Histogram.joined([day.runtimes for day in days], self._bins))
            self.window.told = sum([day.told for day in days])
            self.window.error_s = sum([day.error_s for day in days])
            self.window.truth_s = sum([day.truth_s for day in days])
        return self.window


class History:
    """Predicts the mean task duration of a job by what similar jobs took (3Sigma, EuroSys 2018).

    For each of six features, the jobs of the window that had the same value are similar, and their
    mean task durations are a distribution, held in a bounded histogram (SLearn, NSDI 2022, §4.2).
    Each feature's group gives an estimate from its distribution (§4.3); that of the group whose
    past estimates were least wrong is taken. *How wrong* is the sum of the absolute errors of the
    estimates that the group gave when those jobs came, over the sum of what they took. A group that
    never gave one counts as wrong beyond measure, and of equals the feature that comes first in
    `sim.workload.history.NAMES` goes. Where no feature has a group, the distribution of all jobs
    serves; where nothing has ended yet, there is no estimate.

    Otherwise: only the features `asked`; groups ranked by their `Points`; those that never gave an
    estimate first, or not asked; and no estimate rather than one that `falls_back` on all jobs.

    Everything that ended by `now` counts, history and simulated jobs alike, and nothing else.
    """

    def __init__(
        self,
        features: Features,
        statistic: str,
        window_days: float,
        bins: int,
        *,
        asked: Sequence[str] = NAMES,
        judged_by: Literal["statistic", "points"] = "statistic",
        unscored: Literal["last", "first", "never"] = "last",
        falls_back: bool = True,
    ) -> None:
        mask = np.isin(NAMES, asked)
        now, past = (np.where(mask, codes, -1) for codes in features.codes)
        self._by_points, self._falls_back = judged_by == "points", falls_back
        self._rank_unscored = {"last": math.inf, "first": -1.0, "never": NAN}[unscored]
        self.codes: list[list[int]] = now.tolist()
        self.window_days = window_days or _days_of(features)
        self.bins = bins
        self._statistic = STATISTICS[statistic]
        self._groups: list[dict[int, Group]] = [{} for _ in NAMES]
        self._all = Group(bins)
        self._told: dict[int, list[tuple[float, ...]]] = {}
        self._asked: tuple[int, float, Histogram] | None = None
        self._past = past.tolist()
        self._past_mean = features.history_column("mean_task_s").tolist()
        self._moments = moments(features)
        self._moment = 0

    def predict(self, stage: int, now: float) -> float:
        """Estimate a stage's mean task duration, s, as its job comes; NaN for unknown."""
        self._catch_up(now)
        self._told[stage], similar = self._ask(self.codes[stage], now)
        self._asked = stage, now, similar
        return self._statistic(similar)

    def similar(self, stage: int, now: float) -> Histogram:
        """Return the distribution that `predict` goes by; empty for unknown."""
        if self._asked and self._asked[:2] == (stage, now):
            return self._asked[2]
        self._catch_up(now)
        return self._ask(self.codes[stage], now)[1]

    def learn(self, stage: int, mean_task_s: float, now: float) -> None:
        """Take in that a stage has ended."""
        self._asked = None
        self._catch_up(now)
        self._add(self.codes[stage], self._told.pop(stage, NOTHING), mean_task_s, now)

    def _ask(self, codes: Sequence[int], now: float) -> tuple[list[tuple[float, ...]], Histogram]:
        """Return what each feature's group tells, and the distribution to go by."""
        first = math.floor(now / DAY_S - self.window_days)
        told = NOTHING.copy()
        best: Day | None = None
        least = math.inf
        for f, code in enumerate(codes):
            group = self._groups[f].get(code)
            if group is None:
                continue
            window = group.since(first)
            runtimes = window.runtimes
            if runtimes.n:
                judged = group.points or window
                told[f] = group.points.now if group.points else (self._statistic(runtimes),)
                rank = judged.wrong if judged.told else self._rank_unscored
                if rank < least or (best is None and rank == least):
                    best, least = window, rank
        if best is None and not self._falls_back:
            return told, Histogram(self.bins)
        return told, (best or self._all.since(first)).runtimes

    def _add(
        self,
        codes: Sequence[int],
        told: Sequence[tuple[float, ...]],
        mean_task_s: float,
        now: float,
    ) -> None:
        today = math.floor(now / DAY_S)
        for groups, code, expected in zip(self._groups, codes, told, strict=True):
            if code >= 0:
                group = groups.get(code)
                if group is None:
                    points = Points() if self._by_points else None
                    group = groups[code] = Group(self.bins, points)
                group.add(today, mean_task_s, expected)
        self._all.add(today, mean_task_s, ())

    def _catch_up(self, now: float) -> None:
        """Replay what of the history came and ended by `now`."""
        moments, at = self._moments, self._moment
        while at < len(moments) and moments[at][0] <= now:
            time, comes, row = moments[at]
            at += 1
            if comes:
                self._told[-1 - row] = self._ask(self._past[row], time)[0]
            else:
                told = self._told.pop(-1 - row, NOTHING)
                self._add(self._past[row], told, self._past_mean[row], time)
        self._moment = at


class HistoryEstimator(Estimator):
    """Sums what history says of each stage: mean task duration times tasks (NSDI 2022, §4.3, §6).

    With the utility it is 3Sigma, with the median Point-Est. Every so manieth job, by its number,
    may be learnt as it comes instead of when it has ended: truth that leaks.
    """

    def __init__(self, world: World, history: History, leak_every: int = 0) -> None:
        self._jobs = Jobs(world)
        self._history = history
        self._leaks = world.columns.features.every_nth_job(leak_every)
        self._leaked: set[int] = set()

    def arrived(self, job: int, now: float, thin: bool) -> int:
        """Want no pilots; predict what will be judged when the job ends."""
        if thin:
            self.size_s(job, now)
        return 0

    def size_s(self, job: int, now: float) -> float:
        """Return the sum over the job's stages of predicted mean times number of tasks."""
        jobs, predict = self._jobs, self._history.predict
        stages = range(jobs.stage0[job], jobs.stage0[job + 1])
        size = sum([predict(g, now) * jobs.n_tasks[g] for g in stages])
        if job in self._leaks:
            for g in stages:
                self._history.learn(g, jobs.mean_task_s(g), now)
            self._leaked.update(stages)
        return size

    def stage_done(self, stage: int, now: float) -> None:
        """Add it to the history, unless it is there."""
        if stage not in self._leaked:
            self._history.learn(stage, self._jobs.mean_task_s(stage), now)


def _days_of(features: Features) -> float:
    """Return how many days before time 0 the history begins, rounded up; 14 if it does not."""
    first_s = float(features.history_column("submit_s").min(initial=0.0))
    return float(math.ceil(-first_s / DAY_S)) or LONGEST_DAYS


def moments(features: Features) -> list[tuple[float, bool, int]]:
    """List when jobs of the history end and come, in time; at one instant ends go first.

    Of those without times each ends before the next one comes, and all before any other.
    """
    submit, finish = features.history_column("submit_s"), features.history_column("finish_s")
    rows = np.arange(len(submit))
    time = np.concatenate([finish, submit])
    comes = np.concatenate([np.zeros(len(rows), bool), np.ones(len(rows), bool)])
    row = np.concatenate([rows, rows])
    turn = np.where(features.untimed[row], 2 * row + ~comes - 2 * len(row), comes)
    order = np.lexsort((row, turn, time))
    return list(zip(time[order].tolist(), comes[order].tolist(), row[order].tolist(), strict=True))
