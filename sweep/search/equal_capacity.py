"""With how little each policy does as well as the baseline does with the whole cluster.

Wing's evaluation argues so (Chung et al., OSDI 2020, §6): the capacity at which a policy reaches
what another reaches at full capacity is what it saves. It follows from any grid with a baseline and
several capacities.

The metric's mean over seeds is made monotone in capacity (isotonic regression), and interpolated
between the capacities swept, along log capacity; what is positive and no fraction along its
logarithm, too. The interval is a bootstrap's over seeds: both policies' cells of a seed are drawn
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
from sweep.report.section import Section
from sweep.search.section_builder import Row, SectionPart, build_section
from sweep.stats import CONFIDENCE, FIRST_SEEDS
from sweep.stats.arrange import ArrangedCells, arrange, by_capacity
from sweep.stats.cell_columns import Rows, text
from sweep.stats.metric_format import is_fraction, style

USUAL = ("jct_mean_s", "jct_p99_s", "deadlines_missed", "value_attained")
N_RESAMPLES = 4_000
WHOLE = 1.0

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("trace", "settings", "metric")),
        ("at", pa.float64()),  # capacity at which the baseline is taken
        ("policy", pa.string()),
        # where the policy does as well: -inf below all that was swept, inf above
        *((name, pa.float64()) for name in ("capacity", "low", "high")),
        ("least", pa.float64()),  # the least and the largest capacity swept
        ("most", pa.float64()),
        ("seeds", pa.int64()),
    ]
)


def table(cells: pa.Table, config: Mapping[str, Any]) -> pa.Table | None:
    """Return ``equal_capacity.parquet``; None without a baseline, or with one capacity."""
    baseline = config["baseline"]
    if baseline is None or config.get("goal") is not None:
        return None
    them = arrange(cells, config["swept"], baseline)
    rows = [
        {"trace": trace, "settings": ", ".join(f"{k}={v}" for k, v in settings), **row}
        for (trace, settings), members in them.blocks.items()
        for metric in _metrics(them, config["metrics"] or ())
        for row in _rows(them, members, metric)
    ]
    return table_from_rows(rows, SCHEMA) if rows else None


def build(alike: pa.Table, config: Mapping[str, Any]) -> Section:
    """Word ``equal_capacity.parquet``."""
    rows, baseline = alike.to_pylist(), config["baseline"]
    metrics = list(dict.fromkeys(row["metric"] for row in rows))

    def say(members: list[Row], _: str) -> SectionPart:
        by: dict[str, dict[str, Row]] = {}
        for row in members:
            by.setdefault(row["policy"], {})[row["metric"]] = row
        lines = [(policy, *(_entry(of.get(m)) for m in metrics)) for policy, of in by.items()]
        said = [_sentence(row, baseline) for row in members if row["metric"] == metrics[0]]
        return SectionPart(said, ("policy", *metrics), lines)

    notes = [
        f"{baseline} was not run at 1; its largest capacity, {text(at)}, stands for it."
        for at in sorted({row["at"] for row in rows} - {WHOLE})
    ]
    notes.append(
        "Interpolated between the capacities swept, along a monotone curve; in brackets 95 % "
        "intervals over seeds."
    )
    title = f"Capacity that does as well as {baseline}"
    about = Section("equal-capacity", title, (), notes=tuple(notes))
    return build_section(about, rows, ["trace", "settings"], say)


def _sentence(row: Row, baseline: str) -> str:
    does = f"do as well as {baseline} at {text(row['at'])} with"
    label = style(row["metric"]).label
    if row["capacity"] == math.inf:
        return f"{row['policy']} does not {does} any capacity up to {text(row['most'])} ({label})."
    share = f"less than {text(row['least'])}" if row["capacity"] < 0 else _entry(row)
    return f"{row['policy']} {does.replace('do', 'does', 1)} {share} of the cluster ({label})."


def _entry(row: Row | None) -> str:
    """Write a capacity and its interval, such as ``0.62 [0.55, 0.70]``."""
    if row is None:
        return ""
    ends = [_end(row, row[name]) for name in ("capacity", "low", "high")]
    between = "" if math.isnan(row["low"]) or ends[1] == ends[2] else f" [{ends[1]}, {ends[2]}]"
    return ends[0] + between


def _end(row: Row, end: float) -> str:
    if end == -math.inf:
        return f"<{text(row['least'])}"
    return f">{text(row['most'])}" if end == math.inf else f"{end:.2f}"


def _metrics(them: ArrangedCells, chosen: Sequence[str]) -> list[str]:
    """Choose what to compare: what is shown, if that is chosen, or what is usual."""
    known = [name for name in (chosen or USUAL) if name in them.metrics and style(name).better]
    own = [name for name in known if name not in METRICS or not METRICS[name].against_baseline]
    return [name for name in own if _varies(them.values(name))]


def _varies(values: F8) -> bool:
    there = values[~np.isnan(values)]
    return bool((there != there[:1]).any())


def _rows(them: ArrangedCells, members: Rows, metric: str) -> Iterator[dict[str, Any]]:
    worlds = by_capacity(them, members)
    # by column and capacity: seeds, ascending, and the values
    cells: dict[int, dict[float, tuple[Rows, F8]]] = defaultdict(dict)
    for world in worlds:
        seeds = np.unique(them.seed[world.rows])
        for column, values in enumerate(world.by_seed(them, metric).T):
            there = ~np.isnan(values)
            if there.any():
                cells[column][world.capacity] = seeds[there], values[there]
    for column, of_column in cells.items():
        base = them.baselines[column]
        if base is None or base not in cells or len(of_column) < 2:
            continue
        at = WHOLE if WHOLE in cells[base] else max(cells[base])
        capacities = sorted(of_column)
        both = [of_column[capacity] for capacity in capacities] + [cells[base][at]]
        seeds = reduce(np.intersect1d, [of for of, _ in both])
        if not len(seeds):
            continue
        columns = [values[np.isin(of, seeds)] for of, values in both]
        own, theirs = np.stack(columns[:-1], axis=1), columns[-1]
        ends = matching_capacity(np.array(capacities), own, theirs, metric)
        yield {
            "metric": metric,
            "at": at,
            "policy": list(them.columns.values())[column].label,
            **dict(zip(("capacity", "low", "high"), ends, strict=True)),
            "least": capacities[0],
            "most": capacities[-1],
            "seeds": len(seeds),
        }


def matching_capacity(
    capacities: F8, own: F8, theirs: F8, metric: str
) -> tuple[float, float, float]:
    """Find where a policy does as well as another does, with the ends of the 95 % interval.

    `own` has a row a seed and a column a capacity, `theirs` a number a seed. What is found is
    infinite outside of what was run; ends are NaN with fewer than `FIRST_SEEDS` seeds.
    """
    is_log = not is_fraction(metric) and own.min() > 0 < theirs.min()
    sign = 1.0 if style(metric).better == "higher" else -1.0

    def where(means: F8, aims: F8) -> F8:
        if is_log:
            floor = 1e-3 * min(own.min(), theirs.min())  # of a resample that is stretched below 0
            means, aims = np.log(np.maximum(means, floor)), np.log(np.maximum(aims, floor))
        return _reached(capacities, _rising(sign * means), sign * aims)

    n = len(own)
    both = np.concatenate([own, theirs[:, None]], axis=1)
    mean = both.mean(axis=0)
    at = float(where(mean[None, :-1], mean[None, -1])[0])
    if n < FIRST_SEEDS:
        return at, math.nan, math.nan
    from scipy.special import ndtr, stdtrit  # 0.3 s to import: only where there is an interval

    drawn = stream(0, "equal capacity", n).integers(n, size=(N_RESAMPLES, n))
    stretched = (both - mean) * math.sqrt(n / (n - 1))
    total = np.zeros((N_RESAMPLES, both.shape[1]))
    for place in range(n):  # in one order, so that the sum is the same bits everywhere
        total += stretched[drawn[:, place]]
    means = mean + total / n
    found = np.sort(where(means[:, :-1], means[:, -1]))
    t = stdtrit(n - 1, 0.5 + CONFIDENCE / 2)
    low, high = (int(q * (N_RESAMPLES - 1) + 0.5) for q in (ndtr(-t), ndtr(t)))
    return at, float(found[low]), float(found[high])


def _rising(rows: F8) -> F8:
    """Return the nearest rows that never fall, by least squares (isotonic regression).

    Of each place: the largest, over all beginnings before it, of the least mean of what lies
    between that and any end after it.
    """
    n = rows.shape[1]
    upto = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)
    fitted = np.full_like(rows, -np.inf)
    for first in range(n):
        least = np.full(len(rows), np.inf)
        for place in range(n - 1, first - 1, -1):
            least = np.minimum(least, (upto[:, place + 1] - upto[:, first]) / (place + 1 - first))
            fitted[:, place] = np.maximum(fitted[:, place], least)
    return fitted


def _reached(capacities: F8, rows: F8, aims: F8) -> F8:
    """Return where each row, which never falls, first reaches its aim, along log capacity."""
    at = (rows < aims[:, None] - 1e-12 * np.abs(aims[:, None])).sum(axis=1)
    found = np.where(at == 0, -math.inf, math.inf)
    inside = np.flatnonzero((at > 0) & (at < rows.shape[1]))
    after, logs = at[inside], np.log(capacities)
    before = rows[inside, after - 1]
    part = np.clip((aims[inside] - before) / (rows[inside, after] - before), 0.0, 1.0)
    found[inside] = np.exp(logs[after - 1] + part * (logs[after] - logs[after - 1]))
    return found
