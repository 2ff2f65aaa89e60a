"""Prior distributions of stages' durations from history, with variances from recent errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.estimates.timeline import replay, with_places
from policies.estimates.weights import SHORTEST_S
from sim.base import maths
from sim.base.arrays import F8, I8, frozen
from sim.base.random import Normal
from sim.workload.columns import Columns
from sim.workload.history import Features
from sim.workload.tables import values

UNKNOWN = Normal(0.0, math.inf)


class Priors:
    """Predictor of the logarithm of a stage's mean task duration, with a variance.

    Runs with the same value of a feature form a group, and all runs are a group, too. A group makes
    two predictions: its mean, and a moving mean in which the last run weighs a half, the one before
    a quarter, and so on. The prediction with the least mean squared error is the prior's mean, and
    that error is its variance.

    The error of a prediction is a mean over three sources: recent errors of the group itself; with
    weight `KIND_WEIGHT` (`policies.estimates.weights`), the errors of all groups of its kind, which
    share the feature and had about as many runs (1, 2 to 3, 4 to 7, ...); and one error of the mean
    of all finished runs, so that a kind with few predictions is uncertain. For a job with a new
    value of the first feature, only the errors for such jobs count, without the group's own: groups
    that predict known programs well may predict new ones badly.

    So a program with one earlier run is as certain as such programs were, and a program that
    changed is uncertain for a while. Exactly the jobs that ended by `now` count, both of the
    history and of the simulation. (3Sigma, EuroSys 2018, chooses among such predictors, and stores
    histograms.)

    Given `columns`, there is a seventh feature, before the others: the template and the stage's
    place in it. Its runs are those of recorded tasks of earlier runs (``training``), too. A program
    is new if no run has its template and place, or its first other feature.
    """

    def __init__(self, features: Features, columns: Columns | None = None) -> None:
        # numba is loaded where a kernel runs
        from policies.estimates.kernels import priors as kernel
        from sim.base.jit import compiled

        history = replay(features)
        mean_task_s = features.history_column("mean_task_s")
        if columns is not None:
            history, mean_task_s = with_places(history, mean_task_s, columns)
        inputs: dict[str, NDArray[Any]] = {
            "group": history.group,
            "time": history.time,
            "event": history.event,
            "past_log": maths.log(mean_task_s.clip(SHORTEST_S)),
            "n_programs": np.array([1 if columns is None else 2]),
        }
        self._n_tasks = values(features.stages, "n_tasks")
        self.group = frozen(history.group[: len(self._n_tasks)])
        self.n_groups = history.n_groups + 1
        self.state = kernel.make(inputs, self.n_groups)
        self._predict: Callable[..., tuple[float, float, float]] = compiled(
            kernel.prior, self.state, 0, 0.0
        )
        self._add: Callable[..., float] = compiled(kernel.add, self.state, 0, 0.0, 0.0)

    def predict(self, stage: int, now: float) -> tuple[float, float, float]:
        """Return mean and variance of a stage's prior on its job's arrival, and its median, s.

        Infinite variance and NaN for unknown.
        """
        return self._predict(self.state, stage, now)

    def prior(self, stage: int, now: float) -> Normal:
        """Return a stage's prior on its job's arrival; infinite variance for unknown."""
        return Normal._make(self.predict(stage, now)[:2])

    def expect(self, stages: I8, now: float) -> F8:
        """See `policies.estimates.durations.Durations`: the median of each prior."""
        return np.array([self.predict(stage, now)[2] for stage in stages.tolist()])

    def learn(self, stages: I8, work_s: F8, now: float) -> None:
        """See `policies.estimates.durations.Durations`."""
        for stage, mean_s in zip(stages, work_s / self._n_tasks[stages], strict=True):
            self.add(int(stage), float(mean_s), now)

    def add(self, stage: int, mean_task_s: float, now: float) -> float:
        """Add a finished stage; return the logarithm of its duration, at least `SHORTEST_S`."""
        return self._add(self.state, stage, mean_task_s, now)
