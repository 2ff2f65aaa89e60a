"""The table of a sweep, ``cells.parquet``: a row a cell."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.masking import mask, mask_tree, mask_under
from sim.metrics import METRICS, speedups
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Grid
from sweep.grid.overrides import quote
from sweep.run.plan import Planned
from sweep.stats.arrange import AXES
from sweep.store.cache import Cache
from sweep.store.cell import CellError

AGAINST_BASELINE = tuple(name for name, metric in METRICS.items() if metric.against_baseline)
_ERROR = ("stage", "type", "message", "traceback")


def table(
    grid: Grid,
    planned: Sequence[Planned],
    metrics: Mapping[str, Mapping[str, float]],
    errors: Mapping[str, CellError],
    cached: Sequence[bool],
    cache: Cache,
) -> pa.Table:
    """Make the table of a sweep that is over."""
    status = [
        "failed" if one.key in errors else "cached" if was_cached else "done"
        for one, was_cached in zip(planned, cached, strict=True)
    ]
    labels = [one.cell.labels for one in planned]
    columns: dict[str, Any] = {
        "policy": pa.array([row["policy"] for row in labels], pa.string()),
        "trace": pa.array([row["trace"] for row in labels], pa.string()),
        "capacity": pa.array([row["capacity"] for row in labels], pa.float64()),
        "seed": pa.array([row["seed"] for row in labels], pa.int64()),
        "status": pa.array(status, pa.string()),
    }
    for key in grid.swept:
        columns[key] = _swept_column(_masked(key, [row[key] for row in labels]))
    against = _against_baseline(grid, planned, metrics, cache)
    known = [{**metrics.get(one.key, {}), **against[one.row]} for one in planned]
    for name in _names(known):
        columns[name] = pa.array([row.get(name, math.nan) for row in known], pa.float64())
    for part in _ERROR:
        values = [errors[one.key].get(part) if one.key in errors else None for one in planned]
        columns[f"error_{part}"] = pa.array(values, pa.string())
    columns["reproduce"] = pa.array([reproduce(grid, one) for one in planned], pa.string())
    columns["config"] = pa.array(
        [canonical(mask_tree(one.cell.config)) for one in planned], pa.string()
    )
    columns["key"] = pa.array([one.key for one in planned], pa.string())
    return pa.table(columns)


def with_status(cells: pa.Table, status: str) -> pa.Table:
    """Return the same table with one status in every row."""
    n, text = cells.num_rows, status.encode()
    # not pa.array: that imports pandas, a second on a machine that has not done so before
    ends = pa.py_buffer(np.arange(n + 1, dtype=np.int32) * np.int32(len(text)))
    column = pa.StringArray.from_buffers(n, ends, pa.py_buffer(text * n))
    return cells.set_column(cells.column_names.index("status"), "status", column)


def reproduce(grid: Grid, one: Planned) -> str:
    """Write the command that runs this cell alone, in this process, under a debugger's eyes."""
    request = grid.request
    words = [f"{key}={one.cell.labels[key]}" for key in AXES]
    words += [fixed.text for fixed in request.fixed if _applies(fixed.key, one)]
    swept = ((key, one.cell.labels[key]) for key in grid.swept)
    words += [quote(key, value) for key, value in swept if value is not None]
    words += [word for word in request.words if word.startswith("paths.traces=")]
    words += ["launcher=inline"]
    words += [f"--config-dir={folder}" for folder in request.options.user_dirs]
    return mask(" ".join(["python -m sweep", *map(shlex.quote, words)]))


def _applies(key: str, one: Planned) -> bool:
    """Tell whether a fixed key was used by this cell: a policy may lack a parameter."""
    head, _, inner = key.partition(".")
    return head != "policy" or inner.split(".")[0] in one.cell.policy["params"]


