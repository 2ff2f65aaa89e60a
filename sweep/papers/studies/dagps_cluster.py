"""How much sooner jobs end on a shared cluster than under Tez (DAGPS, §8.2 and §8.5)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sweep.report.findings import Finding, Finished

BASELINE = "tez"

PAPER = {
    ("dagps/fig10", "tpcds_stream", "dagps", "JCT, p50"): "27.8",
    ("dagps/fig10", "tpcds_stream", "dagps", "JCT, p75"): "45.7",
    ("dagps/fig10", "tpch_stream", "dagps", "JCT, p50"): "30.5",
    ("dagps/fig10", "tpch_stream", "dagps", "JCT, p75"): "48.3",
    ("dagps/table3", "tpcds_burst", "dagps", "makespan"): "30.9",
    ("dagps/table3", "tpch_burst", "dagps", "makespan"): "27.5",
    ("dagps/table3", "tpcds_burst", "tez_cp", "makespan"): "2.1",
    ("dagps/table3", "tpch_burst", "tez_cp", "makespan"): "4.3",
    ("dagps/table3", "tpcds_burst", "tez_tetris", "makespan"): "8.2",
    ("dagps/table3", "tpch_burst", "tez_tetris", "makespan"): "9.6",
}
"""Improvement in percent, as printed. Of both workloads of Fig. 10 at most 5 % of the jobs are
slower, the worst by 16 %."""
SLOWER, WORST = "5 at most", "-16"

LOCAL = "local tasks, %"

MOST = "no schedule more than, makespan"
"""What a schedule would gain that keeps the bottleneck busy from the first to the last moment."""


def find(finished: Finished) -> list[Finding]:
    """Give each scheme's improvement over Tez, in percent: the median of the runs (seeds)."""
    found = []
    variants = [key for key in finished.config["swept"] if key.startswith("policy.")]
    experiment = finished.config["experiment"]
    for (trace, capacity), cells in finished.by("trace", "capacity").items():
        base = {row["seed"]: row for row in cells if row["policy"] == BASELINE}
        figure = f"{trace}, capacity {capacity:g}, improvement over {BASELINE} %"
        most = [100.0 * (1.0 - row["utilization"]) for row in base.values()]
        found.append(Finding(figure, MOST, float(np.median(most))))
        local = [share for row in base.values() for share in _local(row).values()]
        if local:
            found.append(Finding(figure, f"{BASELINE}, {LOCAL}", float(np.median(local))))
        schemes: dict[tuple[str, str], dict[str, list[float]]] = {}
        for row in cells:
            if row["policy"] == BASELINE:
                continue
            words = [f"{key.removeprefix('policy.')}={row[key]}" for key in variants]
            gains = schemes.setdefault((row["policy"], " ".join(words)), {})
            for name, value in _gains(finished, row, base[row["seed"]]).items():
                gains.setdefault(name, []).append(value)
        for (policy, parameters), gains in schemes.items():
            scheme = f"{policy} {parameters}".strip()
            for name, values in gains.items():
                paper = PAPER.get((experiment, trace, policy, name), "")
                if experiment == "dagps/fig10" and policy == "dagps" and trace.startswith("tpc"):
                    paper = {"share of jobs slower": SLOWER, "JCT, worst job": WORST}.get(
                        name, paper
                    )
                found.append(
                    Finding(figure, f"{scheme}, {name}", float(np.median(values)), paper=paper)
                )
    return found


def _gains(finished: Finished, row: dict[str, Any], base: dict[str, Any]) -> dict[str, float]:
    gain = 100.0 * (1.0 - _jct_s(finished, row) / _jct_s(finished, base))
    return {
        "JCT, p50": float(np.median(gain)),
        "JCT, p75": float(np.percentile(gain, 75)),
        "share of jobs slower": 100.0 * float((gain < 0).mean()),
        "JCT, worst job": float(gain.min()),
        "mean JCT": 100.0 * (1.0 - row["jct_mean_s"] / base["jct_mean_s"]),
        "makespan": 100.0 * (1.0 - row["makespan_s"] / base["makespan_s"]),
        **_local(row),
    }


def _local(row: dict[str, Any]) -> dict[str, float]:
    """Give the share of the tasks that ran where their input lies, %, if any lies anywhere."""
    share = row.get("tasks_local", math.nan)
    return {LOCAL: 100.0 * share} if math.isfinite(share) else {}


def _jct_s(finished: Finished, row: dict[str, Any]) -> F8:
    jobs = finished.table(row)
    return np.asarray(jobs["finish_s"].to_numpy() - jobs["submit_s"].to_numpy())
