"""The run that policies learn from: one of each job, recorded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from sim.base.random import stream
from sim.engine.recording import record
from sim.synth.scope_jobs.alone import workload_of
from sim.synth.scope_jobs.runs import recorded_run
from sim.synth.scope_jobs.templates import template

TRAINING_TOKENS = 50
"""With how many tokens, alone on the cluster, a job is run to be recorded."""


def training_of(names: Sequence[str]) -> dict[str, Any]:
    """Return the table of recorded tasks (`sim.workload.schema.TRAINING`) of some of the jobs."""
    recorded = [_training(name) for name in names]
    return {
        "template": [name for name, r in zip(names, recorded, strict=True) for _ in r["task"]],
        **{key: np.concatenate([r[key] for r in recorded]) for key in recorded[0]},
    }


@cache
def _training(name: str) -> dict[str, Any]:
    from sim.knobs.faults import fail_tasks

    run = recorded_run(template(name), stream(0, "synth", "scope_jobs", "training", name))
    seed = int(stream(0, "synth", "scope_jobs", "training faults", name).integers(2**31))
    return record(fail_tasks(workload_of(run), seed=seed), TRAINING_TOKENS, run.init_s)
