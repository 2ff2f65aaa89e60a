"""Waits, completion times, deadlines and stops of groups: by queue, user or any column of jobs.

A metric of a group is named ``<metric>.<key>.<group>``: ``wait_p95_s.queue.short``,
``slowdown_p95.width.8-15``, ``wait_mean_s.priority.3``. Numbers of many values are groups by powers
of two, which are the same for every seed: ``run_limit_s.1024-2048`` has those from 1,024 on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8, Mask
from sim.base.errors import InputError, unknown
from sim.engine.record import Run
from sim.metrics import jobs, stops
from sim.metrics.common import Metric, done_mask, mean
from sim.workload.width import job_widths, width_classes
from sim.workload.workload import Workload

WIDTH = "width"
"""Key of the groups by width (`sim.workload.width`)."""
NAMES = (
    *("jct_mean_s", "jct_p95_s", "deadlines_missed"),
    *("slowdown_mean", "slowdown_p95"),
    *("wait_mean_s", "wait_p50_s", "wait_p90_s", "wait_p95_s", "wait_p99_s"),
    *stops.OF_JOBS,
)
"""Metrics that groups have."""
MAX_GROUPS, OTHERS = 20, "(others)"
"""Largest number of groups by one key; the smaller ones are one group of this name."""
NONE = "(none)"
"""Group of the jobs without a value."""
BELOW_1 = "below 1"
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(-\d+)?", re.ASCII)
_DIGITS = re.compile(r"(\d+)", re.ASCII)
JOB_ID = "job_id"
"""Column by which no jobs are grouped."""


def split(name: str) -> tuple[str, str, str] | None:
    """Split a metric's name into metric, key and group; None for a metric of all jobs."""
    metric, _, rest = name.partition(".")
    key, _, group = rest.partition(".")
    return (metric, key, group) if metric in NAMES and key and group else None


