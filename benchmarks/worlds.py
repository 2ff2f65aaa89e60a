"""Workloads and DAGs that several benchmarks share."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from policies.alibaba.synth.shipped import SHIPPED
from sim import Workload, transforms
from sim.base.random import stream
from sim.dags import Graphs
from sim.synth.fitted.tables_file import read_tables
from sim.synth.fitted.tian_algorithm2 import synthesize_dags


def pool_jobs(
    n_tasks: int, widths: tuple[int, int], load: float, slots: int = 1000, whole: bool = False
) -> Workload:
    """Make jobs of one stage whose lognormal tasks offer `load` to a pool of `slots`.

    Widths are uniform between the two of `widths`; `whole` rounds all times to seconds, for
    simulators that support no others.
    """
    rng = np.random.default_rng(0)
    mean = sum(widths) / 2
    width = rng.integers(widths[0], widths[1] + 1, int(n_tasks / mean)).astype(np.int32)
    duration = rng.lognormal(3, 1, int(width.sum()))
    submit = np.sort(rng.uniform(0, duration.sum() / (slots * load), len(width)))
    if whole:
        duration, submit = np.ceil(duration), np.floor(submit)
    return workload(submit - submit[0], width, duration, {"cpu": np.ones(len(width))})


def machine_jobs(load: float, machines: int = 200, n_jobs: int = 4000) -> Workload:
    """Make jobs of one stage of 25 to 75 tasks with four demands, for machines of size 1."""
    rng = np.random.default_rng(0)
    width = rng.integers(25, 76, n_jobs).astype(np.int32)
    duration = rng.lognormal(3, 1, int(width.sum()))
    demand = np.round(rng.uniform(0.02, 0.3, (n_jobs, 4)), 3)
    work = np.add.reduceat(duration, np.concatenate([[0], np.cumsum(width)[:-1]]))
    span = float((work[:, None] * demand).sum(axis=0).max()) / (machines * load)
    submit = np.sort(rng.uniform(0, span, n_jobs))
    return workload(submit - submit[0], width, duration, {f"r{r}": demand[:, r] for r in range(4)})


def workload(
    submit: np.ndarray, width: np.ndarray, duration: np.ndarray, demand: dict[str, np.ndarray]
) -> Workload:
    """Build a workload of jobs of one stage each, with its kernel columns ready."""
    n = len(submit)
    rows = np.arange(n, dtype=np.int32)
    result = Workload.from_tables(
        jobs=pa.table({"job_id": [f"j{i}" for i in range(n)], "submit_s": submit}),
        stages=pa.table(
            {"job": rows, "name": ["s"] * n, "n_tasks": width}
            | {f"demand_{name}": column for name, column in demand.items()}
        ),
        tasks=pa.table({"stage": np.repeat(rows, width), "duration_s": duration}),
    )
    _ = result.columns
    return result


def paper_dags(n_jobs: int) -> Graphs:
    """Make DAGs of the sizes of the shipped tables by Tian et al.'s Algorithm 2."""
    tables = read_tables(SHIPPED)
    sizes = tables.n_stages.draw(stream(0, "benchmark").random(n_jobs)).astype(np.int64)
    return synthesize_dags(tables, sizes, 0).graph


