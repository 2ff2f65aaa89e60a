"""Data of MLflow runs: tags, parameters and metrics, at a granularity that the UI can handle.

MLflow's UI slows down above some hundreds of runs, so the default granularity depends on their
number: a run a cell, a run for all seeds of one setting, or one run for the sweep.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from sim.base.masking import mask
from sim.base.text import single_line
from sweep.grid import plugins
from sweep.grid.overrides import QUESTION
from sweep.grid.request import is_run_setting
from sweep.stats import intervals
from sweep.stats.arrange import ArrangedCells, by_capacity
from sweep.stats.cell_columns import AXES, ERROR, KNOWS, Rows
from sweep.stats.cell_columns import text as shortest
from sweep.stats.metric_format import format_ends, interval_of, style
from sweep.store import checksums
from sweep.store.folder import SweepFolder
from sweep.track.capacity_steps import CapacitySteps, capacity_steps

_FORBIDDEN = re.compile(r"[^\w.\-/ :]")
MAX_TAG = 5000  # MLflow takes 8,000 characters; some databases fewer
MAX_NAME = 250
LOW, HIGH = "within_95/low", "within_95/high"
"""Ends of a mean's 95 % interval: the part before its name, which sorts below all metrics."""
MAX_METRIC = MAX_NAME - len(f"{HIGH}/")
CURVE = "curve"
Point = tuple[str, int, float]
"""Metric, step (`sweep.track.capacity_steps`), value."""


@dataclass(frozen=True)
class ChildRun:
    """Data of a run below the sweep's: of one cell, of all seeds of one setting, or a curve.

    ``kind`` says which: ``cell``, ``policy`` or ``curve``. ``params`` are the axes and swept
    parameters as text, ``metrics`` the finite ones, ``error`` the stage, type and message of a
    failed cell (empty otherwise), ``traceback`` and ``reproduce`` texts, ``rows`` the row numbers
    of its cells. ``points`` of a curve are (metric, step, value); ``steps`` has their capacities,
    and ``judged`` is the metric of the verdict, which describes it.
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
    knows: str = ""  # the policy's knowledge of durations; empty if not known
    points: tuple[Point, ...] = ()
    steps: CapacitySteps = field(default_factory=lambda: capacity_steps(()))
    judged: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """Unique identity of the run in its sweep.

        The key alone is not unique: a swept parameter without effect gives cells of one key.
        """
        return identity(self.kind, self.key, self.params)

    @property
    def name(self) -> str:
        """Name of the run, such as ``las 0.75 seed 1 alibaba2018``, no longer than MLflow's."""
        policy, trace, capacity, *_ = (self.params.get(axis, "") for axis in AXES)
        capacity = "" if self.kind == CURVE else capacity
        seed = [f"seed {self.params['seed']}"] if "seed" in self.params else []
        swept = [f"{key}={value}" for key, value in self.params.items() if key not in AXES]
        words = filter(None, (policy, capacity, *seed, *swept, trace))
        return _limited(single_line(" ".join(words)), MAX_NAME)

    @property
    def run_status(self) -> str:
        """MLflow status of the run."""
        return "FAILED" if self.is_failed else "FINISHED"


def metric_name(name: str) -> str:
    """Convert a name to a valid name of an MLflow metric: no odd path, and not too long."""
    clean = "/".join(part for part in _FORBIDDEN.sub("_", name).split("/") if part.strip("."))
    return clean if clean and len(clean) <= MAX_METRIC else _with_digest(clean, name, MAX_METRIC)


def metric_names(names: Iterable[str]) -> dict[str, str]:
    """Map metrics to distinct names in MLflow."""
    cleaned = {name: metric_name(name) for name in names}
    shared = Counter(cleaned.values())
    return {
        name: new if shared[new] == 1 or new == name else _with_digest(new, name, MAX_METRIC)
        for name, new in cleaned.items()
    }


def _limited(text: str, limit: int) -> str:
    """Cut a text that is too long, with a digest that keeps it apart from others cut alike."""
    return text if len(text) <= limit else _with_digest(text, text, limit)