def group_order(group: str) -> tuple[Any, ...]:
    """Return the sort key of a group's name: numbers and ranges ascending, then names.

    Numbers within names count as such (``u2`` before ``u10``). Jobs without a value, and the group
    of the small ones, come last.

    >>> sorted(["u10", "16-31", "u2", "(none)", "2-3", "below 1", "-1"], key=group_order)
    ['-1', 'below 1', '2-3', '16-31', 'u2', 'u10', '(none)']
    """
    if group in (OTHERS, NONE):
        return (2, group)
    number = _NUMBER.fullmatch(group)
    if number:
        return (0, float(number[1]), bool(number[2]), group)
    if group == BELOW_1:
        return (0, 0.0, True, group)
    parts = [(int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(group)]
    return (1, parts, group)


def metric_order(name: str) -> tuple[Any, ...]:
    """Return the sort key of a metric's name: groups of one key in `group_order`."""
    grouped = split(name)
    return (grouped[0], grouped[1], group_order(grouped[2])) if grouped else (name,)


def metric(name: str, key: str, group: str) -> Metric:
    """Define a metric of a group."""
    whole = (jobs.METRICS | stops.METRICS)[name]
    return replace(whole, meaning=f"{whole.meaning}; jobs of {key} {group} alone")


def compute_by(run: Run, bounds: Mapping[str, F8], keys: Sequence[str]) -> dict[str, float]:
    """Compute `NAMES` for each group of jobs, by each of the keys.

    Parameters
    ----------
    run : Run
        The run.
    bounds : mapping of str to (J,) float64
        ``cp_len``, s.
    keys : sequence of str
        Columns of the workload's jobs (`keys_of`), or ``width``.

    Raises
    ------
    InputError
        As `check_keys`.
    """
    done, stopped = done_mask(run), stops.by_job(run)
    computed: dict[str, float] = {}
    for key in keys:
        for group, is_member in members(run.workload, key):
            values = jobs.completion_of(run, done, is_member)
            values |= jobs.waits(run, bounds["cp_len"], done & is_member)
            values |= stops.means(stopped, is_member)
            computed |= {f"{name}.{key}.{group}": value for name, value in values.items()}
    return computed


TABLE = (
    *("submit_s", "eligible_s", "start_s", "finish_s", "failed", "estimate_s"),
    *("slowdown", "gap_lb", "prediction_error", "utility", "worth"),
)
"""Columns of an evaluator's table that have a meaning, and so metrics, of their own."""


def means_by(workload: Workload, table: pa.Table, keys: Sequence[str]) -> dict[str, float]:
    """Compute the mean of each number that a table has of each job, by group; NaN does not count.

    Parameters
    ----------
    workload : Workload
        Workload of J jobs.
    table : pyarrow.Table
        A row a job; of another number of rows there are no groups.
    keys : sequence of str
        As of `compute_by`.
    """
    if table.num_rows != workload.n_jobs:
        return {}
    columns = {}
    for field in table.schema:
        is_flag = pa.types.is_boolean(field.type)
        is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        if field.name not in TABLE and (is_flag or is_number):
            column = table[field.name].cast(pa.int8()) if is_flag else table[field.name]
            columns[field.name] = column.cast(pa.float64()).to_numpy()
    return {
        f"{name}.{key}.{group}": mean(values[is_member & ~np.isnan(values)])
        for key in keys
        for group, is_member in members(workload, key)
        for name, values in columns.items()
    }


def keys_of(workload: Workload) -> list[str]:
    """List the keys by which the jobs of a workload can be grouped."""
    table = workload.jobs
    types = {name: table.schema.field(name).type for name in table.column_names if name != JOB_ID}
    return [*(name for name, type_ in types.items() if not pa.types.is_nested(type_)), WIDTH]


def check_keys(workload: Workload, keys: Sequence[str]) -> None:
    """Check that the jobs of a workload can be grouped by each of the keys.

    Raises
    ------
    InputError
        If jobs have no such column.
    """
    for key in keys:
        if key not in keys_of(workload):
            raise InputError(
                unknown("key of jobs, in metrics.by,", key, keys_of(workload)), rule="unknown key"
            )


def members(workload: Workload, key: str) -> Iterator[tuple[str, Mask]]:
    """Yield the groups of a key with a mask of their jobs, (J,): numbers ascending, else by name.

    Parameters
    ----------
    workload : Workload
        Workload of J jobs.
    key : str
        One of `keys_of`.
    """
    check_keys(workload, [key])
    if key == WIDTH:
        code, names = width_classes(job_widths(workload))
    else:
        code, names = _column_groups(workload.jobs[key].combine_chunks())
    n_jobs = np.bincount(code, minlength=len(names))
    by_size = np.argsort(-n_jobs, kind="stable")
    shown = [k for k in by_size[:MAX_GROUPS].tolist() if n_jobs[k]]
    for k in sorted(shown):
        yield names[k], code == k
    rest: Mask = ~np.isin(code, shown)
    if rest.any():
        yield OTHERS, rest


def _column_groups(column: pa.Array) -> tuple[I8, list[str]]:
    """Return the group of each value of a column, (J,), and the groups' names, in order."""
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if is_number and len(column.unique()) > MAX_GROUPS:
        return _powers_of_two(column.to_numpy(zero_copy_only=False).astype(np.float64))
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    has_value = np.array([not (value in (None, "") or value != value) for value in values], bool)
    order = sorted(np.flatnonzero(has_value).tolist(), key=lambda k: group_order(_name(values[k])))
    number = np.full(len(values) + 1, len(order), np.int64)  # the last is of null
    number[order] = np.arange(len(order))
    indices = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    return number[indices.astype(np.int64)], [*(_name(values[k]) for k in order), NONE]


def _name(value: str | float | bool) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _powers_of_two(values: F8) -> tuple[I8, list[str]]:
    """Group numbers by the power of two below them; those below 1 and none are groups, too."""
    exponent = np.zeros(len(values), np.int64)
    is_large = values >= 1  # not of NaN
    exponent[is_large] = np.frexp(values[is_large])[1]
    code = np.where(np.isnan(values), exponent.max(initial=0) + 1, exponent)
    ranges = [f"{2 ** (k - 1)}-{2**k}" for k in range(1, int(exponent.max(initial=0)) + 1)]
    return code, [BELOW_1, *ranges, NONE]
