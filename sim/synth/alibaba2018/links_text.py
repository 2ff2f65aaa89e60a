"""The improved variant's tables as JSON; and back, checked."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.synth.alibaba2018 import histogram_text as text
from sim.synth.alibaba2018.links import FULL, TREE, WIDE, Links

_GRIDS = ("shape", "joined_tree", "joined_first", "joined_plain", "joined_again")
_CELLS = ("surplus", "far")
_COUNTS = {
    "idle_tree": 3,
    "idle_other": 3,
    "idle_late": 3,
    "scatter": 3,
    "far_busy": 3,
    "far_idle": 1,
}
_RUNS = ("run_tree", "run_other")
_RANGE = {
    "shape": (TREE, WIDE),
    "joined_tree": (0, FULL),
    "joined_first": (0, FULL),
    "joined_plain": (0, FULL),
    "joined_again": (0, FULL),
    "surplus": (0, FULL),
    "far": (0, text.MOST),
}


def show_links(links: Links) -> str:
    """Write the tables as one JSON object."""
    parts = [
        f'"provenance": {json.dumps(links.provenance, indent=1, ensure_ascii=False)}',
        *(f'"{name}": {getattr(links, name)!r}' for name in _RUNS),
        f'"first": {json.dumps(links.first.tolist())}',
        *(f'"{name}": {json.dumps(getattr(links, name).tolist())}' for name in _COUNTS),
        f'"span": {text.show(links.span)}',
        *(f'"{name}": {text.show_cells(getattr(links, name))}' for name in _CELLS),
        *(f'"{name}": {text.show_grid(getattr(links, name))}' for name in _GRIDS),
    ]
    return "{\n" + ",\n".join(parts) + "}"


def read_links(raw: Any, path: text.PathLike) -> Links:
    """Read what `show_links` wrote."""
    needed = (*_RUNS, "first", *_COUNTS, "span", *_CELLS, *_GRIDS)
    if not isinstance(raw, dict):
        raise InputError("'links' must hold the tables of the edge step", file=path)
    missing = [name for name in needed if name not in raw]
    if missing:
        raise InputError(f"no table {'links ' + missing[0]!r}", file=path)
    found: dict[str, Any] = {name: _chance(raw[name], f"links {name}", path) for name in _RUNS}
    found["first"] = _factors(raw["first"], "links first", path)
    for name, n_rows in _COUNTS.items():
        found[name] = _counts(raw[name], f"links {name}", n_rows, path)
    found["span"] = text.histogram(raw["span"], "links span", path, 2)
    for name in _CELLS:
        found[name] = text.conditional(raw[name], f"links {name}", path, 0)
    for name in _GRIDS:
        found[name] = text.grid(raw[name], f"links {name}", path, 0)
    links = Links(**found, provenance=raw.get("provenance", {}))
    for name, (low, high) in _RANGE.items():
        table = getattr(links, name)
        rows = table.rows if name in _GRIDS else (table,)
        for cell in (cell for row in rows for cell in row.cells):
            if cell.values[0] < low or cell.values[-1] > high:
                raise InputError(
                    f"table {'links ' + name!r} needs values from {low} to {high}",
                    file=path,
                    rule="bad table",
                )
    return links


def _chance(raw: Any, name: str, path: text.PathLike) -> float:
    if isinstance(raw, (int, float)) and not isinstance(raw, bool) and 0 <= raw < 1:
        return float(raw)
    raise InputError(f"{name!r} must be a chance from 0 to below 1, not {raw!r}", file=path)


def _factors(raw: Any, name: str, path: text.PathLike) -> F8:
    try:
        factors = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        factors = np.full(1, math.nan)
    if factors.shape == (WIDE,) and np.isfinite(factors).all() and (factors >= 0).all():
        return factors
    raise InputError(f"{name!r} must be {WIDE} factors of at least 0, not {raw!r}", file=path)


def _counts(raw: Any, name: str, n_rows: int, path: text.PathLike) -> I8:
    shape = (n_rows, 2) if n_rows > 1 else (2,)
    try:
        counts = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        counts = np.full(1, math.nan)
    if counts.shape == shape and (counts >= 0).all() and (counts % 1 == 0).all():
        return counts.astype(np.int64)
    raise InputError(f"{name!r} must be whole counts, {shape}, not {raw!r}", file=path)
