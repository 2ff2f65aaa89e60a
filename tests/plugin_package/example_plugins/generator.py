"""Jobs of one task that come at random."""

from sim.base.parameters import Count, Positive, checked
from sim.base.random import stream
from sim.workload.workload import Workload


@checked
def synthesize(
    jobs: Count = 50, seed: int = 0, every_s: Positive = 1.0, mean_s: Positive = 10.0
) -> Workload:
    """Draw intervals and durations from exponential distributions."""
    rng = stream(seed, "example", "poisson")
    submit_s = rng.exponential(every_s, jobs).cumsum()
    return Workload.from_tables(
        jobs={"job_id": [f"job-{row}" for row in range(jobs)], "submit_s": submit_s},
        stages={"job": range(jobs), "n_tasks": [1] * jobs, "demand_cpu": [1.0] * jobs},
        tasks={"stage": range(jobs), "duration_s": rng.exponential(mean_s, jobs)},
        meta={"name": "example_poisson", "seed": seed},
    )
