"""What every policy is."""

from __future__ import annotations

import inspect
import math
import re
from dataclasses import dataclass, fields
from typing import ClassVar, Literal

from sim.base.errors import InputError
from sim.cluster.cluster import Cluster
from sim.engine.plan import Batch, Event, Fit, Plan, World
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
    rigid_jobs: ClassVar[bool] = False  #: True if it takes only rigid jobs, on a pool of slots

    def __init_subclass__(cls, **options: object) -> None:
        """Show an instance by its registered name, not as a dataclass would."""
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):
            cls.__repr__ = Policy.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """Name, and the parameters that are not the class's defaults: ``las(queues=5)``."""
        usual = {field.name: field.default for field in fields(self)}
        given = ((name, getattr(self, name)) for name in usual)
        shown = (f"{name}={value!r}" for name, value in given if value != usual[name])
        return f"{self.name or type(self).__name__}({', '.join(shown)})"

    @property
    def learns_from(self) -> tuple[str, ...]:
        """What of a workload its decisions rest on, and a workload may lack.

        Of ``history`` and ``features`` (`sim.workload.history.available_data`); who runs the policy
        says so where they are not there.
        """
        return ()

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


def check_ranges(policy: Policy, **ranges: tuple[float, float]) -> None:
    """Raise InputError unless each parameter named lies between the two numbers, or on them."""
    for name, (low, high) in ranges.items():
        value = getattr(policy, name)
        if not low <= value <= high:
            raise InputError(
                f"policy {policy.name}: {name} must be {low:g} to {high:g}, not {value!r}"
            )


def meanings(policy: type[Policy]) -> dict[str, str]:
    """Say what each parameter means, as the class and its bases have it under Attributes."""
    said: dict[str, str] = {}
    for cls in reversed(policy.__mro__):
        text = inspect.cleandoc(cls.__doc__ or "").partition("\nAttributes\n")[2]
        for names, words in re.findall(r"^(\w[\w, ]*) : .*\n((?:    .+\n?)+)", text, re.MULTILINE):
            said |= dict.fromkeys(names.split(", "), " ".join(words.split()))
    return said
