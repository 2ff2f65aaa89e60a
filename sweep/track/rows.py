"""What becomes a run of MLflow's: its tags, parameters and metrics, and of how many cells it is.

MLflow's UI slows past some hundreds of runs, so what is chosen by itself follows their number: a
run a cell, a run for all seeds of one setting, or one run for the sweep.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from sim.base.masking import mask
from sim.base.text import single_line
from sweep.stats import intervals
from sweep.stats.arrange import ArrangedCells, by_capacity
from sweep.stats.cell_columns import AXES, ERROR, Rows
from sweep.stats.cell_columns import text as shortest
from sweep.store import checksums

_FORBIDDEN = re.compile(r"[^\w.\-/ :]")
MAX_TAG = 5000  # MLflow takes 8,000 characters; some databases fewer
MAX_NAME = 250
MAX_METRIC = MAX_NAME - len("half/")


@dataclass(frozen=True)
class ChildRun:
    """What becomes a child run: one cell, or all seeds of one setting (``kind`` says which).

    ``params`` are the axes and swept parameters as text, ``metrics`` the finite ones, ``error``
    the stage, type and message of a failed cell (empty otherwise), ``traceback`` and
    ``reproduce`` text, ``rows`` those of its cells.
    """

    key: str
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    error: Mapping[str, str]
    traceback: str
    reproduce: str
    is_failed: bool
    kind: str
    rows: Rows

    @property
    def identity(self) -> tuple[str, ...]:
        """What tells the cell from all others of its sweep.

        Not the key alone: a swept parameter that changes nothing gives cells of one key.
        """
        return identity(self.kind, self.key, self.params)

    @property
    def name(self) -> str:
        """Name of the run, such as ``las 0.75 seed 1 alibaba2018``, no longer than MLflow's."""
        policy, trace, capacity, *_ = (self.params.get(axis, "") for axis in AXES)
        seed = [f"seed {self.params['seed']}"] if "seed" in self.params else []
        swept = [f"{key}={value}" for key, value in self.params.items() if key not in AXES]
        return single_line(" ".join((policy, capacity, *seed, *swept, trace)))[:MAX_NAME]

    @property
    def run_status(self) -> str:
        """MLflow's word for the state of the cell."""
        return "FAILED" if self.is_failed else "FINISHED"


def metric_name(name: str) -> str:
    """Make a name that MLflow takes for a metric; it must be no odd path, and not too long."""
    made = "/".join(part for part in _FORBIDDEN.sub("_", name).split("/") if part.strip("."))
    return made if made and len(made) <= MAX_METRIC else _with_digest(made, name)


def metric_names(names: Iterable[str]) -> dict[str, str]:
    """Map metrics to their names in MLflow, such that no two become one."""
    made = {name: metric_name(name) for name in names}
    shared = Counter(made.values())
    return {
        name: new if shared[new] == 1 or new == name else _with_digest(new, name)
        for name, new in made.items()
    }


def _with_digest(made: str, name: str) -> str:
    sha = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{made[: MAX_METRIC - 9]}_{sha}"


def identity(kind: str, key: str, params: Mapping[str, str]) -> tuple[str, ...]:
    """Tell a child run from all others of its sweep: see `Row.identity`."""
    return (kind, key, *(f"{name}={value}" for name, value in sorted(params.items())))


def rows_of(them: ArrangedCells, kind: str, groups: Sequence[Rows]) -> list[ChildRun]:
    """Make what becomes a child run each, of the rows of ``cells.parquet`` that it stands for."""
    metrics = [dict[str, float]() for _ in groups]
    called = metric_names(them.metrics)
    for name in them.metrics:
        values = them.values(name)
        values[~np.isfinite(values)] = math.nan
        for found, rows in zip(metrics, groups, strict=True):
            mean, half = values[rows[0]], math.nan
            if len(rows) > 1:
                (mean,), (half,), _ = intervals(values[rows, None])
            both = ((called[name], mean), (f"{HALF}/{called[name]}", half))
            found |= {name: float(value) for name, value in both if math.isfinite(value)}
    return [_row(them, kind, *each) for each in zip(groups, metrics, strict=True)]


