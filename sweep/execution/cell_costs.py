"""Estimate of the time that a grid takes, from the measured CPU of every bundled policy.

``benchmarks/policies`` writes `FILE`: the CPU of a cell of ``srpt`` on a few workloads, that of
every policy as a multiple of it, and the size of each synthesized trace. A cell is estimated as
the time of ``srpt`` on the measured workload nearest in size, in proportion to the rows of stages
and tasks, times the policy's multiple: that on the same trace if measured, else the median.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from sweep.execution import notes
from sweep.execution.plan import PlannedCell, PreparedGrid

FILE = Path(__file__).with_name("cell_costs.json")
REFERENCE = "srpt"
DEFAULT_MULTIPLE = 5.0
"""Multiple of a policy that was not measured, such as a user's own."""
BEYOND_S = 0.003
"""Time of a cell beyond what it computes, s."""
SIZE_KEYS = ("jobs", "scale")
"""Keys of a trace's configuration to which its size is in proportion."""
UNITS = ((86_400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


@cache
def measured() -> Mapping[str, Any]:
    """Return the content of `FILE`."""
    content: Mapping[str, Any] = json.loads(FILE.read_text())
    return content


def estimate(prepared: PreparedGrid) -> str:
    """Return a sentence on the time that the cells that are not cached may take."""
    seconds: list[float] = []
    unsized = 0
    unmeasured = Counter[str]()
    costs: dict[tuple[int, str], float] = {}
    sizes = _known_sizes(prepared)
    for row in prepared.missing_rows():
        planned = prepared.planned[int(row)]
        policy = planned.cell.policy["name"]
        key = id(planned.cell.policy), planned.workload
        if key not in costs:
            costs[key] = _cell_s(planned, sizes)
        if math.isnan(costs[key]):
            unsized += 1
            continue
        seconds.append(costs[key])
        unmeasured[policy] += not measured()["multiples"].get(policy)
    if not seconds:
        return "no estimate of the time: sizes of workloads are known once they have been made"
    cores = _n_cores(prepared)
    time_s = max(sum(seconds) / cores, max(seconds))
    text = (
        f"about {duration(time_s)} on {notes.count(cores, 'cores')}: "
        f"{notes.count(len(seconds), 'cells')} not cached"
    )
    remarks = ["an estimate, from benchmarks on one machine, without start and compiling"]
    if names := [name for name, n in unmeasured.items() if n]:
        remarks.append(f"{', '.join(names)} taken as {DEFAULT_MULTIPLE:g} times {REFERENCE}")
    if unsized:
        remarks.append(f"without {notes.count(unsized, 'cells')} of unknown size")
    return f"{text} ({'; '.join(remarks)})"


def duration(seconds: float) -> str:
    """Write a time in its largest unit, rounded to a whole number: ``4 min``."""
    for unit_s, name in UNITS:
        if seconds >= 1.5 * unit_s:
            return f"{seconds / unit_s:.0f} {name}"
    return "1 s"


def reference_s(n_rows: float) -> float:
    """Estimate the CPU of a cell of ``srpt`` on a workload of so many stages and tasks, s."""
    sizes = [(_rows(size), size["seconds"]) for size in measured()["workloads"].values()]
    nearest, seconds = min(sizes, key=lambda item: abs(math.log(item[0] / max(n_rows, 1.0))))
    return float(seconds * n_rows / nearest)


def multiple(policy: str, trace: str) -> float:
    """Return how much longer than ``srpt`` a policy takes on a trace."""
    known: Mapping[str, float] = measured()["multiples"].get(policy) or {"": DEFAULT_MULTIPLE}
    return known.get(trace, median(known.values()))


def _cell_s(planned: PlannedCell, sizes: Mapping[str, float]) -> float:
    """Estimate the time of a cell, s; NaN if the size of its workload is unknown."""
    trace, config = planned.cell.labels["trace"], planned.cell.trace
    n_rows = sizes.get(planned.workload, sizes.get(trace, math.nan))
    if math.isnan(n_rows) and (size := measured()["traces"].get(trace)):
        n_rows = _rows(size)
        for key in SIZE_KEYS:
            if isinstance(config.get(key), int | float) and size.get(key):
                n_rows *= config[key] / size[key]
    return BEYOND_S + reference_s(n_rows) * multiple(planned.cell.policy["name"], trace)


def _known_sizes(prepared: PreparedGrid) -> dict[str, float]:
    """Return the rows of workloads that were made before, by name, and their mean by trace."""
    sizes: dict[str, float] = {}
    by_trace: dict[str, list[float]] = {}
    for planned in {cell.workload: cell for cell in prepared.representatives}.values():
        description = prepared.inputs.known(planned.workload)
        if description is not None:
            sizes[planned.workload] = _rows(description)
            by_trace.setdefault(planned.cell.labels["trace"], []).append(_rows(description))
    return {name: sum(rows) / len(rows) for name, rows in by_trace.items()} | sizes


def _rows(size: Mapping[str, float]) -> float:
    return float(size["n_stages"] + size["n_tasks"])


def _n_cores(prepared: PreparedGrid) -> int:
    """Return the number of cells that run at once; of an unknown cluster, one."""
    launcher = prepared.grid.request.settings.launcher
    if launcher["kind"] == "local":
        n_cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        n_cpus = n_cpus or os.cpu_count() or 1
        return min(launcher.get("workers") or n_cpus, n_cpus)
    return launcher.get("workers") or 1
