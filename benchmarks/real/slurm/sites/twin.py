"""Twin of a site's run: its recorded waits, and those of simulations of what `sim site` reads.

``python -m benchmarks.real.slurm.sites.twin FOLDER...`` prints them by partition.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import policies
from sim.base.arrays import F8
from sim.engine.simulate import simulate
from sim.traces.sites.site import Site
from sim.traces.slurm_site.site import read_site
from sim.workload.tables import names, values
from sim.workload.workload import Workload
from sweep.grid import clusters
from sweep.questions.backtest.starts import find_starts

N_SEEDS = 30
ALL = "all"


@dataclass(frozen=True)
class Waits:
    """Waits of jobs, s, from when they were free to start: recorded (J,) and simulated (R, J)."""

    partition: tuple[str, ...]
    recorded_s: F8
    simulated_s: F8

    def means(self, partition: str = ALL) -> tuple[int, float, F8]:
        """Return the jobs of a partition that started, and recorded and simulated mean waits."""
        mine = np.array([partition in (ALL, name) for name in self.partition])
        recorded_s = self.recorded_s[mine & ~np.isnan(self.recorded_s)]
        simulated_s = np.nanmean(self.simulated_s[:, mine], axis=1)
        return len(recorded_s), float(recorded_s.mean()), simulated_s


def waits(site: Site, n_seeds: int = N_SEEDS, policy: Mapping[str, Any] | None = None) -> Waits:
    """Simulate a site under its own policy, or another; return waits."""
    assert site.workload is not None
    return Waits(
        tuple(partitions(site.workload)),
        recorded_s(site.workload),
        simulated_s(site.workload, site.cluster, policy or site.policy, n_seeds),
    )


def partitions(workload: Workload) -> list[str]:
    """Return each job's partition."""
    known = names(workload.jobs, "queue")
    return [known[code] for code in values(workload.jobs, "queue").tolist()]


def recorded_s(workload: Workload) -> F8:
    """Return recorded waits, (J,), s; NaN of jobs that never started."""
    starts = find_starts(workload)
    wait_s: F8 = starts.start_s - starts.release_s
    return wait_s


def simulated_s(
    workload: Workload, cluster: Mapping[str, Any], policy: Mapping[str, Any], n_seeds: int
) -> F8:
    """Return simulated waits of each seed, (R, J), s; NaN of jobs that never start."""
    options = dict(policy)
    built = policies.build(options.pop("name"), **options)
    sized = clusters.build_for(workload, cluster, 1.0).cluster
    release_s = workload.columns.job_submit
    runs = [
        simulate(workload, clusters.with_faults(sized, cluster, seed, built), built, seed=seed)
        for seed in range(n_seeds)
    ]
    return np.stack([run.job_start - release_s for run in runs])


def main() -> None:
    """Print a row a partition of each folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real.slurm.sites.twin")
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    words = parser.parse_args()
    for folder in words.folders:
        site = read_site(folder)
        seen = waits(site, words.seeds)
        print(folder.name, *(f"\n  {note}" for note in site.notes))
        for partition in (ALL, *sorted(set(seen.partition))):
            n, real_s, runs_s = seen.means(partition)
            mine = np.array([partition in (ALL, name) for name in seen.partition])
            job = np.nanmean(np.abs(seen.simulated_s.mean(axis=0) - seen.recorded_s)[mine])
            print(
                f"  {partition:10}{n:5}{real_s:10,.0f}{runs_s.mean():10,.0f}"
                f"{runs_s.mean() / real_s - 1:+8.1%}  job {job / real_s:6.1%}"
                f"  {runs_s.min():,.0f} to {runs_s.max():,.0f}"
            )


if __name__ == "__main__":
    main()
