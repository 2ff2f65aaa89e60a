"""Expected task durations of stages, from similar runs and the stage's own finished tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.estimates.priors import Priors
from sim.base import maths
from sim.base.arrays import F8, I4
from sim.engine.plan import Batch, Plan, World
from sim.workload.columns import Columns

LEAST_TASKS, MOST_TASKS = 0.01, 1000.0
"""Range of a prior's weight, in finished tasks."""


class Posterior:
    """State of a run: the prior of each stage that has arrived, and what its tasks add to it.

    Durations are log-normal, as in SLearn (NSDI 2022, §4.1.2): a prior of variance v weighs as much
    as s / v finished tasks, where s is the variance of a task's logarithm around its stage's mean,
    a mean over the finished stages of the run. Variances grow by how far recent priors erred beyond
    them, as in `policies.slearn.posterior`. Without `priors` there is a guess that weighs next
    to nothing. A running task counts as if it had just finished where that raises the expectation:
    it will take at least as long.
    """

    def __init__(
        self, world: World, plan: Plan, priors: Priors | None, first_guess_s: float
    ) -> None:
        self._world, self._first_guess_s = world, first_guess_s
        self._learns = priors is not None
        self._priors = priors or Priors(world.columns.features)
        self._refine: Callable[..., tuple[int, int]] | None = None
        self._log_spread = world.once_ended(log_spread)
        plan.set_stages(expected_s=first_guess_s)

    def _start(self) -> Callable[..., tuple[int, int]]:
        """Lay out the state, once the counters of the run exist."""
        # numba is loaded where a kernel runs
        from policies.estimates.kernels import posterior as kernel
        from sim.base.jit import compiled

        columns, view = self._world.columns, self._world.view
        constants = [self._first_guess_s, self._learns, LEAST_TASKS, MOST_TASKS]
        inputs: dict[str, NDArray[Any]] = {
            "stage_job": columns.stage_job,
            "job_stage0": columns.job_stage0,
            "size": columns.stage_n_tasks,
            "log_spread": self._log_spread.values,
            "constants": np.array(constants),
        }
        live = {name: view[name] for name in ("stage_left", "stage_started", "stage_done_work")}
        sizes = len(columns.job_submit), len(columns.stage_job)
        self._state, arrays = kernel.make(inputs, live, *sizes)
        self.variance: F8 = arrays["state_prior"][:, kernel.VARIANCE]
        self._expected_s, self._stages = arrays["state_expected_s"], arrays["state_stages"]
        self._jobs = arrays["state_jobs"]
        no_rows = np.zeros(0, dtype=np.int32)
        arguments = (self._state, self._priors.state, no_rows, 0.0)
        refine: Callable[..., tuple[int, int]] = compiled(kernel.refine, *arguments)
        return refine

    def refresh(self, batch: Batch, plan: Plan) -> I4:
        """Refine the stages of the batch's jobs, of all with a timer; return the changed jobs."""
        if self._refine is None:
            self._refine = self._start()
        n, n_jobs = self._refine(self._state, self._priors.state, batch.row, batch.now)
        stages, jobs = self._stages[:n], self._jobs[:n_jobs].copy()
        if n:
            plan.set_stages(stages, jobs=jobs, expected_s=self._expected_s[stages])
        return jobs


def log_spread(columns: Columns) -> F8:
    """Return the variance of a task's logarithm around its stage's mean, (G,); NaN for one task.

    That of a log-normal with the stage's coefficient of variation.
    """
    n_tasks = columns.stage_n_tasks
    count = np.diff(columns.run_task0)
    stage = np.repeat(np.arange(len(n_tasks)), np.diff(columns.stage_run0))
    mean_s = columns.stage_work / n_tasks
    deviation = columns.run_duration - mean_s[stage]
    squares = np.bincount(stage, count * deviation * deviation, len(n_tasks))
    with np.errstate(invalid="ignore", divide="ignore"):
        squared_cv = squares / (n_tasks - 1) / (mean_s * mean_s)
    known = np.isfinite(squared_cv)
    out = np.full(len(n_tasks), np.nan)
    out[known] = maths.log(1.0 + squared_cv[known])
    return out
