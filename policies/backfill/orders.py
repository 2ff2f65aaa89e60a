"""Room for the first job in order, and what fits beside it: easy; room for all: conservative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from policies.backfill.estimates import UserHistory, requested_s, true_s
from policies.base import Policy
from policies.registry import register
from sim.base.parameters import Between
from sim.engine.plan import NO_LIMIT, Batch, Event, Order, Plan, Queues, World


@dataclass(frozen=True)
class Backfilling(Policy):
    """Reservations by estimates, of rigid jobs on a pool of slots; `fit` has no say.

    Attributes
    ----------
    estimate : {"requested", "true", "predicted"}
        How long a job is taken to run: what its user asked for, what it takes, or the mean of the
        last two jobs of its user that have ended (Tsafrir et al., TPDS 2007).
    order : {"fcfs", "sjf"}
        Which job goes first: the first that came, or the one that is taken to be the shortest.
    """

    estimate: Literal["requested", "true", "predicted"] = "requested"
    order: Literal["fcfs", "sjf"] = "fcfs"

    conserves_work: ClassVar[bool] = False
    rigid_jobs: ClassVar[bool] = True
    sorted_by: ClassVar[str] = "key"  # the column that ``order`` goes into

    @property
    def events(self) -> Event:  # type: ignore[override]
        """Listens only where it predicts."""
        if self.estimate != "predicted":
            return Event.NONE
        return Event.JOB_ARRIVED | Event.JOB_DONE | Event.SERVICE

    def prepare(self, world: World, plan: Plan) -> object:
        """Expect each job to run as estimated."""
        columns = world.columns
        plan.queues = Queues.make(1, order=Order.FIFO)
        history = UserHistory(columns) if self.estimate == "predicted" else None
        seconds = true_s(columns) if self.estimate == "true" else requested_s(columns)
        plan.set_jobs(expected_s=seconds)
        if self.order == "sjf":
            plan.set_jobs(**{self.sorted_by: seconds})
        plan.estimate_s[:] = seconds * columns.job_n_tasks
        return history

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Predict anew where something was learnt."""
        assert isinstance(memory, UserHistory)
        for j in memory.learn(batch, world.view["start"]):
            seconds, width = memory.predicted.item(j), world.columns.job_n_tasks.item(j)
            values = {"expected_s": seconds, "service_at": memory.outlived_s(j) * width}
            if self.order == "sjf":
                values[self.sorted_by] = seconds
            plan.set_jobs(j, **values)
            if memory.corrected[j] == 0:
                plan.estimate_s[j] = seconds * width


@register("easy")
@dataclass(frozen=True)
class Easy(Backfilling):
    """EASY backfilling: jobs as they came, and those that delay the first that waits go past it.

    Lifka's scheduler as Mu'alem and Feitelson have it (TPDS 2001): room is reserved for the
    first job that does not fit, as early as the estimates have it; any other starts that fits now
    and either ends by then or leaves enough. With ``order=sjf`` the others are tried shortest
    first, and the first keeps its place: EASY-SJBF, and with predictions EASY++ (Tsafrir et al.,
    TPDS 2007).

    Attributes
    ----------
    reservations : int
        For how many jobs room is reserved; each instant anew.
    """

    reservations: Annotated[int, Between(1, NO_LIMIT - 1)] = 1

    sorted_by: ClassVar[str] = "fill_key"

    def prepare(self, world: World, plan: Plan) -> object:
        """Reserve room for the first."""
        plan.reservations = self.reservations
        return super().prepare(world, plan)


@register("conservative")
@dataclass(frozen=True)
class Conservative(Backfilling):
    """Conservative backfilling: no job goes past another that it delays.

    Mu'alem and Feitelson (TPDS 2001): each job gets, as it comes, the earliest room that is
    left by those before it. When a job ends, those that wait are moved ahead as far as they can be,
    one by one in order; none is ever moved back. With ``order=sjf`` the order in which they are
    moved is that of their estimates.
    """

    def prepare(self, world: World, plan: Plan) -> object:
        """Reserve room for all, in the order of the queue."""
        plan.reservations = NO_LIMIT
        memory = super().prepare(world, plan)
        if self.order == "sjf":
            plan.queues = Queues.make(1, order=Order.KEY)
        return memory
