"""Jobs by the value that they can still rescue, over the remaining work; beyond the paper.

It follows a remark of Wing (Chung et al., OSDI 2020, §7.1) on the decay of value with readers that
wait.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.registry import register
from policies.wing.efficiency import ByDecay, Waiting
from policies.wing.lineage.worth import decay_columns
from policies.wing.past import Past
from policies.wing.truth import lengths, ratio, truth
from sim.base.arrays import F8
from sim.engine.plan import World


@register("wing_dep")
@dataclass(frozen=True)
class WingDep(ByDecay):
    """Aggregate value left at expected completion, over the resource-time that is left.

    Wing is Chung et al., OSDI 2020. A dependent job that does not wait for its input is lost when
    it is submitted; one that polls is not. Lost jobs need no resources either. For a program with
    past runs, value is predicted by their mean, because it adds up and few runs have most of it,
    and resource-time by their geometric mean, because runs differ by factors. For a user's ad hoc
    jobs the prediction is the geometric mean of value over time, divided by the job's demand.
    """

    def expected(self, world: World) -> Waiting:
        """Return the efficiency of each job by its waiting time."""
        if self.knowledge == "true":

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
        own_compute, whole_compute = known("compute_s"), known("agg_compute_s")
        value_left, compute_left = [np.ones(len(value))], [np.ones(len(value))]
        for rescued, downloaded in zip(
            decay_columns("rescued"), decay_columns("value"), strict=True
        ):
            rescued_value = known(rescued)
            part = _share(rescued_value - known(downloaded), whole_value - value)
            value_left.append(ratio(rescued_value, whole_value))
            compute_left.append(
                _share(
                    own_compute + (whole_compute - own_compute) * np.clip(part, 0.0, 1.0),
                    whole_compute,
                )
            )
        at_once = np.nan_to_num(efficiency * self.factors(world))
        return Waiting(
            at_once[:, None] * np.nan_to_num(np.stack(value_left, axis=1)),
            np.nan_to_num(np.stack(compute_left, axis=1)),
            np.nan_to_num(length_s),
        )


def predicted(world: World) -> F8:
    """Return the predicted efficiency of each job if it completes at once, (J,)."""
    c = world.columns
    mean, geometric = Past(world, "mean"), Past(world, "geometric mean")
    value, compute = mean.column("agg_value"), mean.column("agg_compute_s")
    tokens = _share(mean.column("compute_s"), mean.column("mean_task_s"))
    per_second = np.where(np.isnan(value), np.nan, ratio(value, compute) * tokens)
    any_ = np.where(np.isnan(value), np.nan, value > 0)  # jobs without value count, too
    single = geometric.by_ad_hoc(per_second) * mean.by_ad_hoc(any_)
    requested = np.bincount(c.stage_job, c.stage_demand_f[:, 0], len(c.job_submit)).astype(
        np.float64
    )
    value_by_template = mean.by_template(value)
    return np.where(
        np.isnan(value_by_template),
        ratio(np.nan_to_num(single), requested),
        ratio(value_by_template, geometric.by_template(compute)),
    )


def _share(part: F8, whole: F8) -> F8:
    """Return the share of a part in a whole; 1 where the whole is 0."""
    return np.divide(part, whole, out=np.ones(len(part)), where=whole > 0)
