"""Transform by a table of throughputs: speeds of jobs on kinds of machines, and speed-ups."""

from __future__ import annotations

import csv
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.base.errors import InputError, unknown
from sim.base.parameters import checked
from sim.cluster.classes import SEPARATOR
from sim.transforms.parts import rebuild
from sim.workload.elastic import curve_points
from sim.workload.schema import MIN_SPEED, SPEED_PREFIX, SPEEDUP
from sim.workload.tables import speed_classes, values, with_column
from sim.workload.workload import Workload

COLUMNS = ("job_type", "kind", "width", "speed")

Points = Mapping[int, float]
"""Speed at each width."""


@dataclass(frozen=True)
class Table:
    """Throughputs by job type and kind of machines, as points over widths."""

    path: str
    points: Mapping[tuple[str, str], Points]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of machines, in the order of the file."""
        return tuple(dict.fromkeys(kind for _, kind in self.points))

    @property
    def job_types(self) -> tuple[str, ...]:
        """Types of jobs, in the order of the file."""
        return tuple(dict.fromkeys(job_type for job_type, _ in self.points))

    def speed(self, job_type: str, kind: str, width: float) -> float:
        """Return the speed at a width, linear between the points, and beyond them the nearest's."""
        points = self.points.get((job_type, kind))
        if points is None:
            raise InputError(
                f"{self.path}: no speed of {job_type!r} on {kind!r}; add a row, with speed 0 if it "
                "can't run there",
                rule="no throughput",
            )
        x = sorted(points)
        if width <= x[0] or len(x) == 1:
            return points[x[0]]
        k = min(bisect_right(x, width) - 1, len(x) - 2)
        low, high = points[x[k]], points[x[k + 1]]
        return low + (high - low) * ((min(width, x[-1]) - x[k]) / (x[k + 1] - x[k]))


@checked
def throughput(
    workload: Workload,
    path: str,
    reference: str,
    by: str = "template",
    resource: str = "",
    missing: Literal["error", "keep"] = "error",
) -> Workload:
    """Let a table of throughputs tell how fast jobs run on each kind of machines.

    Durations are those on `reference`. On another kind a job's speed is its throughput there over
    that on `reference`, at its own width: the number of tasks that start together, of an elastic
    job its greatest. Where it is 0 the job can't run, and then runs on kinds of the table alone. An
    elastic job takes its speed-ups from those on `reference`.

    Parameters
    ----------
    workload : Workload
        Any workload.
    path : str
        CSV file with the columns job_type, kind, width and speed, and any others; a speed is in any
        unit, such as samples/s, that is the same for a type. Between widths it is linear.
    reference : str
        Kind of machines on which the workload's durations hold.
    by : str
        Column of the jobs with their type.
    resource : str
        Resource by which widths count, such as gpu: a task takes its demand; empty for tasks.
    missing : {"error", "keep"}
        Jobs of a type that the table has not: an error, or they stay as they are.

    Raises
    ------
    InputError
        If the file is none of throughputs (with its line), or lacks a type, a kind of a type, or
        the reference; if a job can't run on that, or its elastic speed-ups fall with its width.
    """
    table = read_table(path)
    if reference not in table.kinds:
        raise InputError(unknown(f"kind of machines in {path}", reference, table.kinds))
    types = _types(workload, by)
    lacking = [*dict.fromkeys(name for name in types if name not in table.job_types)]
    if lacking and missing == "error":
        raise InputError(
            unknown(f"job type in {path}", lacking[0], table.job_types)
            + "; add its rows, or set missing=keep",
            rule="no throughput",
        )
    width, place = _widths(workload, resource)
    n_jobs, kinds = workload.n_jobs, table.kinds
    speed = np.ones((n_jobs, len(kinds)))
    curves = [workload.columns.speedups[k] for k in workload.columns.job_speedup.tolist()]
    known = [j for j, name in enumerate(types) if name in table.job_types]
    for j in known:
        own = table.speed(types[j], reference, width[j])
        if own <= 0:
            raise InputError(f"{path}: {types[j]!r} can't run on the reference {reference!r}")
        speed[j] = [table.speed(types[j], kind, width[j]) / own for kind in kinds]
        if workload.columns.job_width_min[j]:
            curves[j] = _curve(workload, table, types[j], reference, j, place[j])
    return _with_speeds(workload, kinds, speed, np.array(known, np.int64), curves)


