"""3Sigma's predictor in plain Python, the reference of `policies.slearn.kernels.history`."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from sim.workload.history import DAY_S, NAMES, Features
from tests.policies.estimates.priors import timeline
from tests.policies.slearn.histogram import Histogram, by_mean, by_median, by_quantile, by_utility

NAN = float("nan")
NO_ESTIMATES: list[tuple[float, ...]] = [()] * len(NAMES)
RECENT = 200
"""Number of estimates of each point estimator that a group is ranked by (3Sigma, EuroSys 2018)."""
LONGEST_DAYS = 14.0
"""The longest window in the paper (NSDI 2022, §4.2)."""
STATISTICS: dict[str, Callable[[Histogram], float]] = {
    "utility": by_utility,
    "median": by_median,
    "quantile": by_quantile,
    "mean": by_mean,
}


class PointEstimators:
    """Error of the best of a group's point estimators, which ranks the group for any statistic.

    The estimators of SLearn's authors' simulator: the mean; a moving mean with weight 0.4 for the
    last job; and the first value, which the mean and the median of the last 20 amount to there. The
    error of an estimator is the mean of its last `RECENT` absolute errors over the mean of all true
    values.
    """

    __slots__ = ("_errors", "_n", "_truths_s", "n_estimates", "now")

    def __init__(self) -> None:
        self.now: tuple[float, ...] = ()
        self._n = self.n_estimates = 0
        self._truths_s = 0.0
        self._errors: list[deque[float]] = [deque(maxlen=RECENT) for _ in range(3)]

    def add(self, value: float, estimates: tuple[float, ...]) -> None:
        """Add a job's true value, and the estimates on its arrival, () for none."""
        if estimates:
            self.n_estimates += 1
            self._truths_s += value
            for errors, point in zip(self._errors, estimates, strict=True):
                errors.append(abs(point - value))
        mean, moving, first = self.now or (value, value, value)
        n = self._n = self._n + 1
        self.now = (mean + (value - mean) / n, 0.6 * moving + 0.4 * value, first)

    @property
    def error(self) -> float:
        """Relative error of the best estimator; inf without any estimate."""
        if not self.n_estimates or self._truths_s == 0.0:
            return math.inf
        mean = self._truths_s / self.n_estimates
        return min(sum(errors) / len(errors) for errors in self._errors) / mean


class Day:
    """Runtimes of a group's jobs that ended on one day, and the errors of its estimates of them."""

    __slots__ = ("_histogram", "_waiting", "error_s", "n_estimates", "number", "truth_s")

    def __init__(self, number: int, histogram: Histogram) -> None:
        self.number = number
        self._histogram = histogram
        self._waiting: list[float] = []
        self.n_estimates = 0
        self.error_s = self.truth_s = 0.0

    @property
    def runtimes(self) -> Histogram:
        """Distribution of the runtimes; values are added to it lazily, on access."""
        for value in self._waiting:
            self._histogram.add(value)
        self._waiting.clear()
        return self._histogram

    def add(self, mean_task_s: float, estimate_s: float) -> None:
        """Add a job's true mean task duration and its estimate, NaN for none."""
        self._waiting.append(mean_task_s)
        if not math.isnan(estimate_s):
            self.n_estimates += 1
            self.error_s += abs(estimate_s - mean_task_s)
            self.truth_s += mean_task_s

    @property
    def error(self) -> float:
        """Relative error of the estimates; inf without any."""
        if not self.n_estimates:
            return math.inf
        if self.error_s == 0.0:
            return 0.0
        return self.error_s / self.truth_s if self.truth_s > 0.0 else math.inf


class Group:
    """Jobs that share one value of one feature: by the day of their end, and over the window.

    All days of the window are one histogram, which is rebuilt when a day leaves the window. Ranking
    by `points` needs no window, because these have one of their own.
    """

    __slots__ = ("_bins", "_days", "points", "window")

    def __init__(self, bins: int, points: PointEstimators | None = None) -> None:
        self._bins = bins
        self._days: list[Day] = []
        self.window = Day(0, Histogram(bins))
        self.points = points

    def add(self, today: int, mean_task_s: float, estimates: tuple[float, ...]) -> None:
        """Add a job that ended today, and its estimates on arrival, () for none."""
        days = self._days
        if not days or days[-1].number != today:
            days.append(Day(today, Histogram(self._bins)))
        expected = estimates[0] if estimates else NAN
        if self.points is not None:
            self.points.add(mean_task_s, estimates)
            expected = NAN
        days[-1].add(mean_task_s, expected)
        self.window.add(mean_task_s, expected)

    def since(self, first: int) -> Day:
        """Drop the days before `first`; return the union of the others."""
        days = self._days
        if days and days[0].number < first:
            days = self._days = [day for day in days if day.number >= first]
            self.window = Day(0, Histogram.merged([day.runtimes for day in days], self._bins))
            self.window.n_estimates = sum([day.n_estimates for day in days])
            self.window.error_s = sum([day.error_s for day in days])
            self.window.truth_s = sum([day.truth_s for day in days])
        return self.window


