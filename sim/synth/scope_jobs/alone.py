"""A run of a job alone on the cluster's tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.base.random import stream
from sim.engine.recording import alone
from sim.published import numbers
from sim.synth.scope_jobs import tables
from sim.synth.scope_jobs.runs import JobRun, recorded_run

if TYPE_CHECKING:
    from sim.synth.scope_jobs.templates import Template
    from sim.workload.workload import Workload

TOKENS: int = numbers("jockey")["cluster"]["tokens"]
"""The most that a job was guaranteed (§5.1)."""


def workload_of(run: JobRun) -> Workload:
    """Make a workload of one run, submitted at 0."""
    from sim.workload.workload import Workload

    piece = tables.of_runs([run], [run.template.name], [0.0])
    return Workload.from_tables(**tables.joined([piece]), validate=False)


def alone_s(template: Template, tokens: int = TOKENS) -> float:
    """Return how long a run like the recorded one takes alone with so many tokens, s."""
    run = recorded_run(template, stream(0, "synth", "scope_jobs", "alone", template.name))
    return float(alone(workload_of(run), tokens).job_finish[0])
