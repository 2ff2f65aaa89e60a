"""Mean waits of groups of jobs under each change, beside today's (``what_if_groups.parquet``)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.metrics.common import POSITIVE
from sim.workload.workload import Workload
from sweep.execution.cell_results import CellResults
from sweep.execution.inputs import Inputs
from sweep.grid.grid import Cell
from sweep.stats import interval, ratio
from sweep.stats.job_groups import mean_waits
from sweep.store.cache import Cache

ALL = "all"
"""Key of the group of all jobs, whose name is empty."""
GROUPS_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("policy", "trace", "settings")),
        ("capacity", pa.float64()),
        *((name, pa.string()) for name in ("what_if", "by", "group")),
        ("jobs", pa.int64()),  # that start; of the first seed
        ("jobs_today", pa.int64()),
        ("wait_mean_today_s", pa.float64()),  # means over seeds
        ("wait_mean_s", pa.float64()),
        *((name, pa.float64()) for name in ("low", "high")),  # 95 % interval of wait_mean_s
        ("change", pa.float64()),  # wait_mean_s over today's - 1; null if nobody waits today
        # 95 % interval of the change, seed by seed; null with too few seeds, or a wait of 0
        *((name, pa.float64()) for name in ("change_low", "change_high")),
        ("seeds", pa.int64()),
    ]
)

Key = tuple[str, str]


@dataclass(frozen=True)
class SeedWaits:
    """Waits of one group of jobs, seed by seed."""

    jobs: Sequence[int]
    wait_mean_s: Sequence[float]


def waits_of(
    cells: Sequence[Cell], results: CellResults, inputs: Inputs, cache: Cache
) -> dict[Key, SeedWaits]:
    """Return the mean waits of the jobs that start, by key and group; empty without tables of jobs.

    Parameters
    ----------
    cells : sequence of Cell
        The cell of each seed.
    """
    by_seed: list[dict[Key, tuple[int, float]]] = []
    for cell in cells:
        result = cache.get(results.key(cell))
        jobs = None if result is None else result.jobs
        if jobs is None or "start_s" not in jobs.column_names:
            return {}
        wait_s = jobs["start_s"].to_numpy() - jobs["submit_s"].to_numpy()
        group = partial(_by_group, wait_s=wait_s)
        by_seed.append(inputs.query(inputs.workload_id(cell), group))
    common = [key for key in by_seed[0] if all(key in waits for waits in by_seed)] if cells else []
    return {
        key: SeedWaits([waits[key][0] for waits in by_seed], [waits[key][1] for waits in by_seed])
        for key in common
    }


def _by_group(workload: Workload, *, wait_s: F8) -> dict[Key, tuple[int, float]]:
    """Return number and mean wait of the jobs that start, of all and of each group."""
    started = ~np.isnan(wait_s)
    if not started.any():
        return {}
    whole = {(ALL, ""): (int(started.sum()), float(wait_s[started].mean()))}
    groups = mean_waits(workload, wait_s[None, :])
    return whole | {(g.by, g.group): (g.jobs, float(g.wait_mean_s[0])) for g in groups}


def rows_of(
    about: Mapping[str, Any],
    today: Mapping[Key, SeedWaits],
    changed: Mapping[Key, SeedWaits],
    *,
    is_bootstrap: bool,
) -> list[dict[str, Any]]:
    """Return the rows of a change; groups that only one side has are left out.

    `about` has the columns that say which change it is of.
    """
    rows = []
    for key, after in changed.items():
        if key not in today:
            continue
        before = today[key]
        mean, low, high = interval(after.wait_mean_s, span=POSITIVE, is_bootstrap=is_bootstrap)
        mean_today = float(np.mean(before.wait_mean_s))
        paired = ratio(after.wait_mean_s, before.wait_mean_s, is_bootstrap=is_bootstrap)
        rows.append(
            {
                **about,
                "by": key[0],
                "group": key[1],
                "jobs": after.jobs[0],
                "jobs_today": before.jobs[0],
                "wait_mean_today_s": mean_today,
                "wait_mean_s": mean,
                "low": _finite(low),
                "high": _finite(high),
                "change": mean / mean_today - 1 if mean_today > 0 else None,
                "change_low": _finite(paired.low - 1),
                "change_high": _finite(paired.high - 1),
                "seeds": len(after.wait_mean_s),
            }
        )
    return rows


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
