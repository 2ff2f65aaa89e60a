"""Backfilling with a reservation for the first job (easy) or for all jobs (conservative)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from policies.backfill.estimates import UserHistory, expect_runs
from policies.base import Policy
from policies.estimates.by_duration import SOURCES
from policies.knows import Knows
from policies.registry import register
from sim.base.parameters import Between
from sim.engine.plan import NO_LIMIT, Batch, Event, Order, Plan, Queues, World


@dataclass(frozen=True)
class Backfilling(Policy):
    """Reservations for rigid jobs, by estimated run times; `fit` is ignored.

    On machines a reservation names them: the first that have room until the job's expected end. In
    queues with hard shares each queue has its own; all jobs go in one order.

    Attributes
    ----------
    knowledge : {"declared", "true", "run"}
        Source of a job's run time. "declared": as requested by its user; without a limit it counts
        as endless. "true": the truth. "run": the mean of the last two jobs of its user that
        finished during the run (Tsafrir et al., TPDS 2007), and the request until there are two.
    order : {"fcfs", "sjf"}
        Order of the jobs: first come, first served, or shortest estimate first.
    """

    knowledge: Literal["declared", "true", "run"] = "declared"
    order: Literal["fcfs", "sjf"] = "fcfs"

    conserves_work: ClassVar[bool] = False
    rigid_jobs: ClassVar[bool] = True
    sorted_by: ClassVar[str] = "key"  # the plan column that ``order`` sets

    @property
    def events(self) -> Event:  # type: ignore[override]
        """Events for predictions; none with other estimates."""
        if self.knowledge != "run":
            return Event.NONE
        return Event.JOB_ARRIVED | Event.JOB_DONE | Event.SERVICE

    @property
    def knows(self) -> Knows:
        """Run times, from the source that `knowledge` names."""
        return Knows(durations=SOURCES[self.knowledge])

    def prepare(self, world: World, plan: Plan) -> object:
        """Set the expected run time of each job."""
        columns = world.columns
        plan.queues = Queues.make(1, order=Order.FIFO)
        history = UserHistory(columns) if self.knowledge == "run" else None
        seconds = expect_runs(columns, plan, self.knowledge)
        if self.order == "sjf":
            plan.set_jobs(**{self.sorted_by: seconds})
        return history

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Update predictions."""
        assert isinstance(memory, UserHistory)
        for j in memory.learn(batch, world.view["start"]):
            seconds, width = memory.predicted.item(j), world.columns.job_n_tasks.item(j)
            values = {"expected_s": seconds, "service_at": memory.limit_s(j) * width}
            if self.order == "sjf":
                values[self.sorted_by] = seconds
            plan.set_jobs(j, **values)
            if memory.n_corrections[j] == 0:
                plan.estimate_s[j] = seconds * width


@register("easy")
@dataclass(frozen=True)
class Easy(Backfilling):
    """EASY backfilling: FCFS; a later job may start if it does not delay the first waiting one.

    Lifka's scheduler as Mu'alem and Feitelson describe it (TPDS 2001). The first job that does not
    fit gets a reservation at the earliest time that the estimates allow. Another job starts if it
    fits now and either ends by that time or leaves enough room. With ``order=sjf`` backfilled jobs
    are tried shortest first, and the first job keeps its place: EASY-SJBF, and with predictions
    EASY++ (Tsafrir et al., TPDS 2007).

    Attributes
    ----------
    reservations : int
        Number of jobs with a reservation, of each queue with a hard share; reservations are
        recomputed at each instant.
    """

    reservations: Annotated[int, Between(1, NO_LIMIT - 1)] = 1

    sorted_by: ClassVar[str] = "fill_key"

    def prepare(self, world: World, plan: Plan) -> object:
        """Reserve room for the first jobs."""
        plan.reservations = self.reservations
        return super().prepare(world, plan)


@register("conservative")
@dataclass(frozen=True)
class Conservative(Backfilling):
    """Conservative backfilling: a job may start early only if it delays no job before it.

    Mu'alem and Feitelson (TPDS 2001): on arrival each job gets a reservation at the earliest time
    that earlier reservations allow. When a job ends, waiting jobs are moved ahead as far as
    possible, one by one in order; none is ever moved back. With ``order=sjf`` they are moved in the
    order of their estimates.
    """

    def prepare(self, world: World, plan: Plan) -> object:
        """Reserve room for all jobs, in the order of the queue."""
        plan.reservations = NO_LIMIT
        memory = super().prepare(world, plan)
        if self.order == "sjf":
            plan.queues = Queues.make(1, order=Order.KEY)
        return memory
