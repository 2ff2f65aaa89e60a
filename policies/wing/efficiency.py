"""Wing's orders: value over resource-time, highest first; static, or moving while jobs wait."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from policies.base import Policy
from policies.registry import register
from policies.wing.knowledge import Knowledge, Past, lengths, ratio, truth
from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.base.maths import power
from sim.base.parameters import Factor, Positive
from sim.engine.plan import Batch, Event, Plan, World
from sim.lineage.worth import WAITS_S, decay_columns


@dataclass(frozen=True)
class Valued(Policy):
    """Jobs by what they are worth, inside the cluster's queues.

    Attributes
    ----------
    knowledge : {"predicted", "oracle"}
        What the workload's history says of like jobs (`policies.wing.knowledge.Past`), nothing and
        so first come, first served without one; or the truth, from columns (`sim.lineage.worth`).
    noise : float
        s: the oracle's values are multiplied by a factor from 1/s to s, one a job, drawn evenly on
        a log scale, so that a half is as likely as a double (§7.2 gives the range alone).
    """

    knowledge: Knowledge = "predicted"
    noise: Factor = 1.0

    value: ClassVar[str] = ""  #: the column that says what a job is worth
    compute: ClassVar[str] = ""  #: the column that its worth is divided by

    def __post_init__(self) -> None:
        if self.noise > 1.0 and self.knowledge != "oracle":
            raise InputError(
                f"noise={self.noise:g} is for knowledge=oracle: what is predicted has errors of "
                "its own; set noise=1"
            )

    def factors(self, world: World) -> F8:
        """Return what each job's value is multiplied by, (J,)."""
        n = len(world.columns.job_submit)
        if self.noise == 1.0:
            return np.ones(n)
        return power(self.noise, world.rng("wing noise").uniform(-1.0, 1.0, n))


@dataclass(frozen=True)
class ByEfficiency(Valued):
    """Jobs by value over resource-time, highest first; among equals first come, first served.

    Predicted is the quotient of the medians of past jobs of the template; of an ad hoc job, the
    median of the quotients of its user's past ad hoc jobs (§5, §7.1).
    """

    def prepare(self, world: World, plan: Plan) -> None:
        """Key each job by its negative efficiency; the kernel breaks ties by row."""
        if self.knowledge == "oracle":
            own = [truth(world, self.name, column) for column in (self.value, self.compute)]
            efficiency = ratio(own[0], own[1])
        else:
            past = Past(world)
            value, compute = past.column(self.value), past.column(self.compute)
            by_template = [past.of_templates(value), past.of_templates(compute)]
            single = np.where(np.isnan(value), np.nan, ratio(value, compute))
            efficiency = np.where(
                np.isnan(by_template[0]),
                np.nan_to_num(past.of_ad_hoc(single)),
                ratio(by_template[0], by_template[1]),
            )
        plan.set_jobs(key=-efficiency * self.factors(world))


@register("wing_agg")
@dataclass(frozen=True)
class WingAgg(ByEfficiency):
    """Wing-Agg: aggregate value over aggregate resource-time (Wing, OSDI 2020, §5).

    Aggregate are a job's own and its share of all that depends on it, directly or not: if it
    fails, so much is lost, and it takes so much work to attain it.
    """

    value: ClassVar[str] = "agg_value"
    compute: ClassVar[str] = "agg_compute_s"


@register("wing_direct")
@dataclass(frozen=True)
class WingDirect(ByEfficiency):
    """Wing-Direct: a job's own value over its own resource-time (OSDI 2020, §7.2)."""

    value: ClassVar[str] = "value"
    compute: ClassVar[str] = "compute_s"


