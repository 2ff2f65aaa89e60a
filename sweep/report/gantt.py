"""The schedule of one small cell, task by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.errors import InputError
from sim.metrics.usage import MAX_TASKS_DRAWN
from sweep.report.job_samples import read_metadata
from sweep.report.plots import layout
from sweep.stats.cell_columns import cell_key, factorize
from sweep.store.cache import Cache

N_COLOURS = 10
MAX_TRIED = 10
FREE = 1_000
"""Added to a colour's number: these traces belong to no policy's box on the page."""


@dataclass(frozen=True)
class Gantt:
    """A cell: its row, its labels, its tasks (see `sim.metrics.usage.tasks_over_time`)."""

    row: int
    title: str
    tasks: Mapping[str, Sequence[Any]]


def choose(cells: pa.Table, cache: Cache, row: int | None = None) -> Gantt | None:
    """Take a cell to draw: the one asked for, else the first of the traces' first that is small."""
    if row is None:
        first = np.unique(factorize(cells["trace"])[1], return_index=True)[1]
        drawn = (_of(cells, cache, at) for at in np.sort(first).tolist()[:MAX_TRIED])
        return next(filter(None, drawn), None)
    if not 0 <= row < cells.num_rows:
        raise InputError(f"there is no cell {row}; valid: 0 to {cells.num_rows - 1}")
    gantt = _of(cells, cache, row)
    if gantt is None:
        failed = cells["status"][row].as_py() == "failed"
        raise InputError(
            f"cell {row} {'failed' if failed else 'keeps no tasks'}; a simulation of "
            f"{MAX_TASKS_DRAWN} tasks or fewer can be drawn"
        )
    return gantt


def _of(cells: pa.Table, cache: Cache, row: int) -> Gantt | None:
    """Read what a cell keeps of its tasks; None if it keeps none."""
    cell = cells.slice(row, 1).to_pylist()[0]
    kept = None if cell["status"] == "failed" else cache.get(cell_key(cells, row))
    tasks = None if kept is None or kept.jobs is None else read_metadata(kept.jobs, "tasks")
    if tasks is None:
        return None
    labels = f"{cell['policy']}, {cell['trace']}, capacity {cell['capacity']:g}"
    return Gantt(row, f"{labels}, seed {cell['seed']}", tasks)


def figure(gantt: Gantt) -> dict[str, Any]:
    """Draw it: time to the right, machines below each other, tasks of one job in one colour."""
    tasks = gantt.tasks
    lanes, machines = _lanes(tasks["machine"], tasks["start_s"], tasks["finish_s"])
    data: dict[int, dict[str, Any]] = {}
    for at, job in enumerate(tasks["job"]):
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
        start, finish = tasks["start_s"][at], tasks["finish_s"][at]
        trace["base"].append(start)
        trace["x"].append(round(finish - start, 6))
        trace["y"].append(lanes[at])
        stage, machine = tasks["stage"][at], tasks["machine"][at]
        text = f"job {job}, stage {stage}, machine {machine}: {start:g} to {finish:g} s"
        trace["text"].append(text)
    y_axis = {
        "title": {"text": "machine"},
        "range": [max(lanes) + 0.6, -0.6],
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
    """Give each task a line of its own among those that run beside it on its machine."""
    order = sorted(range(len(start)), key=lambda at: (machine[at], start[at], finish[at], at))
    lanes, first, free, base = [0] * len(start), dict[int, int](), list[float](), 0
    for at in order:
        if machine[at] not in first:
            base += len(free)
            first[machine[at]], free = base, []
        lane = next((i for i, until in enumerate(free) if until <= start[at]), len(free))
        free[lane : lane + 1] = [finish[at]]
        lanes[at] = base + lane
    step = -(-len(first) // 12)
    return lanes, dict(list(first.items())[::step])
