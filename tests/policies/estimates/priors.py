"""Priors in plain Python, the reference of `policies.estimates.kernels.priors`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8
from sim.base.random import Normal
from sim.workload.columns import Columns
from sim.workload.history import NAMES, Features
from sim.workload.tables import values

SHORTEST_S = 1e-3
"""Lower limit of durations, so that logarithms exist."""

RECENT = 100
"""Effective number of predictions in the errors of a kind of group: the T of SLearn's Fig. 4."""

OWN_RECENT = 10
"""Effective number of predictions in the errors of one group."""

KIND_WEIGHT = 4.0
"""Weight of the errors of a group's kind, in errors of the group itself."""

UNKNOWN = Normal(0.0, math.inf)


class Errors:
    """Exponentially weighted squared errors of both predictions, by mean and by moving mean."""

    __slots__ = ("_decay", "last", "mean", "n")

    def __init__(self, recent: int) -> None:
        self._decay = 1.0 - 1.0 / recent
        self.n = self.mean = self.last = 0.0

    def add(self, by_mean: float, by_last: float) -> None:
        """Add the error of each prediction."""
        decay = self._decay
        self.n = decay * self.n + 1.0
        self.mean = decay * self.mean + by_mean * by_mean
        self.last = decay * self.last + by_last * by_last


class Runs:
    """Runs that share one value of one feature, in logarithms of mean task seconds."""

    __slots__ = ("errors", "last", "mean", "n")

    def __init__(self) -> None:
        self.n = 0
        self.mean = self.last = 0.0
        self.errors = Errors(OWN_RECENT)

    def add(self, log_s: float) -> None:
        """Add a finished run."""
        self.n += 1
        self.mean += (log_s - self.mean) / self.n
        self.last = log_s if self.n == 1 else (self.last + log_s) / 2


Predictions = list[tuple[Runs, Errors, float, float]]
Code = int | tuple[str, int]


class Priors:
    """Predictor of the logarithm of a stage's mean task duration, with a variance.

    Runs with the same value of a feature form a group, and all runs are a group, too. A group makes
    two predictions: its mean, and a moving mean in which the last run weighs a half, the one before
    a quarter, and so on. The prediction with the least mean squared error is the prior's mean, and
    that error is its variance.

    The error of a prediction is a mean over three sources: recent errors of the group itself; with
    weight `KIND_WEIGHT`, the errors of all groups of its kind, which share the feature and had
    about as many runs (1, 2 to 3, 4 to 7, ...); and one error of the mean of all finished runs, so
    that a kind with few predictions is uncertain. For a job with a new value of the first feature,
    only the errors for such jobs count, without the group's own: groups that predict known programs
    well may predict new ones badly.

    So a program with one earlier run is as certain as such programs were, and a program that
    changed is uncertain for a while. Exactly the jobs that ended by `now` count, both of the
    history and of the simulation. (3Sigma, EuroSys 2018, chooses among such predictors, and stores
    histograms.)
    """

    def __init__(self, features: Features, columns: Columns | None = None) -> None:
        now, past = features.codes
        self._n_programs = 1 if columns is None else 2
        self.codes: list[list[Code]] = now.tolist()
        self._past: list[list[Code]] = past.tolist()
        n_features = len(NAMES)
        if columns is not None:
            n_features += 1
            add_places(self.codes, self._past, columns)
        mean_task_s = features.history_column("mean_task_s").clip(SHORTEST_S)
        self._past_log: list[float] = maths.log(mean_task_s).tolist()
        self._n_tasks = values(features.stages, "n_tasks")
        self._timeline = timeline(features)
        self._next_event = 0
        self._groups: list[dict[Code, Runs]] = [{} for _ in range(n_features)]
        self._all, self._broad = Runs(), Errors(RECENT)
        # by feature and last of all runs; of known jobs, then of new ones
        kinds = range(2 * (n_features + 1))
        self._kind_errors = [[Errors(RECENT) for _ in range(32)] for _ in kinds]
        self._queries: dict[int, tuple[bool, Predictions]] = {}
        for run in recorded_runs(columns) if columns is not None else ():
            codes = [[place, *[-1] * len(NAMES)] for place, _ in run]
            queries = [self._query(row) for row in codes]
            for row, query, (_, mean_s) in zip(codes, queries, run, strict=True):
                self._learn(row, query, maths.log(max(mean_s, SHORTEST_S)))

    def prior(self, stage: int, now: float) -> Normal:
        """Return a stage's prior on its job's arrival; infinite variance for unknown."""
        self._catch_up(now)
        is_new, predictions = self._queries[stage] = self._query(self.codes[stage])
        best, best_variance = UNKNOWN
        if self._broad.n == 0.0:
            return UNKNOWN
        broad = self._broad.mean / self._broad.n
        for runs, kind, mean, last in predictions:
            share, group = KIND_WEIGHT / (kind.n + 1.0), runs.errors
            by_mean, by_last, n = (
                share * (kind.mean + broad),
                share * (kind.last + broad),
                KIND_WEIGHT,
            )
            if not is_new:
                by_mean, by_last, n = (
                    by_mean + group.mean,
                    by_last + group.last,
                    n + group.n,
                )
            if by_mean < best_variance * n:
                best, best_variance = mean, by_mean / n
            if by_last < best_variance * n:
                best, best_variance = last, by_last / n
        return Normal(best, best_variance)

    def expect(self, stages: I8, now: float) -> F8:
        """See `policies.estimates.durations.Durations`: the median of each prior."""
        priors = [self.prior(stage, now) for stage in stages.tolist()]
        return np.array([math.nan if math.isinf(p.variance) else maths.exp(p.mean) for p in priors])

    def learn(self, stages: I8, work_s: F8, now: float) -> None:
        """See `policies.estimates.durations.Durations`."""
        for stage, mean_s in zip(stages, work_s / self._n_tasks[stages], strict=True):
            self.add(int(stage), float(mean_s), now)

    def add(self, stage: int, mean_task_s: float, now: float) -> None:
        """Add a finished stage."""
        self._catch_up(now)
        log_s = maths.log(max(mean_task_s, SHORTEST_S))
        self._learn(self.codes[stage], self._queries.pop(stage, (True, [])), log_s)

    def _query(self, codes: Sequence[Code]) -> tuple[bool, Predictions]:
        """Return True if the first feature is new, and each group's predictions and kind errors."""
        predictions: Predictions = []
        programs = range(self._n_programs)
        is_new = not any(codes[f] in self._groups[f] for f in programs)
        row = len(self._groups) + 1 if is_new else 0
        for groups, code in zip(self._groups, codes, strict=True):
            runs = groups.get(code)
            if runs is not None:
                predictions.append(
                    (runs, self._kind_errors[row][runs.n.bit_length()], runs.mean, runs.last)
                )
            row += 1
        runs = self._all
        if runs.n:
            predictions.append(
                (runs, self._kind_errors[row][runs.n.bit_length()], runs.mean, runs.last)
            )
        return is_new, predictions

    def _learn(self, codes: Sequence[Code], query: tuple[bool, Predictions], log_s: float) -> None:
        is_new, predictions = query
        if predictions:
            self._broad.add(log_s - predictions[-1][2], log_s - predictions[-1][3])
        for runs, kind_errors, mean, last in predictions:
            kind_errors.add(log_s - mean, log_s - last)
            if not is_new:
                runs.errors.add(log_s - mean, log_s - last)
        for groups, code in zip(self._groups, codes, strict=True):
            if code != -1:
                group = groups.get(code)
                if group is None:
                    group = groups[code] = Runs()
                group.add(log_s)
        self._all.add(log_s)

    def _catch_up(self, now: float) -> None:
        """Replay arrivals and ends of the history up to `now`."""
        events, i = self._timeline, self._next_event
        while i < len(events) and events[i][0] <= now:
            _, is_arrival, row = events[i]
            i += 1
            if is_arrival:
                self._queries[-1 - row] = self._query(self._past[row])
            else:
                query = self._queries.pop(-1 - row, (True, []))
                self._learn(self._past[row], query, self._past_log[row])
        self._next_event = i


