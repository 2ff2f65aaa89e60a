"""Noise between real runs of the same submissions: what no simulation can be expected to beat."""

from __future__ import annotations

import argparse
import csv
import gzip
import itertools
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.real.slurm import keep
from benchmarks.real.slurm.batch import N_RUNS
from sim.base.arrays import F8

Record = dict[str, F8]
"""Columns of a run, a value a job: `submit_s, start_s, end_s, cpus, nominal_run_s`."""
COLUMNS = ("submit_s", "start_s", "end_s", "cpus", "nominal_run_s")
DRAWN = " (drawn moments)"
"""Name of a group's runs after the first `N_RUNS`: they begin at drawn moments of the minute."""
WAITED_S = 5.0
"""A shorter wait is the scheduler's lag."""


def read(path: Path) -> Record:
    """Read a run's CSV."""
    with gzip.open(path, "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return {name: np.array([float(row[name]) for row in rows]) for name in COLUMNS}


def groups(folder: Path) -> dict[tuple[str, str], list[Path]]:
    """Return the runs below a folder, in order, by workload and settings."""
    paths: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for path in sorted(folder.rglob("*.csv.gz")):
        workload, scheduler, priority, number = path.name.split(".")[0].split("-")
        suffix = DRAWN if int(number) > N_RUNS else ""
        paths[workload, f"{scheduler}-{priority}{suffix}"].append(path)
    return dict(sorted(paths.items()))


def between(runs: Sequence[Record]) -> dict[str, float]:
    """Compare runs of the same submissions with each other.

    Returns
    -------
    dict
        `runs, jobs, waited` (jobs that waited, a run); `wait_mean_s` and its least and greatest of
        a run; `mean_differs`, `job_differs`: mean absolute difference of the mean wait, and of a
        job's wait, between two runs, averaged over the pairs, over the mean wait, NaN for a single
        run; `waited_within_10pct`: share of the jobs that waited whose wait in another run is
        within 10 % of their own; `overhead_s, overhead_p95_s`: run time beyond the sleep.
    """
    waits = np.stack([run["start_s"] - run["submit_s"] for run in runs])
    means, mean = waits.mean(axis=1), float(waits.mean())
    pairs = list(itertools.combinations(range(len(runs)), 2))
    overhead = np.concatenate(
        [run["end_s"] - run["start_s"] - run["nominal_run_s"] for run in runs]
    )
    return {
        "runs": len(runs),
        "jobs": waits.shape[1],
        "waited": float((waits > WAITED_S).sum(axis=1).mean()),
        "wait_mean_s": mean,
        "wait_least_s": float(means.min()),
        "wait_greatest_s": float(means.max()),
        "mean_differs": _average([abs(means[a] - means[b]) for a, b in pairs]) / mean,
        "job_differs": _average([np.abs(waits[a] - waits[b]).mean() for a, b in pairs]) / mean,
        "waited_within_10pct": _average(
            [
                float((np.abs(waits[b] - waits[a]) <= 0.1 * waits[a])[waits[a] > WAITED_S].mean())
                for a, b in itertools.permutations(range(len(runs)), 2)
            ]
        ),
        "overhead_s": float(np.median(overhead)),
        "overhead_p95_s": float(np.percentile(overhead, 95)),
    }


def oracle(runs: Sequence[Record]) -> dict[str, float]:
    """Return what a simulator would reach that is Slurm itself.

    Each run is compared with the mean of the others of its kind, as with an ensemble's: the error
    of the mean wait and of a job's, over the mean wait, and the share of the jobs that waited
    within 10 %; averaged over the runs, NaN for a single one.
    """
    waits = np.stack([run["start_s"] - run["submit_s"] for run in runs])
    errors, jobs, near = [], [], []
    for i in range(len(runs)) if len(runs) > 1 else ():
        own, mean = waits[i], np.delete(waits, i, axis=0).mean(axis=0)
        errors.append(abs(mean.mean() / own.mean() - 1.0))
        jobs.append(np.abs(mean - own).mean() / own.mean())
        near.append((np.abs(mean - own) <= 0.1 * own)[own > WAITED_S].mean())
    names = ("oracle_error", "oracle_job", "oracle_within_10pct")
    return {
        name: float(np.mean(values)) if values else float("nan")
        for name, values in zip(names, (errors, jobs, near), strict=True)
    }


def fifo_lags_s(run: Record, n_cpus: int) -> F8:
    """Return each job's lag from room to start in a run without backfilling, (n,), seconds.

    There is room for a job from when it has been submitted, the one before it has started, and the
    CPUs that it needs are free.
    """
    lags = np.empty(len(run["start_s"]))
    before_s = -np.inf
    for job in range(len(lags)):
        start_s, earlier = run["start_s"][job], np.arange(len(lags)) < job
        least_s = max(run["submit_s"][job], before_s)
        ends = np.sort(run["end_s"][earlier & (run["end_s"] > least_s) & (run["end_s"] <= start_s)])
        for room_s in (least_s, *ends):
            busy = run["cpus"][earlier & (run["end_s"] > room_s)].sum()
            if busy + run["cpus"][job] <= n_cpus:
                lags[job] = start_s - room_s
                break
        else:
            lags[job] = 0.0  # Slurm gave the CPUs away before it logged the end
        before_s = start_s
    return lags


def _average(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def main() -> None:
    """Print a row a workload and settings."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real.slurm.noise")
    parser.add_argument("folder", type=Path, nargs="?", default=Path("tests/real/slurm"))
    folder = parser.parse_args().folder
    print(
        f"{'workload':9}{'settings':28}{'runs':>4}{'waited':>7}{'wait (range), s':>24}"
        f"{'mean ±':>8}{'job ±':>8}{'overhead, 95 %':>16}{'lag, 95 %':>13}"
    )
    for (workload, settings), paths in groups(folder).items():
        runs = [read(path) for path in paths]
        row = between(runs)
        wait = f"{row['wait_mean_s']:.1f} ({row['wait_least_s']:.1f}–{row['wait_greatest_s']:.1f})"
        overhead = f"{row['overhead_s']:.2f}, {row['overhead_p95_s']:.2f}"
        lag = ""
        if settings.startswith("builtin") and settings.endswith("basic"):
            n_cpus = keep.n_cpus(folder, f"{workload}-{settings}")
            lags = np.concatenate([fifo_lags_s(run, n_cpus) for run in runs])
            lag = f"{np.median(lags):.2f}, {np.percentile(lags, 95):.2f}"
        print(
            f"{workload:9}{settings:28}{row['runs']:4}{row['waited']:7.1f}{wait:>24}"
            f"{row['mean_differs']:8.2%}{row['job_differs']:8.2%}{overhead:>16}{lag:>13}"
        )


if __name__ == "__main__":
    main()
