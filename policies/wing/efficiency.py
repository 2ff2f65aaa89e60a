"""Wing's orders: value over resource-time, highest first; static, or decaying while jobs wait."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from policies.base import Policy
from policies.knows import Knows, Source
from policies.registry import register
from policies.wing.lineage.worth import COLUMNS, WAITS_S, decay_columns
from policies.wing.past import Past
from policies.wing.truth import lengths, ratio, truth
from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.base.maths import power
from sim.base.parameters import Factor, Positive
from sim.engine.plan import Batch, Event, Plan, World


@dataclass(frozen=True)
class Valued(Policy):
    """Jobs by their value, inside the cluster's queues.

    Attributes
    ----------
    knowledge : {"history", "true"}
        Source of values. "history": similar jobs of the workload's history
        (`policies.wing.past.Past`); without a history jobs go first come, first served.
        "true": the true values, from columns (`policies.wing.lineage.worth`).
    noise : float
        Largest error factor s of true values: each job's value is multiplied by a factor
        from 1/s to s, uniform on a log scale, so that a half is as likely as a double (§7.2 gives
        the range alone).
    """

    knowledge: Literal["history", "true"] = "history"
    noise: Factor = 1.0

    own_columns: ClassVar[tuple[str, ...]] = COLUMNS
    value: ClassVar[str] = ""  #: the column with a job's value
    compute: ClassVar[str] = ""  #: the column with the resource-time that its value is divided by

    def __post_init__(self) -> None:
        if self.noise > 1.0 and self.knowledge != "true":
            raise InputError(
                f"noise={self.noise:g} needs knowledge=true: predicted values have errors "
                "of their own; set noise=1"
            )

    @property
    def knows(self) -> Knows:
        """Values and resource-time of past jobs, or the truth."""
        source: Source = "true" if self.knowledge == "true" else "learnt"
        return Knows(durations=source, values=source)

    def factors(self, world: World) -> F8:
        """Return the error factor of each job's value, (J,)."""
        n = len(world.columns.job_submit)
        if self.noise == 1.0:
            return np.ones(n)
        return power(self.noise, world.rng("wing noise").uniform(-1.0, 1.0, n))


@dataclass(frozen=True)
class ByEfficiency(Valued):
    """Jobs by value over resource-time, highest first; ties go first come, first served.

    The prediction is the quotient of the medians over past jobs of the template. For an ad hoc job
    it is the median of the quotients of its user's past ad hoc jobs (§5, §7.1).

    Attributes
    ----------
    without : {"nothing", "value", "resource_time"}
        Part of the quotient that is left out: without "value" the least resource-time goes first,
        without "resource_time" the highest value (`wing/parts`).
    """

    without: Literal["nothing", "value", "resource_time"] = "nothing"

    def prepare(self, world: World, plan: Plan) -> None:
        """Key each job by its negative efficiency; the kernel breaks ties by row."""
        if self.knowledge == "true":
            truths = [truth(world, self.name, column) for column in (self.value, self.compute)]
            efficiency = ratio(*self._terms(*truths))
        else:
            past = Past(world)
            value, compute = self._terms(past.column(self.value), past.column(self.compute))
            by_template = [past.by_template(value), past.by_template(compute)]
            single = np.where(np.isnan(value), np.nan, ratio(value, compute))
            efficiency = np.where(
                np.isnan(by_template[0]),
                np.nan_to_num(past.by_ad_hoc(single)),
                ratio(by_template[0], by_template[1]),
            )
        plan.set_jobs(key=-efficiency * self.factors(world))

    def _terms(self, value: F8, compute: F8) -> tuple[F8, F8]:
        """Return both, with 1 for known numbers of the one that is left out."""
        if self.without == "value":
            value = np.where(np.isnan(value), np.nan, 1.0)
        elif self.without == "resource_time":
            compute = np.where(np.isnan(compute), np.nan, 1.0)
        return value, compute


