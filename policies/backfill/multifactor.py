"""Slurm's multifactor priority as the order of the queue, with and without backfilling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from policies.backfill.orders import Conservative, Easy
from policies.backfill.priorities import Priorities, Prioritizing
from policies.backfill.slurm import Slurm
from policies.knows import Knows
from policies.registry import register
from sim.engine.plan import Batch, Event, Order, Plan, Queues, World

ENDS = Event.JOB_DONE | Event.JOB_FAILED


@register("multifactor")
@dataclass(frozen=True)
class Multifactor(Prioritizing):
    """Jobs by Slurm's multifactor priority, highest first; the others wait for the first.

    The plugin ``priority/multifactor`` of Slurm 22.05 (SchedMD, 2022). Priority is the sum of five
    factors between 0 and 1, each times its weight, without its fraction; equal priorities go by
    submission. It is calculated at submission and for all waiting jobs every `calc_period_s`
    seconds. Usage is CPU seconds; where no job asks for CPUs, seconds of the first resource that
    jobs ask for. A gang uses its CPUs from start to end; other jobs' tasks are counted as they end.
    Columns of jobs: ``account``, ``user``, ``qos``, and ``queue`` for the partition.
    """

    @property
    def events(self) -> Event:  # type: ignore[override]
        """Arrivals, ends and the timer, and what the order without priorities needs."""
        own = Event.JOB_ARRIVED | Event.JOB_DONE | Event.JOB_FAILED | Event.TIMER
        inherited: Any = super().events
        return Event(inherited) | own

    @property
    def knows(self) -> Knows:
        """Declared accounts, QOS and partitions."""
        return Knows(durations=super().knows.durations, values="declared")

    def prepare(self, world: World, plan: Plan) -> object:
        """Order the queue by priority."""
        inherited = super().prepare(world, plan)
        plan.queues = Queues.make(1, order=Order.KEY)
        priorities = Priorities(self, world, plan.jobs["key"])
        plan.deferred = ENDS if priorities.can_defer and inherited is None else Event.NONE
        return Memory(priorities, inherited, plan.deferred)

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Update usage and priorities."""
        assert isinstance(memory, Memory)
        priorities, inherited, deferred = memory
        if inherited is not None:
            super().react(inherited, batch, world, plan)
        changed = priorities.update(batch)
        if len(changed):
            plan.note_jobs(changed)
        plan.timer_s = priorities.timer_s
        plan.deferred = deferred if priorities.ends_can_wait else Event.NONE


@register("multifactor_easy")
@dataclass(frozen=True)
class MultifactorEasy(Multifactor, Easy):
    """EASY backfilling in the order of Slurm's multifactor priority (``multifactor``, ``easy``).

    Mu'alem and Feitelson (TPDS 2001), with priorities of Slurm 22.05 (SchedMD, 2022). With
    ``order=sjf`` the first in priority have reservations, the others are tried shortest first.
    """


@register("multifactor_conservative")
@dataclass(frozen=True)
class MultifactorConservative(Multifactor, Conservative):
    """Conservative backfilling in the order of multifactor priority.

    As ``multifactor`` (SchedMD, 2022) and ``conservative`` (TPDS 2001): jobs that come get the
    earliest room that reservations leave, and are moved ahead in the order of their priority.
    """

    order: Literal["fcfs"] = "fcfs"  # the priority is the key by which jobs are moved


@register("multifactor_slurm")
@dataclass(frozen=True)
class MultifactorSlurm(Multifactor, Slurm):
    """Slurm's main loop and backfill thread, in the order of its multifactor priority.

    As ``multifactor`` and ``slurm``: Slurm 22.05 (SchedMD, 2022).
    """

    order: Literal["priority"] = "priority"

    def __post_init__(self) -> None:
        Multifactor.__post_init__(self)
        Slurm.__post_init__(self)


class Memory(NamedTuple):
    """State of a run: priorities, the state of the order without them, events that can wait."""

    priorities: Priorities
    inherited: object
    deferred: Event
