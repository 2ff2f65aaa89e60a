"""Transform of gangs into elastic jobs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.base.parameters import Factor, NotNegative, Share, checked
from sim.base.random import stream
from sim.transforms.parts import rebuild
from sim.workload.elastic import speedup
from sim.workload.schema import RECONFIGURE, SPEEDUP, WIDTH_MIN
from sim.workload.tables import with_column
from sim.workload.workload import Workload


@checked
def stretch(
    workload: Workload,
    share: Share = 1.0,
    seed: int = 0,
    low: Share = 0.5,
    high: Factor = 2.0,
    serial: Share = 0.05,
    reconfigure_s: NotNegative = 0.0,
) -> Workload:
    """Make a share of the gangs, and of the jobs of one task, elastic.

    A job of n tasks has the widths from n × `low` to n × `high`, at least 1 and n, and runs at
    width n for as long as before. Its speed-up at a width w is Amdahl's: 1 / (`serial` + (1 -
    `serial`) / w), at each power of two, n, and the two ends, and linear between them. Jobs that
    are no gang of all of their tasks, in one stage of equal durations, stay as they are. The jobs
    of a smaller share are among those of a larger one.

    Parameters
    ----------
    workload : Workload
        Any workload.
    share : float
        Share of those jobs, 0 to 1.
    seed : int
        Seed of the choice of jobs.
    low, high : float
        Least and greatest width over the number of tasks.
    serial : float
        Part of a job that more places do not make shorter.
    reconfigure_s : float
        Time that a job stands still after its width changed, s.
    """
    c = workload.columns
    first = c.job_stage0[:-1]
    n = c.job_n_tasks
    together = (c.job_min_tasks == n) | (n == 1)
    is_alike = (np.diff(c.job_stage0) == 1) & (c.stage_max_s[first] == c.stage_min_s[first])
    drawn = stream(seed, "transforms", "stretch").random(workload.n_jobs) < share
    rows = np.flatnonzero(together & is_alike & drawn & (c.job_width_min == 0))
    n_tasks, duration_s = np.diff(c.stage_task0), c.stage_max_s.copy()
    width_min, gang = c.job_width_min.copy(), c.job_min_tasks.copy()
    curves = [c.speedups[k] for k in c.job_speedup.tolist()]
    pause_s = np.where(c.job_width_min > 0, c.job_reconfigure, reconfigure_s)
    for j in rows.tolist():
        size, g = int(n[j]), int(first[j])
        narrowest, widest = max(1, int(np.ceil(size * low))), max(size, int(size * high))
        curves[j] = amdahl(narrowest, size, widest, serial)
        at_size, at_widest = speedup(curves[j], np.array([size, widest], np.float64)).tolist()
        duration_s[g] *= at_size / at_widest
        n_tasks[g], width_min[j], gang[j] = widest, narrowest, narrowest
    jobs = with_column(workload.jobs, "min_tasks", gang)
    jobs = with_column(jobs, WIDTH_MIN.name, width_min)
    jobs = with_column(jobs, RECONFIGURE.name, pause_s)
    jobs = with_column(jobs, SPEEDUP.name, pa.array(curves, pa.string()).dictionary_encode())
    note = {"stretch": len(rows), "share": share}
    stages = with_column(workload.stages, "n_tasks", n_tasks.astype(np.int32))
    tables = {"jobs": jobs, "stages": stages}
    if workload.runs.one_a_stage:
        return rebuild(workload, note, durations=duration_s, keep_recorded=False, **tables)
    tables["tasks"] = _tasks(workload, n_tasks, duration_s, first[rows])
    return rebuild(workload, note, keep_recorded=False, **tables)


def amdahl(low: int, size: int, high: int, serial: float) -> str:
    """Return a curve by Amdahl's law: powers of two, the size, and both ends."""
    powers = {2**k for k in range(high.bit_length()) if low < 2**k < high}
    return " ".join(
        f"{w}:{1.0 / (serial + (1.0 - serial) / w):.6g}" for w in sorted({low, size, high} | powers)
    )


def _tasks(
    workload: Workload, n_tasks: np.ndarray, duration_s: F8, changed: np.ndarray
) -> pa.Table:
    """Return the table of tasks, with those of the `changed` stages anew."""
    before = np.split(workload.columns.task_duration, workload.columns.stage_task0[1:-1])
    for g in changed.tolist():
        before[g] = np.full(int(n_tasks[g]), duration_s[g])
    stage = np.repeat(np.arange(len(n_tasks), dtype=np.int32), n_tasks)
    return pa.table({"stage": stage, "duration_s": np.concatenate(before)})
