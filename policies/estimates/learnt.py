"""Learnt durations in the plan: refined with every job that arrives, and at a timer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from policies.estimates.durations import Durations
from policies.estimates.stage_profiles import StageProfiles
from sim.base.arrays import I4
from sim.engine.plan import Batch, Plan, World
from sim.workload.columns import Columns


class LearntDurations:
    """State of a run: an estimator, and the unfinished stages of the jobs that have arrived.

    Finished tasks of a stage refine its expected duration, which weighs as much as `prior_tasks`
    tasks (DAGPS, MSR-TR-2016-19, §7.1).
    """

    def __init__(self, estimator: Durations, columns: Columns, prior_tasks: float) -> None:
        self._estimator, self._prior_tasks = estimator, prior_tasks
        self._n_stages = len(columns.stage_job)
        self._refinement: _Refinement | None = None

    def begin(self, world: World, plan: Plan) -> None:
        """Set the expected durations of all stages before the run."""
        stages = np.arange(self._n_stages)
        now = float(world.columns.job_submit.min(initial=0.0))
        plan.set_stages(expected_s=self._estimator.expect(stages, now))

    def refresh(self, batch: Batch, world: World, plan: Plan, refresh_s: float) -> I4:
        """Learn from finished stages; refine the expected durations of jobs.

        Refines new jobs at once, and all running jobs every `refresh_s` seconds. Returns the jobs
        for which something has changed since: what is expected, or the number of their tasks that
        have started or ended.
        """
        if self._refinement is None:
            assert isinstance(self._estimator, StageProfiles)
            self._refinement = _Refinement(self._estimator, world, plan, self._prior_tasks)
        jobs, n_refined = self._refinement.refine(batch, plan)
        if n_refined:
            plan.timer_s = min(plan.timer_s, batch.now + refresh_s)
        return jobs


_NO_JOBS = np.zeros(0, dtype=np.int32)


class _Refinement:
    """The arrays of `policies.estimates.kernels.refinement`."""

    def __init__(
        self, profiles: StageProfiles, world: World, plan: Plan, prior_tasks: float
    ) -> None:
        from policies.estimates.kernels import refinement  # compiled: slow to import
        from sim.base.jit import compiled

        columns, view, levels = world.columns, world.view, profiles.levels
        n_jobs, n_stages = len(columns.job_submit), len(columns.stage_job)
        first = np.cumsum([0] + [len(level.mean) for level in levels])
        means = {
            name: np.concatenate([getattr(level, name) for level in levels])
            for name in ("mean", "work", "tasks")
        }
        for level, begin, end in zip(levels, first[:-1], first[1:], strict=True):
            level.mean, level.work, level.tasks = (array[begin:end] for array in means.values())
        # a task that fails or is lost changes remaining work, and leaves no trace in the counts
        restarts = len(columns.attempt_s) > 0 or len(world.cluster.outages) > 0
        self._counts = np.array([0, 0, 0, 0, restarts], dtype=np.int64)
        self._jobs, self._stages = np.zeros(n_jobs, np.int32), np.zeros(n_stages, np.int32)
        self._expected_s = np.zeros(n_stages)
        fields: dict[str, Any] = {
            "w_stage_job": columns.stage_job,
            "w_job_stage0": columns.job_stage0,
            "w_size": columns.stage_n_tasks.astype(np.int64),
            "w_group": np.stack([level.group + i for level, i in zip(levels, first, strict=False)]),
            "w_constants": np.array([profiles.guess_s, prior_tasks]),
            "w_expected_s": plan.stages["expected_s"],
            "w_stage_left": view["stage_left"],
            "w_stage_done_work": view["stage_done_work"],
            "w_job_left": view["left"],
            "w_job_started": view["started"],
            **{f"state_{name}": array for name, array in means.items()},
            "state_runs": profiles.runs,
            "state_i": self._counts,
            "state_live": np.zeros(n_stages, dtype=np.int32),
            "state_seen_left": np.zeros(n_jobs, dtype=np.int32),
            "state_seen_started": np.zeros(n_jobs, dtype=np.int32),
            "out_jobs": self._jobs,
            "out_stages": self._stages,
            "out_expected_s": self._expected_s,
        }
        self._state = refinement.make(fields)
        run: Callable[..., int] = refinement.refine
        self._refine = compiled(run, self._state, _NO_JOBS.copy())

    def refine(self, batch: Batch, plan: Plan) -> tuple[I4, int]:
        """Update the plan; return the jobs that changed, and the number of those refined."""
        n_changed = self._refine(self._state, batch.row)
        _, _, n_stages, n_refined, _ = self._counts.tolist()
        if not n_changed:
            return _NO_JOBS, n_refined
        jobs, expected_s = self._jobs[:n_changed].copy(), self._expected_s[:n_stages]
        plan.set_stages(self._stages[:n_stages], jobs=jobs, expected_s=expected_s)
        return jobs, n_refined
