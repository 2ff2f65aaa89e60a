"""Declarations of what a policy knows of durations, demands, values and deadlines."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

Source = Literal["true", "declared", "learnt", "nothing"]


@dataclass(frozen=True)
class Knows:
    """Knowledge of a policy about the jobs, by quantity.

    Each field is "true" (the truth, before anybody could know it: an oracle), "declared" (by the
    job's user: requests, limits, priorities), "learnt" (from history, pilots or the run) or
    "nothing" (the policy does not use it).

    Attributes
    ----------
    durations : str
        Durations of tasks, or run times of jobs. The past of the run, such as attained service, is
        observed and needs no knowledge.
    demands : str
        Resources per task. Every policy sees the requests of the jobs that have arrived, because a
        task's container states them. True are those that a task needs, where it requests more
        (`sim.cluster.requests`), or those of jobs to come. The mean request over the workload
        counts as configuration: it is the unit of DAGPS's bound on unfairness.
    values : str
        Priorities, or the worth of a job's completion.
    deadlines : str
        Deadlines of jobs.
    """

    durations: Source = "nothing"
    demands: Source = "declared"
    values: Source = "nothing"
    deadlines: Source = "nothing"

    def __str__(self) -> str:
        """Return all that is known: ``true durations, declared demands``."""
        sources = ((field.name, getattr(self, field.name)) for field in fields(self))
        return ", ".join(f"{source} {name}" for name, source in sources if source != "nothing")

    @property
    def is_oracle(self) -> bool:
        """True if the policy knows any truth: nobody can run it on a real cluster."""
        return any(getattr(self, field.name) == "true" for field in fields(self))


OMNISCIENT = Knows("true", "true", "true", "true")
