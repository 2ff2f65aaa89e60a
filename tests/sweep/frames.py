"""Sample sweeps in the shape of cells.parquet, drawn from a fixed seed."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

POLICIES = ("fifo", "sjf", "las", "srpt")
FACTOR = {"fifo": 3.0, "sjf": 1.2, "las": 1.6, "srpt": 1.0}


def metrics_of(policy: str, capacity: float, seed: int) -> dict[str, float]:
    noise = np.random.default_rng([seed, int(capacity * 100), len(policy)]).normal(1.0, 0.03)
    jct = 812.0 * FACTOR.get(policy, 2.0) / capacity**2 * noise
    speedup = FACTOR["fifo"] / FACTOR.get(policy, 2.0)
    return {
        "jct_mean_s": jct,
        "jct_p50_s": jct * 0.31,
        "jct_p90_s": jct * 2.7,
        "jct_p99_s": jct * 11.0,
        "slowdown_mean": 1.0 + jct / 900.0,
        "wait_mean_s": jct * 0.6,
        "makespan_s": 86_400.0 / capacity * noise,
        "utilization": 0.8 * noise,
        "utilization_cpu": 0.81 * noise,
        "utilization_mem": 0.37 * noise,
        "jain_10s": 0.55 * noise,
        "jain_60s": 0.63 * noise,
        "jain_240s": 0.71 * noise,
        "jobs_failed": 0.0,
        "jct_speedup_mean": speedup * noise if policy != "fifo" else 1.0,
        "jct_speedup_p50": speedup * 0.9 * noise if policy != "fifo" else 1.0,
        "gap_lb_p50": 0.42 * FACTOR.get(policy, 2.0) * noise,
        "gap_lb_p90": 7.9 * FACTOR.get(policy, 2.0) * noise,
        "value_attained": math.nan,
        "deadlines_missed": math.nan,
    }


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def frame(
    policies: Sequence[str] = POLICIES,
    capacities: Sequence[float] = (0.5, 0.75, 1.0),
    seeds: Sequence[int] = (0, 1, 2),
    traces: Sequence[str] = ("alibaba2018",),
    extra: Sequence[dict[str, Any]] = ({},),
    failed: Sequence[tuple[str, float, int]] = (),
) -> pa.Table:
    rows = []
    grid = itertools.product(traces, extra, capacities, seeds, policies)
    for trace, settings, capacity, seed, policy in grid:
        bad = (policy, capacity, seed) in failed
        metrics = metrics_of(policy, capacity, seed)
        rows.append(
            {
                "policy": policy,
                "trace": trace,
                "capacity": float(capacity),
                "seed": seed,
                "status": "failed" if bad else "done",
                **settings,
                **{name: math.nan if bad else value for name, value in metrics.items()},
                "error_stage": "simulate" if bad else None,
                "error_type": "ZeroDivisionError" if bad else None,
                "error_message": "float division by zero" if bad else None,
                "error_traceback": "Traceback (most recent call last):\n  boom\n" if bad else None,
                "reproduce": f"python -m sweep policy={policy} capacity={capacity} seed={seed}",
                "key": _key(f"{trace}-{settings}-{policy}-{capacity}-{seed}"),
            }
        )
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])
    strings = [n for n in names if n.startswith("error_")]
    for name in strings:  # a column of nothing but null has no type of its own
        column_index = table.column_names.index(name)
        table = table.set_column(column_index, name, table.column(name).cast(pa.string()))
    return table


def with_knowledge(cells: pa.Table, **knows: str) -> pa.Table:
    """Add what each policy knows of durations; the truth makes it an oracle."""
    sources = [knows.get(policy, "nothing") for policy in cells["policy"].to_pylist()]
    cells = cells.append_column("knows", pa.array(sources))
    return cells.append_column("is_oracle", pa.array([source == "true" for source in sources]))
