"""Set range of machines and shape of DAGPS's production DAGs by the gap between its bounds.

Run as ``python -m benchmarks.dagps_bounds [--why R=1 cut=0.065 ...]``. The rule is step 1 of
policies/dagps/decisions/0061-dagps-machines.md, with ``--why`` its step 3. No policy is run.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product

import numpy as np

import sim
from policies.dagps.synth.production_dags.statistics import statistics
from sim.base.arrays import F8
from sim.bounds import bound_arrays
from sim.bounds.machine_counts import machines_per_job
from sweep.questions.papers import printed
from tests.policies.dagps.test_production_dags import outside_tolerance

RANGES = (4.0, 2.0, 1.5, 1.0)
GRID = {
    "source_duration": (6.0, 4.0, 3.0),
    "more_sources": (1.5, 1.25, 1.0),
    "cut": (0.065, 0.08),
    "stage_sigma": (0.7, 1.2),
}
"""Constants that the paper leaves open; the first value of each is the default."""
SIGMAS = (0.0, 0.1, 0.2, 0.35, 0.5)
SEEDS, DAGS = (6310, 6311), 600
STATISTICS_DAGS = 1500
NEARLY, ABOVE = 0.02, 1.2
MACHINE = dict.fromkeys(("cpu", "mem", "disk", "net"), 1.0)

Options = Mapping[str, float]


def settings() -> list[dict[str, float]]:
    """Return the settings of the grid, the defaults first."""
    return [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]


def n_changed(options: Options) -> int:
    """Count the constants that are not the default."""
    return sum(value != GRID[name][0] for name, value in options.items())


def ratios(options: Options, ranges: Sequence[float] = RANGES) -> dict[float, F8]:
    """Compute NewLB over the better older bound of each DAG, by R: machines from 1/R to R."""
    parts: dict[float, list[F8]] = {greatest: [] for greatest in ranges}
    for seed in SEEDS:
        w = sim.synthesize("production_dags", jobs=DAGS, seed=seed, recurring=0.0, **options)
        for greatest, arrays in parts.items():
            counts = machines_per_job(w, MACHINE, seed, 1 / greatest, greatest)
            ratio = np.empty(w.n_jobs)
            for n in np.unique(counts).tolist():
                jobs = np.flatnonzero(counts == n)
                own = sim.Cluster.machines(n, fungible=(), **MACHINE)
                bounds = bound_arrays(w.take(jobs).columns, own)
                ratio[jobs] = bounds["new_lb"] / np.maximum(bounds["cp_len"], bounds["twork"])
            arrays.append(ratio)
    return {greatest: np.concatenate(arrays) for greatest, arrays in parts.items()}


def failures(options: Options, seed: int = SEEDS[0]) -> list[str]:
    """Return the published statistics that the DAGs of a setting miss."""
    w = sim.synthesize(
        "production_dags", jobs=STATISTICS_DAGS, seed=seed, recurring=0.0, split_io=True, **options
    )
    return outside_tolerance(statistics(w))


def describe(options: Options, ratio: F8, missed: list[str]) -> str:
    """Format a setting and its numbers."""
    words = " ".join(f"{name}={value:g}" for name, value in options.items())
    quartiles = np.percentile(ratio, (25, 50, 75)).round(3).tolist()
    share = float((ratio > ABOVE).mean())
    return f"{words}: quartiles {quartiles}, above {ABOVE:g} {share:.3f}; missed: {missed or '-'}"


def measure(options: Options) -> tuple[list[str], dict[float, F8]]:
    """Return the missed statistics of a setting, and its ratios by R."""
    return failures(options), ratios(options)


def explain(words: Sequence[str]) -> None:
    """Print the statistic for each spread of durations inside a stage, on one setting."""
    options = {name: float(value) for name, value in (word.split("=") for word in words)}
    greatest = options.pop("R")
    for sigma in SIGMAS:
        changed = {**options, "task_sigma": sigma}
        ratio = ratios(changed, (greatest,))[greatest]
        print(describe(changed, ratio, failures(changed)), flush=True)


def choose() -> None:
    """Print the statistic of each setting, and the settings that the rule prefers, in order."""
    target = 1.0 + float(str(printed.text("dagps", "fig13", "bound")).split()[-1]) / 100.0
    valid = []
    grid = settings()
    with ProcessPoolExecutor(2) as pool:
        for options, (missed, by_range) in zip(grid, pool.map(measure, grid), strict=True):
            for greatest, ratio in by_range.items():
                print(f"R={greatest:g} {describe(options, ratio, missed)}", flush=True)
                if not missed:
                    valid.append((abs(float(np.median(ratio)) - target), greatest, options))
    nearest = min(distance for distance, _, _ in valid)
    within = [row for row in valid if row[0] <= nearest + NEARLY]
    within.sort(key=lambda row: (-row[1], n_changed(row[2]), row[0]))
    for distance, greatest, options in within:
        print(f"R={greatest:g} {options}: {distance:.3f} from {target:g}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--why"]:
        explain(sys.argv[2:])
    else:
        choose()
