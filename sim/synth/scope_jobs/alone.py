"""A run of a job alone on a cluster, first come, first served."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.plan import NO_LIMIT, Batch, Event, Plan, World
from sim.random import stream
from sim.synth.scope_jobs import tables
from sim.synth.scope_jobs.published import TOKENS
from sim.synth.scope_jobs.runs import JobRun, usual_run

if TYPE_CHECKING:
    from sim.synth.scope_jobs.templates import Template
    from sim.workload import Workload


@dataclass(frozen=True)
class FirstComeFirstServed:
    """A scheduler that leaves the plan as it is, but for how many tasks of a job run at once.

    Attributes
    ----------
    limit : int
        That many.
    """

    limit: int = NO_LIMIT
    name: str = "first come, first served"
    events: Event = Event.NONE

    def begin(self, world: World, plan: Plan) -> object:
        """Set the limit."""
        plan.set_jobs(run_limit=self.limit)
        return None

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Do nothing."""


def workload_of(run: JobRun) -> Workload:
    """Make a workload of one run, submitted at 0."""
    from sim.workload import Workload

    piece = tables.of_runs([run], [run.template.name], [0.0])
    return Workload.from_tables(**tables.joined([piece]), validate=False)


def alone_s(template: Template, tokens: int = TOKENS) -> float:
    """Return how long a usual run of the job takes alone with so many tokens, s."""
    from sim.cluster import Cluster
    from sim.engine import simulate

    run = usual_run(template, stream(0, "synth", "scope_jobs", "alone", template.name))
    done = simulate(workload_of(run), Cluster.slots(tokens), FirstComeFirstServed())
    return float(done.job_finish[0])