def crowd(n_jobs: int = 100_000, n_history: int = 20_000, n_programs: int = 500) -> Workload:
    """Make many small jobs: runs of programs of one to three stages of one to five tasks.

    Every program has demands and a mean duration of its own, and runs before time 0; a user runs
    the programs whose number ends like the user's.
    """
    rng = np.random.default_rng(0)
    n_stages = rng.integers(1, 4, n_programs)
    program_stage0 = np.concatenate([[0], np.cumsum(n_stages)])
    width = rng.integers(1, 6, program_stage0[-1]).astype(np.int32)
    cpu = rng.choice([1.0, 2.0, 4.0], len(width), p=[0.6, 0.3, 0.1])
    mem = rng.choice([2.0, 4.0, 8.0, 16.0], len(width))
    mean_s = rng.lognormal(4, 1, len(width))
    program = rng.integers(0, n_programs, n_jobs + n_history)
    run = rng.lognormal(0, 0.4, n_jobs + n_history)  # how much longer a run takes than others
    names = {
        "template": [f"program-{p}" for p in program],
        "application": [f"program-{p}" for p in program],
        "user": [f"user-{p % 40}" for p in program],
    }
    job = np.repeat(np.arange(n_jobs, dtype=np.int32), n_stages[program[:n_jobs]])
    job_stage0 = np.concatenate([[0], np.cumsum(n_stages[program[:n_jobs]])])
    place = np.arange(len(job)) - job_stage0[job]
    row = program_stage0[program[job]] + place
    stage = np.repeat(np.arange(len(job), dtype=np.int32), width[row])
    child = np.flatnonzero(place > 0).astype(np.int32)
    past = program[n_jobs:]
    past_s = -np.sort(rng.uniform(1.0, 86_400.0, n_history))[::-1]
    past_mean_s = mean_s[program_stage0[past]] * run[n_jobs:]
    return Workload.from_tables(
        jobs={
            "job_id": [f"j{i}" for i in range(n_jobs)],
            "submit_s": np.sort(rng.uniform(0.0, 86_400.0, n_jobs)),
            **{name: column[:n_jobs] for name, column in names.items()},
        },
        stages={
            "job": job,
            "name": [f"s{p}" for p in place],
            "n_tasks": width[row],
            "demand_cpu": cpu[row],
            "demand_mem": mem[row],
        },
        tasks={
            "stage": stage,
            "duration_s": (mean_s[row] * run[job])[stage] * rng.lognormal(0, 0.3, len(stage)),
        },
        stage_edges={"parent": child - 1, "child": child, "kind": ["barrier"] * len(child)},
        history={
            "submit_s": past_s - past_mean_s,
            "finish_s": past_s,
            "n_tasks": width[program_stage0[past]],
            "mean_task_s": past_mean_s,
            **{name: column[n_jobs:] for name, column in names.items()},
        },
    )


def rigid_log(n_jobs: int = 5_000, slots: int = 128, load: float = 0.8) -> Workload:
    """Make rigid jobs with requested run times, as in the log of a parallel machine of `slots`."""
    rng = np.random.default_rng(0)
    width = 2 ** rng.integers(0, 6, n_jobs).astype(np.int32)
    run_s = np.ceil(np.clip(rng.lognormal(7, 1.5, n_jobs), 1.0, 86_400.0))
    requested_s = 900.0 * np.ceil(run_s * rng.choice([1.0, 1.5, 3.0, 10.0], n_jobs) / 900.0)
    span_s = float((run_s * width).sum()) / (slots * load)
    rows = np.arange(n_jobs, dtype=np.int32)
    return Workload.from_tables(
        jobs={
            "job_id": [f"j{i}" for i in range(n_jobs)],
            "submit_s": np.floor(np.sort(rng.uniform(0.0, span_s, n_jobs))),
            "user": [f"user-{u}" for u in rng.zipf(1.5, n_jobs) % 60],
            "min_tasks": width,
            "requested_s": requested_s,
        },
        stages={
            "job": rows,
            "name": ["s"] * n_jobs,
            "n_tasks": width,
            "demand_cpu": np.ones(n_jobs),
        },
        tasks={"stage": np.repeat(rows, width), "duration_s": np.repeat(run_s, width)},
    )


GPU_NODES = (
    {"class": "a100", "count": 300, "cpu": 96, "mem": 768, "devices": {"gpu": 8}},
    {"class": "v100", "count": 400, "cpu": 64, "mem": 512, "devices": {"gpu": 8}},
    {"class": "t4", "count": 300, "cpu": 32, "mem": 256, "devices": {"gpu": 4}},
)
"""A cluster of 1,000 nodes and 6,800 GPUs of three models."""


