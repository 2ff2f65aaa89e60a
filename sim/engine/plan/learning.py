"""Learning of expected durations during the run: means over groups of stages, refined by tasks."""

from __future__ import annotations

from dataclasses import dataclass

from sim.base.arrays import F8, I4, I8


@dataclass(frozen=True, eq=False)
class Learning:
    """The run learns the stage column ``expected_s`` from what has finished.

    A stage belongs to a group at each of some levels, the closest first. The prior of its tasks'
    duration is the mean of the first of its groups with a finished stage, else a guess. Finished
    tasks of the stage itself refine it: the prior weighs as much as `prior_tasks` of them
    (DAGPS, MSR-TR-2016-19, §7.1). A stage that has finished counts in its groups.

    Jobs are refined when they arrive, and all unfinished ones every `refresh_s` seconds as long as
    there are any. A job's remaining work is computed anew if it arrives, or if since its last
    refinement one of its tasks has started or ended or what is expected of it has changed; then an
    event REFINED tells so. The refinement comes behind arrivals, before the policy and placement.

    Attributes
    ----------
    group : (L, G) int32
        Group of each stage at each level, -1 for none.
    mean_s : (C,) float64
        Mean task duration of each group, s; NaN for none. This and the next three begin with what
        is known before the run, which overwrites them.
    work_s, n_tasks : (C,) float64
        Sum of the durations of its finished tasks, s, and their number.
    runs : (C,) int64
        Finished stages of each group of the first level.
    guess_s : float
        Prior without any finished stage, s.
    prior_tasks : float
        Weight of the prior, in finished tasks of the stage.
    refresh_s : float
        Time between refinements, s.
    estimates : bool
        Fill ``estimate_s`` of the plan when a job arrives.
    """

    group: I4
    mean_s: F8
    work_s: F8
    n_tasks: F8
    runs: I8
    guess_s: float
    prior_tasks: float
    refresh_s: float
    estimates: bool = False
