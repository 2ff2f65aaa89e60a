"""A Gymnasium environment: the event loop, paused where the policy is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from sim.base.errors import InputError
from sim.cluster.cluster import Cluster
from sim.engine.clock import on_own_clock, run_on_own_clock
from sim.engine.plan import Batch, Plan, World
from sim.engine.record import Run
from sim.engine.session import Session
from sim.env.acting import ActionName, action_of
from sim.env.observer import Form, Observation, Observer
from sim.result import Result
from sim.workload.workload import Workload

Draw = Callable[[int], tuple[Workload, Cluster]]
Reward = Callable[["SchedulingEnv"], float]
_HUGE = float(np.finfo(np.float32).max)


class SchedulingEnv(gymnasium.Env[Observation, Any]):
    """One run a step at a time: an observation at each instant with events, an action, a reward.

    A step goes to the next instant at which a job arrives, ends or fails (a stage ends, too, if the
    form shows stages), before anything is placed then. An episode ends with the last job; it is
    never truncated. Numbers are those of `sim.simulate` under the policy that acts so.

    Parameters
    ----------
    draw : function from int to (Workload, Cluster)
        What is simulated, by seed; `sweep.environment` returns an environment of the workloads and
        clusters of a sweep's cells.
    form : Form
        What is shown (`sim.env.observer.Form`).
    action : {"keys", "stage"}
        What an action is: a key in [-1, 1] for each job that is shown, the smallest first; or the
        next stage to serve, by its place among those shown (`sim.env.acting`).
    limits : tuple of int
        With "stage", numbers of its job's tasks that may run at once, of which the action chooses.
    reward : function from SchedulingEnv to float, optional
        Reward of a step, after it. By default minus the time that jobs were in the system during
        the step, job seconds: the sum over an episode is minus the sum of completion times.
    scale_s : float
        What the default reward is divided by, s.

    Attributes
    ----------
    n_jobs : int
        Number of jobs in the system, shown or not.
    now, elapsed_s : float
        Time, and time of the last step, s, on the clock of the run.
    is_over : bool
        True once the episode has ended.
    session, observer, batches : Session, Observer, iterator of Batch
        The run, what is seen of it, and its instants.
    is_plain : bool
        True with keys as actions, no stages in the form and the default reward.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own attribute

    def __init__(
        self,
        draw: Draw,
        *,
        form: Form | None = None,
        action: ActionName = "keys",
        limits: tuple[int, ...] = (),
        reward: Reward | None = None,
        scale_s: float = 1.0,
    ) -> None:
        self.form = Form() if form is None else form
        if action == "stage" and not self.form.stages:
            raise InputError("action='stage' needs a number of stages in the form")
        if not scale_s > 0:
            raise InputError(f"scale_s must be above 0, not {scale_s}")
        self._draw, self._reward, self.scale_s = draw, reward, scale_s
        self._action = action_of(action, limits)
        self.is_plain = action == "keys" and self.form.stages == 0 and reward is None
        self.name, self.events = "environment", self.form.events
        self.now = self.elapsed_s = 0.0
        self.batches: Iterator[Batch] = iter(())
        self._drawn: tuple[int, Workload, Cluster] | None = None
        self.is_over = False
        self._result: Result | None = None
        n_resources = len(draw(0)[1].resources)
        self.observation_space = _observed(self.form, n_resources)
        self.action_space = _acted(self.form, action, limits)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Draw a workload and go to its first instant.

        `seed` is that of a sweep's cell; left out, it is drawn from the generator that the last
        one seeded.
        """
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**31)) if seed is None else seed
        workload, cluster = self._draw(drawn)
        self._drawn, self._result = (drawn, workload, cluster), None
        self.session = Session(*on_own_clock(workload, cluster), self, seed=drawn)
        self._plan, world = self.session.opened.plan, self.session.opened.world
        self.observer = Observer(world, self.form)
        self.batches = self.session.instants()
        self._n_total = len(world.columns.job_submit)
        self.now = self.elapsed_s = 0.0
        self._advance()
        return self.observer.observe(), {"seed": drawn}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Act at this instant, and go to the next one."""
        self._action.act(self.observer, action, self._plan)
        before, waited = self.now, self.observer.n_jobs
        self._advance()
        self.elapsed_s = self.now - before
        if self._reward is None:
            reward = -waited * self.elapsed_s / self.scale_s
        else:
            reward = self._reward(self)
        return self.observer.observe(), reward, self.is_over, False, {}

    def result(self) -> Result:
        """Return the result of the episode, which has ended.

        Raises
        ------
        InputError
            If it has not ended.
        """
        if self._drawn is None or not self.is_over:
            raise InputError("the episode has not ended: there is a result once a step terminates")
        if self._result is None:
            for _ in self.batches:  # what comes after the last job, such as the end of an outage
                pass
            seed, workload, cluster = self._drawn

            def finished(*_: Any, **__: Any) -> Run:
                return self.session.finish()

            self._result = Result(**run_on_own_clock(finished, workload, cluster, self, seed=seed))
        return self._result

    def end(self, now: float) -> None:
        """Note that the episode has ended, of which the steps were not this environment's own."""
        self.now, self.is_over = now, True

    @property
    def n_jobs(self) -> int:
        """Number of jobs in the system."""
        return self.observer.n_jobs

    def begin(self, world: World, plan: Plan) -> None:
        """Fill the plan before the run: the engine calls this."""
        self._action.begin(plan)

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Do nothing: steps change the plan."""

    def _advance(self) -> None:
        batch = next(self.batches, None)
        if batch is not None:
            self.observer.update(batch)
            self.now = batch.now
        self.is_over = batch is None or self.observer.n_ended == self._n_total


def _observed(form: Form, n_resources: int) -> spaces.Space[Any]:
    """Return the space of observations of a form."""

    def table(n: int | None, features: tuple[str, ...]) -> spaces.Space[Any]:
        return _repeated(n, spaces.Box(-_HUGE, _HUGE, (len(features),), np.float32))

    shown: dict[str, spaces.Space[Any]] = {
        "n_jobs": spaces.Box(0, np.iinfo(np.int64).max, (1,), np.int64),
        "time_s": spaces.Box(0.0, np.finfo(np.float64).max, (1,), np.float64),
        "free": spaces.Box(-_HUGE, 1.0, (n_resources,), np.float32),
        "jobs": table(form.jobs, form.job_features),
    }
    if form.stages != 0:
        last = np.iinfo(np.int32).max
        shown |= {
            "stages": table(form.stages, form.stage_features),
            "stage_job": _repeated(form.stages, spaces.Box(-1, last, (), np.int32)),
            "ready": _repeated(form.stages, spaces.Box(0, 1, (), np.int8)),
            "edges": _repeated(form.edges, spaces.Box(-1, last, (2,), np.int32)),
        }
    return spaces.Dict(shown)


def _acted(form: Form, action: ActionName, limits: tuple[int, ...]) -> spaces.Space[Any]:
    """Return the space of actions."""
    if action == "keys":
        return _repeated(form.jobs, spaces.Box(-1.0, 1.0, (), np.float32))
    if form.stages is None:
        raise InputError("action='stage' needs a fixed number of stages in the form")
    n_stages = form.stages
    return spaces.MultiDiscrete([n_stages, len(limits)]) if limits else spaces.Discrete(n_stages)


def _repeated(n: int | None, row: spaces.Box) -> spaces.Space[Any]:
    """Return the space of `n` rows, or of any number of them: then single numbers are rows of 1."""
    if n is None:
        if not row.shape:
            row = spaces.Box(row.low.item(), row.high.item(), (1,), row.dtype.type)
        return spaces.Sequence(row, stack=True)
    low, high = (np.broadcast_to(bound, (n, *row.shape)) for bound in (row.low, row.high))
    return spaces.Box(low, high, (n, *row.shape), row.dtype.type)
