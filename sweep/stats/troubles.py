"""Troubles of the cluster that a sweep asks for and that no run met, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.metrics.troubles import OUTAGES, RESERVATIONS, SLOW_PERIODS
from sweep.stats.cell_columns import to_float64

_KINDS = {
    "outages": (OUTAGES, "outages of machines", "until_s or mtbf_s"),
    "reservations": (RESERVATIONS, "reservations of machines", "from_s"),
    "slowdowns": (SLOW_PERIODS, "slow periods", "until_s or every_s"),
}
_SIMULATED = "makespan_s"
"""Metric of every cell that simulates the workload on the cluster."""


def unmet(cells: pa.Table, config: Mapping[str, Any]) -> list[str]:
    """Write a sentence for each kind of troubles of a trace's cluster that is in none of its runs.

    `cells` have all metrics; those that failed, or that an evaluator of one's own ran without
    a makespan, count as no runs.
    """
    lines = []
    for trace, cluster in (config.get("cluster") or {}).items():
        kinds = [kind for kind in _KINDS if (cluster or {}).get(kind)]
        rows = cells.filter(pc.equal(cells["trace"].cast(pa.string()), trace)) if kinds else cells
        if not kinds or _SIMULATED not in rows.column_names:
            continue
        n_runs = int(np.isfinite(to_float64(rows, _SIMULATED)).sum())
        for kind in kinds if n_runs else ():
            metric, noun, keys = _KINDS[kind]
            met = to_float64(rows, metric) if metric in rows.column_names else np.zeros(1)
            if not (met > 0).any():
                lines.append(
                    f"{trace}: cluster.{kind} asks for {noun}, but none is in any of the {n_runs} "
                    f"runs: times count from the first submission; see {keys}."
                )
    return lines
