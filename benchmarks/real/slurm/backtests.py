"""Backtests of the kept runs: the policy that a run's settings name, and others, on each log."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import policies
import sim
from benchmarks.real import page
from benchmarks.real.slurm.configure import OPTIONS
from benchmarks.real.slurm.keep import INDEX
from benchmarks.real.slurm.workloads import NAMES
from sim.engine.simulate import simulate
from sweep.questions.backtest import nearest
from sweep.questions.backtest.audit import audit
from sweep.questions.backtest.compare import compare
from sweep.questions.backtest.lags import launch_lags_s
from sweep.questions.backtest.logged_jobs import logged_jobs

N_RUNS = 30
COLUMNS = (
    "wait_mean_recorded_s", "waited", "wait_mean_s", "low", "high", "error", "mae",
    "waited_within_10pct", "pairs_in_order", "in_range", "mae_between_runs", "is_nearest",
)  # fmt: skip
"""Columns of a backtest that are taken over."""


PLAN_S, EACH_JOB_S = 0.0005, 0.0002
"""Real time that a plan takes, and more for each waiting job, s: measured on `kth1`, `synth1`."""


def candidates(settings: Mapping[str, Any], measured: bool = True) -> dict[str, dict[str, Any]]:
    """Return the policies that a run is compared with, by name.

    ``slurm`` is the model of Slurm with the options that the run was set up with, ``builtin`` the
    model without its backfill thread. A run with multifactor priorities is compared with all of
    them in the order of priority, and with ``slurm`` in the order of submission, ``slurm_fcfs``.
    `measured`: with the length of plans that was measured on these machines, by the daemons' clock.
    """
    parameters = dict(word.split("=") for word in settings["parameters"].split(",") if word)
    options: dict[str, Any] = {}
    if measured:
        seconds = {"cycle_s": PLAN_S, "job_cycle_s": EACH_JOB_S}
        options = {key: round(value * settings["speed"], 6) for key, value in seconds.items()}
    options |= {OPTIONS[key]: int(value) for key, value in parameters.items() if key in OPTIONS}
    by_submission: dict[str, dict[str, Any]] = {
        "fifo": {"name": "fifo"},
        "easy": {"name": "easy"},
        "easy_all": {"name": "easy", "reservations": 1000},
        "conservative": {"name": "conservative"},
        "slurm": {"name": "slurm", **options},
        "builtin": {"name": "slurm", "backfill": False},
    }
    if settings["priority"] == "basic":
        return by_submission
    weights = priority_options(settings)
    by_priority = {
        name: weights | policy | {"name": f"multifactor_{policy['name']}".removesuffix("_fifo")}
        for name, policy in by_submission.items()
    }
    return by_priority | {"slurm_fcfs": by_submission["slurm"]}


def priority_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of multifactor priority that a run was set up with.

    Without an accounting database Slurm ignores the weights of age and fair share.
    """
    lines = settings["slurm_conf"]
    return {
        "weight_age": 0,
        "weight_job_size": int(lines["PriorityWeightJobSize"]),
        "weight_partition": int(lines["PriorityWeightPartition"]),
        "weight_fair_share": 0,
        "weight_qos": 0,
        "partitions": settings["partitions"],
    }


def named(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the candidates that a run's settings name: two that do the same for ``builtin``."""
    return ("fifo", "builtin") if settings["scheduler"] == "builtin" else ("slurm",)


def backtest(
    log: Path, settings: Mapping[str, Any], n_runs: int, measured: bool = True
) -> list[dict[str, Any]]:
    """Backtest one log; return a row a policy: ``policy, is_named``, and `COLUMNS`.

    The figures are those of ``python -m sweep backtest``, without its cells.
    """
    n_cpus = settings["n_nodes"] * settings["cpus_per_node"]
    workload, cluster = sim.read_trace("slurm_jobcomp", log), sim.Cluster.slots(n_cpus)
    findings = audit(workload, cluster)
    jobs, lags_s = logged_jobs(workload, findings), launch_lags_s(workload, findings, n_cpus)
    runs = {}
    for name, options in candidates(settings, measured).items():
        policy = policies.build(**options)
        results = []
        for seed in range(n_runs):
            lagging = cluster if policy.has_own_lag else cluster.with_launch(lags_s, seed)
            results.append(simulate(workload, lagging, policy, seed=seed, record="jobs"))
        runs[name] = tuple(
            np.stack([getattr(run, column)[jobs.job] for run in results])
            for column in ("job_start", "job_finish")
        )
    ranking = nearest.rank(jobs, [start_s for start_s, _ in runs.values()], findings)
    rows = []
    for place, (name, (start_s, finish_s)) in enumerate(runs.items()):
        values = asdict(compare(jobs, start_s, finish_s)) | {
            "wait_mean_recorded_s": float(jobs.wait_s.mean()),
            "waited": int(jobs.waited.sum()),
            "is_nearest": place == ranking.best,
        }
        row = {"policy": name, "is_named": name in named(settings)}
        rows.append(row | {column: values[column] for column in COLUMNS})
    return rows


def main() -> None:
    """Backtest the kept runs that the page's table lacks; write it after each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real.slurm.backtests")
    parser.add_argument("--workloads", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--priorities", nargs="+", default=["basic", "multifactor"])
    parser.add_argument("--numbers", nargs="+", default=["1", "2", "3", "4", "5"])
    parser.add_argument("--windows", action="store_true", help="with the default length of plans")
    parser.add_argument("--runs", type=int, default=N_RUNS, help="of each policy")
    parser.add_argument("--table", type=Path, default=page.TABLE, help="JSON of the rows")
    words = parser.parse_args()
    index = json.loads((page.RUNS / INDEX).read_text())
    part = page.WINDOWS if words.windows else page.MENDED
    for run in index["runs"]:
        settings = index["settings"][run.rpartition("-")[0]]
        table = page.read_table(words.table)
        if (
            any(row["run"] == run for row in table[part])
            or settings["workload"] not in words.workloads
            or settings["priority"] not in words.priorities
            or run.rpartition("-")[2] not in words.numbers
        ):
            continue
        log = page.RUNS / f"{run}.jobcomp.txt.gz"
        rows = backtest(log, settings, words.runs, not words.windows)
        table[part] = sorted(
            [*table[part], *({"run": run, **row} for row in rows)],
            key=lambda row: str(row["run"]),
        )
        page.write_table(table, words.table)
        print(run, next(row["policy"] for row in rows if row["is_nearest"]), flush=True)


if __name__ == "__main__":
    main()
