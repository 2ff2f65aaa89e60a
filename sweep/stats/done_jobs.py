"""Metrics of the jobs done, over the jobs that are done under every policy.

A job that fails is in no mean of completion times. Where policies fail different jobs, their means
are of different jobs, and a policy could win by failing the long ones. There each comparison is
over the jobs that all of them finish; `sim.metrics` defines the metrics themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8, Mask
from sim.base.columns import to_numpy
from sim.metrics.common import mean, percentiles
from sim.metrics.groups import split
from sim.metrics.rigid import TAU_S
from sweep.stats.arrange import ArrangedCells, arrange, by_capacity
from sweep.stats.cell_columns import JOBS_SHARE, NOT_METRICS, Rows, cell_key

FAILED = "jobs_failed"
KEY = "key"
MIN_DONE = 0.5
"""Share of the jobs that a policy must finish: one that fails more does not narrow the others'."""
MAX_TABLES = 4_000
"""Largest number of cells whose jobs are read: some seconds."""

JobsOf = Callable[[str], pa.Table | None]
"""Function that returns the jobs of a cell by its key; None if they are gone."""

_NAME = re.compile(
    r"(?:(jct|wait)_(mean|p\d+)_s|(slowdown|bounded_slowdown|gap_lb|prediction_error)_(mean|p\d+)"
    r"|makespan_s)"
)


def is_of_done_jobs(metric: str) -> bool:
    """Tell whether a metric is over the jobs done, so that jobs that fail change what it is of."""
    grouped = split(metric)
    return _NAME.fullmatch(grouped[0] if grouped else metric) is not None


def over(metric: str, jobs: pa.Table, chosen: Mask) -> float:
    """Compute a metric over chosen jobs, all of them done.

    NaN if no job is chosen or has a value, or if the table of jobs has not what the metric needs.
    """
    match = _NAME.fullmatch(metric)
    if match is None:
        return np.nan
    if metric == "makespan_s":
        finish = _column(jobs, "finish_s")[chosen]
        return float(finish.max() - _column(jobs, "submit_s").min()) if len(finish) else np.nan
    quantity, statistic = match[1] or match[3], match[2] or match[4]
    values = _quantity(quantity, jobs)[chosen]
    values = values[~np.isnan(values)]
    return mean(values) if statistic == "mean" else percentiles(values, int(statistic[1:]))[0]


def _quantity(name: str, jobs: pa.Table) -> F8:
    if name in ("slowdown", "gap_lb", "prediction_error"):
        if name not in jobs.column_names:
            return np.full(jobs.num_rows, np.nan)
        return _column(jobs, name)
    submit, start, finish = (_column(jobs, f"{event}_s") for event in ("submit", "start", "finish"))
    if name == "bounded_slowdown":
        slowdown: F8 = np.maximum(1.0, (finish - submit) / np.maximum(finish - start, TAU_S))
        return slowdown
    return finish - submit if name == "jct" else start - submit


def _column(jobs: pa.Table, name: str) -> F8:
    values: F8 = to_numpy(jobs[name].combine_chunks()).astype(np.float64)
    return values


@dataclass(frozen=True)
class _Member:
    row: int
    jobs: pa.Table
    done: Mask


def table(
    cells: pa.Table, swept: Sequence[str], baseline: str | None, jobs_of: JobsOf
) -> pa.Table | None:
    """Compute the metrics over the jobs done under every policy, where any of them fails one.

    Returns
    -------
    pa.Table or None
        A row a cell: ``key``, ``jobs_share`` (share of the jobs that are done under every policy),
        and its metrics over these; null where they can't be computed. Oracles, and policies that
        fail half of the jobs or more, do not narrow the others'. None where no job failed, or
        where the jobs of more than `MAX_TABLES` cells would have to be read.
    """
    arranged = arrange(cells, swept, baseline)
    groups = list(_failing(arranged))
    metrics = [name for name in arranged.metrics if is_of_done_jobs(name) and not split(name)]
    if not groups or not metrics or sum(map(len, groups)) > MAX_TABLES:
        return None
    computed = [row for rows in groups for row in _group(arranged, rows, metrics, jobs_of)]
    columns = ((name, pa.float64()) for name in (JOBS_SHARE, *metrics))
    schema = pa.schema([(KEY, pa.string()), *columns])
    return pa.Table.from_pylist(computed, schema) if computed else None


def keys(cells: pa.Table, swept: Sequence[str], baseline: str | None) -> set[str]:
    """Return the keys of the cells that `table` may have."""
    arranged = arrange(cells, swept, baseline)
    return {arranged.key(row) for rows in _failing(arranged) for row in rows.tolist()}


def _failing(arranged: ArrangedCells) -> Iterator[Rows]:
    """Yield the rows of several policies on one trace, setting, capacity and seed, if jobs fail."""
    if FAILED not in arranged.metrics:
        return
    failed = arranged.values(FAILED)
    for block_rows in arranged.blocks.values():
        for group in by_capacity(arranged, block_rows):
            if not (failed[group.rows] > 0).any():
                continue
            order = np.argsort(group.seed_index, kind="stable")
            starts = np.flatnonzero(np.diff(group.seed_index[order])) + 1
            for rows in np.split(group.rows[order], starts):
                done = rows[~arranged.failed[rows]]
                if len(done) > 1 and (failed[done] > 0).any():
                    yield done


def _group(
    arranged: ArrangedCells, rows: Rows, metrics: Sequence[str], jobs_of: JobsOf
) -> Iterator[dict[str, object]]:
    columns = list(arranged.columns.values())
    members = []
    for row in rows.tolist():
        jobs = jobs_of(arranged.key(row))
        if jobs is None or not {"submit_s", "start_s", "finish_s", "failed"} <= set(
            jobs.column_names
        ):
            return
        done = np.isfinite(_column(jobs, "finish_s")) & ~to_numpy(jobs["failed"].combine_chunks())
        members.append(_Member(row, jobs, done))
    if len({len(member.done) for member in members}) > 1:  # of different workloads
        return
    runnable = [m for m in members if not columns[arranged.column_index[m.row]].is_oracle]
    counted = [m.done for m in runnable or members if m.done.mean() > MIN_DONE]
    common = np.logical_and.reduce(counted) if counted else np.zeros(len(members[0].done), bool)
    for member in members:
        has_all = bool((member.done | ~common).all())
        yield {
            KEY: arranged.key(member.row),
            JOBS_SHARE: float(common.mean()),
            **{m: over(m, member.jobs, common) if has_all else np.nan for m in metrics},
        }


def compared(cells: pa.Table, done: pa.Table | None) -> pa.Table:
    """Return cells with the metrics of `table` in the place of their own, and `JOBS_SHARE`."""
    if done is None:
        return cells
    keys = pa.array([cell_key(cells, row) for row in range(cells.num_rows)])
    position = pc.index_in(keys, value_set=done[KEY].combine_chunks())
    for name in done.column_names:
        theirs = done[name].combine_chunks().take(position)
        if name == JOBS_SHARE:
            cells = cells.append_column(name, theirs)
        elif name in cells.column_names and name not in NOT_METRICS:
            own = cells[name].combine_chunks().cast(pa.float64())
            values = pc.if_else(position.is_valid(), theirs, own)
            cells = cells.set_column(cells.column_names.index(name), name, values)
    return cells
