"""How much shorter schedules of single DAGs are than breadth first's (DAGPS, Table 5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.base.arrays import F8
from sweep.report.findings import Finding, Finished

BASELINE = "list_scheduling/bfs_cpu_mem"
"""The paper does not say whether its BFS looks at all resources; we take it that it does not."""

MOST = "no schedule more than"
"""What a schedule as short as the tighter lower bound would gain."""

PERCENTILES = (25, 50, 75, 90)
PAPER = {
    "dagps, as built": (7, 25, 57, 74),
    "list_scheduling/random": (-2, 0, 1, 4),
    "list_scheduling/critical_path_cpu_mem": (-2, 0, 2, 1),
    "list_scheduling/critical_path": (1, 4, 13, 16),
    "tetris": (0, 7, 29, 42),
    "strip": (0, 1, 12, 27),
    "list_scheduling/coffman_graham": (0, 1, 12, 26),
    "list_scheduling/coffman_graham_cpu_mem": (-2, 0, 0, 2),
}
"""Improvement in percent, as printed."""

PUBLISHED_ON = "production_dags"
BINS = ((0.0, 1.0), (1.0, 2.0), (2.0, np.inf))
"""Of machines times critical path over the work on one machine."""


def find(finished: Finished) -> list[Finding]:
    """Give percentiles over DAGs, averaged over seeds; then the medians by number of machines."""
    found = []
    for (trace,), cells in finished.by("trace").items():
        gains = gains_over(BASELINE, finished, cells)
        for name, of_seed in gains.items():
            paper = PAPER.get(name, ()) if trace == PUBLISHED_ON else ()
            for at, q in enumerate(PERCENTILES):
                values = [float(np.percentile(gain, q)) for gain, _ in of_seed]
                printed = f"{paper[at]:g}" if paper else ""
                found.append(
                    Finding.of(f"{trace}, improvement %", f"{name}, p{q}", values, paper=printed)
                )
        for low, high in BINS:
            where = f"{trace}, machines {low:g} to {high:g} × work / path, median improvement %"
            for name, of_seed in gains.items():
                inside = [gain[(factor >= low) & (factor < high)] for gain, factor in of_seed]
                values = [float(np.median(gain)) for gain in inside if len(gain)]
                found.append(Finding.of(where, name, values))
    return found


def gains_over(
    baseline: str, finished: Finished, cells: list[dict[str, Any]]
) -> dict[str, list[tuple[F8, F8]]]:
    """Improvement over a policy in percent, and factor, per DAG, of each scheme and seed."""
    base = {row["seed"]: finished.table(row) for row in cells if row["policy"] == baseline}
    gains: dict[str, list[tuple[F8, F8]]] = {}
    for row in cells:
        if row["policy"] == baseline:
            table = finished.table(row)
            least = 1.0 - table["tight_lb"].to_numpy() / table["makespan_s"].to_numpy()
            gains.setdefault(MOST, []).append((100.0 * least, table["factor"].to_numpy()))
            continue
        mine, before = finished.table(row), base[row["seed"]]["makespan_s"].to_numpy()
        factor = mine["factor"].to_numpy()
        for column, name in (
            ("built_s", f"{row['policy']}, as built"),
            ("makespan_s", row["policy"]),
        ):
            seconds = mine[column].to_numpy()
            if np.isnan(seconds).all():
                continue
            gains.setdefault(name, []).append((100.0 * (1.0 - seconds / before), factor))
    return gains
