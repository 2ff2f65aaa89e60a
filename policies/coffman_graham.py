"""Coffman and Graham's labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from policies.base import Policy
from policies.registry import register
from sim.engine.plan import Plan, World
from sim.workload.paths import topological_order


@register("coffman_graham")
@dataclass(frozen=True)
class CoffmanGraham(Policy):
    """Stages by falling Coffman–Graham label, which looks at the DAG alone.

    Coffman and Graham, *Optimal scheduling for two-processor systems*, Acta Informatica 1, 1972:
    optimal for unit tasks on two machines, within 2 − 2/m of it on m (a baseline of DAGPS, §8.3).
    Tasks of a stage wait for the same and are waited for by the same, so that over barriers the
    labels of stages order tasks as labels of tasks would; a one-to-one edge counts as a barrier.

    Attributes
    ----------
    across : {"jobs", "stages"}
        "jobs": jobs first come, first served, and the order holds inside each; "stages": the
        highest label goes first, whatever its job.
    """

    across: Literal["jobs", "stages"] = "jobs"

    def prepare(self, world: World, plan: Plan) -> None:
        """Key each stage by its negative label."""
        from sim.dags.kernels.levels import coffman_graham_labels

        c = world.columns
        order = topological_order(c)
        plan.set_stages(key=-coffman_graham_labels(c.job_stage0, order, c.edge0, c.edge_child))
        if self.across == "stages":
            plan.set_jobs(key=np.zeros(len(c.job_submit)))
