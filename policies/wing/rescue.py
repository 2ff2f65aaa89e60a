"""A job by what it can still rescue, over what that still takes; beyond the paper.

On what Wing (Chung et al., OSDI 2020, §7.1) points at: value that falls with readers that wait.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.registry import register
from policies.wing.efficiency import ByDecay, Waiting
from policies.wing.knowledge import Past, lengths, ratio, truth
from sim.base.arrays import F8
from sim.engine.plan import World
from sim.lineage.worth import decay_columns


@register("wing_dep")
@dataclass(frozen=True)
class WingDep(ByDecay):
    """Aggregate value that is left at expected completion, over the resource-time that is left.

    Wing is Chung et al., OSDI 2020. Only dependent jobs that do not wait for their input are given
    up when they are submitted, those that poll are not; and what is given up takes no resources
    either. Of a program's past the value is the mean, as it adds up and few runs have most of it,
    and the resource-time the geometric mean, as runs differ by factors. Of a user's ad hoc jobs it
    is the geometric mean of value over time, which is then divided by what the job asks for.
    """

    def expected(self, world: World) -> Waiting:
        """Return the efficiency of each job, by how long it waits."""
        if self.knowledge == "oracle":

            def known(column: str) -> F8:
                return truth(world, self.name, column)

            efficiency = ratio(known("agg_value"), known("agg_compute_s"))
            length_s = lengths(world)
        else:
            past = Past(world, "mean")

            def known(column: str) -> F8:
                return past.expected(past.column(column))

            efficiency = predicted(world)
            length_s = Past(world).expected(past.column("mean_task_s"))
        value, whole_value = known("value"), known("agg_value")
        own, whole = known("compute_s"), known("agg_compute_s")
        worth, takes = [np.ones(len(value))], [np.ones(len(value))]
        for rescued, downloaded in zip(
            decay_columns("rescued"), decay_columns("value"), strict=True
        ):
            still = known(rescued)
            part = _share(still - known(downloaded), whole_value - value)
            worth.append(ratio(still, whole_value))
            takes.append(_share(own + (whole - own) * np.clip(part, 0.0, 1.0), whole))
        at_once = np.nan_to_num(efficiency * self.factors(world))
        return Waiting(
            at_once[:, None] * np.nan_to_num(np.stack(worth, axis=1)),
            np.nan_to_num(np.stack(takes, axis=1)),
            np.nan_to_num(length_s),
        )


def predicted(world: World) -> F8:
    """Return the efficiency that the past lets expect of each job if it completes at once, (J,)."""
    c = world.columns
    mean, usual = Past(world, "mean"), Past(world, "geometric mean")
    value, compute = mean.column("agg_value"), mean.column("agg_compute_s")
    held = _share(mean.column("compute_s"), mean.column("mean_task_s"))
    a_second = np.where(np.isnan(value), np.nan, ratio(value, compute) * held)
    any_ = np.where(np.isnan(value), np.nan, value > 0)  # what is worth nothing counts too
    single = usual.of_ad_hoc(a_second) * mean.of_ad_hoc(any_)
    asked = np.bincount(c.stage_job, c.stage_demand_f[:, 0], len(c.job_submit)).astype(np.float64)
    own = mean.of_templates(value)
    return np.where(
        np.isnan(own), ratio(np.nan_to_num(single), asked), ratio(own, usual.of_templates(compute))
    )


def _share(part: F8, whole: F8) -> F8:
    """Return a part of a whole; 1 where there is no whole."""
    return np.divide(part, whole, out=np.ones(len(part)), where=whole > 0)
