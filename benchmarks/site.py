"""A month of a Slurm site under Slurm's planner: CPU seconds of a cell.

Run as ``python -m benchmarks.site [--jobs N] [--seed N]``: 100,000 jobs on 1,000 nodes of four
kinds with five partitions, at two loads. Above them the queue grows without end, and so does a
plan.
"""

from __future__ import annotations

import sys

import policies
import sim
from benchmarks.common import parse_arguments, row, run_seconds, show
from benchmarks.worlds import SITE_NODES, SITE_PARTITIONS, site_month

AT_MOST_S = 300.0


def main() -> int:
    """Measure at loads 0.8 and 0.85 of all CPUs."""
    options = parse_arguments(__doc__, jobs=100_000, seed=0)
    cluster = sim.Cluster.mixed(SITE_NODES).with_partitions(SITE_PARTITIONS)
    policy = policies.build("multifactor_slurm")
    sim.simulate(site_month(50), cluster, policy)  # compiles
    rows = []
    for load in (0.8, 0.85):
        seconds = run_seconds(site_month(options.jobs, load, options.seed), cluster, policy)
        rows.append(row(f"{options.jobs:,} jobs, load {load:g}", seconds, "s", at_most=AT_MOST_S))
    return show("site", rows)


if __name__ == "__main__":
    sys.exit(main())
