"""What becomes a run of MLflow's: its tags, parameters and metrics, and of how many cells it is.

MLflow's UI slows past some hundreds of runs, so what is chosen by itself follows their number: a
run a cell, a run for all seeds of one setting, or one run for the sweep.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from sim.base.masking import mask
from sweep.stats import intervals
from sweep.stats.arrange import AXES, NOT_METRICS
from sweep.stats.arrange import text as shortest

_FORBIDDEN = re.compile(r"[^\w.\-/ :]")
MAX_TAG = 5000  # MLflow takes 8,000 characters; some databases fewer


@dataclass(frozen=True)
class Row:
    """What becomes a child run: one cell, or all seeds of one setting (``kind`` says which).

    ``params`` are the axes and swept parameters as text, ``metrics`` the finite ones, ``error``
    the stage, type and message of a failed cell (empty otherwise), ``traceback`` and
    ``reproduce`` text, ``members`` the keys of its cells.
    """

    key: str
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    error: Mapping[str, str]
    traceback: str
    reproduce: str
    is_failed: bool
    kind: str = "cell"
    members: tuple[str, ...] = ()

    @property
    def identity(self) -> tuple[str, ...]:
        """What tells the cell from all others of its sweep.

        Not the key alone: a swept parameter that changes nothing gives cells of one key.
        """
        return identity(self.kind, self.key, self.params)

    @property
    def name(self) -> str:
        """Name of the run, such as ``las 0.75 seed 1 alibaba2018``; MLflow shows its beginning."""
        policy, trace, capacity, *_ = (self.params.get(axis, "") for axis in AXES)
        seed = [f"seed {self.params['seed']}"] if "seed" in self.params else []
        swept = [f"{key}={value}" for key, value in self.params.items() if key not in AXES]
        return " ".join((policy, capacity, *seed, *swept, trace))

    @property
    def run_status(self) -> str:
        """MLflow's word for the state of the cell."""
        return "FAILED" if self.is_failed else "FINISHED"


def allowed(name: str) -> str:
    """Make a name that MLflow takes for a metric."""
    return _FORBIDDEN.sub("_", name)


def identity(kind: str, key: str, params: Mapping[str, str]) -> tuple[str, ...]:
    """Tell a child run from all others of its sweep: see `Row.identity`."""
    return (kind, key, *(f"{name}={value}" for name, value in sorted(params.items())))


def rows_of(cells: pa.Table, swept: Sequence[str]) -> list[Row]:
    """Read the rows of ``cells.parquet``, in order."""
    params = [*AXES, *(key for key in swept if key in cells.column_names and key not in AXES)]
    metrics = [
        field.name
        for field in cells.schema
        if field.name not in NOT_METRICS
        and field.name not in params
        and pa.types.is_floating(field.type)
    ]
    return [_row(cell, params, metrics) for cell in cells.to_pylist()]


def digest(rows: Sequence[Row], files: Sequence[Path], granularity: str) -> str:
    """SHA-256 of all that is logged: the rows, whatever their order, and the files."""
    lines = sorted(
        json.dumps([r.key, dict(r.params), dict(r.metrics), dict(r.error)], sort_keys=True)
        for r in rows
    )
    lines += [digest_of_files(files), granularity]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def digest_of_files(files: Sequence[Path]) -> str:
    """SHA-256 of the files' names and bytes.

    Less the table of cells: a rerun of cached cells changes their status there and nothing else.
    """
    total = hashlib.sha256()
    for path in files:
        if path.suffix == ".parquet":
            continue
        total.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def _row(cell: Mapping[str, Any], params: Sequence[str], metrics: Sequence[str]) -> Row:
    is_failed = cell["status"] == "failed"

    def text(name: str) -> str:
        value = cell.get(name)
        return "" if value is None else mask(str(value))

    return Row(
        key=str(cell["key"]),
        params={name: shortest(cell[name])[:MAX_TAG] for name in params if cell[name] is not None},
        metrics={
            allowed(name): float(cell[name])
            for name in metrics
            if cell[name] is not None and math.isfinite(cell[name])
        },
        error={
            name: text(name)[:MAX_TAG]
            for name in ("error_stage", "error_type", "error_message")
            if is_failed and text(name)
        },
        traceback=text("error_traceback") if is_failed else "",
        reproduce=text("reproduce"),
        is_failed=is_failed,
        members=(str(cell["key"]),),
    )


