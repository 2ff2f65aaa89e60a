"""The table of a sweep, ``cells.parquet``: a row a cell."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.masking import mask, mask_tree, mask_under
from sim.cluster.load import FACTS
from sim.metrics import METRICS
from sweep.execution.plan import Planned, Prepared
from sweep.execution.rebase import AGAINST_BASELINE, against
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Grid
from sweep.grid.overrides import quote
from sweep.stats.arrange import AXES
from sweep.stats.arrange import text as shortest
from sweep.store.cell import CellError

_ERROR = ("stage", "type", "message", "traceback")


def table(prepared: Prepared, errors: Mapping[str, CellError], cached: Sequence[bool]) -> pa.Table:
    """Make the table of a sweep that is over; `cached` tells of each row who computed it."""
    grid, rows = prepared.grid, prepared.planned
    status = [
        "failed" if row.key in errors else "cached" if was_cached else "done"
        for row, was_cached in zip(rows, cached, strict=True)
    ]
    labels = [row.cell.labels for row in rows]
    columns: dict[str, Any] = {
        "policy": pa.array([label["policy"] for label in labels], pa.string()),
        "trace": pa.array([label["trace"] for label in labels], pa.string()),
        "capacity": pa.array([label["capacity"] for label in labels], pa.float64()),
        "seed": pa.array([label["seed"] for label in labels], pa.int64()),
        "status": pa.array(status, pa.string()),
    }
    for key in grid.swept:
        columns[key] = _swept_column(_masked(key, [label[key] for label in labels]))
    for fact in FACTS:
        known = [prepared.metrics.get(row.key, {}).get(fact) for row in rows]
        columns[fact] = pa.array(known, pa.float64())
    metrics = [prepared.metrics.get(row.key, {}) for row in rows]
    for name in _names(metrics):
        values = [of_row.get(name, math.nan) for of_row in metrics]
        columns[name] = pa.array(values, pa.float64())
    for part in _ERROR:
        texts = [errors[row.key].get(part) if row.key in errors else None for row in rows]
        columns[f"error_{part}"] = pa.array(texts, pa.string())
    columns["reproduce"] = pa.array([reproduce(grid, row) for row in rows], pa.string())
    configs = [canonical(mask_tree(row.cell.config)) for row in rows]
    columns["config"] = pa.array(configs, pa.string())
    columns["key"] = pa.array([row.key for row in rows], pa.string())
    return against(pa.table(columns), grid.swept, grid.request.baseline, prepared.cache)


def with_status(cells: pa.Table, status: str) -> pa.Table:
    """Return the same table with one status in every row."""
    n, text = cells.num_rows, status.encode()
    # not pa.array: that imports pandas, a second on a machine that has not done so before
    ends = pa.py_buffer(np.arange(n + 1, dtype=np.int32) * np.int32(len(text)))
    column = pa.StringArray.from_buffers(n, ends, pa.py_buffer(text * n))
    return cells.set_column(cells.column_names.index("status"), "status", column)


def reproduce(grid: Grid, row: Planned) -> str:
    """Write the command that runs this cell alone, in this process, under a debugger's eyes."""
    request = grid.request
    words = [f"{key}={row.cell.labels[key]}" for key in AXES]
    words += [fixed.text for fixed in request.fixed if _applies(fixed.key, row)]
    swept = ((key, row.cell.labels[key]) for key in grid.swept)
    words += [quote(key, value) for key, value in swept if value is not None]
    words += [word for word in request.words if word.startswith("paths.traces=")]
    words += ["launcher=inline"]
    words += [f"--config-dir={folder}" for folder in request.options.user_dirs]
    return mask(" ".join(["python -m sweep", *map(shlex.quote, words)]))


def _applies(key: str, row: Planned) -> bool:
    """Tell whether a fixed key was used by this cell: a policy may lack a parameter."""
    head, _, inner = key.partition(".")
    return head != "policy" or inner.split(".")[0] in row.cell.policy["params"]


def _names(rows: Sequence[Mapping[str, float]]) -> list[str]:
    """Names of all metrics: the known ones in their order, then the others as they came."""
    seen = dict.fromkeys(name for row in rows for name in row if name not in FACTS)
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
    texts = [None if v is None else shortest(v) for v in values]
    return pa.array(texts, pa.string())
