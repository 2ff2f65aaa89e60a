"""Learning over time: what jobs like this one took before, as 3Sigma and Point-Est predict by."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from policies.slearn.estimators import Estimator, Jobs
from policies.slearn.histogram import Histogram, by_mean, by_median, by_utility
from sim.engine.plan import World
from sim.workload.past import DAY_S, NAMES, Features

NAN = float("nan")
NOTHING = [NAN] * len(NAMES)
LONGEST_DAYS = 14.0
"""The longest window that the paper looks at (NSDI 2022, §4.2)."""
STATISTICS: dict[str, Callable[[Histogram], float]] = {
    "utility": by_utility,
    "median": by_median,
    "mean": by_mean,
}


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

    All days of the window are one histogram, which is made anew when one of them leaves it.
    """

    __slots__ = ("_bins", "_days", "window")

    def __init__(self, bins: int) -> None:
        self._bins = bins
        self._days: list[Day] = []
        self.window = Day(0, Histogram(bins))

    def add(self, today: int, mean_task_s: float, told: float) -> None:
        """Take in a job that ended today; see `Day.add`."""
        days = self._days
        if not days or days[-1].number != today:
            days.append(Day(today, Histogram(self._bins)))
        days[-1].add(mean_task_s, told)
        self.window.add(mean_task_s, told)

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
    `sim.workload.past.NAMES` goes. Where no feature has a group, the distribution of all jobs
    serves; where nothing has ended yet, there is no estimate.

    Everything that ended by `now` counts, history and simulated jobs alike, and nothing else.
    """

    def __init__(self, features: Features, statistic: str, window_days: float, bins: int) -> None:
        now, past = features.codes
        self.codes: list[list[int]] = now.tolist()
        self.window_days = window_days or _days_of(features)
        self.bins = bins
        self._statistic = STATISTICS[statistic]
        self._groups: list[dict[int, Group]] = [{} for _ in NAMES]
        self._all = Group(bins)
        self._told: dict[int, list[float]] = {}
        self._asked: tuple[int, float, Histogram] | None = None
        self._past = past.tolist()
        self._past_mean = features.past("mean_task_s").tolist()
        self._moments = _moments(features)
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

    def _ask(self, codes: Sequence[int], now: float) -> tuple[list[float], Histogram]:
        """Return each feature's estimate, and the distribution to go by."""
        first = math.floor(now / DAY_S - self.window_days)
        told = NOTHING.copy()
        best: Day | None = None
        for f, code in enumerate(codes):
            group = self._groups[f].get(code)
            if group is None:
                continue
            window = group.since(first)
            runtimes = window.runtimes
            if runtimes.n:
                told[f] = self._statistic(runtimes)
                if best is None or window.wrong < best.wrong:
                    best = window
        return told, (best or self._all.since(first)).runtimes

    def _add(
        self, codes: Sequence[int], told: Sequence[float], mean_task_s: float, now: float
    ) -> None:
        today = math.floor(now / DAY_S)
        for groups, code, expected in zip(self._groups, codes, told, strict=True):
            if code >= 0:
                group = groups.get(code)
                if group is None:
                    group = groups[code] = Group(self.bins)
                group.add(today, mean_task_s, expected)
        self._all.add(today, mean_task_s, NAN)

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

    With the utility it is 3Sigma, with the median Point-Est.
    """

    def __init__(self, world: World, history: History) -> None:
        self._jobs = Jobs(world)
        self._history = history

    def arrived(self, job: int, now: float, thin: bool) -> int:
        """Want no pilots; predict what will be judged when the job ends."""
        if thin:
            self.size_s(job, now)
        return 0

    def size_s(self, job: int, now: float) -> float:
        """Return the sum over the job's stages of predicted mean times number of tasks."""
        jobs, predict = self._jobs, self._history.predict
        stages = range(jobs.stage0[job], jobs.stage0[job + 1])
        return sum([predict(g, now) * jobs.n_tasks[g] for g in stages])

    def stage_done(self, stage: int, now: float) -> None:
        """Add it to the history."""
        self._history.learn(stage, self._jobs.mean_task_s(stage), now)


def _days_of(features: Features) -> float:
    """Return how many days before time 0 the history begins, rounded up; 14 if it does not."""
    first_s = float(features.past("submit_s").min(initial=0.0))
    return float(math.ceil(-first_s / DAY_S)) or LONGEST_DAYS


def _moments(features: Features) -> list[tuple[float, bool, int]]:
    """List when jobs of the history end and come, in time; at one instant ends go first.

    Of those without times each ends before the next one comes, and all before any other.
    """
    submit, finish = features.past("submit_s"), features.past("finish_s")
    rows = np.arange(len(submit))
    time = np.concatenate([finish, submit])
    comes = np.concatenate([np.zeros(len(rows), bool), np.ones(len(rows), bool)])
    row = np.concatenate([rows, rows])
    turn = np.where(features.untimed[row], 2 * row + ~comes - 2 * len(row), comes)
    order = np.lexsort((row, turn, time))
    return list(zip(time[order].tolist(), comes[order].tolist(), row[order].tolist(), strict=True))
