"""Backtests of the kept runs: the policy that a run's settings name, and others, on each log."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.real import page
from benchmarks.real.slurm.keep import INDEX
from benchmarks.real.slurm.workloads import NAMES

N_RUNS = 30
COLUMNS = (
    "wait_mean_recorded_s", "waited", "wait_mean_s", "low", "high", "error", "mae",
    "waited_within_10pct", "pairs_in_order", "in_range", "mae_between_runs", "is_nearest",
)  # fmt: skip
"""Columns of a backtest that are taken over."""
_OPTIONS = {
    "bf_interval": "interval_s",
    "bf_resolution": "resolution_s",
    "bf_max_job_test": "depth",
    "bf_job_part_count_reserve": "reserve",
    "bf_window_linear": "linear_s",
}
"""Options of Slurm and parameters of the policy."""


def candidates(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the policies that a run is compared with, by name.

    ``slurm`` is the model of Slurm with the options that the run was set up with, ``builtin`` the
    model without its backfill thread. A run with multifactor priorities is compared with all of
    them in the order of priority, and with ``slurm`` in the order of submission, ``slurm_fcfs``.
    """
    parameters = dict(word.split("=") for word in settings["parameters"].split(",") if word)
    options = {_OPTIONS[key]: int(value) for key, value in parameters.items() if key in _OPTIONS}
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


def backtest(log: Path, settings: Mapping[str, Any], n_runs: int) -> list[dict[str, Any]]:
    """Backtest one log; return a row a policy: ``policy, is_named``, and `COLUMNS`.

    Raises
    ------
    subprocess.CalledProcessError
        If the backtest failed; its output has been printed.
    """
    policies = candidates(settings)
    with tempfile.TemporaryDirectory(prefix="backtest-") as scratch:
        folder = Path(scratch, "conf", "policy", "real")
        folder.mkdir(parents=True)
        for name, options in policies.items():
            (folder / f"{name}.yaml").write_text(
                "".join(f"{key}: {json.dumps(value)}\n" for key, value in options.items())
            )
        command = [
            sys.executable, "-m", "sweep", "backtest", "--config-dir", str(folder.parents[1]),
            "trace=slurm_jobcomp", f"trace.path={log}",
            f"policy={','.join(f'real/{name}' for name in policies)}",
            f"cluster.count={settings['n_nodes'] * settings['cpus_per_node']}", f"runs={n_runs}",
            f"paths.results={scratch}/results", "launcher=inline", "tracking=none",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
            done.check_returncode()
        (path,) = Path(scratch, "results", "sweeps").glob("*/backtest.parquet")
        table = pq.read_table(path).to_pylist()
    return [
        {
            "policy": (name := row["label"].removeprefix("real/")),
            "is_named": name in named(settings),
        }
        | {column: row[column] for column in COLUMNS}
        for row in table
    ]


def main() -> None:
    """Backtest the kept runs that the page's table lacks; write it after each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real.slurm.backtests")
    parser.add_argument("--workloads", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--priorities", nargs="+", default=["basic", "multifactor"])
    parser.add_argument("--numbers", nargs="+", default=["1", "2", "3", "4", "5"])
    parser.add_argument("--runs", type=int, default=N_RUNS, help="of each policy")
    parser.add_argument("--table", type=Path, default=page.TABLE, help="JSON of the rows")
    words = parser.parse_args()
    index = json.loads((page.RUNS / INDEX).read_text())
    for run in index["runs"]:
        settings = index["settings"][run.rpartition("-")[0]]
        table = page.read_table(words.table)
        if (
            any(row["run"] == run for row in table["backtests"])
            or settings["workload"] not in words.workloads
            or settings["priority"] not in words.priorities
            or run.rpartition("-")[2] not in words.numbers
        ):
            continue
        rows = backtest(page.RUNS / f"{run}.jobcomp.txt.gz", settings, words.runs)
        table["backtests"] = sorted(
            [*table["backtests"], *({"run": run, **row} for row in rows)],
            key=lambda row: str(row["run"]),
        )
        page.write_table(table, words.table)
        print(run, next(row["policy"] for row in rows if row["is_nearest"]), flush=True)


if __name__ == "__main__":
    main()
