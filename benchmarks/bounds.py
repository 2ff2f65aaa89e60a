"""Speed and strength of the lower bounds.

Run as ``python -m benchmarks.bounds [--dags N] [--jobs N] [--effort S]``. Speed: all bounds of
production-like DAGs, from a loaded workload, on one core. Strength: the part of the gap between
NewLB and the optimum of small jobs (CP-SAT; where that is not proven, the best schedule it found)
that ``tight_lb`` closes. Jobs for which NewLB is the optimum are left out.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

import sim
from benchmarks.common import Row, cpu_seconds, parse_arguments, row, show
from sim.bounds import bound_arrays
from sim.bounds.machine_counts import machines_per_job
from sim.bounds.optimum import optimum
from tests.sim.bounds.small_jobs import small_job

ONE = {"cpu": 1, "mem": 1, "disk": 1, "net": 1}


def main() -> int:
    """Measure speed and strength."""
    args = parse_arguments(__doc__, dags=10_000, jobs=300, effort=3.0)
    rows = speed(args.dags)
    rows += strength("random small jobs", random_jobs(args.jobs), args.effort)
    rows += strength("production-like small jobs", production_jobs(args.jobs), args.effort)
    return show("bounds", rows)


def speed(n_dags: int) -> list[Row]:
    """Time the bounds of all production-like DAGs at once."""
    w = sim.synthesize("production_dags", jobs=n_dags, seed=0)
    cluster = sim.Cluster.machines(50, **ONE)
    bound_arrays(w.take(np.arange(10)).columns, cluster, tight=True)  # compiles
    columns = w.columns
    seconds = [cpu_seconds(lambda: bound_arrays(columns, cluster, tight=True)) for _ in range(3)]
    paper = [cpu_seconds(lambda: bound_arrays(columns, cluster)) for _ in range(3)]
    label = f"{n_dags:,} DAGs, {w.n_stages:,} stages, {w.n_tasks:,} tasks: "
    return [
        row(label + "all bounds", seconds, "s", at_most=60.0),
        row("those of the paper alone", paper, "s"),
    ]


def random_jobs(n: int) -> list[tuple[sim.Workload, sim.Cluster]]:
    """Draw the instances that the tests draw, of up to 30 tasks."""
    return [small_job(seed) for seed in range(n)]


def production_jobs(n: int) -> list[tuple[sim.Workload, sim.Cluster]]:
    """Draw production-like DAGs of 4 to 30 tasks, with durations in whole tenths of a second."""
    w = sim.synthesize("production_dags", jobs=6 * n, seed=0, median_tasks=12, recurring=0.0)
    n_tasks = np.add.reduceat(w.stages["n_tasks"].to_numpy(), w.columns.job_stage0[:-1])
    few = w.take(np.flatnonzero((n_tasks >= 4) & (n_tasks <= 30))[:n])
    rounded = sim.Workload.from_tables(
        few.jobs,
        few.stages.append_column("duration_s", [np.maximum(0.1, few.stage_duration_s.round(1))]),
        stage_edges=few.stage_edges,
        meta=few.meta,
    )
    count = machines_per_job(rounded, ONE, seed=0)
    return [
        (rounded.take([j]), sim.Cluster.machines(int(count[j]), **ONE))
        for j in range(rounded.n_jobs)
    ]


def strength(name: str, jobs: list[tuple[sim.Workload, sim.Cluster]], effort: float) -> list[Row]:
    """Measure the part of the gap from NewLB to the optimum that ``tight_lb`` closes."""
    results = []
    for w, cluster in jobs:
        bound = bound_arrays(w.columns, cluster, tight=True)
        lower, upper = optimum(w, cluster, effort=effort)
        new, tight = float(bound["new_lb"][0]), float(bound["tight_lb"][0])
        if tight > upper * (1 + 1e-9):
            raise AssertionError(f"tight_lb {tight} is above a schedule of {upper}: {w.digest}")
        results.append((new, tight, lower, upper))
    new, tight, lower, upper = np.array(results).T
    proven = upper <= lower * (1 + 1e-6)
    left = (upper > new * (1 + 1e-9)) & np.isfinite(upper)
    closed = (tight - new)[left] / (upper - new)[left]
    prefix = f"{name}: "
    return [
        row(prefix + "jobs", float(len(results)), ""),
        row(prefix + "optimum proven", percent(proven), "% of jobs"),
        row(prefix + "NewLB is the optimum", percent(~left), "% of jobs"),
        row(prefix + "tight_lb is the optimum", percent(tight >= upper * (1 - 1e-9)), "% of jobs"),
        row(prefix + "closed, p25", 100 * float(np.quantile(closed, 0.25)), "% of the way"),
        row(
            prefix + "closed, median", 100 * float(np.median(closed)), "% of the way", at_least=33.3
        ),
        row(prefix + "closed, p75", 100 * float(np.quantile(closed, 0.75)), "% of the way"),
        row(prefix + "optimum over NewLB, median of the rest", ratio(upper, new, left), ""),
        row(prefix + "optimum over tight_lb, median of the rest", ratio(upper, tight, left), ""),
    ]


def percent(selected: NDArray[np.bool_]) -> float:
    return 100 * float(selected.mean())


def ratio(
    numerator: NDArray[np.float64], denominator: NDArray[np.float64], selected: NDArray[np.bool_]
) -> float:
    return float(np.median(numerator[selected] / denominator[selected]))


if __name__ == "__main__":
    sys.exit(main())
