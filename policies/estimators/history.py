"""What jobs like this one took before: the predictor of 3Sigma, over a sliding window."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from policies.estimators.histogram import Histogram, by_mean, by_median, by_utility
from sim.features import DAY_S, NAMES, Features

NAN = float("nan")
LONGEST_DAYS = 14.0
"""The longest window that the paper looks at (NSDI 2022, §4.2)."""
STATISTICS: dict[str, Callable[[Iterable[Histogram]], float]] = {
    "utility": by_utility,
    "median": by_median,
    "mean": by_mean,
}


@dataclass
class Day:
    """What a group saw end on one day: runtimes, and how wrong its own estimates of them were."""

    number: int
    runtimes: Histogram
    told: int = 0
    error_s: float = 0.0
    truth_s: float = 0.0


class Group:
    """The jobs that share one value of one feature, by the day on which they ended.

    Days that are over do not change any more; they are kept joined, besides one by one.
    """

    __slots__ = ("_joined", "_span", "days")

    def __init__(self) -> None:
        self.days: list[Day] = []
        self._joined: Day | None = None
        self._span = (0, 0)

    def since(self, first: int) -> list[Day]:
        """Forget the days before `first`; return those that are over, as one, and the last."""
        days = self.days
        while days and days[0].number < first:
            del days[0]
        if len(days) < 3:
            return days
        span = (days[0].number, days[-2].number)
        if self._joined is None or self._span != span:
            self._span, over = span, days[:-1]
            self._joined = Day(
                days[0].number,
                Histogram.joined([day.runtimes for day in over]),
                sum([day.told for day in over]),
                sum([day.error_s for day in over]),
                sum([day.truth_s for day in over]),
            )
        return [self._joined, days[-1]]


class History:
    """Predicts the mean task duration of a job by what similar jobs took (3Sigma, EuroSys 2018).

    For each of six features, the jobs of the window that had the same value are similar, and their
    mean task durations are a distribution, held in a bounded histogram a day (SLearn, NSDI 2022,
    §4.2). Each feature's group gives an estimate from its distribution (§4.3); that of the group
    whose past estimates were least wrong is taken. *How wrong* is the sum of the absolute errors
    of the estimates that the group gave when those jobs came, over the sum of what they took. A
    group that never gave one counts as wrong beyond measure, and of equals the feature that comes
    first in `sim.features.NAMES` goes. Where no feature has a group, the distribution of all jobs
    serves; where nothing has ended yet, there is no estimate.

    Everything that ended by `now` counts, history and simulated jobs alike, and nothing else.

    Parameters
    ----------
    features : Features
        Of the workload; rows of its stages are what is predicted.
    statistic : {"utility", "median", "mean"}
        What of the distribution is the estimate.
    window_days : float
        How far back the window reaches; 0 for as far as the workload's own history does at time 0,
        in whole days, and 14 days without one. Days are kept whole: what ended up to a day before
        the window may count still.
    bins : int
        Most bins of a histogram.
    """

    def __init__(self, features: Features, statistic: str, window_days: float, bins: int) -> None:
        now, past = features.codes
        self.codes: list[list[int]] = now.tolist()
        self.window_days = window_days or _days_of(features)
        self.bins = bins
        self._statistic = STATISTICS[statistic]
        self._groups: list[dict[int, Group]] = [{} for _ in NAMES]
        self._all = Group()
        self._told: dict[int, list[float]] = {}
        self._past = past.tolist()
        self._past_mean = features.past("mean_task_s").tolist()
        self._moments = _moments(features)
        self._moment = 0

    def predict(self, stage: int, now: float) -> float:
        """Estimate a stage's mean task duration, s, as its job comes; NaN for unknown."""
        self._catch_up(now)
        self._told[stage], similar = self._ask(self.codes[stage], now)
        return self._statistic(similar)

    def similar(self, stage: int, now: float) -> list[Histogram]:
        """Return the distribution that `predict` goes by, in parts; empty for unknown."""
        self._catch_up(now)
        return self._ask(self.codes[stage], now)[1]

    def learn(self, stage: int, mean_task_s: float, now: float) -> None:
        """Take in that a stage has ended."""
        self._catch_up(now)
        self._add(self.codes[stage], self._told.pop(stage, []), mean_task_s, now)

    def _ask(self, codes: Sequence[int], now: float) -> tuple[list[float], list[Histogram]]:
        """Return each feature's estimate, and the distribution to go by."""
        first = math.floor(now / DAY_S - self.window_days)
        told: list[float] = []
        best: list[Histogram] = []
        least = math.inf
        for groups, code in zip(self._groups, codes, strict=True):
            group = groups.get(code)
            days = group.since(first) if group is not None else []
            if not days:
                told.append(NAN)
                continue
            similar = [day.runtimes for day in days]
            told.append(self._statistic(similar))
            error = _error(days)
            if not best or error < least:
                best, least = similar, error
        return told, best or [day.runtimes for day in self._all.since(first)]

    def _add(
        self, codes: Sequence[int], told: Sequence[float], mean_task_s: float, now: float
    ) -> None:
        today = math.floor(now / DAY_S)
        for f, code in enumerate(codes):
            if code < 0:
                continue
            group = self._groups[f].get(code)
            if group is None:
                group = self._groups[f][code] = Group()
            day = self._day(group, today)
            if told and not math.isnan(told[f]):
                day.told += 1
                day.error_s += abs(told[f] - mean_task_s)
                day.truth_s += mean_task_s
            day.runtimes.add(mean_task_s)
        self._day(self._all, today).runtimes.add(mean_task_s)

    def _day(self, group: Group, number: int) -> Day:
        if not group.days or group.days[-1].number != number:
            group.days.append(Day(number, Histogram(self.bins)))
        return group.days[-1]

    def _catch_up(self, now: float) -> None:
        """Replay what of the history came and ended by `now`."""
        moments, at = self._moments, self._moment
        while at < len(moments) and moments[at][0] <= now:
            time, comes, row = moments[at]
            at += 1
            if comes:
                self._told[-1 - row] = self._ask(self._past[row], time)[0]
            else:
                told = self._told.pop(-1 - row, [])
                self._add(self._past[row], told, self._past_mean[row], time)
        self._moment = at


def _error(days: Sequence[Day]) -> float:
    """Return how wrong a group's estimates were; inf if it gave none."""
    if not any(day.told for day in days):
        return math.inf
    error = sum([day.error_s for day in days])
    if error == 0.0:
        return 0.0
    truth = sum([day.truth_s for day in days])
    return error / truth if truth > 0.0 else math.inf


def _days_of(features: Features) -> float:
    """Return how many days before time 0 the history begins, rounded up; 14 if it does not."""
    first_s = float(features.past("submit_s").min(initial=0.0))
    return float(math.ceil(-first_s / DAY_S)) or LONGEST_DAYS


def _moments(features: Features) -> list[tuple[float, bool, int]]:
    """List when jobs of the history end and come, in time; at one instant ends go first."""
    submit, finish = features.past("submit_s"), features.past("finish_s")
    rows = np.arange(len(submit))
    time = np.concatenate([finish, submit])
    comes = np.concatenate([np.zeros(len(rows), bool), np.ones(len(rows), bool)])
    row = np.concatenate([rows, rows])
    order = np.lexsort((row, comes, time))
    return list(zip(time[order].tolist(), comes[order].tolist(), row[order].tolist(), strict=True))