def _with_digest(clean: str, name: str, limit: int) -> str:
    sha = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{clean[: limit - 9]}_{sha}"


def identity(kind: str, key: str, params: Mapping[str, str]) -> tuple[str, ...]:
    """Build the identity of a child run: see `ChildRun.identity`."""
    return (kind, key, *(f"{name}={value}" for name, value in sorted(params.items())))


def child_runs(arranged: ArrangedCells, kind: str, groups: Sequence[Rows]) -> list[ChildRun]:
    """Build a child run for each group of rows of ``cells.parquet``."""
    metrics = [dict[str, float]() for _ in groups]
    renamed = metric_names(arranged.metrics)
    for name in arranged.metrics:
        values = arranged.values(name)
        values[~np.isfinite(values)] = math.nan
        for run_metrics, rows in zip(metrics, groups, strict=True):
            mean, half = values[rows[0]], math.nan
            if len(rows) > 1:
                (mean,), (half,), _ = intervals(
                    values[rows, None], is_bootstrap=arranged.is_bootstrap
                )
            pairs = ((renamed[name], mean), (f"{HALF}/{renamed[name]}", half))
            run_metrics |= {name: float(value) for name, value in pairs if math.isfinite(value)}
    return [_row(arranged, kind, *inputs) for inputs in zip(groups, metrics, strict=True)]


def digest(rows: Sequence[ChildRun], extra: object, files: Sequence[Path], granularity: str) -> str:
    """Compute the SHA-256 of all logged data: the rows in any order, the files, and `extra`."""
    lines = sorted(
        json.dumps(
            [r.key, dict(r.params), dict(r.metrics), dict(r.error), r.points], sort_keys=True
        )
        for r in rows
    )
    lines += [json.dumps(extra), digest_of_files(files), granularity]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def digest_of_files(files: Sequence[Path]) -> str:
    """Compute the SHA-256 of the files' names and bytes.

    Parquet tables and checksums are left out: a rerun of cached cells changes only their status
    there, and with it the checksums.
    """
    total = hashlib.sha256()
    for path in files:
        if path.suffix == ".parquet" or path.name == checksums.NAME:
            continue
        total.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def _row(arranged: ArrangedCells, kind: str, rows: Rows, metrics: Mapping[str, float]) -> ChildRun:
    failed = rows[arranged.failed[rows]]
    cell = arranged.row(int(rows[0]))
    reported = arranged.row(int(failed[0])) if len(failed) else cell

    def text(name: str) -> str:
        value = reported.get(name)
        return "" if value is None else mask(str(value))

    key, counts = str(cell["key"]), dict[str, float]()
    if kind != "cell":
        keys = "\n".join(sorted(arranged.cells["key"].take(pa.array(rows)).to_pylist()))
        key = hashlib.sha256(keys.encode()).hexdigest()
        counts = {"cells": float(len(rows)), "cells_failed": float(len(failed))}
    names = (
        (*AXES, *arranged.swept)
        if kind == "cell"
        else ("policy", "trace", "capacity", *arranged.swept)
    )
    return ChildRun(
        key=key,
        params={name: shortest(cell[name])[:MAX_TAG] for name in names if cell[name] is not None},
        metrics={**metrics, **counts},
        error={
            name: value_text[:MAX_TAG]
            for name in ERROR[:3]
            if len(failed) and (value_text := text(name))
        },
        traceback=text("error_traceback") if len(failed) else "",
        reproduce=text("reproduce"),
        is_failed=len(failed) > 0,
        kind=kind,
        rows=rows,
        knows=str(cell.get(KNOWS) or ""),
    )


def parameter_values(arranged: ArrangedCells) -> dict[str, str]:
    """List the values of each parameter; long lists are cut."""
    parameters = {}
    for name in (*AXES, *arranged.swept):
        values = arranged.cells[name].unique().slice(0, MAX_TAG).to_pylist()
        if texts := [shortest(value) for value in values if value is not None]:
            parameters[name] = ",".join(texts)[:MAX_TAG]
    return parameters


