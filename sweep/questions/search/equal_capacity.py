"""Smallest capacity at which a policy matches the baseline at full capacity.

Wing's evaluation argues with it (Chung et al., OSDI 2020, §6): the capacity at which a policy
reaches another's result at full capacity shows how much it saves. It follows from any grid with a
baseline and several capacities.

The metric's mean over seeds is made monotone in capacity (isotonic regression), and interpolated
between the capacities swept, along log capacity; positive metrics that are no fractions along their
logarithms, too. The interval is a bootstrap's over seeds: both policies' cells of a seed are drawn
together, deviations stretched and quantiles widened for few seeds as in `sweep.stats.inference`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.base.columns import table_from_rows
from sim.base.random import stream
from sim.metrics import METRICS
from sweep.questions.search.section_builder import Row, SectionPart, build_section
from sweep.report.section import Section
from sweep.stats import CONFIDENCE, FIRST_SEEDS
from sweep.stats.arrange import ArrangedCells, arrange, by_capacity
from sweep.stats.cell_columns import Rows, text
from sweep.stats.done_jobs import FAILED, is_of_done_jobs
from sweep.stats.inference import ROUNDING
from sweep.stats.metric_format import is_fraction, style

DEFAULT_METRICS = ("jct_mean_s", "jct_p99_s", "deadlines_missed", "value_attained")
N_RESAMPLES = 4_000
FULL_CAPACITY = 1.0

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("trace", "settings", "metric")),
        ("at", pa.float64()),  # capacity of the baseline
        ("policy", pa.string()),
        ("is_oracle", pa.bool_()),
        # where the policy matches it; -inf where it is better with the smallest swept, inf where it
        # is worse with all; NaN if fewer than half of the seeds are common to all cells, or if a
        # value is infinite
        *((name, pa.float64()) for name in ("capacity", "low", "high")),
        ("least", pa.float64()),  # the smallest and the largest capacity swept
        ("most", pa.float64()),
        ("seeds", pa.int64()),
        ("seeds_planned", pa.int64()),
        # largest share of jobs that failed in a cell, if the metric is of the jobs done; else 0
        ("jobs_failed", pa.float64()),
    ]
)


def table(cells: pa.Table, config: Mapping[str, Any]) -> pa.Table | None:
    """Return ``equal_capacity.parquet``; None without a baseline, or with one capacity."""
    baseline = config["baseline"]
    if baseline is None or config.get("goal") is not None:
        return None
    arranged = arrange(cells, config["swept"], baseline)
    rows = [
        {"trace": trace, "settings": ", ".join(f"{k}={v}" for k, v in settings), **row}
        for (trace, settings), members in arranged.blocks.items()
        for metric in _metrics(arranged, config["metrics"] or ())
        for row in _rows(arranged, members, metric)
    ]
    return table_from_rows(rows, SCHEMA) if rows else None


def build(matches: pa.Table, config: Mapping[str, Any]) -> Section:
    """Build the report's section of ``equal_capacity.parquet``."""
    rows, baseline = matches.to_pylist(), config["baseline"]
    for row in rows:
        row["policy"] += " (oracle)" if row.get("is_oracle") else ""
    metrics = list(dict.fromkeys(row["metric"] for row in rows))

    def build_part(members: list[Row], _: str) -> SectionPart:
        by_policy: dict[str, dict[str, Row]] = {}
        for row in members:
            by_policy.setdefault(row["policy"], {})[row["metric"]] = row
        lines = [
            (policy, *(_entry(by_metric.get(m)) for m in metrics))
            for policy, by_metric in by_policy.items()
        ]
        sentences = _sentences([row for row in members if row["metric"] == metrics[0]], baseline)
        return SectionPart(sentences, ("policy", *metrics), lines)

    notes = [
        f"{baseline} was not run at capacity 1; its largest capacity, {text(capacity)}, is used."
        for capacity in sorted({row["at"] for row in rows} - {FULL_CAPACITY})
    ]
    notes.append(
        "Interpolated between the swept capacities on a monotone curve; brackets are 95 % "
        "intervals over seeds."
    )
    title = f"Smallest capacity that matches {baseline}"
    template = Section("equal-capacity", title, (), notes=tuple(notes))
    return build_section(template, rows, ["trace", "settings"], build_part)


