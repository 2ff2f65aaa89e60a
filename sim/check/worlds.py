"""Workloads and clusters on which plug-ins are checked: crowded, so that something has to wait."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.cluster.cluster import Cluster
from sim.engine.plan import Batch, Event, Plan, World
from sim.transforms.parts import rebuild
from sim.workload.schema import TOPOLOGY_PREFERRED, TOPOLOGY_REQUIRED
from sim.workload.workload import Workload

QUEUES = ("x", "y", "z")


@cache
def crowd(seed: int, gangs: bool = False, n_jobs: int = 25) -> Workload:
    """Make jobs that come faster than they can be served: DAGs, queues, users, priorities."""
    rng = np.random.default_rng(seed)
    jobs: list[dict[str, Any]] = []
    for t in np.cumsum(rng.exponential(2.0, n_jobs)):
        stages: list[dict[str, Any]] = []
        for i in range(int(rng.integers(1, 5))):
            parents = {
                f"s{p}": str(rng.choice(["barrier", "one_to_one"]))
                for p in range(i)
                if rng.random() < 0.5
            }
            durations = rng.lognormal(1.0, 1.0, int(rng.integers(1, 7)))
            demand = {"cpu": int(rng.integers(1, 5)), "mem": float(rng.integers(1, 9)) / 2}
            stages.append(
                {"name": f"s{i}", "durations_s": durations.tolist(), "demand": demand}
                | {"parents": parents}
            )
        n_tasks = sum(len(stage["durations_s"]) for stage in stages)
        jobs.append(
            {
                "submit_s": float(t),
                "queue": str(rng.choice(QUEUES)),
                "user": f"u{rng.integers(4)}",
                "priority": int(rng.integers(3)),
                "min_tasks": min(3, n_tasks) if gangs and rng.random() < 0.4 else 0,
                "stages": stages,
            }
        )
    return Workload.from_jobs(jobs)


@cache
def rigid_crowd(seed: int) -> Workload:
    """Make rigid jobs, some of several stages, that come faster than they can be served."""
    rng, demands = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    jobs: list[dict[str, Any]] = []
    for t in np.cumsum(rng.exponential(2.0, 40)):
        widths = rng.integers(1, 6, int(rng.integers(1, 4)))
        durations = [rng.lognormal(1.0, 1.0, width) for width in widths]
        demand = {"cpu": int(demands.integers(1, 3)), "mem": int(demands.integers(1, 9)) / 2}
        jobs.append(
            {
                "submit_s": float(t),
                "user": f"u{rng.integers(4)}",
                "min_tasks": int(widths.sum()),
                "requested_s": float(sum(d.max() for d in durations) * rng.uniform(0.8, 5)),
                "stages": [
                    {"name": f"s{i}", "durations_s": d.tolist(), "parents": [f"s{i - 1}"][: i % 2]}
                    | {"demand": demand}
                    for i, d in enumerate(durations)
                ],
                "queue": str(demands.choice(QUEUES)),
            }
        )
    return Workload.from_jobs(jobs)


LEVELS = {"block": {"size": 4, "factor": 1.5}, "rack": {"size": 2, "factor": 1.25}}
RACKS = {"levels": LEVELS, "preferred": "rack"}
SHARES = {"x": 0.5, "y": 0.25, "z": 0.25}
SLOTS = Cluster.slots(16)
MACHINES = Cluster.machines(6, cpu=8, mem=10)
CLUSTERS = {
    "slots": SLOTS,
    "slots-hard": SLOTS.with_queues("hard", SHARES),
    "slots-weighted": SLOTS.with_queues("weighted", SHARES),
    "machines": MACHINES,
    "machines-fungible": Cluster.machines(6, cpu=8, mem=10, fungible=("mem",)),
    "machines-hard": MACHINES.with_queues("hard", SHARES),
    "machines-weighted": MACHINES.with_queues("weighted", SHARES),
    "machines-racks": MACHINES.with_topology(RACKS),
}
RIGID_CLUSTERS = {
    "slots": SLOTS,
    "slots-hard": Cluster.slots(60).with_queues("hard", SHARES),
    "machines": Cluster.machines(8, cpu=8, mem=10),
    "machines-mixed": Cluster.mixed(
        [{"count": 6, "cpu": 4, "mem": 12}, {"count": 2, "cpu": 16, "mem": 16}]
    ),
    "machines-one": Cluster.machines(1, cpu=40, mem=64),
    "machines-hard": Cluster.machines(30, cpu=4, mem=8).with_queues("hard", SHARES),
    "machines-racks": Cluster.machines(8, cpu=8, mem=10).with_topology(RACKS),
}


def with_levels(workload: Workload, cluster: Cluster) -> Workload:
    """Return the same workload, whose gangs ask for the cluster's levels, if it has `RACKS`.

    A gang requires a level, prefers one, or goes from the rack up to the block that it requires. It
    requires only what an empty domain holds, at four tasks a rack. Others prefer a rack, as usual.
    """
    if not cluster.topology:
        return workload
    rng, columns = np.random.default_rng([workload.n_jobs, 3]), workload.columns
    n_tasks = columns.job_min_tasks
    draw = rng.random(workload.n_jobs)
    required = np.where(n_tasks <= 4, "rack", np.where(n_tasks <= 8, "block", ""))
    required = np.where(draw < 0.3, required, "")
    both = (draw >= 0.3) & (draw < 0.5) & (n_tasks <= 8)
    preferred = np.where(both, "rack", np.where((draw >= 0.5) & (draw < 0.7), "block", ""))
    jobs = workload.jobs
    for name, levels in {
        TOPOLOGY_REQUIRED.name: np.where(both, "block", required),
        TOPOLOGY_PREFERRED.name: preferred,
    }.items():
        texts = np.where(n_tasks > 0, levels, "").tolist()
        jobs = jobs.append_column(name, pa.array(texts, pa.string()).dictionary_encode())
    return rebuild(workload, None, jobs=jobs)


SITE = Cluster.mixed(
    [
        {"count": 5, "cpu": 8, "mem": 16, "partitions": ["batch*"]},
        {"class": "a100", "count": 4, "cpu": 16, "mem": 32, "devices": {"gpu": 4}}
        | {"partitions": ["gpu"]},
        {"class": "t4", "count": 2, "cpu": 8, "mem": 16, "devices": {"gpu": 2}}
        | {"partitions": ["gpu", "batch*"]},
    ]
)
"""A cluster of three kinds of machines, the first without GPUs, and overlapping partitions."""
GPU_CLASSES = ("", "a100", "a100|t4")


@cache
def with_devices(workload: Workload, seed: int) -> Workload:
    """Return the same workload for `SITE`: half of the jobs demand GPUs, on some class of them."""
    rng, columns = np.random.default_rng([seed, 2]), workload.columns
    n_jobs, stage_job = workload.n_jobs, columns.stage_job
    has_gpus = rng.random(n_jobs) < 0.5
    n_amounts = np.where(columns.job_n_tasks <= 4, 3, 2)  # two GPUs a task only in small jobs
    gpus = np.array([0.5, 1.0, 2.0])[rng.integers(0, n_amounts)] * has_gpus
    runs_on = np.where(has_gpus, rng.choice(GPU_CLASSES, n_jobs), "")
    partition = np.where(has_gpus, "gpu", rng.choice(["", "batch"], n_jobs))
    stages = workload.stages.append_column("demand_gpu", pa.array(gpus[stage_job]))
    return Workload.from_tables(
        **{
            name: table
            for name in ("tasks", "stage_edges", "history", "training")
            if (table := getattr(workload, name)).num_rows
        },
        jobs=workload.jobs.append_column("partition", pa.array(partition.tolist())),
        stages=stages.append_column("runs_on", pa.array(runs_on[stage_job].tolist())),
    )


class FirstCome:
    """The engine's default plan: first come, first served."""

    name = "first come"
    events = Event.NONE

    def begin(self, world: World, plan: Plan) -> None:
        """Leave the plan as it is."""

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Do nothing: it subscribes to no events."""


def with_deadlines(workload: Workload) -> Workload:
    """Return the same workload, whose jobs have deadlines that about half of them meet, s."""
    rng = np.random.default_rng(workload.n_jobs)
    return _with_column(workload, "deadline_s", rng.uniform(5.0, 60.0, workload.n_jobs))


def with_priorities(workload: Workload) -> Workload:
    """Return the same workload, whose jobs have one of three priorities."""
    rng = np.random.default_rng(workload.n_jobs)
    return _with_column(workload, "priority", rng.integers(3, size=workload.n_jobs).astype(float))


def _with_column(workload: Workload, name: str, values: F8) -> Workload:
    jobs = workload.jobs
    if name in jobs.column_names:
        jobs = jobs.drop_columns([name])
    return Workload.from_tables(
        jobs=jobs.append_column(name, pa.array(values)),
        stages=workload.stages,
        tasks=workload.tasks,
        stage_edges=workload.stage_edges,
    )
