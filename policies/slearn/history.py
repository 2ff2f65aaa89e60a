"""Learning over time: predictions from similar past jobs, as 3Sigma and Point-Est make them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policies.estimates.timeline import replay
from policies.slearn.estimators import mean_task_s
from policies.slearn.thin import ThinLimit
from sim.base.arrays import F8, I4, Mask
from sim.engine.plan import Batch, Event, Plan, World
from sim.workload.columns import Columns
from sim.workload.history import DAY_S, NAMES, Features
from sim.workload.tables import values

LONGEST_DAYS = 14.0
"""The longest window in the paper (NSDI 2022, §4.2)."""

Statistic = Literal["utility", "median", "quantile", "mean"]
Learns = Literal["task", "total"]


def _work_s(columns: Columns) -> F8:
    return columns.stage_work


class Placing(NamedTuple):
    """Inputs and outputs of `policies.slearn.kernels.history.react`."""

    inputs: Mapping[str, NDArray[Any]]
    out: Mapping[str, NDArray[Any]]
    unknown_queue: int

    @classmethod
    def absent(cls) -> Placing:
        """Return those of a history that only predicts."""
        names = ("job_stage0", "mean_s", "leaks", "threshold")
        out = ("is_thin", "size", "queue", "changed")
        empty = np.zeros(1)
        return cls(dict.fromkeys(names, empty), dict.fromkeys(out, empty), 0)

    @classmethod
    def make(
        cls,
        world: World,
        plan: Plan,
        thin: Mask,
        thresholds: F8,
        unknown: int = 0,
        leak_every: int = 0,
        learns: Learns = "task",
    ) -> Placing:
        """Return those of a run: `thin` jobs stay in the first queue, `unknown` is that of others.

        Every n-th job, by its number, leaks its size.
        """
        columns = world.columns
        leaked = columns.features.every_nth_job(leak_every)
        inputs = {
            "job_stage0": columns.job_stage0,
            "mean_s": world.once_ended(mean_task_s if learns == "task" else _work_s).values,
            "leaks": np.isin(columns.stage_job, list(leaked)),
            "threshold": thresholds,
        }
        out = {
            "is_thin": thin.astype(np.int8),
            "size": plan.estimate_s,
            "queue": plan.jobs["queue"],
            "changed": np.zeros(len(thin), np.int32),
        }
        return cls(inputs, out, unknown)


class History:
    """Predictor of mean task durations from similar past jobs (3Sigma, EuroSys 2018).

    For each of six features, jobs of the window with the same value form a group. Their mean task
    durations are a distribution, stored in a bounded histogram (SLearn, NSDI 2022, §4.2;
    `policies.slearn.kernels.histogram`, which has the statistics, too). Each
    feature's group gives an estimate from its distribution (§4.3), and the estimate of the group
    with the least past error is used. The error is the sum of the absolute errors of the group's
    estimates on arrival over the sum of the true values. A group without past estimates has
    infinite error. On a tie the first feature of `sim.workload.history.NAMES` wins. Where
    no feature has a group, the distribution of all jobs is used. Before any job has ended, there is
    no estimate.

    Options: only the features in `predictors`; groups ranked by the error of their best point
    estimator, for any statistic; groups without past estimates ranked first, or unused; no
    estimate instead of one that `falls_back` on all jobs; and distributions of what a job `learns`:
    of mean task durations, or of total ones, which are not multiplied by the number of tasks.

    The point estimators are those of SLearn's authors' simulator: the mean; a moving mean with
    weight 0.4 for the last job; and the first value, which the mean and the median of the last 20
    amount to there. The error of an estimator is the mean of its last absolute errors
    (`policies.slearn.kernels.history_record.RECENT`) over the mean of all true values.

    A window is of whole days. Its days are one histogram, which is made anew from those of the days
    when one leaves the window. Ranking by points needs no window, because these have one of their
    own.

    Exactly the jobs that ended by `now` count, both of the history and of the simulation.
    """

    def __init__(
        self,
        features: Features,
        statistic: Statistic,
        window_days: float,
        bins: int,
        *,
        predictors: Sequence[str] = NAMES,
        judged_by: Literal["statistic", "points"] = "statistic",
        unscored: Literal["last", "first", "never"] = "last",
        falls_back: bool = True,
        learns: Learns = "task",
        placing: Placing | None = None,
    ) -> None:
        # numba is loaded where a kernel runs
        from policies.slearn.kernels import history as kernel
        from policies.slearn.kernels import history_record as record
        from policies.slearn.kernels.histogram import STATISTICS
        from sim.base.jit import compiled

        past = replay(features, np.isin(NAMES, predictors))
        rank_unscored = {"last": math.inf, "first": -1.0, "never": math.nan}[unscored]
        by_points = judged_by == "points"
        placing = placing or Placing.absent()
        options = [STATISTICS.index(statistic), bins, by_points, falls_back]
        options += [placing.unknown_queue, int(Event.JOB_ARRIVED)]
        inputs: dict[str, NDArray[Any]] = {
            **placing.inputs,
            "group": past.group,
            "time": past.time,
            "event": past.event,
            "n_tasks": values(features.stages, "n_tasks"),
            "past_s": features.history_column("mean_task_s"),
            "options": np.array(options),
            "limits": np.array([window_days or _days_of(features), rank_unscored]),
        }
        if learns == "total":
            inputs["n_tasks"] = np.ones_like(inputs["n_tasks"])
            inputs["past_s"] = inputs["past_s"] * features.history_column("n_tasks")
        out = placing.out
        state = record.make(inputs, out, past.n_groups + 1, bins, by_points=by_points)
        # estimate of a stage's mean task duration on its job's arrival, s; NaN for unknown
        self.predict: Callable[[int, float], float] = partial(
            compiled(kernel.predict, state, 0, 0.0), state
        )
        # reaction to a batch of arrivals and ended stages; the number of jobs with another queue
        self.react: Callable[[I4, I4, F8], int] = partial(
            compiled(kernel.react, state, *(np.zeros(0, code) for code in ("i4", "i4", "f8"))),
            state,
        )
        # addition of a finished stage, its mean task duration and end
        self.learn: Callable[[int, float, float], None] = partial(
            compiled(kernel.learn, state, 0, 0.0, 0.0), state
        )


class HistoryQueues:
    """Queues by the sum over stages of predicted mean task duration times tasks.

    SLearn, NSDI 2022, §4.3, §6. With the utility it is 3Sigma, with the median Point-Est. A batch
    of events is one call of a kernel. With a `limit`, thin jobs are those below it. Every n-th job,
    by its number, may be learnt on arrival instead of at its end, which leaks the truth.
    """

    def __init__(
        self, plan: Plan, history: History, placing: Placing, limit: ThinLimit | None
    ) -> None:
        self._plan, self._limit = plan, limit
        self._changed, self._is_thin = placing.out["changed"], placing.out["is_thin"]
        self._react = history.react

    def react(self, batch: Batch) -> None:
        """Learn stages that ended; move jobs that arrived to the queues of their sizes."""
        assert batch.time_s is not None
        if self._limit is not None:
            for job in batch.rows(Event.JOB_ARRIVED).tolist():
                self._is_thin[job] = self._limit.is_thin(job)
        n_changed = self._react(batch.kind, batch.row, batch.time_s)
        if n_changed:
            self._plan.note_jobs(self._changed[:n_changed])


def _days_of(features: Features) -> float:
    """Return the length of the history before time 0, days, rounded up; 14 if it is empty."""
    first_s = float(features.history_column("submit_s").min(initial=0.0))
    return float(math.ceil(-first_s / DAY_S)) or LONGEST_DAYS