def _sentences(rows: Sequence[Row], baseline: str) -> list[str]:
    """Write a sentence for each policy, but one for all that end alike, outside the range tried."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        key = _sentence({**row, "policy": ""}, baseline)
        groups.setdefault(key if math.isinf(row["capacity"]) else row["policy"], []).append(row)
    names = [[row["policy"] for row in group] for group in groups.values()]
    return [
        _sentence({**group[0], "policy": ", ".join(policies)}, baseline, len(group))
        for policies, group in zip(names, groups.values(), strict=True)
    ]


def _sentence(row: Row, baseline: str, n: int = 1) -> str:
    """Compare a policy with the baseline; `n` policies are named together."""
    policy = row["policy"]
    does, is_ = ("does", "is") if n == 1 else ("do", "are")
    result = f"{baseline}'s {style(row['metric']).label} at capacity {text(row['at'])}"
    if row["capacity"] == math.inf:
        return (
            f"{policy} {does} not match {result} with any capacity up to {text(row['most'])}"
            f"{_scope(row)}."
        )
    if math.isnan(row["capacity"]):
        few = 2 * row["seeds"] < row["seeds_planned"]
        seeds = f"all cells share {row['seeds']} of {row['seeds_planned']} seeds"
        reason = seeds if few else "some values are infinite"
        return f"{policy} is not compared with {result}: {reason}."
    if row["capacity"] < 0:
        return (
            f"{policy} {is_} better than {result} with {text(row['least'])} of the cluster, the "
            f"least tried{_scope(row)}."
        )
    return f"{policy} matches {result} with {_entry(row)} of the cluster{_scope(row)}."


def _scope(row: Row) -> str:
    """Say over which seeds and jobs the numbers are, if not over all."""
    parts = []
    if row["seeds"] < row["seeds_planned"]:
        parts.append(f"on the {row['seeds']} of {row['seeds_planned']} seeds that all cells have")
    if row["jobs_failed"]:
        parts.append(f"of the jobs done: up to {100 * row['jobs_failed']:.1f} % of a cell's failed")
    return "".join(f"; {part}" for part in parts)


def _entry(row: Row | None) -> str:
    """Write a capacity and its interval, such as ``0.62 [0.55, 0.70]``."""
    if row is None or math.isnan(row["capacity"]):
        return ""
    ends = [_end(row, row[name]) for name in ("capacity", "low", "high")]
    between = "" if math.isnan(row["low"]) or ends[1] == ends[2] else f" [{ends[1]}, {ends[2]}]"
    return ends[0] + between


def _end(row: Row, end: float) -> str:
    if end == -math.inf:
        return f"≤{text(row['least'])}"
    return f">{text(row['most'])}" if end == math.inf else f"{end:.2f}"


def _metrics(arranged: ArrangedCells, chosen: Sequence[str]) -> list[str]:
    """Choose the metrics to compare: the configured ones, or `DEFAULT_METRICS`."""
    candidates = [
        name
        for name in (chosen or DEFAULT_METRICS)
        if name in arranged.metrics and style(name).better
    ]
    metrics = [
        name for name in candidates if name not in METRICS or not METRICS[name].against_baseline
    ]
    return [name for name in metrics if _varies(arranged.values(name))]


def _varies(values: F8) -> bool:
    present = values[~np.isnan(values)]
    return bool((present != present[:1]).any())


def _rows(arranged: ArrangedCells, block_rows: Rows, metric: str) -> Iterator[dict[str, Any]]:
    groups = by_capacity(arranged, block_rows)
    # by column and capacity: seeds, ascending, and the values
    cells: dict[int, dict[float, tuple[Rows, F8]]] = defaultdict(dict)
    for group in groups:
        seeds = np.unique(arranged.seed[group.rows])
        for column, values in enumerate(group.by_seed(arranged, metric).T):
            present = ~np.isnan(values)
            if present.any():
                cells[column][group.capacity] = seeds[present], values[present]
    for column, capacity_values in cells.items():
        baseline = arranged.baselines[column]
        if baseline is None or baseline not in cells or len(capacity_values) < 2:
            continue
        baseline_capacity = (
            FULL_CAPACITY if FULL_CAPACITY in cells[baseline] else max(cells[baseline])
        )
        capacities = sorted(capacity_values)
        seeds_and_values = [capacity_values[capacity] for capacity in capacities] + [
            cells[baseline][baseline_capacity]
        ]
        seeds = reduce(np.intersect1d, [with_seeds for with_seeds, _ in seeds_and_values])
        n_planned = len(np.unique(arranged.seed[block_rows]))
        values_by_capacity = [
            values[np.isin(with_seeds, seeds)] for with_seeds, values in seeds_and_values
        ]
        ends = (math.nan,) * 3
        if 2 * len(seeds) >= n_planned and all(np.isfinite(v).all() for v in values_by_capacity):
            ends = matching_capacity(
                np.array(capacities),
                np.stack(values_by_capacity[:-1], axis=1),
                values_by_capacity[-1],
                metric,
                is_bootstrap=arranged.is_bootstrap,
            )
        yield {
            "metric": metric,
            "at": baseline_capacity,
            "policy": list(arranged.columns.values())[column].label,
            "is_oracle": list(arranged.columns.values())[column].is_oracle,
            **dict(zip(("capacity", "low", "high"), ends, strict=True)),
            "least": capacities[0],
            "most": capacities[-1],
            "seeds": len(seeds),
            "seeds_planned": n_planned,
            "jobs_failed": _jobs_failed(arranged, block_rows, metric, (column, baseline)),
        }


def _jobs_failed(
    arranged: ArrangedCells, block_rows: Rows, metric: str, columns: Sequence[int]
) -> float:
    """Return the largest share of jobs that failed in a cell; 0 if the metric does not mind."""
    if FAILED not in arranged.metrics or not is_of_done_jobs(metric):
        return 0.0
    rows = block_rows[np.isin(arranged.column_index[block_rows], columns)]
    return float(np.nan_to_num(arranged.values(FAILED, rows)).max(initial=0.0))


def matching_capacity(
    capacities: F8,
    policy_values: F8,
    baseline_values: F8,
    metric: str,
    *,
    is_bootstrap: bool = False,
) -> tuple[float, float, float]:
    """Interpolate the capacity at which a policy matches the baseline, and its 95 % interval.

    `policy_values` has a row a seed and a column a capacity, `baseline_values` a number a seed. The
    capacity is -inf if the policy is better with the smallest, inf if it is worse with the largest;
    its ends are NaN with fewer than `FIRST_SEEDS`
    seeds. Draws of a bootstrap spread by themselves (`sweep.stats.inference`).
    """
    is_log = not is_fraction(metric) and policy_values.min() > 0 < baseline_values.min()
    sign = 1.0 if style(metric).better == "higher" else -1.0

    def interpolate(means: F8, targets: F8) -> F8:
        if is_log:
            # a stretched resample may lie below 0
            floor = 1e-3 * min(policy_values.min(), baseline_values.min())
            means, targets = np.log(np.maximum(means, floor)), np.log(np.maximum(targets, floor))
        return _reached(capacities, _rising(sign * means), sign * targets)

    n = len(policy_values)
    joined = np.concatenate([policy_values, baseline_values[:, None]], axis=1)
    mean = joined.mean(axis=0)
    capacity = float(interpolate(mean[None, :-1], mean[None, -1])[0])
    if n < FIRST_SEEDS:
        return capacity, math.nan, math.nan
    from scipy.special import ndtr, stdtrit  # 0.3 s to import: only where there is an interval

    drawn = stream(0, "equal capacity", n).integers(n, size=(N_RESAMPLES, n))
    deviations = (joined - mean) * math.sqrt(n / (n - 1))
    total = np.zeros((N_RESAMPLES, joined.shape[1]))
    for seed_index in range(n):  # in one order, so that the sum is the same bits everywhere
        total += deviations[drawn[:, seed_index]]
    means = mean + total / n * math.sqrt(n + 1 if is_bootstrap else 1)
    resampled = np.sort(interpolate(means[:, :-1], means[:, -1]))
    t = stdtrit(n - 1, 0.5 + CONFIDENCE / 2)
    low, high = (int(q * (N_RESAMPLES - 1) + 0.5) for q in (ndtr(-t), ndtr(t)))
    return capacity, float(resampled[low]), float(resampled[high])


def _rising(rows: F8) -> F8:
    """Return the nearest rows that never fall, by least squares (isotonic regression).

    At each position: the maximum, over all beginnings before it, of the smallest mean of the values
    between that beginning and any end after it.
    """
    n = rows.shape[1]
    cumulative = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)
    fitted = np.full_like(rows, -np.inf)
    for first in range(n):
        minimum = np.full(len(rows), np.inf)
        for column in range(n - 1, first - 1, -1):
            minimum = np.minimum(
                minimum, (cumulative[:, column + 1] - cumulative[:, first]) / (column + 1 - first)
            )
            fitted[:, column] = np.maximum(fitted[:, column], minimum)
    return fitted


def _reached(capacities: F8, rows: F8, targets: F8) -> F8:
    """Interpolate, along log capacity, where each non-decreasing row first reaches its target."""
    rounding = ROUNDING * np.abs(targets)
    position = (rows < (targets - rounding)[:, None]).sum(axis=1)
    capacity = np.where(position == 0, -math.inf, math.inf)
    is_equal = (position == 0) & (rows[:, 0] <= targets + rounding)
    capacity[is_equal] = capacities[0]
    inside = np.flatnonzero((position > 0) & (position < rows.shape[1]))
    upper, logs = position[inside], np.log(capacities)
    lower = rows[inside, upper - 1]
    fraction = np.clip((targets[inside] - lower) / (rows[inside, upper] - lower), 0.0, 1.0)
    capacity[inside] = np.exp(logs[upper - 1] + fraction * (logs[upper] - logs[upper - 1]))
    return capacity
