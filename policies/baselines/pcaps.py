"""Carbon- and precedence-aware scheduling: unimportant stages wait while electricity is dirty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from policies.base import Policy
from policies.baselines.frontier import EVENTS, Drawing, threshold
from policies.knows import Knows
from policies.registry import register
from sim.base.parameters import Share
from sim.engine.plan import NO_LIMIT, Batch, Event, Plan, World


@register("pcaps")
@dataclass(frozen=True)
class Pcaps(Policy):
    """Stages in drawn order, of which unimportant ones wait while electricity is dirty.

    PCAPS (Lechowicz et al., *Carbon- and precedence-aware scheduling for data processing clusters*,
    SIGCOMM 2025; pcaps_actor_agent.py of its repository). Stages whose inputs are made are drawn
    one after the other, by probabilities p. One starts if its importance r, p over the greatest of
    those left, suffices: Ψ(r) = U - γ (U - L) (1 - (exp(γ r) - 1) / (exp(γ) - 1)) is at least the
    carbon intensity; L and U are the least and the greatest of 48 h to come. Else it and those
    after it wait for the next end of a stage, job or change of the intensity, unless nothing runs.

    The p of the source are those of Decima, a trained network; here they are in proportion to the
    longest path of tasks to the end of the job. Draws are at these events, not for each task, and
    the number of executors of a stage is not scaled (`carbon` caps what runs at once). Gangs start
    whole. Without an intensity (cluster.power) nothing waits.

    Attributes
    ----------
    gamma : float
        γ: 0 defers nothing, 1 most.
    knowledge : {"true", "declared"}
        Source of durations: the truth, or requested run times.
    """

    gamma: Share = 0.5
    knowledge: Literal["true", "declared"] = "true"

    events: ClassVar[Event] = EVENTS
    conserves_work: ClassVar[bool] = False

    @property
    def knows(self) -> Knows:
        """Durations, from the source that `knowledge` names."""
        return Knows(durations=self.knowledge)

    def prepare(self, world: World, plan: Plan) -> Drawing:
        """Draw all stages: an order of all is one of those that wait, too, while none is held."""
        memory = Drawing.before(world, self.knowledge)
        plan.set_jobs(key=np.zeros(len(world.columns.job_submit)))
        plan.set_stages(key=memory.draw(np.arange(len(memory.path_s))))
        plan.first_ended = True
        if len(memory.at_s) == 1:  # the intensity never changes
            plan.events = Event.NONE
        return memory

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Draw the stages that wait, and hold those from the first deferred one on."""
        assert isinstance(memory, Drawing)
        memory.frontier.follow(batch)
        grams, low, high, plan.timer_s = memory.intensity(batch.now)
        if grams <= threshold(np.zeros(1), self.gamma, low, high)[0]:  # none is deferred
            plan.set_jobs(memory.released(), start_gate=NO_LIMIT, notify_at=0)
            return
        stages, n_left = memory.frontier.waiting(world.view)
        key = memory.draw(stages)
        order = np.argsort(key, kind="stable")
        chance = memory.path_s[stages[order]]
        importance = chance / np.maximum.accumulate(chance[::-1])[::-1]
        is_deferred = threshold(importance, self.gamma, low, high) < grams
        jobs, gate = memory.gates(stages[order], n_left[order], is_deferred, world.view)
        plan.set_stages(stages, key=key, jobs=jobs)
        plan.set_jobs(jobs, start_gate=gate, notify_at=np.where(gate == NO_LIMIT, 0, gate))
