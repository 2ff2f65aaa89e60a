"""One setting of Slurm changed at a time: noise, oracle and model of each kind of run.

``python -m benchmarks.real.slurm.experiments FOLDER`` adds the finished runs below a folder, which
``python -m benchmarks.real.slurm all --settings NAMES`` made, to the page's table.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import policies
import sim
from benchmarks.real import page
from benchmarks.real.slurm import backtests, batch, keep, noise
from sim.engine.simulate import simulate
from sweep.questions.backtest.audit import audit
from sweep.questions.backtest.compare import compare
from sweep.questions.backtest.logged_jobs import logged_jobs


def model(log: Path, settings: Mapping[str, Any], n_runs: int) -> dict[str, float]:
    """Return how far the model of Slurm with a run's settings is from it."""
    cluster = sim.Cluster.slots(settings["n_nodes"] * settings["cpus_per_node"])
    workload = sim.read_trace("slurm_jobcomp", log)
    jobs = logged_jobs(workload, audit(workload, cluster))
    policy = policies.build(**backtests.candidates(settings)["slurm"])
    results = [simulate(workload, cluster, policy, seed=i, record="jobs") for i in range(n_runs)]
    starts, ends = (
        np.stack([getattr(run, name)[jobs.job] for run in results])
        for name in ("job_start", "job_finish")
    )
    comparison = compare(jobs, starts, ends)
    return {
        "model_error": abs(comparison.error),
        "model_signed": comparison.error,
        "model_job": comparison.mae,
        "model_within_10pct": comparison.waited_within_10pct,
    }


def row(logs: Sequence[Path], settings: Mapping[str, Any], n_runs: int) -> dict[str, Any]:
    """Return noise, oracle and model of runs with the same submissions and settings."""
    runs = [noise.read(Path(str(log).replace(".jobcomp.txt.gz", ".csv.gz"))) for log in logs]
    models = [model(log, settings, n_runs) for log in logs]
    means = {name: float(np.mean([errors[name] for errors in models])) for name in models[0]}
    return noise.between(runs) | noise.oracle(runs) | means


def main() -> None:
    """Write the rows of the experiments, and of the kept runs beside them, into the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real.slurm.experiments")
    parser.add_argument("folder", type=Path, help="folder of the runs")
    parser.add_argument("--runs", type=int, default=backtests.N_RUNS, help="of the model")
    words = parser.parse_args()
    kinds: dict[str, tuple[list[Path], Mapping[str, Any]]] = {}
    for path in sorted(words.folder.glob("*/*/*/*.json")):
        name = path.stem.rpartition("-")[0]
        if not set(name.split("-")) & {"backfill", "backfill_short"}:
            logs, _ = kinds.setdefault(name, ([], json.loads(path.read_text())))
            logs.append(path.with_name(f"{path.stem}.jobcomp.txt.gz"))
    index = json.loads((page.RUNS / keep.INDEX).read_text())
    for name in sorted({f"{kind.split('-')[0]}-{base}-basic" for kind in kinds for base in BASES}):
        logs = sorted(page.RUNS.glob(f"{name}-[1-{batch.N_RUNS}].jobcomp.txt.gz"))
        kinds[name] = (logs, index["settings"][name])
    table = page.read_table()
    table[page.EXPERIMENTS] = []
    for name in sorted(kinds):
        table[page.EXPERIMENTS].append({"group": name, **row(*kinds[name], words.runs)})
        page.write_table(table)
        print(name, flush=True)


BASES = ("backfill", "backfill_short")
"""Settings without a change, of which there are kept runs."""

if __name__ == "__main__":
    main()