def digest(
    rows: Sequence[ChildRun], others: object, files: Sequence[Path], granularity: str
) -> str:
    """SHA-256 of all that is logged: the rows, whatever their order, the files, and others."""
    lines = sorted(
        json.dumps([r.key, dict(r.params), dict(r.metrics), dict(r.error)], sort_keys=True)
        for r in rows
    )
    lines += [json.dumps(others), digest_of_files(files), granularity]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def digest_of_files(files: Sequence[Path]) -> str:
    """SHA-256 of the files' names and bytes.

    Less the table of cells: a rerun of cached cells changes their status there and nothing else,
    and with it the checksums.
    """
    total = hashlib.sha256()
    for path in files:
        if path.suffix == ".parquet" or path.name == checksums.NAME:
            continue
        total.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def _row(them: ArrangedCells, kind: str, rows: Rows, metrics: Mapping[str, float]) -> ChildRun:
    failed = rows[them.failed[rows]]
    cell = them.row(int(rows[0]))
    blamed = them.row(int(failed[0])) if len(failed) else cell

    def text(name: str) -> str:
        value = blamed.get(name)
        return "" if value is None else mask(str(value))

    key, counts = str(cell["key"]), dict[str, float]()
    if kind != "cell":
        keys = "\n".join(sorted(them.cells["key"].take(pa.array(rows)).to_pylist()))
        key = hashlib.sha256(keys.encode()).hexdigest()
        counts = {"cells": float(len(rows)), "cells_failed": float(len(failed))}
    names = (*AXES, *them.swept) if kind == "cell" else ("policy", "trace", "capacity", *them.swept)
    return ChildRun(
        key=key,
        params={name: shortest(cell[name])[:MAX_TAG] for name in names if cell[name] is not None},
        metrics={**metrics, **counts},
        error={name: said[:MAX_TAG] for name in ERROR[:3] if len(failed) and (said := text(name))},
        traceback=text("error_traceback") if len(failed) else "",
        reproduce=text("reproduce"),
        is_failed=len(failed) > 0,
        kind=kind,
        rows=rows,
    )


def parameter_values(them: ArrangedCells) -> dict[str, str]:
    """Write what values each parameter has: of very many their beginning."""
    found = {}
    for name in (*AXES, *them.swept):
        values = them.cells[name].unique().slice(0, MAX_TAG).to_pylist()
        if some := [shortest(value) for value in values if value is not None]:
            found[name] = ",".join(some)[:MAX_TAG]
    return found


Granularity = Literal["cell", "policy", "sweep"]
NAMES: tuple[Granularity, ...] = get_args(Granularity)
MOST_CELLS, MOST_GROUPS = 200, 1000
MOST_METRICS = 990  # MLflow takes 1,000 at a time
HALF = "half"
HEADLINE = (
    *("deadlines_missed", "value_attained", "jct_mean_s", "jct_p99_s", "gap_lb_p50"),
    *("jct_speedup_mean", "jobs_failed"),
)


def choose_granularity(asked: str | None, cells: pa.Table, swept: Sequence[str]) -> Granularity:
    """Return what was asked for; by default the finest that leaves the UI usable."""
    for name in NAMES:
        if name == asked:
            return name
    if cells.num_rows <= MOST_CELLS:
        return "cell"
    keys = [key for key in dict.fromkeys((*AXES, *swept)) if key in cells.column_names]
    groups = cells.group_by([key for key in keys if key != "seed"]).aggregate([])
    return "policy" if groups.num_rows <= MOST_GROUPS else "sweep"


def child_rows(
    granularity: Granularity, them: ArrangedCells, means: list[ChildRun]
) -> list[ChildRun]:
    """Make what becomes a child run each; `means` are `over_seeds`."""
    cells = np.arange(len(them.failed) if granularity == "cell" else 0)
    return means if granularity == "policy" else rows_of(them, "cell", [*cells[:, None]])


def over_seeds(them: ArrangedCells, most: int | None = None) -> list[ChildRun]:
    """Average cells that differ in nothing but their seed; of very many settings the first."""
    groups = [
        world.rows[them.column_index[world.rows] == column]
        for members in them.blocks.values()
        for world in by_capacity(them, members)
        for column in np.unique(them.column_index[world.rows])
    ]
    return rows_of(them, "policy", sorted(groups, key=lambda rows: int(rows[0]))[:most])


def headline(means: Sequence[ChildRun]) -> list[tuple[str, int, float]]:
    """Means of the most telling metrics: name, step, value; the first 990.

    A name is ``<metric>/<what varies>`` and the step the capacity in per cent, so that a chart of
    the sweep's run has a line a policy, and the list of runs its value at the largest capacity.
    """
    names = [name for name in varying(means) if name not in ("seed", "capacity")]
    points = [
        ("/".join(filter(None, (metric, _words(row, names)))), _step(row), value)
        for metric in HEADLINE
        for row in means
        if (value := row.metrics.get(metric)) is not None
    ][:MOST_METRICS]
    called = metric_names(dict.fromkeys(name for name, _, _ in points))
    return [(called[name], step, value) for name, step, value in points]


def _words(row: ChildRun, names: Sequence[str]) -> str:
    return " ".join(row.params.get(name, "-") for name in names)


def _step(row: ChildRun) -> int:
    return round(100 * float(row.params.get("capacity", 1.0)))


def varying(rows: Sequence[ChildRun]) -> list[str]:
    """Names of the parameters that are not the same in every row: what a comparison is about."""
    names = dict.fromkeys(name for row in rows for name in row.params)
    return [name for name in names if len({row.params.get(name) for row in rows}) > 1]
