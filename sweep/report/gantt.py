"""Gantt chart of one small cell: its tasks by machine and time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.errors import InputError
from sim.base.lanes import lanes
from sim.metrics.usage import MAX_TASKS_DRAWN
from sweep.report.job_samples import read_metadata
from sweep.report.plots import layout
from sweep.stats.cell_columns import cell_key, factorize
from sweep.store.cache import Cache

N_COLOURS = 10
MAX_TRIED = 10
FREE = 1_000
"""Offset of colour numbers: these traces belong to no policy's checkbox on the page."""


@dataclass(frozen=True)
class Gantt:
    """Chart data: a cell's row, its labels, its tasks (`sim.metrics.usage.tasks_over_time`)."""

    row: int
    title: str
    tasks: Mapping[str, Sequence[Any]]


def choose(cells: pa.Table, cache: Cache, row: int | None = None) -> Gantt | None:
    """Choose a cell to draw: the given row, else the first small one of the traces' first cells."""
    if row is None:
        first_rows = np.unique(factorize(cells["trace"])[1], return_index=True)[1]
        drawn = (
            _read_gantt(cells, cache, first_row)
            for first_row in np.sort(first_rows).tolist()[:MAX_TRIED]
        )
        return next(filter(None, drawn), None)
    if not 0 <= row < cells.num_rows:
        raise InputError(f"row {row} does not exist; valid: 0 to {cells.num_rows - 1}")
    gantt = _read_gantt(cells, cache, row)
    if gantt is None:
        failed = cells["status"][row].as_py() == "failed"
        raise InputError(
            f"the cell of row {row} {'failed' if failed else 'has no recorded tasks'}; a "
            f"simulation of {MAX_TASKS_DRAWN} tasks or fewer can be drawn"
        )
    return gantt


def _read_gantt(cells: pa.Table, cache: Cache, row: int) -> Gantt | None:
    """Read the tasks that a cell recorded; None if it recorded none."""
    cell = cells.slice(row, 1).to_pylist()[0]
    result = None if cell["status"] == "failed" else cache.get(cell_key(cells, row))
    tasks = None if result is None or result.jobs is None else read_metadata(result.jobs, "tasks")
    if tasks is None:
        return None
    labels = f"{cell['policy']}, {cell['trace']}, capacity {cell['capacity']:g}"
    return Gantt(row, f"{labels}, seed {cell['seed']}", tasks)


def figure(gantt: Gantt) -> dict[str, Any]:
    """Draw the chart: time to the right, machines as rows, tasks of one job in one colour."""
    tasks = gantt.tasks
    lane, machines = _lanes(tasks["machine"], tasks["start_s"], tasks["finish_s"])
    data: dict[int, dict[str, Any]] = {}
    for task, job in enumerate(tasks["job"]):
        trace = data.setdefault(
            job,
            {
                "type": "bar",
                "orientation": "h",
                "width": 0.9,
                "name": f"job {job}",
                "meta": FREE + job % N_COLOURS,
                "base": [],
                "x": [],
                "y": [],
                "text": [],
                "textposition": "none",
                "hovertemplate": "%{text}<extra></extra>",
                "marker": {"line": {"width": 1, "color": "rgba(128,128,128,0.5)"}},
            },
        )
        start, finish = tasks["start_s"][task], tasks["finish_s"][task]
        trace["base"].append(start)
        trace["x"].append(round(finish - start, 6))
        trace["y"].append(lane[task])
        stage, machine = tasks["stage"][task], tasks["machine"][task]
        text = f"job {job}, stage {stage}, machine {machine}: {start:g} to {finish:g} s"
        trace["text"].append(text)
    y_axis = {
        "title": {"text": "machine"},
        "range": [max(lane) + 0.6, -0.6],
        "tickvals": list(machines.values()),
        "ticktext": [str(machine) for machine in machines],
        "type": "linear",
        "showgrid": False,
    }
    axes = layout({"title": {"text": "time, s"}}, y_axis) | {"barmode": "overlay"}
    return {"data": [data[job] for job in sorted(data)], "layout": axes}


def _lanes(
    machine: Sequence[int], start: Sequence[float], finish: Sequence[float]
) -> tuple[list[int], dict[int, int]]:
    """Return the lane of each task, and the first lane of each machine to be labelled."""
    on, begin_s, end_s = np.array(machine, np.int32), np.array(start), np.array(finish)
    order = np.lexsort((end_s, begin_s, on))
    lane = np.empty(len(order), np.int32)
    lane[order], lane_machine = lanes(on[order], begin_s[order], end_s[order])
    numbers, first = np.unique(lane_machine, return_index=True)
    step = -(-len(numbers) // 12)
    labelled = zip(numbers[::step].tolist(), first[::step].tolist(), strict=True)
    return lane.tolist(), dict(labelled)