@register("wing_agg")
@dataclass(frozen=True)
class WingAgg(ByEfficiency):
    """Wing-Agg: aggregate value over aggregate resource-time (Wing, OSDI 2020, §5).

    An aggregate is the job's own amount plus its share of all jobs that depend on it, directly or
    not: the value that is lost if it fails, and the work that it takes to attain that value.
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
    """Expected values of jobs by completion time, and their keys."""

    # value of a job that completes at once, and at each of `WAITS_S` after its submission
    value: F8
    # resource-time that the value is divided by, constant or at each of these times
    compute: F8
    length_s: F8  # expected run time, s
    key: F8 = field(init=False)  # as set in the plan

    def __post_init__(self) -> None:
        n = len(self.compute)
        self.key = self.keys(np.arange(n), np.zeros(n))

    def keys(self, rows: I8, waited_s: F8) -> F8:
        """Return the keys of jobs that start after waiting `waited_s`."""
        grid = np.concatenate([[0.0], WAITS_S])
        end = np.clip(waited_s + self.length_s[rows], 0.0, grid[-1])
        i = np.clip(np.searchsorted(grid, end, "right") - 1, 0, len(grid) - 2)
        part = (end - grid[i]) / (grid[i + 1] - grid[i])

        def at_end(table: F8) -> F8:
            out: F8 = table[rows, i] * (1 - part) + table[rows, i + 1] * part
            return out

        compute = self.compute[rows] if self.compute.ndim == 1 else at_end(self.compute)
        out = np.zeros(len(rows))
        np.divide(-at_end(self.value), compute, out=out, where=compute > 0)
        return out


@dataclass(frozen=True)
class ByDecay(Valued):
    """Jobs by value at their expected completion over resource-time, highest first.

    After Millennium (Chun and Culler, CCGRID 2002), as §6.2 describes it: expected completion is
    now plus the expected run time, so that the order changes while jobs wait.

    Attributes
    ----------
    refresh_s : float
        Time between updates of the waiting jobs' order, s.
    """

    refresh_s: Positive = 900.0

    events: ClassVar[Event] = Event.TIMER
    decayed: ClassVar[str] = ""  #: the column with the value left after a wait

    def prepare(self, world: World, plan: Plan) -> Waiting:
        """Key each job by its efficiency if it starts at its submission."""
        waiting = self.expected(world)
        plan.set_jobs(key=waiting.key)
        plan.timer_s = world.columns.job_submit.min(initial=0.0) + self.refresh_s
        return waiting

    def expected(self, world: World) -> Waiting:
        """Return the expected values and run times of jobs."""
        columns = [self.value, *decay_columns(self.decayed), self.compute]
        if self.knowledge == "true":
            known = [truth(world, self.name, column) for column in columns]
            length_s = lengths(world)
        else:
            past = Past(world)
            known = [past.expected(past.column(column)) for column in columns]
            length_s = past.expected(past.column("mean_task_s"))
        value = np.nan_to_num(np.stack(known[:-1], axis=1)) * self.factors(world)[:, None]
        return Waiting(value, np.nan_to_num(known[-1]), np.nan_to_num(length_s))

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Update the keys of waiting jobs by the value that is left."""
        assert isinstance(memory, Waiting)
        view = world.view
        waits = (view["turn"] >= 0) & (view["started"] == 0) & (view["failed"] == 0)
        # values are known up to the last of WAITS_S, and constant from then on
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
    """MIL: the value left of a job's own downloads, over its own resource-time.

    Wing's reading (OSDI 2020, §6.2) of Millennium (Chun and Culler, CCGRID 2002).
    """

    value: ClassVar[str] = "value"
    decayed: ClassVar[str] = "value"
    compute: ClassVar[str] = "compute_s"


@register("wing_mil")
@dataclass(frozen=True)
class WingMil(ByDecay):
    """Wing-MIL: the aggregate value left of a job, over its aggregate resource-time.

    Wing, OSDI 2020, §6.2. With each dependent job that is submitted, the job's share of that
    dependent's aggregate value is lost, even if the dependent would have waited (§7.1).
    """

    value: ClassVar[str] = "agg_value"
    decayed: ClassVar[str] = "agg_value"
    compute: ClassVar[str] = "agg_compute_s"
