"""Elastic jobs on 1,000 machines of four kinds: CPU seconds of a cell.

Run as ``python -m benchmarks.elastic [--jobs N] [--seed N]``: training jobs of one GPU a place,
that run in half to twice their width, at two loads; under first come, first served, which starts
each as wide as there is room, and under policies that change widths.
"""

from __future__ import annotations

import sys

import policies
import sim
from benchmarks.common import parse_arguments, row, run_seconds, show
from benchmarks.worlds import ELASTIC_NODES, elastic_jobs

POLICIES = ("fifo", "common_pool", "equal_widths")
AT_MOST_S = {"fifo": 60.0}


def main() -> int:
    """Measure each policy at loads 0.5 and 0.8."""
    options = parse_arguments(__doc__, jobs=100_000, seed=0)
    cluster = sim.Cluster.mixed(ELASTIC_NODES)
    rows = []
    for name in POLICIES:
        policy = policies.build(name)
        sim.simulate(elastic_jobs(0.5, 20), cluster, policy)  # compiles
        n_jobs = options.jobs if name in AT_MOST_S else options.jobs // 10
        for load in (0.5, 0.8):
            seconds = run_seconds(elastic_jobs(load, n_jobs, options.seed), cluster, policy)
            target = {"at_most": AT_MOST_S[name]} if name in AT_MOST_S else {}
            rows.append(row(f"{name}, {n_jobs:,} jobs, load {load:g}", seconds, "s", **target))
    return show("elastic", rows)


if __name__ == "__main__":
    sys.exit(main())
