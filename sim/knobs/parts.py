"""Parts that the knobs share: columns replaced, workloads rebuilt, what was done noted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import F8
from sim.base.errors import InputError

if TYPE_CHECKING:
    from sim.workload.workload import Workload


def replaced(table: pa.Table, column: str, numbers: NDArray[np.generic] | pa.Array) -> pa.Table:
    """Return `table` with other numbers in one of its columns."""
    at = table.column_names.index(column)
    return table.set_column(at, column, pa.array(numbers))


def rebuilt(
    workload: Workload,
    stages: pa.Table,
    knob: Mapping[str, object],
    tasks: pa.Table | None = None,
    duration_s: F8 | None = None,
    jobs: pa.Table | None = None,
) -> Workload:
    """Build the workload again with other jobs, stages, tasks or durations, and note the knob."""
    from sim.workload.workload import Workload

    uniform = workload.stage_duration_s if duration_s is None else duration_s
    if uniform is None and tasks is None:
        tasks = workload.tasks
    return Workload.from_tables(
        jobs=workload.jobs if jobs is None else jobs,
        stages=with_durations(stages, uniform),
        tasks=tasks,
        stage_edges=workload.stage_edges,
        job_edges=workload.job_edges,
        downloads=workload.downloads,
        **beside(workload),
        meta=meta_with(workload, knob),
        validate=False,
    )


def beside(workload: Workload) -> dict[str, pa.Table]:
    """Return the optional tables that stay as they are when jobs or tasks change."""
    if workload.failures.num_rows:
        raise InputError("failures are drawn of tasks as they are; draw them after all else")
    return {"history": workload.history, "training": workload.training}


def meta_with(workload: Workload, knob: Mapping[str, object]) -> dict[str, object]:
    """Return the workload's meta with one more knob noted."""
    return {**workload.meta, "knobs": [*workload.meta.get("knobs", []), dict(knob)]}


def check_positive(what: str, value: Any) -> None:
    """Refuse what is no positive, finite number."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not (math.isfinite(value) and value > 0):
        raise InputError(f"{what} must be positive and finite, not {value!r}", rule="range")


def with_durations(stages: pa.Table, duration_s: F8 | None) -> pa.Table:
    """Return stages with a column of the duration that all their tasks have, if there is one."""
    if duration_s is None:
        return stages
    return stages.append_column("duration_s", pa.array(duration_s))
