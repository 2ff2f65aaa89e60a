"""The kernel on 200 machines × 4 resources: placements a second.

Run as ``python -m benchmarks.machines``. Rates are of whole calls of `sim.simulate` on a loaded
workload and of CPU seconds, the median of three.
"""

from __future__ import annotations

import sys

import numpy as np

import policies
import sim
from benchmarks.common import interleave, row, run_seconds, show
from benchmarks.worlds import machine_jobs

TARGETS = {("strict", 0.8): 2.0, ("pack", 0.8): 1.0}


def main() -> int:
    """Measure strict order, skipping and packing at three loads."""
    cluster = sim.Cluster.machines(200, r0=1, r1=1, r2=1, r3=1)
    sim.simulate(machine_jobs(0.8, n_jobs=10), cluster, policies.build("fifo"))  # compiles
    rows = []
    for load in (0.8, 0.95, 1.5):
        w = machine_jobs(load)
        built = {fit: policies.build("fifo", fit=fit) for fit in ("strict", "skip", "pack")}
        runs = {
            fit: lambda w=w, policy=policy: run_seconds(w, cluster, policy)
            for fit, policy in built.items()
        }
        for fit, seconds in interleave(runs, 3).items():
            result = sim.simulate(w, cluster, built[fit])
            jct = result.job_finish - w.columns.job_submit
            inside = float(jct.sum() / np.nanmax(result.job_finish))
            label = f"{fit}, load {load:g} ({inside:.0f} jobs in the system)"
            rate = [w.n_tasks / s / 1e6 for s in seconds]
            rows.append(row(label, rate, "M placements/s", at_least=TARGETS.get((fit, load))))
    return show("machines", rows)


if __name__ == "__main__":
    sys.exit(main())