def read_table(path: str) -> Table:
    """Read a CSV file of throughputs.

    Raises
    ------
    InputError
        If there is no such file, or a row has no type, kind, width and speed; with its line.
    """
    points: dict[tuple[str, str], dict[int, float]] = {}
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            absent = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if absent:
                raise InputError(
                    f"{path}, line 1: no column {absent[0]!r}; a table of throughputs has "
                    f"{', '.join(COLUMNS)}",
                    rule="no throughput",
                )
            for row in reader:
                _add(points, row, f"{path}, line {reader.line_num}")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: {error}; it must be a CSV file of throughputs") from None
    if not points:
        raise InputError(f"{path}: no row below the header", rule="no throughput")
    return Table(path, points)


def _add(
    points: dict[tuple[str, str], dict[int, float]], row: Mapping[str, str], where: str
) -> None:
    """Add a row of the file."""
    job_type, kind = row["job_type"] or "", row["kind"] or ""
    try:
        width, speed = int(row["width"]), float(row["speed"])
    except (TypeError, ValueError):
        width, speed = 0, np.nan
    if not (job_type and kind and width >= 1 and 0 <= speed < np.inf):
        values_ = [row[name] for name in COLUMNS]
        raise InputError(
            f"{where}: a row has a type, a kind, a whole width of at least 1 and a speed of at "
            f"least 0, not {values_!r}",
            rule="no throughput",
        )
    widths = points.setdefault((job_type, kind), {})
    if width in widths:
        raise InputError(
            f"{where}: a second speed of {job_type!r} on {kind!r} at width {width}",
            rule="no throughput",
        )
    widths[width] = speed


def _types(workload: Workload, by: str) -> list[str]:
    if by not in workload.jobs.column_names:
        raise InputError(unknown("column of jobs", by, workload.jobs.column_names))
    return [str(name) for name in workload.jobs[by].to_pylist()]


def _widths(workload: Workload, resource: str) -> tuple[F8, F8]:
    """Return the width of each job, and what a place of it counts, (J,)."""
    c = workload.columns
    size = np.where(c.job_width_min > 0, c.job_n_tasks, np.maximum(c.job_min_tasks, 1))
    place = np.ones(workload.n_jobs)
    if resource:
        if resource not in c.resources:
            raise InputError(unknown("resource of the workload", resource, c.resources))
        demand = c.stage_demand_f[:, c.resources.index(resource)]
        place = np.maximum.reduceat(demand, c.job_stage0[:-1])
    return size * place, place


def _curve(workload: Workload, table: Table, job_type: str, kind: str, j: int, place: float) -> str:
    """Return the speed-ups of elastic job `j`: at its ends, and at the widths of the table."""
    c = workload.columns
    low, high = int(c.job_width_min[j]), int(c.job_n_tasks[j])
    inner = {int(w / place) for w in table.points[job_type, kind] if w % place == 0}
    widths = sorted({low, high} | {w for w in inner if low < w < high})
    text = " ".join(f"{w}:{table.speed(job_type, kind, w * place):.12g}" for w in widths)
    curve_points(text)
    return text


def _with_speeds(
    workload: Workload, kinds: tuple[str, ...], speed: F8, rows: np.ndarray, curves: list[str]
) -> Workload:
    """Return the workload with the speeds of the jobs `rows` on some kinds, and speed-ups."""
    c = workload.columns
    is_known = np.isin(c.stage_job, rows)
    stages = workload.stages
    for i, kind in enumerate(kinds):
        name = SPEED_PREFIX + kind
        has = kind in speed_classes(stages)
        before = values(stages, name) if has else np.ones(workload.n_stages)
        column = np.where(is_known, np.maximum(speed[c.stage_job, i], MIN_SPEED), before)
        stages = with_column(stages, name, column)
    texts = [c.runs_on[k] for k in c.stage_runs_on.tolist()]
    for g in np.flatnonzero(is_known & (speed[c.stage_job] == 0).any(axis=1)).tolist():
        runs = {kind for kind, s in zip(kinds, speed[c.stage_job[g]], strict=True) if s > 0}
        classes = texts[g].split(SEPARATOR) if texts[g] else [*kinds]
        left = [kind for kind in classes if kind in runs or kind not in kinds]
        if not left:
            raise InputError(
                f"the stage in row {g} is to run on {texts[g]}, where its throughput is 0",
                rule="no throughput",
            )
        texts[g] = SEPARATOR.join(left)
    if any(texts):
        stages = with_column(stages, "runs_on", pa.array(texts).dictionary_encode())
    jobs = workload.jobs
    if c.job_width_min.any():
        jobs = with_column(jobs, SPEEDUP.name, pa.array(curves, pa.string()).dictionary_encode())
    note = {"throughput": len(rows), "kinds": len(kinds)}
    return rebuild(workload, note, jobs=jobs, stages=stages)
