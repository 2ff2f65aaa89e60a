"""Small logs with nodes, made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

import sim
from sim.transforms.parts import rebuild


class Logged(NamedTuple):
    """A job of one task, as it really ran."""

    name: str
    submit_s: float
    start_s: float
    end_s: float
    cpus: int
    limit_s: float
    node: str


def workload_of(jobs: Sequence[Logged]) -> sim.Workload:
    """Return the workload of a log."""
    workload = sim.Workload.from_jobs(
        [
            {
                "job_id": job.name,
                "submit_s": job.submit_s,
                "requested_s": job.limit_s,
                "stages": [{"durations_s": [job.end_s - job.start_s], "demand": {"cpu": job.cpus}}],
            }
            for job in jobs
        ]
    )
    times = {"recorded_start_s": "start_s", "recorded_finish_s": "end_s"}
    table = workload.jobs
    for column, field in times.items():
        table = table.append_column(column, pa.array([getattr(job, field) for job in jobs]))
    nodes = pa.array([job.node for job in jobs])
    return rebuild(
        workload, None, jobs=table, stages=workload.stages.append_column("node_list", nodes)
    )


def two_nodes() -> sim.Cluster:
    """Return nodes a and b, of two CPUs each."""
    return sim.Cluster.mixed([{"cpu": 2, "nodes": "a"}, {"cpu": 2, "nodes": "b"}])


SMALL = (
    Logged("A", 0, 0, 100, 2, 100, "a"),
    Logged("B", 0, 0, 200, 2, 200, "b"),
    Logged("C", 10, 100, 150, 2, 50, "a"),
    Logged("D", 20, 150, 200, 1, 50, "a"),
    Logged("E", 300, 400, 500, 1, 100, "b"),
    Logged("F", 410, 410, 600, 1, 200, "a"),
    Logged("G", 420, 600, 650, 2, 100, "a"),
    Logged("H", 430, 500, 700, 2, 300, "b"),
)
"""First come, first served on `two_nodes`, but E waits for no reason, and H passes G."""