def gpu_gangs(load: float, n_jobs: int = 10_000, seed: int = 0) -> Workload:
    """Make rigid gangs of GPU workers that offer `load` to `GPU_NODES`, in GPU seconds.

    Of 1 to 16 workers of 1, 2, 4 or 8 GPUs each, with CPUs and memory; a third name the models of
    GPU that they run on. Durations are lognormal, limits of run time one to four times as long.
    """
    draws = np.random.default_rng(seed)
    width = draws.integers(1, 17, n_jobs)
    gpus = draws.choice([1.0, 2.0, 4.0, 8.0], n_jobs, p=[0.3, 0.25, 0.25, 0.2])
    run_s = np.ceil(draws.lognormal(7.5, 1.3, n_jobs))
    models = draws.choice(["", "a100", "a100|v100", "v100"], n_jobs, p=[0.67, 0.08, 0.15, 0.1])
    n_gpus = sum(nodes["count"] * nodes["devices"]["gpu"] for nodes in GPU_NODES)
    span_s = float((run_s * width * gpus).sum()) / (n_gpus * load)
    rows = np.arange(n_jobs, dtype=np.int32)
    return Workload.from_tables(
        jobs={
            "job_id": [f"j{i}" for i in range(n_jobs)],
            "submit_s": np.floor(np.sort(draws.uniform(0.0, span_s, n_jobs))),
            "user": [f"user-{u}" for u in draws.zipf(1.5, n_jobs) % 60],
            "priority": draws.choice([0.0, 1.0, 2.0], n_jobs, p=[0.6, 0.3, 0.1]),
            "min_tasks": width.astype(np.int32),
            "requested_s": np.ceil(run_s * draws.uniform(1.0, 4.0, n_jobs)),
        },
        stages={
            "job": rows,
            "name": ["train"] * n_jobs,
            "n_tasks": width.astype(np.int32),
            "demand_cpu": gpus * draws.choice([2.0, 4.0, 8.0], n_jobs),
            "demand_mem": gpus * draws.choice([16.0, 32.0, 64.0], n_jobs),
            "demand_gpu": gpus,
            "runs_on": models,
        },
        tasks={"stage": np.repeat(rows, width), "duration_s": np.repeat(run_s, width)},
    )


ELASTIC_NODES = (
    {"class": "h100", "count": 150, "cpu": 128, "devices": {"gpu": 8}},
    {"class": "a100", "count": 250, "cpu": 96, "devices": {"gpu": 8}},
    {"class": "v100", "count": 300, "cpu": 64, "devices": {"gpu": 4}},
    {"class": "t4", "count": 300, "cpu": 32, "devices": {"gpu": 4}},
)
"""A cluster of 1,000 nodes and 5,600 GPUs of four models."""


def elastic_jobs(load: float, n_jobs: int = 100_000, seed: int = 0) -> Workload:
    """Make elastic jobs of one GPU a place that offer `load` to `ELASTIC_NODES`, at greatest width.

    Widths of 1 to 8 places are stretched to half and twice, with speed-ups by Amdahl's law; speeds
    differ by model of GPU. Durations are lognormal.
    """
    draws = np.random.default_rng(seed)
    width = draws.integers(1, 9, n_jobs)
    run_s = np.ceil(draws.lognormal(7.5, 1.3, n_jobs))
    n_gpus = sum(nodes["count"] * nodes["devices"]["gpu"] for nodes in ELASTIC_NODES)
    span_s = float((run_s * width).sum()) / (n_gpus * load)
    rows = np.arange(n_jobs, dtype=np.int32)
    rigid = Workload.from_tables(
        jobs={
            "job_id": [f"j{i}" for i in range(n_jobs)],
            "submit_s": np.sort(draws.uniform(0.0, span_s, n_jobs)),
            "min_tasks": width.astype(np.int32),
        },
        stages={
            "job": rows,
            "name": ["train"] * n_jobs,
            "n_tasks": width.astype(np.int32),
            "demand_cpu": np.full(n_jobs, 4.0),
            "demand_gpu": np.ones(n_jobs),
            "speed_a100": draws.uniform(0.4, 0.7, n_jobs),
            "speed_v100": draws.uniform(0.2, 0.4, n_jobs),
            "speed_t4": draws.uniform(0.1, 0.2, n_jobs),
        },
        tasks={"stage": np.repeat(rows, width), "duration_s": np.repeat(run_s, width)},
    )
    elastic = transforms.apply(rigid, "stretch", share=1.0, seed=seed, reconfigure_s=60.0)
    _ = elastic.columns
    return elastic


