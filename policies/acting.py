"""Policies that act on observations, as they were trained in an environment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from policies.base import Policy
from policies.knows import Knows
from sim.engine.plan import Batch, Event, Plan, World
from sim.env.acting import Action, ActionName, action_of
from sim.env.observer import Form, Observation, Observer


@dataclass(frozen=True)
class Acting(Policy, ABC):
    """A policy whose decisions are the actions of `sim.env.SchedulingEnv`.

    A subclass sets the form and the action of its environment, and returns the action on an
    observation. In a run it then does what it would have done in that environment.
    """

    form: ClassVar[Form] = Form()
    action: ClassVar[ActionName] = "keys"
    limits: ClassVar[tuple[int, ...]] = ()

    @property
    def events(self) -> Event:  # type: ignore[override]
        """Those after which there is an observation."""
        return self.form.events

    @property
    def knows(self) -> Knows:
        """Declarations of jobs, and true durations if the form shows them."""
        declared: Literal["declared"] = "declared"
        return Knows(self.form.durations, declared, values=declared, deadlines=declared)

    @abstractmethod
    def act(self, observation: Observation) -> Any:
        """Return the action on an observation."""

    def prepare(self, world: World, plan: Plan) -> tuple[Observer, Action]:
        """Observe from the beginning."""
        action = action_of(self.action, self.limits)
        action.begin(plan)
        return Observer(world, self.form), action

    def react(self, memory: Any, batch: Batch, world: World, plan: Plan) -> None:
        """Act on what is observed now."""
        observer, action = memory
        observer.update(batch)
        observation = observer.observe()
        action.act(observer, self.act(observation), plan)
