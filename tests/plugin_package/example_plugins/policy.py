"""The order of jobs by how many tasks they have."""

from dataclasses import dataclass

from policies import Policy, register
from sim.plan import Plan, World


@register("example_widest")
@dataclass(frozen=True)
class Widest(Policy):
    """Jobs with the most tasks first (folklore)."""

    def prepare(self, world: World, plan: Plan) -> None:
        """Key each job by its negative number of tasks."""
        plan.set_jobs(key=-world.columns.job_n_tasks.astype(float))
