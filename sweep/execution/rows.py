"""The table of a sweep, ``cells.parquet``: a row a cell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.masking import mask, mask_under
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
_MOST_TEXTS = 8192


def table(prepared: Prepared, errors: Mapping[str, CellError], cached: Sequence[bool]) -> pa.Table:
    """Make the table of a sweep that is over; `cached` tells of each row who computed it."""
    grid, metrics = prepared.grid, prepared.metrics
    labels: dict[str, list[Any]] = {key: [] for key in (*AXES, *grid.swept)}
    commands, configs = _Texts(), _Texts()
    failed: list[CellError | None] = []
    for row in prepared.planned:
        for key, values in labels.items():
            values.append(row.cell.labels[key])
        commands.add(reproduce(grid, row))
        configs.add(canonical(prepared.shown(row.cell)))
        failed.append(errors.get(row.key))
    status = [
        "failed" if error is not None else "cached" if was_cached else "done"
        for error, was_cached in zip(failed, cached, strict=True)
    ]
    columns: dict[str, Any] = {
        "policy": pa.array(labels["policy"], pa.string()),
        "trace": pa.array(labels["trace"], pa.string()),
        "capacity": pa.array(labels["capacity"], pa.float64()),
        "seed": pa.array(labels["seed"], pa.int64()),
        "status": pa.array(status, pa.string()),
    }
    for key in grid.swept:
        columns[key] = _swept_column(_masked(key, labels[key]))
    places = metrics.places(prepared.keys)
    for fact in FACTS:
        known, there = metrics.column(fact, places)
        columns[fact] = pa.array(known, pa.float64(), mask=~there)
    for name in _names(metrics.names()):
        columns[name] = pa.array(metrics.column(name, places)[0], pa.float64())
    for part in _ERROR:
        texts = [None if error is None else error.get(part) for error in failed]
        columns[f"error_{part}"] = pa.array(texts, pa.string())
    columns["reproduce"], columns["config"] = commands.column(), configs.column()
    columns["key"] = pa.array([row.key for row in prepared.planned], pa.string())
    return against(pa.table(columns), grid.swept, grid.request.baseline, prepared.cache)


class _Texts:
    """A column of texts, which are not kept as objects."""

    def __init__(self) -> None:
        self._chunks: list[pa.Array] = []
        self._texts: list[str] = []

    def add(self, text: str) -> None:
        """Add a row."""
        self._texts.append(text)
        if len(self._texts) == _MOST_TEXTS:
            self._chunks.append(pa.array(self._texts, pa.string()))
            self._texts = []

    def column(self) -> pa.ChunkedArray:
        """Return all rows."""
        return pa.chunked_array([*self._chunks, pa.array(self._texts, pa.string())])


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


def _names(found: Sequence[str]) -> list[str]:
    """Names of all metrics: the known ones in their order, then the others."""
    seen = {name for name in found if name not in FACTS}
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
