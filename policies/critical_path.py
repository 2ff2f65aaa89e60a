"""Critical path first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from policies.base import Policy
from policies.registry import register
from sim.engine.plan import Plan, World
from sim.workload.paths import stage_tail_s


@register("critical_path")
@dataclass(frozen=True)
class CriticalPath(Policy):
    """Stages in the order of the longest path of tasks from them to their job's end.

    Highest level first (Hu, *Parallel sequencing and assembly line problems*, 1961; Graham's
    list scheduling), the CP of DAGPS (§8.1), with true durations.

    Attributes
    ----------
    across : {"jobs", "stages"}
        "jobs": jobs first come, first served, and the order holds inside each; "stages": the
        longest path goes first, whatever its job.
    """

    across: Literal["jobs", "stages"] = "jobs"

    def prepare(self, world: World, plan: Plan) -> None:
        """Key each stage by its negative path length."""
        plan.set_stages(key=-stage_tail_s(world.columns))
        if self.across == "stages":
            plan.set_jobs(key=np.zeros(len(world.columns.job_submit)))
