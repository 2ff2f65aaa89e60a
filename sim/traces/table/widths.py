"""Elastic jobs of a table: least and greatest widths, speed-ups, times to reconfigure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.workload.elastic import speedup
from sim.workload.schema import RECONFIGURE, SPEEDUP, WIDTH_MIN
from sim.workload.tables import with_column
from sim.workload.workload import Workload


def with_widths(workload: Workload, columns: Mapping[str, Any]) -> Workload:
    """Return the workload with its elastic jobs; the same if no row has a ``width_min``.

    The run time of a row is that at its number of tasks, from which that at its greatest width
    follows by its speed-ups. The log's account stays that of what ran.
    """
    if "width_min" not in columns:
        return workload
    c = workload.columns
    low = np.nan_to_num(columns["width_min"]).astype(np.int32)
    size, first = c.job_n_tasks, c.job_stage0[:-1]
    widest = np.nan_to_num(columns.get("width_max", size)).astype(np.int64)
    widest = np.where(widest > 0, widest, size)
    texts = columns.get("speedup", pa.nulls(len(low), pa.string()))
    curves = pc.fill_null(texts.cast(pa.string()), "").to_pylist()
    n_tasks, duration_s = np.diff(c.stage_task0), c.stage_max_s.copy()
    for j in np.flatnonzero(low).tolist():
        ends = speedup(curves[j], np.array([size[j], widest[j]], np.float64)).tolist()
        duration_s[first[j]] *= ends[0] / ends[1]
        n_tasks[first[j]] = widest[j]
    pause_s = np.nan_to_num(columns.get("reconfigure_s", np.zeros(len(low))))
    jobs = with_column(workload.jobs, WIDTH_MIN.name, low)
    jobs = with_column(jobs, "min_tasks", np.where(low > 0, low, c.job_min_tasks))
    jobs = with_column(jobs, SPEEDUP.name, pa.array(curves).dictionary_encode())
    jobs = with_column(jobs, RECONFIGURE.name, pause_s)
    stages = with_column(workload.stages, "n_tasks", n_tasks.astype(np.int32))
    return Workload.from_tables(
        jobs=jobs,
        stages=stages.append_column("duration_s", pa.array(duration_s)),
        job_edges=workload.job_edges,
        meta=workload.meta,
    )
