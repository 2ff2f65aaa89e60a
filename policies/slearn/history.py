"""Learning over time: predictions from similar past jobs, as 3Sigma and Point-Est make them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from policies.estimates.timeline import replay
from policies.slearn.estimators import Estimator, Jobs
from sim.engine.plan import World
from sim.workload.history import DAY_S, NAMES, Features
from sim.workload.tables import values

LONGEST_DAYS = 14.0
"""The longest window in the paper (NSDI 2022, §4.2)."""

Statistic = Literal["utility", "median", "quantile", "mean"]


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
    estimator, for any statistic; groups without past estimates ranked first, or unused; and no
    estimate instead of one that `falls_back` on all jobs.

    The point estimators are those of SLearn's authors' simulator: the mean; a moving mean with
    weight 0.4 for the last job; and the first value, which the mean and the median of the last 20
    amount to there. The error of an estimator is the mean of its last
    `policies.slearn.kernels.history.RECENT` absolute errors over the mean of all true values.

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
    ) -> None:
        # numba is loaded where a kernel runs
        from policies.slearn.kernels import history as kernel
        from policies.slearn.kernels.histogram import STATISTICS
        from sim.base.jit import compiled

        past = replay(features, np.isin(NAMES, predictors))
        rank_unscored = {"last": math.inf, "first": -1.0, "never": math.nan}[unscored]
        by_points = judged_by == "points"
        options = [STATISTICS.index(statistic), bins, by_points, falls_back]
        inputs: dict[str, NDArray[Any]] = {
            "group": past.group,
            "time": past.time,
            "event": past.event,
            "n_tasks": values(features.stages, "n_tasks"),
            "past_s": features.history_column("mean_task_s"),
            "options": np.array(options),
            "limits": np.array([window_days or _days_of(features), rank_unscored]),
        }
        state = kernel.make(inputs, past.n_groups + 1, bins, by_points=by_points)
        # estimate of a stage's mean task duration on its job's arrival, s; NaN for unknown
        self.predict: Callable[[int, float], float] = partial(
            compiled(kernel.predict, state, 0, 0.0), state
        )
        # the same of stages from one to before another, times tasks, summed, s
        self.predict_size: Callable[[int, int, float], float] = partial(
            compiled(kernel.predict_size, state, 0, 0, 0.0), state
        )
        # addition of a finished stage, its mean task duration and end
        self.learn: Callable[[int, float, float], None] = partial(
            compiled(kernel.learn, state, 0, 0.0, 0.0), state
        )


class HistoryEstimator(Estimator):
    """Sum over stages of predicted mean task duration times tasks (NSDI 2022, §4.3, §6).

    With the utility it is 3Sigma, with the median Point-Est. Every `leak_every`-th job, by its
    number, may be learnt on arrival instead of at its end, which leaks the truth.
    """

    def __init__(self, world: World, history: History, leak_every: int = 0) -> None:
        self._jobs = Jobs(world)
        self._history, self._predict_size = history, history.predict_size
        self._leaks = world.columns.features.every_nth_job(leak_every)
        self._leaked: set[int] = set()

    def arrived(self, job: int, now: float, thin: bool) -> int:
        """Use no pilots; predict thin jobs too, because the errors of these estimates count."""
        if thin:
            self.size_s(job, now)
        return 0

    def size_s(self, job: int, now: float) -> float:
        """Return the sum over the job's stages of predicted mean times number of tasks."""
        jobs = self._jobs
        first, end = jobs.stage0[job], jobs.stage0[job + 1]
        size_s = self._predict_size(first, end, now)
        if self._leaks and job in self._leaks:
            for g in range(first, end):
                self._history.learn(g, jobs.mean_task_s(g), now)
            self._leaked.update(range(first, end))
        return size_s

    def stage_done(self, stage: int, now: float) -> None:
        """Add the stage to the history, unless it leaked on arrival."""
        if stage not in self._leaked:
            self._history.learn(stage, self._jobs.mean_task_s(stage), now)


def _days_of(features: Features) -> float:
    """Return the length of the history before time 0, days, rounded up; 14 if it is empty."""
    first_s = float(features.history_column("submit_s").min(initial=0.0))
    return float(math.ceil(-first_s / DAY_S)) or LONGEST_DAYS
