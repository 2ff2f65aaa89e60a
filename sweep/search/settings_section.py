"""What a search through parameters found, in words, tables and plots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from sweep.report.plots import layout
from sweep.report.section import Plot, Section, Table
from sweep.search.scores import is_ratio
from sweep.stats.arrange import text
from sweep.stats.inference import ALPHA
from sweep.stats.metric_format import format_contrast, format_value, style

Row = Mapping[str, Any]

COLOURS = 100
"""Of the plots' traces: numbers that are no policy's, whose box would hide them."""

BEST_SHARE = 10
"""One in so many settings is drawn as good."""


def section(found: pa.Table, importance: pa.Table | None, config: Mapping[str, Any]) -> Section:
    """Word ``settings.parquet`` and ``importance.parquet``."""
    metrics = list(config["goal"]["metrics"])
    rows = found.to_pylist()
    shares = [] if importance is None else importance.to_pylist()
    several = len({_world(row) for row in rows}) > 1
    sentences, tables, plots = [], [], []
    for world, group in groupby(rows, key=_world):
        members = list(group)
        where = ", ".join(filter(None, world[1:])) if several else ""
        sentences += [
            f"{where}: {line}" if where else line for line in _sentences(members, metrics)
        ]
        tables.append(_table(members, metrics, f"{world[0]}, {where}" if where else ""))
        mattered = [share for share in shares if _world(share) == world]
        plots += _plots(members, metrics, mattered, where)
    seeds, fresh = config["goal"]["seeds"], config["goal"]["test_seeds"]
    notes = (
        f"{len(rows)} settings tried; half of each batch is dropped after a quarter of {seeds} "
        f"seeds, half of the rest after half of them. Tested on {fresh} other seeds.",
    )
    title = f"Parameters that do best in {' and '.join(metrics)}"
    return Section("settings", title, tuple(sentences), tuple(tables), tuple(plots), notes, True)


def _world(row: Row) -> tuple[str, ...]:
    return row["policy"], row["trace"], row["settings"], f"capacity {text(row['capacity'])}"


def _sentences(rows: Sequence[Row], metrics: Sequence[str]) -> list[str]:
    policy, default = rows[0]["policy"], rows[0]
    tested = [row for row in rows if row["role"] in ("best", "front") and _is_tested(row)]
    if not tested:
        n = len(rows) - 1
        if all(one["gain"] == (1.0 if is_ratio(one["metric"]) else 0.0) for one in _gains(rows)):
            return [f"{policy}: {n} settings were tried, and make no difference here."]
        return [
            f"{policy}: none of {n} settings does better than the default ({_values(default)})."
        ]
    if tested[0]["role"] == "front":
        n = sum(row["role"] == "front" for row in rows)
        has = "has 1 setting" if n == 1 else f"has {n} settings"
        first = f"{policy}: the front of {' and '.join(metrics)} {has}."
        return [first, *(f"{_values(row)}: {_and(row)}." for row in tested)]
    (best,) = tested
    return [
        f"{policy}: {_values(best)} does best, {_and(best)} than the default ({_values(default)}), "
        f"on {best['metrics'][0]['pairs']} seeds that the search has not seen."
    ]


def _gains(rows: Sequence[Row]) -> list[Row]:
    """Return all that settings gained in the race; nothing of those that failed."""
    return [one for row in rows for one in row["metrics"] if math.isfinite(one["mean"])]


def _and(row: Row) -> str:
    return ", ".join(map(_tested, row["metrics"]))


def _tested(one: Row) -> str:
    """Say how a tested setting compares, such as ``1.12× [1.05, 1.20] better in mean JCT``."""
    name = one["metric"]
    ends = (one["estimate"], one["low"], one["high"])
    estimate, between = format_contrast(name, _statistic(name), *ends)
    is_sure = not one["p_holm"] > ALPHA and not math.isnan(one["low"])
    nothing = 1.0 if is_ratio(name) else 0.0
    is_better = one["estimate"] > nothing
    if style(name).better == "lower" and not is_ratio(name):
        is_better = one["estimate"] < nothing
    word = "better" if is_better else "worse"
    if one["estimate"] == nothing:
        return f"as good in {style(name).label}"
    sure = "" if is_sure else ", which may be chance,"
    return f"{' '.join(filter(None, (estimate, between)))} {word}{sure} in {style(name).label}"


def _table(rows: Sequence[Row], metrics: Sequence[str], caption: str) -> Table:
    header = ["setting", "seeds"]
    for name in metrics:
        header += [name, "in the race", "on fresh seeds"]
    picked = [row for row in rows if row["role"]]
    rest = sorted((r for r in rows if not r["role"]), key=lambda r: _order(r), reverse=False)
    shown = [*picked, *rest[: max(0, 8 - len(picked))]]
    return Table(caption, tuple(header), tuple(_entries(row) for row in shown))


def _order(row: Row) -> tuple[float, float]:
    """Sort settings: those that met most seeds, the best of them first."""
    first = row["metrics"][0]
    sign = 1.0 if style(first["metric"]).better == "lower" else -1.0
    mean = sign * first["mean"]
    return -row["seeds"], mean if math.isfinite(mean) else math.inf


def _entries(row: Row) -> tuple[str, ...]:
    role = f" ({row['role']})" if row["role"] else ""
    entries = [f"{_values(row)}{role}", f"{row['seeds']}"]
    for one in row["metrics"]:
        name = one["metric"]
        race, _ = format_contrast(name, _statistic(name), one["gain"], math.nan, math.nan)
        ends = (one["estimate"], one["low"], one["high"])
        fresh = " ".join(filter(None, format_contrast(name, _statistic(name), *ends)))
        entries += [format_value(name, one["mean"])[0], race, fresh]
    return tuple(entries)


def _plots(
    rows: Sequence[Row], metrics: Sequence[str], shares: Sequence[Row], where: str
) -> list[Plot]:
    tail = f", {where}" if where else ""
    plots = []
    if len(metrics) > 1:
        plots.append(Plot(f"{rows[0]['policy']}: the front{tail}", _front(rows, metrics)))
    note = f"a line a setting; the best one in {BEST_SHARE} stand out"
    plots.append(Plot(f"{rows[0]['policy']}: settings tried{tail}", _parallel(rows), note))
    if shares:
        note = "share of the variance that each parameter makes (fANOVA)"
        plots.append(Plot(f"{rows[0]['policy']}: what mattered{tail}", _importance(shares), note))
    return plots


def _front(rows: Sequence[Row], metrics: Sequence[str]) -> dict[str, Any]:
    """Draw one metric against the other; which settings are on the front."""
    kinds = {"tried": "", "front": "front", "default": "default"}
    data = []
    for number, (name, role) in enumerate(kinds.items()):
        chosen = [row for row in rows if row["role"] == role and _is_finite(row)]
        chosen.sort(key=lambda row: row["metrics"][0]["mean"])
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if role == "front" else "markers",
                "name": name,
                "meta": COLOURS + number,
                "x": [_scaled(row["metrics"][0]) for row in chosen],
                "y": [_scaled(row["metrics"][1]) for row in chosen],
                "text": [_values(row) for row in chosen],
                "marker": {"size": 5 if role == "" else 9, "opacity": 0.5 if role == "" else 1.0},
                "line": {"width": 1.5, "dash": "dot"},
                "hovertemplate": "%{text}<br>%{x}, %{y}<extra></extra>",
            }
        )
    x, y = (f"{style(name).label}, {style(name).unit}".rstrip(", ") for name in metrics[:2])
    axes = layout({"title": {"text": x}}, {"title": {"text": y}, "type": "linear"})
    return {"data": data, "layout": axes | _LEGEND}


def _parallel(rows: Sequence[Row]) -> dict[str, Any]:
    """Draw each setting as a line through its values, each parameter an upright axis."""
    names = [one["parameter"] for one in rows[0]["values"]]
    metrics = [one["metric"] for one in rows[0]["metrics"]]
    known = [row for row in rows if _is_finite(row)]
    axes = [_axis([row["values"][at]["value"] for row in known]) for at in range(len(names))]
    axes += [_scale([_scaled(row["metrics"][at]) for row in known]) for at in range(len(metrics))]
    in_order = sorted(known, key=_order)
    n_best = max(1, len(known) // BEST_SHARE)
    good = {row["number"] for row in in_order[:n_best]} | {
        row["number"] for row in known if row["role"] in ("best", "front")
    }
    groups = {
        "others": [r for r in known if r["number"] not in good and r["role"] != "default"],
        "the best": [r for r in known if r["number"] in good and r["role"] != "default"],
        "default": [r for r in known if r["role"] == "default"],
    }
    data = []
    for number, (name, members) in enumerate(groups.items()):
        x: list[float | None] = []
        y: list[float | None] = []
        texts: list[str | None] = []
        for row in members:
            values = [one["value"] for one in row["values"]]
            values += [_scaled(one) for one in row["metrics"]]
            heights = [axis[value] for axis, value in zip(axes, values, strict=True)]
            x += [*map(float, range(len(heights))), None]
            y += [*(round(height, 4) for height in heights), None]
            texts += [*([f"{_values(row)}: {_means(row)}"] * len(heights)), None]
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "meta": COLOURS + number,
                "x": x,
                "y": y,
                "text": texts,
                "hovertemplate": "%{text}<extra></extra>",
                "opacity": 0.35 if name == "others" else 1.0,
                "line": {"width": 1 if name == "others" else 2.2},
                "marker": {},
            }
        )
    ends = [_ends(axis) for axis in axes]
    labels = [*names, *(style(name).label for name in metrics)]
    x_axis = {
        "tickvals": list(range(len(labels))),
        "ticktext": [
            f"{name}<br>{low} to {high}" for name, (low, high) in zip(labels, ends, strict=True)
        ],
    }
    drawn = layout(x_axis, {"visible": False, "range": [-0.05, 1.05], "type": "linear"})
    drawn |= _LEGEND
    drawn["shapes"] = [
        {
            "type": "line",
            "x0": at,
            "x1": at,
            "y0": 0,
            "y1": 1,
            "line": {"width": 1, "color": "gray"},
        }
        for at in range(len(labels))
    ]
    return {"data": data, "layout": drawn}


def _importance(shares: Sequence[Row]) -> dict[str, Any]:
    data = []
    metrics = dict.fromkeys(share["metric"] for share in shares)
    for number, metric in enumerate(metrics):
        of_metric = [share for share in shares if share["metric"] == metric]
        of_metric.sort(key=lambda share: share["importance"])
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": style(metric).label,
                "meta": COLOURS + number,
                "x": [100 * share["importance"] for share in of_metric],
                "y": [share["parameter"] for share in of_metric],
                "hovertemplate": "%{y}: %{x:.0f}%<extra></extra>",
                "marker": {},
            }
        )
    axes = layout({"ticksuffix": "%", "rangemode": "tozero"}, {"type": "category"})
    return {"data": data, "layout": axes | (_LEGEND if len(metrics) > 1 else {})}


_LEGEND = {"showlegend": True, "legend": {"orientation": "h", "y": 1.15}}


def _axis(values: Sequence[str]) -> dict[Any, float]:
    """Give each value of a parameter, a text, its height: by size, if all are numbers."""
    try:
        numbers = {value: float(value) for value in values}
    except ValueError:
        known = sorted(set(values))
        return {value: at / max(1, len(known) - 1) for at, value in enumerate(known)}
    scale = _scale(list(numbers.values()))
    return {value: scale[number] for value, number in numbers.items()}


def _scale(values: Sequence[float]) -> dict[Any, float]:
    low, high = min(values), max(values)
    return {value: (value - low) / (high - low) if high > low else 0.5 for value in values}


def _ends(axis: Mapping[Any, float]) -> tuple[str, str]:
    """Return what stands at the foot and at the head of an axis."""
    low, high = min(axis, key=lambda v: axis[v]), max(axis, key=lambda v: axis[v])
    return tuple(f"{v:.4g}" if isinstance(v, float) else str(v) for v in (low, high))  # type: ignore[return-value]


def _scaled(one: Row) -> float:
    """Return a mean as it is drawn."""
    scale = 100.0 if style(one["metric"]).kind == "percent" else 1.0
    return float(f"{scale * one['mean']:.6g}")


def _means(row: Row) -> str:
    return ", ".join(
        f"{one['metric']} {format_value(one['metric'], one['mean'])[0]}" for one in row["metrics"]
    )


def _values(row: Row) -> str:
    return " ".join(f"{one['parameter']}={one['value'] or 'null'}" for one in row["values"])


def _is_finite(row: Row) -> bool:
    return all(math.isfinite(one["mean"]) for one in row["metrics"])


def _is_tested(row: Row) -> bool:
    return any(one["pairs"] for one in row["metrics"])


def _statistic(metric: str) -> str:
    return "ratio" if is_ratio(metric) else "difference"