Granularity = Literal["cell", "policy", "sweep"]
NAMES: tuple[Granularity, ...] = get_args(Granularity)
MOST_CELLS, MOST_GROUPS = 200, 1000
MOST_METRICS = 990  # MLflow takes 1,000 at a time
HALF = "half"
HEADLINE = (
    *("deadlines_missed", "value_attained", "jct_mean_s", "jct_p99_s", "gap_lb_p50"),
    *("jct_speedup_mean", "jobs_failed"),
)


def choose(asked: str | None, cells: pa.Table, swept: Sequence[str]) -> Granularity:
    """Return what was asked for; by default the finest that leaves the UI usable."""
    for name in NAMES:
        if name == asked:
            return name
    if cells.num_rows <= MOST_CELLS:
        return "cell"
    keys = [key for key in dict.fromkeys((*AXES, *swept)) if key in cells.column_names]
    groups = cells.group_by([key for key in keys if key != "seed"]).aggregate([])
    return "policy" if groups.num_rows <= MOST_GROUPS else "sweep"


def at(granularity: Granularity, rows: Sequence[Row]) -> list[Row]:
    """Make what becomes a child run each, of a row a cell."""
    if granularity == "sweep":
        return []
    return list(rows) if granularity == "cell" else over_seeds(rows)


def over_seeds(rows: Sequence[Row]) -> list[Row]:
    """Average cells that differ in nothing but their seed."""
    return [_mean(group) for group in _groups(rows)]


def headline(rows: Sequence[Row]) -> list[tuple[str, int, float]]:
    """Means of the most telling metrics: name, step, value; the first 990.

    A name is ``<metric>/<what varies>`` and the step the capacity in per cent, so that a chart of
    the sweep's run has a line a policy, and the list of runs its value at the largest capacity.
    """
    means = over_seeds(rows)
    names = [name for name in varying(means) if name not in ("seed", "capacity")]
    points = [
        (allowed("/".join(filter(None, (metric, _words(row, names))))), _step(row), value)
        for metric in HEADLINE
        for row in means
        if (value := row.metrics.get(metric)) is not None
    ]
    return points[:MOST_METRICS]


def _words(row: Row, names: Sequence[str]) -> str:
    return " ".join(row.params.get(name, "-") for name in names)


def _step(row: Row) -> int:
    return round(100 * float(row.params.get("capacity", 1.0)))


def varying(rows: Sequence[Row]) -> list[str]:
    """Names of the parameters that are not the same in every row: what a comparison is about."""
    names = dict.fromkeys(name for row in rows for name in row.params)
    return [name for name in names if len({row.params.get(name) for row in rows}) > 1]


def _groups(rows: Sequence[Row]) -> list[list[Row]]:
    groups: dict[tuple[tuple[str, str], ...], list[Row]] = {}
    for row in rows:
        setting = tuple((name, value) for name, value in row.params.items() if name != "seed")
        groups.setdefault(setting, []).append(row)
    return list(groups.values())


def _mean(group: Sequence[Row]) -> Row:
    first = group[0]
    names = list(dict.fromkeys(name for row in group for name in row.metrics))
    values = [[row.metrics.get(name, math.nan) for name in names] for row in group]
    means, halves, _ = intervals(np.array(values, dtype=np.float64).reshape(len(group), -1))
    metrics = dict(zip(names, means.tolist(), strict=True))
    metrics |= {f"{HALF}/{n}": h for n, h in zip(names, halves.tolist(), strict=True)}
    failed = [row for row in group if row.is_failed]
    blamed = failed[0] if failed else first
    keys = "\n".join(sorted(row.key for row in group))
    return Row(
        key=hashlib.sha256(keys.encode()).hexdigest(),
        params={name: value for name, value in first.params.items() if name != "seed"},
        metrics={
            **{name: value for name, value in metrics.items() if math.isfinite(value)},
            "cells": float(len(group)),
            "cells_failed": float(len(failed)),
        },
        error=blamed.error,
        traceback=blamed.traceback,
        reproduce=blamed.reproduce,
        is_failed=bool(failed),
        kind="policy",
        members=tuple(row.key for row in group),
    )
