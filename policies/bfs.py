"""Breadth-first search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from policies.base import Policy
from policies.registry import register
from sim.engine.plan import Plan, World
from sim.workload.paths import stage_depth


@register("bfs")
@dataclass(frozen=True)
class BreadthFirst(Policy):
    """Stages in the order of their depth, the longest path of edges from a source of their job.

    What Tez does inside a job, and the baseline of DAGPS (§8.1).

    Attributes
    ----------
    across : {"jobs", "stages"}
        "jobs": jobs first come, first served, and the order holds inside each; "stages": the
        least depth goes first, whatever its job.
    """

    across: Literal["jobs", "stages"] = "jobs"

    def prepare(self, world: World, plan: Plan) -> None:
        """Key each stage by its depth."""
        plan.set_stages(key=stage_depth(world.columns))
        if self.across == "stages":
            plan.set_jobs(key=np.zeros(len(world.columns.job_submit)))
