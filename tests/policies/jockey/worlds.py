"""Small worlds for Jockey: recurring jobs with an earlier run of each, and background."""

from __future__ import annotations

import numpy as np

import policies
import sim
from sim.check.record import Record

MAPS, REDUCES = 120, 12


def stages(rng: np.random.Generator, factor: float = 1.0) -> list[dict]:
    """Draw a job of three stages: maps, filters one to one, and reduces behind a barrier."""

    def tasks(mean_s: float, n: int) -> list[float]:
        return (factor * mean_s * rng.lognormal(-0.125, 0.5, n)).tolist()

    return [
        {"name": "map", "durations_s": tasks(60.0, MAPS)},
        {"name": "filter", "durations_s": tasks(20.0, MAPS), "parents": {"map": "one_to_one"}},
        {"name": "reduce", "durations_s": tasks(90.0, REDUCES), "parents": ["filter"]},
    ]


def training_of(result: sim.Result, template: str = "a", init: float = 0.1) -> dict:
    """Return training records of the jobs of a run, each as a run of the template."""
    c = result.workload.columns
    run = Record(result)
    submit = c.job_submit[run.task_job]
    n = len(submit)
    length = result.task_finish - result.task_start
    return {
        "template": [template] * n,
        "run": run.task_job,
        "stage": (run.task_stage - c.job_stage0[run.task_job]).astype("i4"),
        "task": (np.arange(n) - c.stage_task0[run.task_stage]).astype("i4"),
        "ready_s": run.ready - submit,
        "start_s": result.task_start - submit,
        "finish_s": result.task_finish - submit,
        "init_s": init * length,
        "n_failed": np.zeros(n, dtype="i4"),
    }


def trained(seed: int = 0, tokens: int = 20, **options) -> dict:
    """Run one job alone with `tokens` tokens; return its training records."""
    rng = np.random.default_rng([seed, 1])
    alone = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages(rng)}])
    result = sim.simulate(alone, sim.Cluster.slots(tokens), policies.build("fifo"), record="tasks")
    return training_of(result, **options)


def world(
    deadline_s: float = 1800.0,
    seed: int = 0,
    factor: float = 1.0,
    n_background: int = 0,
    n_jobs: int = 1,
    **job,
) -> sim.Workload:
    """Make jobs with a deadline, their training run, and background jobs without a deadline."""
    rng = np.random.default_rng([seed, 2])
    rows = [
        {
            "job_id": f"slo-{i}",
            "submit_s": 100.0,
            "template": "a",
            "deadline_s": deadline_s,
            "stages": stages(rng, factor),
            **job,
        }
        for i in range(n_jobs)
    ]
    rows += [
        {
            "job_id": f"other-{i}",
            "submit_s": 40.0 * i,
            "stages": [{"durations_s": (120 * rng.lognormal(-0.5, 1.0, 40)).tolist()}],
        }
        for i in range(n_background)
    ]
    return sim.Workload.from_jobs(rows).with_training(trained(seed))
