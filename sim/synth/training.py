"""Training jobs of a GPU cluster: gangs, speeds by model of GPU, priorities, teams.

What follows a public source is Gavel's generator (Narayanan et al., OSDI 2020; the functions
``_generate_scale_factor``, ``_generate_duration`` and ``generate_job`` of ``scheduler/utils.py`` in
github.com/stanford-futuredata/gavel), which says that it samples the distributions of the Philly
trace (Jeon et al., ATC 2019):

- GPUs of a job: 1 (70 %), 2 (10 %), 4 (15 %) or 8 (5 %);
- run time on V100s, min: 10^x with x uniform in 1.5 to 3 (80 %), or in 3 to 4 (20 %);
- priority: 5 (20 %) or 1;
- arrivals: a Poisson process;
- speeds: throughput of one GPU over that of a V100, of six of its models (``SPEEDS``, from
  ``scheduler/simulation_throughputs.json``), each as likely as the others.

The rest is chosen here, for want of a source: teams and users (of rank r with weight 1/r), workers
of `per_worker` GPUs at most, parts of GPUs, jobs that need a fast GPU, 4 CPUs a GPU, a checkpoint
every six minutes, and one minute to restart.
"""

from __future__ import annotations

import numpy as np

from sim.base import maths
from sim.base.parameters import Count, Positive, Share, checked
from sim.base.random import stream
from sim.workload.workload import Workload

GPUS = (1, 2, 4, 8)
SHARES = (0.70, 0.10, 0.15, 0.05)
MODELS = ("ResNet-18", "ResNet-50", "CycleGAN", "Transformer", "LM", "A3C")
SPEEDS = {  # batch sizes 128, 64, -, 64, 20, -
    "p100": (0.649, 0.596, 0.543, 0.591, 0.899, 0.792),
    "k80": (0.100, 0.141, 0.114, 0.203, 0.265, 0.479),
}
"""Throughput of each of the models on one GPU, over that on a V100."""
CHECKPOINT_S, RESTART_S = 360.0, 60.0
CPU_PER_GPU = 4.0


@checked
def synthesize(
    jobs: Count = 500,
    seed: int = 0,
    every_s: Positive = 600.0,
    per_worker: Count = 2,
    half: Share = 0.2,
    fast: Share = 0.2,
    teams: Count = 4,
    users: Count = 16,
) -> Workload:
    """Synthesize the workload.

    Parameters
    ----------
    jobs : int
        Number of jobs.
    seed : int
        Seed of all draws.
    every_s : float
        Mean time between arrivals, s.
    per_worker : int
        Most GPUs of one worker; a job of more is a gang of workers, which start together.
    half : float
        Share of the jobs of one GPU that take half of it, 0 to 1.
    fast : float
        Share of the jobs that name the partition ``fast``, 0 to 1; the others name none.
    teams, users : int
        Number of queues, ``team-1`` and on, and of users, each of one team.

    Returns
    -------
    Workload
        Jobs of one stage, with demands of cpu and gpu.
    """

    def draws(purpose: str) -> np.ndarray:
        return stream(seed, "synth", "training", purpose).random(jobs)

    submit_s = stream(seed, "synth", "training", "arrivals").exponential(every_s, jobs).cumsum()
    gpus = np.array(GPUS)[np.searchsorted(np.cumsum(SHARES[:-1]), draws("gpus"), side="right")]
    is_long = draws("long") >= 0.8
    exponent = np.where(is_long, 3.0, 1.5) + np.where(is_long, 1.0, 1.5) * draws("minutes")
    duration_s = 60.0 * maths.power(10.0, exponent)
    model = (draws("model") * len(MODELS)).astype(np.int64)
    weight = np.cumsum(1.0 / np.arange(1, users + 1))
    user = np.searchsorted(weight / weight[-1], draws("user"), side="right")
    worker_gpus = np.minimum(gpus, per_worker)
    n_workers = -(-gpus // worker_gpus)
    demand = np.where((gpus == 1) & (draws("half") < half), 0.5, worker_gpus)
    return Workload.from_tables(
        jobs={
            "job_id": [f"job-{row}" for row in range(jobs)],
            "submit_s": submit_s,
            "template": [MODELS[row] for row in model.tolist()],
            "user": [f"user-{row + 1}" for row in user.tolist()],
            "queue": [f"team-{row % teams + 1}" for row in user.tolist()],
            "priority": np.where(draws("priority") <= 0.2, 5.0, 1.0),
            "min_tasks": np.where(n_workers > 1, n_workers, 0).astype(np.int32),
            "partition": np.where(draws("fast") < fast, "fast", "").tolist(),
            "checkpoint_s": np.full(jobs, CHECKPOINT_S),
            "restart_s": np.full(jobs, RESTART_S),
        },
        stages={
            "job": np.arange(jobs),
            "name": ["train"] * jobs,
            "n_tasks": n_workers,
            "demand_cpu": CPU_PER_GPU * demand,
            "demand_gpu": demand,
            **{f"speed_{name}": np.array(speed)[model] for name, speed in SPEEDS.items()},
        },
        tasks={
            "stage": np.repeat(np.arange(jobs), n_workers),
            "duration_s": np.repeat(duration_s, n_workers),
        },
        meta={"name": "training", "seed": seed},
    )