class History:
    """Predictor of mean task durations from similar past jobs (3Sigma, EuroSys 2018).

    For each of six features, jobs of the window with the same value form a group. Their mean task
    durations are a distribution, stored in a bounded histogram (SLearn, NSDI 2022, §4.2). Each
    feature's group gives an estimate from its distribution (§4.3), and the estimate of the group
    with the least past error is used. The error is the sum of the absolute errors of the group's
    estimates on arrival over the sum of the true values. A group without past estimates has
    infinite error. On a tie the first feature of `sim.workload.history.NAMES` wins. Where
    no feature has a group, the distribution of all jobs is used. Before any job has ended, there is
    no estimate.

    Options: only the features in `predictors`; groups ranked by their `PointEstimators`; groups
    without past estimates ranked first, or unused; and no estimate instead of one that `falls_back`
    on all jobs.

    Exactly the jobs that ended by `now` count, both of the history and of the simulation.
    """

    def __init__(
        self,
        features: Features,
        statistic: str,
        window_days: float,
        bins: int,
        *,
        predictors: Sequence[str] = NAMES,
        judged_by: Literal["statistic", "points"] = "statistic",
        unscored: Literal["last", "first", "never"] = "last",
        falls_back: bool = True,
    ) -> None:
        mask = np.isin(NAMES, predictors)
        now, past = (np.where(mask, codes, -1) for codes in features.codes)
        self._by_points, self._falls_back = judged_by == "points", falls_back
        self._rank_unscored = {"last": math.inf, "first": -1.0, "never": NAN}[unscored]
        self.codes: list[list[int]] = now.tolist()
        self.window_days = window_days or _days_of(features)
        self.bins = bins
        self._statistic = STATISTICS[statistic]
        self._groups: list[dict[int, Group]] = [{} for _ in NAMES]
        self._all = Group(bins)
        self._estimates: dict[int, list[tuple[float, ...]]] = {}
        self._last_query: tuple[int, float, Histogram] | None = None
        self._past = past.tolist()
        self._past_mean = features.history_column("mean_task_s").tolist()
        self._timeline = timeline(features)
        self._next_event = 0

    def predict(self, stage: int, now: float) -> float:
        """Estimate a stage's mean task duration on its job's arrival, s; NaN for unknown."""
        self._catch_up(now)
        self._estimates[stage], similar = self._query(self.codes[stage], now)
        self._last_query = stage, now, similar
        return self._statistic(similar)

    def similar(self, stage: int, now: float) -> Histogram:
        """Return the distribution that `predict` uses; empty for unknown."""
        if self._last_query and self._last_query[:2] == (stage, now):
            return self._last_query[2]
        self._catch_up(now)
        return self._query(self.codes[stage], now)[1]

    def learn(self, stage: int, mean_task_s: float, now: float) -> None:
        """Add a finished stage."""
        self._last_query = None
        self._catch_up(now)
        self._learn(self.codes[stage], self._estimates.pop(stage, NO_ESTIMATES), mean_task_s, now)

    def _query(self, codes: Sequence[int], now: float) -> tuple[list[tuple[float, ...]], Histogram]:
        """Return the estimates of each feature's group, and the distribution to use."""
        first_day = math.floor(now / DAY_S - self.window_days)
        estimates = NO_ESTIMATES.copy()
        best: Day | None = None
        best_error = math.inf
        for f, code in enumerate(codes):
            group = self._groups[f].get(code)
            if group is None:
                continue
            window = group.since(first_day)
            runtimes = window.runtimes
            if runtimes.n:
                record = group.points or window
                estimates[f] = group.points.now if group.points else (self._statistic(runtimes),)
                rank = record.error if record.n_estimates else self._rank_unscored
                if rank < best_error or (best is None and rank == best_error):
                    best, best_error = window, rank
        if best is None and not self._falls_back:
            return estimates, Histogram(self.bins)
        return estimates, (best or self._all.since(first_day)).runtimes

    def _learn(
        self,
        codes: Sequence[int],
        estimates: Sequence[tuple[float, ...]],
        mean_task_s: float,
        now: float,
    ) -> None:
        today = math.floor(now / DAY_S)
        for groups, code, group_estimates in zip(self._groups, codes, estimates, strict=True):
            if code >= 0:
                group = groups.get(code)
                if group is None:
                    points = PointEstimators() if self._by_points else None
                    group = groups[code] = Group(self.bins, points)
                group.add(today, mean_task_s, group_estimates)
        self._all.add(today, mean_task_s, ())

    def _catch_up(self, now: float) -> None:
        """Replay arrivals and ends of the history up to `now`."""
        events, i = self._timeline, self._next_event
        while i < len(events) and events[i][0] <= now:
            time_s, is_arrival, row = events[i]
            i += 1
            if is_arrival:
                self._estimates[-1 - row] = self._query(self._past[row], time_s)[0]
            else:
                estimates = self._estimates.pop(-1 - row, NO_ESTIMATES)
                self._learn(self._past[row], estimates, self._past_mean[row], time_s)
        self._next_event = i


def _days_of(features: Features) -> float:
    """Return the length of the history before time 0, days, rounded up; 14 if it is empty."""
    first_s = float(features.history_column("submit_s").min(initial=0.0))
    return float(math.ceil(-first_s / DAY_S)) or LONGEST_DAYS
