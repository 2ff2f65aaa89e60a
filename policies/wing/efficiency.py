"""Static orders: value over resource-time, highest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from policies.base import Policy
from policies.registry import register
from policies.wing.knowledge import Knowledge, Past, ratio, truth
from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.base.parameters import Factor
from sim.engine.plan import Plan, World


@dataclass(frozen=True)
class Valued(Policy):
    """Jobs by what they are worth, inside the cluster's queues.

    Attributes
    ----------
    knowledge : {"predicted", "oracle"}
        What the workload's history says of like jobs (`policies.wing.knowledge.Past`), nothing and
        so first come, first served without one; or the truth, from columns (`sim.lineage.worth`).
    noise : float
        s: the oracle's values are multiplied by a factor uniform on [1/s, s], one a job (§7.2).
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
        return world.rng("wing noise").uniform(1.0 / self.noise, self.noise, n)


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
