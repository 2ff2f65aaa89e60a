"""Batch jobs in the order of a published score, with or without backfilling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from policies.backfill.orders import Easy
from policies.backfill.priorities import task_cpus
from policies.backfill.scores import MANY, SCORES, Waiting
from policies.registry import register
from sim.base.parameters import Between, NotNegative
from sim.engine.plan import NO_LIMIT, Batch, Event, Order, Plan, Queues, World

ENDS = Event.JOB_DONE | Event.JOB_FAILED  # they can be deferred while fewer than two jobs wait


@register("scored")
@dataclass(frozen=True)
class Scored(Easy):
    """EASY backfilling, or a plain list, in the order of a score of run time, processors and wait.

    WFP3 and UNICEF: Tang et al., *Fault-aware, utility-based job scheduling on Blue Gene/P
    systems*, CLUSTER 2009. F1 to F4: Carastan-Santos and de Camargo, *Obtaining dynamic scheduling
    policies with simulation and machine learning*, SC 2017. Smallest area: Carastan-Santos et al.,
    *One can only gain by replacing EASY backfilling*, CCGrid 2019. Expansion factor, and the
    threshold of waits: Lelong, Reis and Trystram, *Tuning EASY-backfilling queues*, JSSPP 2017.
    Equal scores go by submission; processors are the CPUs of all tasks. What changes with waits is
    scored anew when a job comes or ends, or a machine is lost or back.

    Attributes
    ----------
    score : {"spf", "saf", "exp", "wfp3", "unicef", "f1", "f2", "f3", "f4"}
        Run time; run time × processors; (wait + run time) / run time, the largest first; and those
        of the papers. In F1 to F4 submission counts from the first job's, and times below 1 s as
        1 s. In UNICEF, which divides by 0 there, jobs of 1 processor go first.
    promote_s : float
        Wait from which on a job goes before all that have not waited for so long, first come, first
        served, s; 0 for never. The paper's is 72000, 20 h.
    reservations : int
        Number of jobs with a reservation; 0 for a plain list, by `fit`.
    """

    score: Literal["spf", "saf", "exp", "wfp3", "unicef", "f1", "f2", "f3", "f4"] = "wfp3"
    promote_s: NotNegative = 0.0
    reservations: Annotated[int, Between(0, NO_LIMIT - 1)] = 1

    @property
    def events(self) -> Event:  # type: ignore[override]
        """Events that may change the order."""
        if not (SCORES[self.score].changes or self.promote_s or self.knowledge == "run"):
            return Event.NONE
        own = Event.JOB_ARRIVED | ENDS | Event.FAULT
        return super().events | own | (Event.TIMER if self.promote_s else Event.NONE)

    def prepare(self, world: World, plan: Plan) -> Waiting:
        """Score all jobs as they are submitted."""
        history = super().prepare(world, plan)
        plan.queues = Queues.make(1, order=Order.KEY)
        submit_s = world.columns.job_submit
        processors = task_cpus(world.columns, world.cluster) * world.columns.job_n_tasks
        plan.deferred = ENDS if self.events and history is None else Event.NONE
        memory = Waiting(plan.jobs["expected_s"], processors, submit_s, history)
        plan.set_jobs(key=memory.scores(self.score, slice(None), submit_s, submit_s))
        return memory

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Put the waiting jobs in order."""
        assert isinstance(memory, Waiting)
        if memory.history is not None:
            is_own = (batch.kind & int(super().events)) > 0
            own = Batch(batch.now, batch.kind[is_own], batch.row[is_own])
            super().react(memory.history, own, world, plan)
        memory.follow(batch)
        n = MANY
        if self.promote_s or world.view["free"].any():  # else nothing starts
            n = memory.set_keys(self.score, self.promote_s, batch.now, world, plan)
        plan.deferred = ENDS if n < 2 and memory.history is None else Event.NONE