SITE_NODES = (
    {"class": "thin", "count": 600, "cpu": 48, "mem": 192, "partitions": ["batch*", "long"]},
    {"class": "fat", "count": 200, "cpu": 64, "mem": 1024, "partitions": ["long", "bigmem"]},
    {"class": "fast", "count": 100, "cpu": 96, "mem": 384, "partitions": ["batch*", "debug"]},
    {
        "class": "gpu", "count": 100, "cpu": 64, "mem": 512, "devices": {"gpu": 4},
        "partitions": ["gpu"],
    },
)  # fmt: skip
"""A site of 1,000 nodes of four kinds, with five overlapping partitions."""
SITE_PARTITIONS = {
    "batch": {"max_time_s": 86_400},
    "long": {"max_time_s": 604_800},
    "bigmem": {"max_time_s": 172_800},
    "debug": {"max_time_s": 3_600, "tier": 3},
    "gpu": {"max_time_s": 172_800},
}
_SHARE = {"batch": 0.62, "long": 0.08, "bigmem": 0.1, "debug": 0.1, "gpu": 0.1}


def site_month(n_jobs: int = 100_000, load: float = 0.85, seed: int = 0) -> Workload:
    """Make the jobs of a site, `SITE_NODES`, that offer `load` to its CPUs.

    A quarter take several nodes, 2 to 32. Run times are lognormal within the limits of the
    partitions; users ask for one to ten times as long, at most for the limit.
    """
    draws = np.random.default_rng(seed)
    partition = draws.choice([*_SHARE], n_jobs, p=[*_SHARE.values()])
    limit_s = np.array([SITE_PARTITIONS[name]["max_time_s"] for name in partition], np.float64)
    nodes = np.where(draws.random(n_jobs) < 0.25, 2 ** draws.integers(1, 6, n_jobs), 1)
    nodes[partition == "debug"] = 1
    cpus = np.where(nodes > 1, 48, 2.0 ** draws.integers(0, 6, n_jobs))
    gpus = np.where(partition == "gpu", 2.0 ** draws.integers(0, 3, n_jobs), 0.0)
    nodes[(partition == "gpu") | (partition == "bigmem")] = 1
    run_s = np.minimum(np.ceil(limit_s * draws.lognormal(-3.1, 1.2, n_jobs)), limit_s)
    n_cpus = sum(kind["count"] * kind["cpu"] for kind in SITE_NODES)
    span_s = float((run_s * nodes * cpus).sum()) / (n_cpus * load)
    rows = np.arange(n_jobs, dtype=np.int32)
    requested_s = np.minimum(np.ceil(run_s * draws.uniform(1.0, 10.0, n_jobs)), limit_s)
    return Workload.from_tables(
        jobs={
            "job_id": [f"j{i}" for i in range(n_jobs)],
            "submit_s": np.floor(np.sort(draws.uniform(0.0, span_s, n_jobs))),
            "user": [f"user-{u}" for u in draws.zipf(1.4, n_jobs) % 200],
            "partition": partition,
            "min_tasks": nodes.astype(np.int32),
            "requested_s": requested_s,
        },
        stages={
            "job": rows,
            "name": ["run"] * n_jobs,
            "n_tasks": nodes.astype(np.int32),
            "demand_cpu": cpus,
            "demand_mem": cpus * draws.choice([1.0, 2.0, 3.5], n_jobs),
            "demand_gpu": gpus,
        },
        tasks={"stage": np.repeat(rows, nodes), "duration_s": np.repeat(run_s, nodes)},
    )