def _against_baseline(
    grid: Grid,
    planned: Sequence[Planned],
    metrics: Mapping[str, Mapping[str, float]],
    cache: Cache,
) -> list[dict[str, float]]:
    """Compare each cell with the baseline's in its group; NaN where one of the two is missing."""
    nothing = dict.fromkeys(AGAINST_BASELINE, math.nan)
    found: list[dict[str, float]] = [dict(nothing) for _ in planned]
    for base, members in _groups(grid, planned):
        if base.key not in metrics:
            continue
        base_jct = _jct(cache, base.key)
        for one in members:
            if one.key in metrics and base_jct is not None:
                jct = base_jct if one.key == base.key else _jct(cache, one.key)
                if jct is not None:
                    found[one.row] = speedups(jct, base_jct)
    return found


def _groups(grid: Grid, planned: Sequence[Planned]) -> Iterator[tuple[Planned, list[Planned]]]:
    """Pair each of the baseline's cells with the cells that are compared with it.

    A group shares trace, capacity, seed and every swept key that is not a policy's. A policy's
    key that the baseline has too must be the same as well, where the policy has it.
    """
    baseline = grid.request.baseline
    if baseline is None:
        return
    shared = ["trace", "capacity", "seed"]
    shared += [key for key in grid.swept if not key.startswith("policy.")]
    own = [key for key in grid.swept if key.startswith("policy.")]
    bases: dict[str, list[Planned]] = {}
    for one in planned:
        if one.cell.labels["policy"] == baseline:
            bases.setdefault(_group(one, shared), []).append(one)
    members: dict[int, list[Planned]] = {}
    for one in planned:
        for base in bases.get(_group(one, shared), ()):
            pairs = [(one.cell.labels[key], base.cell.labels[key]) for key in own]
            if all(mine == theirs or None in (mine, theirs) for mine, theirs in pairs):
                members.setdefault(base.row, []).append(one)
                break
    by_row = {one.row: one for group in bases.values() for one in group}
    for row, group in members.items():
        yield by_row[row], group


def _group(one: Planned, keys: Sequence[str]) -> str:
    return json.dumps([one.cell.labels[key] for key in keys])


def _jct(cache: Cache, key: str) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    result = cache.get(key)
    if result is None or result.jobs is None:
        return None
    jobs = result.jobs
    if not {"submit_s", "finish_s", "failed"} <= set(jobs.column_names):
        return None  # a measure may keep something else than jobs
    jct = jobs["finish_s"].to_numpy() - jobs["submit_s"].to_numpy()
    jct[jobs["failed"].to_numpy()] = math.nan
    return np.asarray(jct, dtype=np.float64)


def _names(rows: Sequence[Mapping[str, float]]) -> list[str]:
    """Names of all metrics: the known ones in their order, then the others as they came."""
    seen = dict.fromkeys(name for row in rows for name in row)
    known = [name for name in METRICS if name in seen or name in AGAINST_BASELINE]
    return [*known, *sorted(name for name in seen if name not in METRICS)]


def _masked(key: str, values: Sequence[Any]) -> list[Any]:
    """Mask secrets; values that differ still do, by a number."""
    shown, used = dict[str, Any](), dict[str, int]()
    for value in values:
        text = json.dumps(value)
        if text not in shown:
            masked = mask_under(key, value)
            if masked != value:
                n = used[str(masked)] = used.get(str(masked), 0) + 1
                masked = masked if n == 1 else f"{masked} ({n})"
            shown[text] = masked
    return [shown[json.dumps(value)] for value in values]


def _swept_column(values: Sequence[Any]) -> pa.Array:
    """Make numbers of numbers and text of everything else; null where a key does not apply."""
    present = [value for value in values if value is not None]
    if present and all(type(value) is bool for value in present):
        return pa.array(values, pa.bool_())
    if present and all(type(value) is int for value in present):
        return pa.array(values, pa.int64())
    if present and all(type(value) in (int, float) for value in present):
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    texts = [None if v is None else v if isinstance(v, str) else json.dumps(v) for v in values]
    return pa.array(texts, pa.string())