def timeline(features: Features) -> list[tuple[float, bool, int]]:
    """List ends and arrivals of the history in time order; at one instant ends go first.

    Jobs without times end one before the next arrives, and all before any other job.
    """
    submit, finish = features.history_column("submit_s"), features.history_column("finish_s")
    rows = np.arange(len(submit))
    time = np.concatenate([finish, submit])
    is_arrival = np.concatenate([np.zeros(len(rows), bool), np.ones(len(rows), bool)])
    row = np.concatenate([rows, rows])
    rank = np.where(features.untimed[row], 2 * row + ~is_arrival - 2 * len(row), is_arrival)
    order = np.lexsort((row, rank, time))
    return list(
        zip(time[order].tolist(), is_arrival[order].tolist(), row[order].tolist(), strict=True)
    )


def add_places(codes: list[list[Code]], past: list[list[Code]], columns: Columns) -> None:
    """Put template and place before the other features; -1 for jobs without a template."""
    templates = columns.template_names
    widest = dict.fromkeys(templates, 0)
    for g, row in enumerate(codes):
        job = int(columns.stage_job[g])
        name, place = templates[columns.job_template[job]], g - int(columns.job_stage0[job])
        widest[name] = max(widest[name], place)
        row.insert(0, (name, place) if name else -1)
    history = columns.features.history
    column = "template" if "template" in history.column_names else "application"
    for row, name in zip(past, history[column].to_pylist(), strict=True):
        row.insert(0, (name, 0) if name and widest.get(name) == 0 else -1)


def recorded_runs(columns: Columns) -> list[list[tuple[Code, float]]]:
    """List recorded runs, each a list of places with their mean task durations."""
    runs: dict[tuple[int, int], dict[int, list[float]]] = {}
    table = columns.training.table.to_pylist()
    for row, template in zip(table, columns.training.template.tolist(), strict=True):
        if template >= 0:
            stages = runs.setdefault((row["run"], template), {})
            stages.setdefault(row["stage"], []).append(row["finish_s"] - row["start_s"])
    return [
        [
            ((columns.template_names[template], stage), sum(tasks) / len(tasks))
            for stage, tasks in sorted(runs[run, template].items())
        ]
        for run, template in sorted(runs)
    ]
