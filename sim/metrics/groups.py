"""Waits and slowdowns of groups of jobs: by queue, user, width or any category of jobs.

A metric of a group is named ``<metric>.<key>.<group>``: ``wait_p95_s.queue.short``,
``slowdown_p95.width.8-15``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8, Mask
from sim.base.errors import InputError, unknown
from sim.engine.record import Run
from sim.metrics import jobs
from sim.metrics.common import Metric, done_mask
from sim.workload.workload import Workload

WIDTH = "width"
"""Key of the groups by width: most slots, or most of the first resource, of any stage."""
NAMES = (
    *("slowdown_mean", "slowdown_p95"),
    *("wait_mean_s", "wait_p50_s", "wait_p95_s", "wait_p99_s"),
)
"""Metrics that groups have."""
MAX_GROUPS, OTHERS = 20, "(others)"
"""Largest number of groups by one key; the smaller ones are one group of this name."""


def split(name: str) -> tuple[str, str, str] | None:
    """Split a metric's name into metric, key and group; None for a metric of all jobs."""
    metric, _, rest = name.partition(".")
    key, _, group = rest.partition(".")
    return (metric, key, group) if metric in NAMES and key and group else None


def metric(name: str, key: str, group: str) -> Metric:
    """Define a metric of a group."""
    whole = jobs.METRICS[name]
    return Metric(whole.unit, whole.better, f"{whole.meaning}; jobs of {key} {group} alone")


def compute_by(run: Run, bounds: Mapping[str, F8], keys: Sequence[str]) -> dict[str, float]:
    """Compute `NAMES` for each group of jobs, by each of the keys.

    Parameters
    ----------
    run : Run
        The run.
    bounds : mapping of str to (J,) float64
        ``cp_len``, s.
    keys : sequence of str
        Categories of the workload's jobs (`keys_of`), or ``width``.

    Raises
    ------
    InputError
        If jobs have no such category.
    """
    done = done_mask(run)
    slots = run.cluster.unit
    return {
        f"{name}.{key}.{group}": value
        for key in keys
        for group, is_member in members(run.workload, key, in_slots=slots)
        for name, value in jobs.waits(run, bounds["cp_len"], done & is_member).items()
    }


def keys_of(workload: Workload) -> list[str]:
    """List the keys by which the jobs of a workload can be grouped."""
    table = workload.jobs
    kinds = {name: table.schema.field(name).type for name in table.column_names}
    names = [name for name, kind in kinds.items() if pa.types.is_dictionary(kind)]
    return [*names, WIDTH]


def members(workload: Workload, key: str, *, in_slots: bool) -> Iterator[tuple[str, Mask]]:
    """Yield the groups of a key with a mask of their jobs, (J,): widths ascending, others by name.

    Parameters
    ----------
    workload : Workload
        Workload of J jobs.
    key : str
        One of `keys_of`.
    in_slots : bool
        Width counts tasks; otherwise the first resource that they demand.
    """
    if key not in keys_of(workload):
        raise InputError(
            unknown("key of jobs, in metrics.by,", key, keys_of(workload)), rule="unknown key"
        )
    if key == WIDTH:
        code, names = _widths(workload, in_slots=in_slots)
    else:
        column = workload.jobs[key].combine_chunks()
        code = column.indices.to_numpy().astype(np.int64)
        names = [name or "(none)" for name in column.dictionary.to_pylist()]
    n_jobs = np.bincount(code, minlength=len(names))
    by_size = np.argsort(-n_jobs, kind="stable")
    shown = [k for k in by_size[:MAX_GROUPS].tolist() if n_jobs[k]]
    for k in sorted(shown, key=lambda k: k if key == WIDTH else names[k]):
        yield names[k], code == k
    rest: Mask = ~np.isin(code, shown)
    if rest.any():
        yield OTHERS, rest


def _widths(workload: Workload, *, in_slots: bool) -> tuple[I8, list[str]]:
    """Return each job's class of width, (J,), and the names of the classes: 1, 2-3, 4-7, ..."""
    columns = workload.columns
    amount = np.diff(columns.stage_task0).astype(np.float64)
    if not in_slots and len(columns.resources):
        amount *= columns.stage_demand_f[:, 0]
    width = np.maximum.reduceat(amount, columns.job_stage0[:-1])
    code = np.zeros(workload.n_jobs, np.int64)
    edges = []
    edge = 2.0
    while edge <= width.max(initial=0.0):
        code += width >= edge
        edges.append(int(edge))
        edge *= 2
    names = ["1", *(f"{low}-{2 * low - 1}" for low in edges)]
    return code, names