@dataclass(eq=False)
class Waiting:
    """What is expected of jobs, and the order that follows."""

    # what a job is worth if it completes at once, and so long after its submission (`WAITS_S`)
    value: F8
    # what that is divided by, at any time or at each of these; and how long it is expected to run
    compute: F8
    length_s: F8
    key: F8 = field(init=False)  # as the plan has it

    def __post_init__(self) -> None:
        n = len(self.compute)
        self.key = self.keys(np.arange(n), np.zeros(n))

    def keys(self, rows: I8, waited_s: F8) -> F8:
        """Return the keys of jobs that would start after having waited so long."""
        grid = np.concatenate([[0.0], WAITS_S])
        end = np.clip(waited_s + self.length_s[rows], 0.0, grid[-1])
        at = np.clip(np.searchsorted(grid, end, "right") - 1, 0, len(grid) - 2)
        part = (end - grid[at]) / (grid[at + 1] - grid[at])

        def then(of: F8) -> F8:
            out: F8 = of[rows, at] * (1 - part) + of[rows, at + 1] * part
            return out

        compute = self.compute[rows] if self.compute.ndim == 1 else then(self.compute)
        out = np.zeros(len(rows))
        np.divide(-then(self.value), compute, out=out, where=compute > 0)
        return out


@dataclass(frozen=True)
class ByDecay(Valued):
    """Jobs by value at their expected completion over resource-time, highest first.

    After Millennium (Chun and Culler, CCGRID 2002), as §6.2 describes it: expected completion is
    now plus the expected run time, so the order moves while jobs wait.

    Attributes
    ----------
    refresh_s : float
        How often the jobs that wait are ordered anew, s.
    """

    refresh_s: Positive = 900.0

    events: ClassVar[Event] = Event.TIMER
    decayed: ClassVar[str] = ""  #: the column that says what is left of the worth

    def prepare(self, world: World, plan: Plan) -> Waiting:
        """Key each job by what it is worth if it starts when it is submitted."""
        waiting = self.expected(world)
        plan.set_jobs(key=waiting.key)
        plan.timer_s = world.columns.job_submit.min(initial=0.0) + self.refresh_s
        return waiting

    def expected(self, world: World) -> Waiting:
        """Return what is expected of each job."""
        columns = [self.value, *decay_columns(self.decayed), self.compute]
        if self.knowledge == "oracle":
            known = [truth(world, self.name, column) for column in columns]
            length_s = lengths(world)
        else:
            past = Past(world)
            known = [past.expected(past.column(column)) for column in columns]
            length_s = past.expected(past.column("mean_task_s"))
        value = np.nan_to_num(np.stack(known[:-1], axis=1)) * self.factors(world)[:, None]
        return Waiting(value, np.nan_to_num(known[-1]), np.nan_to_num(length_s))

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Order the jobs that wait anew, by what is left of their value."""
        assert isinstance(memory, Waiting)
        view = world.view
        waits = (view["turn"] >= 0) & (view["started"] == 0) & (view["failed"] == 0)
        # what is left is stated up to the last of WAITS_S, and stays as it is then
        waits &= batch.now - view["submit"] <= WAITS_S[-1] + self.refresh_s
        rows = np.flatnonzero(waits)
        key = memory.keys(rows, batch.now - view["submit"][rows])
        moved = key != memory.key[rows]
        if moved.any():
            memory.key[rows[moved]] = key[moved]
            plan.set_jobs(rows[moved], key=key[moved])
        plan.timer_s = batch.now + self.refresh_s


@register("mil")
@dataclass(frozen=True)
class Millennium(ByDecay):
    """MIL: what is left of a job's own downloads, over its own resource-time.

    Wing's reading (OSDI 2020, §6.2) of Millennium (Chun and Culler, CCGRID 2002).
    """

    value: ClassVar[str] = "value"
    decayed: ClassVar[str] = "value"
    compute: ClassVar[str] = "compute_s"


@register("wing_mil")
@dataclass(frozen=True)
class WingMil(ByDecay):
    """Wing-MIL: what is left of a job's aggregate value, over its aggregate resource-time.

    Wing, OSDI 2020, §6.2. With each dependent job that is submitted, its share of that job's
    aggregate value is given up, whether it would have waited or not (§7.1).
    """

    value: ClassVar[str] = "agg_value"
    decayed: ClassVar[str] = "agg_value"
    compute: ClassVar[str] = "agg_compute_s"