def settings_given(words: Iterable[str], labels: Iterable[str]) -> dict[str, str]:
    """Return the settings of a command line that are no axis, as text: ``{"trace.scale": "0.1"}``.

    Settings of where and how it runs are left out, and the question. `labels` are the names of
    axes and swept parameters.
    """
    taken = {*AXES, *labels}
    pairs = (word.lstrip("+").partition("=") for word in words if "=" in word)
    return {
        name: mask(value)[:MAX_TAG]
        for name, _, value in pairs
        if name not in (*taken, QUESTION)
        and not is_run_setting(name)
        and not _FORBIDDEN.search(name)
    }


Granularity = Literal["cell", "policy", "sweep"]
GRANULARITIES: tuple[Granularity, ...] = get_args(Granularity)
MAX_CELLS, MAX_GROUPS, MAX_CURVES = 200, 1000, 100
MAX_METRICS = 990  # MLflow takes 1,000 at a time
HALF = "half"
HEADLINE = (
    *("deadlines_missed", "value_attained", "jct_mean_s", "jct_p99_s", "gap_lb_p50"),
    *("jct_speedup_mean", "jobs_failed"),
)
DESCRIBED = ("jct_mean_s", *HEADLINE)
"""Metrics of which the first that a curve has describes it, if it has not the verdict's."""


def choose_granularity(requested: str | None, cells: pa.Table, swept: Sequence[str]) -> Granularity:
    """Return the requested granularity; by default the finest that keeps the UI usable."""
    for name in GRANULARITIES:
        if name == requested:
            return name
    if cells.num_rows <= MAX_CELLS:
        return "cell"
    keys = [key for key in dict.fromkeys((*AXES, *swept)) if key in cells.column_names]
    groups = cells.group_by([key for key in keys if key != "seed"]).aggregate([])
    return "policy" if groups.num_rows <= MAX_GROUPS else "sweep"


def child_rows(
    granularity: Granularity, arranged: ArrangedCells, means: list[ChildRun]
) -> list[ChildRun]:
    """Build the child runs at a granularity; `means` are those of `over_seeds`."""
    cells = np.arange(len(arranged.failed) if granularity == "cell" else 0)
    return means if granularity == "policy" else child_runs(arranged, "cell", [*cells[:, None]])


def over_seeds(arranged: ArrangedCells, n_max: int | None = None) -> list[ChildRun]:
    """Average cells that differ only in their seed: a child run a setting, at most `n_max`."""
    groups = [
        group.rows[arranged.column_index[group.rows] == column]
        for block_rows in arranged.blocks.values()
        for group in by_capacity(arranged, block_rows)
        for column in np.unique(arranged.column_index[group.rows])
    ]
    return child_runs(arranged, "policy", sorted(groups, key=lambda rows: int(rows[0]))[:n_max])


def curves(
    means: Sequence[ChildRun], steps: CapacitySteps, judged: Mapping[str, str]
) -> list[ChildRun]:
    """Join the means of each policy and trace over its capacities: a run, and a line in a chart.

    Each metric of `HEADLINE`, and the one by which its trace is `judged`, has a point for each
    capacity, at its step among those of the sweep; `LOW` and `HIGH` before its name are the ends of
    its 95 % interval.
    """
    groups: dict[tuple[tuple[str, str], ...], list[ChildRun]] = {}
    for row in means:
        params = tuple((k, v) for k, v in row.params.items() if k != "capacity")
        groups.setdefault(params, []).append(row)
    joined = (_curve(dict(params), rows, steps, judged) for params, rows in groups.items())
    return sorted(joined, key=lambda curve: int(curve.rows[0]))


