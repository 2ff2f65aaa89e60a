"""What every policy is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from sim.engine.plan import Batch, Event, Fit, Plan, World

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.workload import Workload

_FITS = {"strict": Fit.STRICT, "skip": Fit.SKIP, "pack": Fit.PACK}


@dataclass(frozen=True)
class Policy:
    """A scheduling policy: fills the plan before the run, and again when subscribed events come.

    Subclass it as a frozen dataclass whose fields are the policy's typed parameters, name what it
    listens to in `events`, and register it. An instance holds parameters only; what a policy
    learns during a run lives in the object that `prepare` returns.

    Attributes
    ----------
    fit : {"strict", "skip", "pack"}
        What happens when the first in order does not fit (`sim.engine.plan.Fit`).
    fit_resources : tuple of str
        The resources that are looked at when it is decided what fits; empty for all. A fungible
        resource that is left out may be overbooked, and then slows down who uses it.
    """

    fit: Literal["strict", "skip", "pack"] = "strict"
    fit_resources: tuple[str, ...] = ()

    name: ClassVar[str] = ""
    events: ClassVar[Event] = Event.NONE
    conserves_work: ClassVar[bool] = True  #: False if it leaves room empty that a task wants

    def prepare(self, world: World, plan: Plan) -> object:
        """Fill `plan` before the run; return what `react` will need (None if nothing)."""
        return None

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Change `plan` at one instant, given the batch of its subscribed events."""

    def built_s(self, workload: Workload, cluster: Cluster) -> float:
        """Return how long the schedule takes that the policy builds beforehand for the one job, s.

        NaN if it builds none.
        """
        return math.nan

    def begin(self, world: World, plan: Plan) -> object:
        """Set what all policies share, then `prepare`; the engine calls this."""
        plan.fit = _FITS[self.fit]
        plan.fit_resources = self.fit_resources
        return self.prepare(world, plan)
