"""Durations that the run learns: profiles of stages, refined by their finished tasks."""

from __future__ import annotations

import numpy as np

from policies.estimates.stage_profiles import StageProfiles
from sim.engine.plan import Learning, Plan


def learn_durations(
    profiles: StageProfiles,
    plan: Plan,
    prior_tasks: float,
    refresh_s: float,
    *,
    estimates: bool = False,
) -> None:
    """Expect durations by `profiles`, to which the run adds what has finished.

    See `sim.engine.plan.learning.Learning` (DAGPS, MSR-TR-2016-19, §7.1) for the parameters.
    """
    levels = profiles.levels
    first = np.cumsum([0] + [len(level.mean) for level in levels])
    mean, work, tasks = (
        np.concatenate([getattr(level, name) for level in levels])
        for name in ("mean", "work", "tasks")
    )
    for level, begin, end in zip(levels, first[:-1], first[1:], strict=True):
        level.mean, level.work, level.tasks = (array[begin:end] for array in (mean, work, tasks))
    groups = np.stack([level.group for level in levels])
    for group, i in zip(groups, first.astype(np.int32), strict=False):
        group[group >= 0] += i
    plan.set_stages(expected_s=profiles.expect(np.arange(len(levels[0].group))))
    plan.learning = Learning(
        groups,
        mean,
        work,
        tasks,
        runs=profiles.runs,
        guess_s=profiles.guess_s,
        prior_tasks=prior_tasks,
        refresh_s=refresh_s,
        estimates=estimates,
    )
