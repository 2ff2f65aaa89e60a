"""Actions of trained policies on a plan: an order of the jobs shown, or the next stage to serve."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from sim.base.errors import InputError
from sim.engine.plan import NO_LIMIT, Plan
from sim.env.observer import Observer

ActionName = Literal["keys", "stage"]


class Action(Protocol):
    """Protocol of actions: `begin` before the run, `act` at each instant."""

    def begin(self, plan: Plan) -> None:
        """Fill the plan before the run."""

    def act(self, observer: Observer, action: Any, plan: Plan) -> None:
        """Change the plan by the action on what the observer shows."""


class Keys:
    """A key for each job that is shown, -1 to 1, the smallest first; others come after these.

    Those that are not shown go by submission.
    """

    BEHIND = 2.0
    """Least key of jobs that are not shown."""

    def begin(self, plan: Plan) -> None:
        """Order jobs by submission, behind all keys of actions."""
        n_jobs = len(plan.estimate_s)
        plan.set_jobs(key=self.BEHIND + np.arange(n_jobs))

    def act(self, observer: Observer, action: ArrayLike, plan: Plan) -> None:
        """Set the keys that change; jobs beyond the last key keep theirs."""
        keys = np.ravel(np.asarray(action, dtype=np.float32))
        changed = observer.set_keys(keys, plan.jobs["key"])
        if len(changed):
            plan.note_jobs(changed)


class NextStage:
    """The next stage to serve, as Decima (SIGCOMM 2019, §5.1) has it: it goes before all others.

    The rest keeps its order: stages that were chosen later go first, then jobs by submission, so
    that no room is left idle. With `limits` the action is a stage and an index into them: how many
    tasks of the stage's job may run at once.

    Parameters
    ----------
    limits : tuple of int
        Numbers of tasks that may be chosen, ascending; empty for no choice.
    """

    def __init__(self, limits: tuple[int, ...] = ()) -> None:
        if any(limit < 1 for limit in limits) or sorted(set(limits)) != list(limits):
            raise InputError(f"limits must ascend from 1 or more, not {limits}")
        self._limits, self._n_chosen = limits, 0

    def begin(self, plan: Plan) -> None:
        """Let stages of all jobs be in one order."""
        self._n_chosen = 0
        plan.set_jobs(key=0.0, run_limit=NO_LIMIT)
        plan.set_stages(key=np.arange(1, 1 + len(plan.stages["key"])))

    def act(self, observer: Observer, action: ArrayLike, plan: Plan) -> None:
        """Put the stage first; a place without a stage changes nothing."""
        place, *limit = np.atleast_1d(np.asarray(action)).tolist()
        stages = observer.stages
        if not 0 <= place < len(stages):
            return
        stage = int(stages[place])
        job = int(observer.stage_job[stage])
        self._n_chosen += 1
        plan.stages["key"][stage] = -self._n_chosen
        if limit:
            plan.set_jobs(job, run_limit=self._limits[limit[0]])
        else:
            plan.note_jobs(job)


def action_of(name: ActionName, limits: tuple[int, ...] = ()) -> Action:
    """Return the meaning of actions of a name.

    Raises
    ------
    InputError
        On an unknown name, or limits where they mean nothing.
    """
    if name == "stage":
        return NextStage(limits)
    if name != "keys":
        raise InputError(f"action must be 'keys' or 'stage', not {name!r}")
    if limits:
        raise InputError("limits go with action='stage'")
    return Keys()
