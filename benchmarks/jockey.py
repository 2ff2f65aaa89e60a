"""Jockey: time to simulate C(p, a) of a large job, of a controlled run, and of an arbiter's cell.

Run as ``python -m benchmarks.jockey``. CPU seconds of one core, the median of three. The job is of
the size of job G (Ferguson et al., EuroSys 2012, Table 2): 8,496 vertices in 110 stages, 15 of them
behind barriers; C(p, a) is made of 20 allocations × 100 runs. The arbiter has a third of the tokens
that 20 jobs need, as in `experiment=jockey/arbiter`.
"""

from __future__ import annotations

import sys

import numpy as np

import policies
import sim
from benchmarks.common import cpu_seconds, interleave, row, run_seconds, show
from policies.jockey import model
from policies.jockey.control import training_profile
from policies.jockey.indicators import NAMES
from sim import Workload

N_STAGES, N_VERTICES, N_BARRIERS, TIMES = 110, 8496, 15, 3
MODEL_S, RUN_S, ARBITER_S = 2.0, 0.5, 0.3


def job_g(seed: int = 0, n_background: int = 400) -> Workload:
    """Make a job of G's size with one earlier run, and background jobs without a deadline."""
    rng = np.random.default_rng(seed)
    size = rng.lognormal(0, 1.3, N_STAGES)
    n_tasks = np.maximum(1, np.rint(size * N_VERTICES / size.sum())).astype(int)
    n_tasks[np.argmax(n_tasks)] += N_VERTICES - n_tasks.sum()
    barrier = np.zeros(N_STAGES, dtype=bool)
    barrier[rng.choice(np.arange(1, N_STAGES), N_BARRIERS, replace=False)] = True
    mean_s = rng.lognormal(1.1, 0.6, N_STAGES)
    job, stage = {"submit_s": 0.0, "template": "G", "deadline_s": 3600.0}, []
    for s, n in enumerate(n_tasks.tolist()):
        parent = f"s{rng.integers(max(0, s - 5), max(s, 1))}"
        parents = {parent: "barrier" if barrier[s] else "one_to_one"}
        length = (mean_s[s] * rng.lognormal(0, 0.7, n)).tolist()
        stage.append({"name": f"s{s}", "durations_s": length, "parents": parents if s else {}})
    background = [
        {
            "submit_s": float(rng.uniform(0, 3600)),
            "stages": [{"durations_s": rng.lognormal(3, 1, 200).tolist()}],
        }
        for _ in range(n_background)
    ]
    index = np.repeat(np.arange(N_STAGES), n_tasks)
    length = mean_s[index] * rng.lognormal(0, 0.7, N_VERTICES)
    start = rng.uniform(0, 1000, N_VERTICES)
    training = {
        "template": ["G"] * N_VERTICES,
        "run": np.zeros(N_VERTICES, "i4"),
        "stage": index,
        "task": np.arange(N_VERTICES) - np.cumsum(n_tasks)[index] + n_tasks[index],
        "ready_s": start - rng.uniform(0, 1, N_VERTICES).clip(max=start),
        "start_s": start,
        "finish_s": start + length,
        "init_s": 0.1 * length,
        "n_failed": (rng.random(N_VERTICES) < 0.02).astype("i4"),
    }
    return Workload.from_jobs([{**job, "stages": stage}, *background]).with_training(training)


def main() -> int:
    """Time each in turn; return 1 if a limit is exceeded."""
    workload = job_g()
    cluster = sim.Cluster.slots(300)
    job_row = int(np.flatnonzero(np.isfinite(workload.columns.job_deadline))[0])
    profile = training_profile(workload.columns, job_row)
    jockey = policies.build("jockey")

    def simulate(name: str, effort: model.Effort) -> None:
        model._MODELS.clear()
        model.simulated_model(profile, name, 1.0, 100, effort, keep=False)

    for name in NAMES:  # compiles
        simulate(name, model.Effort(2, 2))
    runs = {
        f"C(p, a), {name}": lambda name=name: cpu_seconds(lambda: simulate(name, model.Effort()))
        for name in ("totalworkWithQ", "cp")
    }

    def controlled() -> float:
        sim.simulate(workload, cluster, jockey)  # its model is known from here on
        return run_seconds(workload, cluster, jockey)

    options = {"job": "A", "jobs": 20, "utilization": 0.0, "slots": 630}
    jobs = sim.synthesize("scope_jobs", seed=140, **options)
    scarce, arbiter = sim.Cluster.slots(210), policies.build("jockey_arbiter")

    def arbitrated() -> float:
        sim.simulate(jobs, scarce, arbiter)
        return run_seconds(jobs, scarce, arbiter)

    runs["one run under jockey"] = controlled
    runs["20 jobs under jockey_arbiter"] = arbitrated
    values = interleave(runs, TIMES)
    limits = {"one run under jockey": RUN_S, "20 jobs under jockey_arbiter": ARBITER_S}
    rows = [row(label, v, "s", at_most=limits.get(label, MODEL_S)) for label, v in values.items()]
    return show("jockey", rows)


if __name__ == "__main__":
    sys.exit(main())