def _curve(
    params: dict[str, str],
    rows: Sequence[ChildRun],
    steps: CapacitySteps,
    judged: Mapping[str, str],
) -> ChildRun:
    rows = sorted(rows, key=_capacity)
    metric = metric_name(judged.get(params.get("trace", ""), ""))
    points: list[Point] = []
    for row in rows:
        step = steps.step(_capacity(row))
        for name in dict.fromkeys(filter(None, (metric, *HEADLINE))):
            mean, half = row.metrics.get(name), row.metrics.get(f"{HALF}/{name}")
            if mean is not None:
                points.append((name, step, mean))
            if mean is not None and half is not None:
                low, high = interval_of(name, mean, half)
                points += [(f"{LOW}/{name}", step, low), (f"{HIGH}/{name}", step, high)]
    failed = next((row for row in rows if row.is_failed), rows[-1])
    keys = hashlib.sha256("\n".join(row.key for row in rows).encode()).hexdigest()
    capacities = ",".join(row.params["capacity"] for row in rows if "capacity" in row.params)
    return replace(
        failed,
        kind=CURVE,
        key=keys,
        params={**params, "capacity": capacities[:MAX_TAG]},
        metrics={name: value for name, _, value in points},
        points=tuple(points[:MAX_METRICS]),
        steps=steps,
        judged=metric,
        rows=np.sort(np.concatenate([row.rows for row in rows])),
    )


def describe_curve(curve: ChildRun) -> str:
    """Describe a curve: ``mean JCT 502 ± 105 s at capacity 0.7, 178 ± 36 s at 1``, in Markdown."""
    values = {(name, step): value for name, step, value in curve.points}
    metric = next((name for name in (curve.judged, *DESCRIBED) if name in curve.metrics), None)
    if metric is None:
        return ""
    unit = f" {style(metric).unit}" * (style(metric).kind == "seconds")
    texts: list[str] = []
    for step in sorted({step for name, step in values if name == metric}):
        mean = values[metric, step]
        low, high = (values.get((f"{end}/{metric}", step), math.nan) for end in (LOW, HIGH))
        text, spread = format_ends(metric, mean, low, high)
        noun = " capacity" * (not texts)
        capacity = shortest(curve.steps.capacity(step))
        texts.append(
            f"{text}{f' {spread}'.replace('±', '± ') * bool(spread)}{unit} at{noun} {capacity}"
        )
    clause = f"; {about}" if (about := curve.steps.describe()) else ""
    return f"{style(metric).label} {', '.join(texts)}{clause}"[:MAX_TAG]


def headline(means: Sequence[ChildRun], steps: CapacitySteps) -> list[Point]:
    """Return means of the most important metrics as (name, step, value); at most 990.

    A name is ``<metric>/<what varies>`` and the step that of the capacity, so that a chart of the
    sweep's run has a line a policy, and the list of runs its value at the largest capacity.
    """
    names = [name for name in varying(means) if name not in ("seed", "capacity")]
    points = [
        ("/".join(filter(None, (metric, _words(row, names)))), steps.step(_capacity(row)), value)
        for metric in HEADLINE
        for row in means
        if (value := row.metrics.get(metric)) is not None
    ][:MAX_METRICS]
    renamed = metric_names(dict.fromkeys(name for name, _, _ in points))
    return [(renamed[name], step, value) for name, step, value in points]


def added_points(folder: SweepFolder) -> list[Point]:
    """Return the numbers that plug-ins add, as those of `headline`, at step 100."""
    points = dict[str, float]()
    for numbers in plugins.results(plugins.SECTIONS, "points", folder):
        points |= numbers
    renamed = metric_names(points)
    return [(renamed[name], 100, value) for name, value in points.items()]


def _words(row: ChildRun, names: Sequence[str]) -> str:
    """Join the values of some parameters; those with spaces are quoted, to be told apart."""
    return shlex.join(row.params.get(name, "-") for name in names)


def _capacity(row: ChildRun) -> float:
    return float(row.params.get("capacity", 1.0))


def varying(rows: Sequence[ChildRun]) -> list[str]:
    """Return the names of the parameters that vary between the runs."""
    names = dict.fromkeys(name for row in rows for name in row.params)
    return [name for name in names if len({row.params.get(name) for row in rows}) > 1]
