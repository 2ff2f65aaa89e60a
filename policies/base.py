"""Policy: the base class of scheduling policies."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, Literal

from policies import preempting
from policies.knows import OMNISCIENT, Knows
from policies.views import Reader, restrict
from sim.base.errors import InputError
from sim.base.parameters import Between
from sim.cluster.cluster import Cluster
from sim.engine.plan import Batch, Event, Fit, Plan, World
from sim.workload.workload import Workload

UNLOCK = "policy.reads=all lets it read all, to measure the worth of that: as an oracle"
FitName = Literal["strict", "per_class", "skip", "hold", "pack"]


@dataclass(frozen=True)
class Policy:
    """A scheduling policy: fills the plan before the run, and changes it on subscribed events.

    Subclass it as a frozen dataclass whose fields are the policy's typed parameters, list the
    events that it subscribes to in `events`, and register it. An instance holds parameters only;
    the state of a run lives in the object that `prepare` returns.

    Attributes
    ----------
    fit : {"strict", "skip", "hold", "pack", "per_class"}
        Rule when the first in order does not fit: those wait that could take a machine on which it
        can run; it is passed over; it is passed over, but for machines that are held for it; or
        each machine takes the task that fills it best (`sim.engine.plan.Fit`). ``per_class`` is an
        older name of ``strict``.
    held_machines : int
        With ``hold``, machines held for the first in order that does not fit, at most. On slots
        without gangs, where what fits depends on no task, ``hold`` is ``strict``.
    fit_resources : tuple of str
        The resources that a task must fit; empty for all. A fungible resource that is left out may
        be overbooked, and then slows down the tasks that use it.
    preemption : mapping or None
        Preemption of running jobs, e.g. {by: priority}; None for none. Keys: by (priority, share,
        quota, or a column of jobs with levels), levels, in_queue, victims, when, grace_s
        (docs/preemption.md).
    carbon : mapping or None
        Carbon-aware provisioning (CAP), around any policy, e.g. {share: 0.2}: what runs at once is
        capped, lower while electricity is dirty. Keys: share, horizon_s, bounds (docs/power.md).
    demands : {"declared", "true"}
        What tasks are allocated where the workload tells requests beside demands: what they
        request; or what they truly need, as of a scheduler that refines requests (DAGPS,
        MSR-TR-2016-19, §7). It then counts as an oracle.
    reads : {"declared", "all"}
        The columns of the world that it may read: those that it declares to know, where others
        raise an error; or all, to measure the worth of knowledge: then it counts as an oracle.
    """

    fit: FitName = "strict"
    fit_resources: tuple[str, ...] = ()
    preemption: Mapping[str, Any] | None = field(default=None, kw_only=True)
    carbon: Mapping[str, Any] | None = field(default=None, kw_only=True)
    demands: Literal["declared", "true"] = field(default="declared", kw_only=True)
    held_machines: Annotated[int, Between(1, 10**6)] = field(default=4, kw_only=True)
    reads: Literal["declared", "all"] = field(default="declared", kw_only=True)

    name: ClassVar[str] = ""
    events: ClassVar[Event] = Event.NONE
    conserves_work: ClassVar[bool] = True  #: False if it may leave room idle while tasks wait
    has_own_lag: ClassVar[bool] = False  #: True if its cycles are the lag between room and start
    rigid_jobs: ClassVar[bool] = False  #: True if it schedules only rigid jobs
    own_columns: ClassVar[tuple[str, ...]] = ()
    """Columns of ``jobs`` and ``history`` beside the schema's that it reads; its checks draw
    them."""
    fixed: ClassVar[Mapping[str, object]] = {}
    """Parameters of policies that are built on it, each with the value that is fixed here. Cells
    record them, and may be built with them."""
    checked_by: ClassVar[str] = "policies.check.suite"  #: module of its rules (`sim.check.find`)

    def __init_subclass__(cls, **options: object) -> None:
        """Show instances by their registered name, unlike a plain dataclass."""
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):
            cls.__repr__ = Policy.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """Return the name and the parameters that differ from defaults: ``las(queues=5)``."""
        defaults = {field.name: getattr(type(self), field.name, {}) for field in fields(self)}
        values = ((name, getattr(self, name)) for name in defaults)
        shown = (f"{name}={value!r}" for name, value in values if value != defaults[name])
        return f"{self.name or type(self).__name__}({', '.join(shown)})"

    @property
    def learns_from(self) -> tuple[str, ...]:
        """Optional parts of a workload that the policy learns from.

        A subset of ``history`` and ``features`` (`sim.workload.history.available_data`). The sweep
        reports those that a workload lacks.
        """
        return ()

    @property
    def knows(self) -> Knows:
        """Knowledge of durations, demands, values and deadlines, by source."""
        return Knows()

    @property
    def may_know(self) -> Knows:
        """All that a run of it may know: what it declares, levels of preemption, or everything."""
        if self.reads == "all":
            return OMNISCIENT
        knows = self.knows
        if self.demands == "true":
            knows = replace(knows, demands="true")
        is_blind = self.preemption is not None and knows.values == "nothing"
        return replace(knows, values="declared") if is_blind else knows

    def restrict(self, world: World) -> World:
        """Return the world without what the policy does not know; the engine calls this, once."""
        if self.reads == "all":
            return world
        reader = Reader(self.name or type(self).__name__, self.may_know, UNLOCK)
        return restrict(world, reader, (str((self.preemption or {}).get("by", "priority")),))

    def prepare(self, world: World, plan: Plan) -> object:
        """Fill `plan` before the run; return the state that `react` needs, or None."""
        return None

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Change `plan` at one instant, given the batch of its subscribed events."""

    def built_s(self, workload: Workload, cluster: Cluster) -> float:
        """Return the makespan of the schedule that the policy builds offline for a single job, s.

        NaN if it builds none.
        """
        return math.nan

    def begin(self, world: World, plan: Plan) -> object:
        """Set the parameters common to all policies, then `prepare`; the engine calls this."""
        if self.fit != "hold":
            plan.fit = Fit[self.fit.upper()]
        elif not world.cluster.unit or world.columns.job_min_tasks.any():
            plan.fit, plan.held_machines = Fit.SKIP, self.held_machines
        plan.fit_resources = self.fit_resources
        world = self.restrict(world)
        memory = self.prepare(world, plan)
        if self.preemption:
            preempting.fill(world, plan, self.preemption)
        return memory


def check_ranges(policy: Policy, **ranges: tuple[float, float]) -> None:
    """Raise InputError unless each named parameter lies in its closed range."""
    for name, (low, high) in ranges.items():
        value = getattr(policy, name)
        if not low <= value <= high:
            raise InputError(
                f"policy {policy.name}: {name} must be {low:g} to {high:g}, not {value!r}"
            )


def meanings(policy: type[Policy]) -> dict[str, str]:
    """Return the description of each parameter, from Attributes of the class and its bases."""
    meaning_by_name: dict[str, str] = {}
    for cls in reversed(policy.__mro__):
        text = inspect.cleandoc(cls.__doc__ or "").partition("\nAttributes\n")[2]
        for names, words in re.findall(r"^(\w[\w, ]*) : .*\n((?:    .+\n?)+)", text, re.MULTILINE):
            meaning_by_name |= dict.fromkeys(names.split(", "), " ".join(words.split()))
    return meaning_by_name
