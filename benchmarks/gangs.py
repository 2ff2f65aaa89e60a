"""Rigid gangs of GPU workers on 1,000 nodes of three kinds: CPU seconds of a cell.

Run as ``python -m benchmarks.gangs [--jobs N] [--seed N]``: 10,000 jobs at two loads, one below
what the nodes can do and one above, under each way to fit gangs.
"""

from __future__ import annotations

import sys

import policies
import sim
from benchmarks.common import parse_arguments, row, run_seconds, show
from benchmarks.worlds import GPU_NODES, gpu_gangs

POLICIES = {
    "fifo, strict": {"name": "fifo", "fit": "strict"},
    "fifo, skip": {"name": "fifo", "fit": "skip"},
    "easy": {"name": "easy"},
    "conservative": {"name": "conservative"},
    "slurm": {"name": "slurm"},
    "priority, preempting": {
        "name": "priority",
        "fit": "skip",
        "preemption": {"by": "priority"},
    },
}
AT_MOST_S = {"easy": 10.0, "slurm": 60.0}
A_FIFTH = ("conservative",)
"""Policies that run a fifth of the jobs: all would take a quarter of an hour, in one long queue."""


def main() -> int:
    """Measure each policy at loads 0.9 and 1.3."""
    options = parse_arguments(__doc__, jobs=10_000, seed=0)
    cluster = sim.Cluster.mixed(GPU_NODES)
    few = gpu_gangs(0.9, 20)
    rows = []
    for label, settings in POLICIES.items():
        policy = policies.build(**settings)
        sim.simulate(few, cluster, policy)  # compiles
        n_jobs = options.jobs // 5 if label in A_FIFTH else options.jobs
        for load in (0.9, 1.3):
            workload = gpu_gangs(load, n_jobs, options.seed)
            seconds = run_seconds(workload, cluster, policy)
            title = f"{label}, load {load:g}, {n_jobs:,} jobs"
            rows.append(row(title, seconds, "s", at_most=AT_MOST_S.get(label)))
    return show("gangs", rows)


if __name__ == "__main__":
    sys.exit(main())
