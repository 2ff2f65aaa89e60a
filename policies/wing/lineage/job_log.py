"""The log of jobs in memory: a row a run, in order of submission, and the rows that are none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from policies.wing.lineage.files import OUTCOMES, RUN_TIMES, PathLike, as_table, read_table
from sim.base.arrays import F8, I4, Mask
from sim.base.reading import BadRows, OnBadRow, count_rule
from sim.workload.tables import take_rows

REPEATED: Final = "row given twice"
CLASH: Final = "job_id given twice"


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Runs of a log that are no jobs of `Logs`.

    Attributes
    ----------
    rule : str
        Reason why they are left out.
    submit_s, work_s : (R,) float64
        Submission and resources held × time of each, s; NaN where it is not known.
    by_option : bool
        An option of the user's leaves them out.
    """

    rule: str
    submit_s: F8
    work_s: F8
    by_option: bool = False


@dataclass(frozen=True, eq=False)
class JobLog:
    """Jobs of a log; see `policies.wing.lineage.logs.Logs` for the parts."""

    jobs: pa.Table
    report: dict[str, int]
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def read_jobs(path: PathLike, on_bad_row: OnBadRow = "skip", extra: Sequence[str] = ()) -> JobLog:
    """Read the log of jobs from a file, with `extra` numeric columns."""
    bad = BadRows()
    log = _job_log(read_table("jobs", path, on_bad_row, bad, extra))
    nothing = {rule: np.full(n, np.nan) for rule, n in bad.items() if n}
    unknown = tuple(LeftOut(rule, column, column) for rule, column in nothing.items())
    report = log.report | {f"jobs: {rule}": n for rule, n in bad.items() if n}
    return JobLog(log.jobs, report, bad_notes(path, bad), (*log.left_out, *unknown))


def build_jobs(columns: Mapping[str, Any] | pa.Table, extra: Sequence[str] = ()) -> JobLog:
    """Build the log of jobs from columns in memory."""
    return _job_log(as_table("jobs", columns, extra))


def _job_log(table: pa.Table) -> JobLog:
    report: dict[str, int] = {}
    jobs, left_out = _drop_duplicate_ids(table, report)
    return JobLog(_repair_jobs(jobs, report), report, (), tuple(left_out))


def bad_notes(path: PathLike, bad: BadRows) -> tuple[str, ...]:
    """Say how many rows of a file are left out, and what is wrong with the first of each rule."""
    rules = [
        f"{rule} ({n:,}{f'; {bad.examples[rule]}' if rule in bad.examples else ''})"
        for rule, n in bad.items()
        if n
    ]
    if not rules:
        return ()
    n_all = sum(bad.values())
    return (f"{n_all:,} rows of {Path(path).name} are left out: {', '.join(rules)}",)


def codes_of(values: pa.ChunkedArray, known: pa.Array) -> I4:
    """Return the index of each value in `known`; -1 if it is absent."""

    def index_of(names: pa.Array) -> I4:
        index = pc.index_in(names, value_set=known.cast(pa.string()))
        out: I4 = index.fill_null(-1).to_numpy().astype(np.int32)
        return out

    return look_up(values, index_of)


def look_up(values: pa.ChunkedArray, number: Callable[[pa.Array], I4]) -> I4:
    """Return the number of each value of a category; `number` takes its distinct names."""
    coded = values.combine_chunks()
    coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
    numbers = number(coded.dictionary)
    return numbers[coded.indices.to_numpy()] if len(numbers) else np.empty(0, np.int32)


def _drop_duplicate_ids(jobs: pa.Table, report: dict[str, int]) -> tuple[pa.Table, list[LeftOut]]:
    """Return the first row of each job, and the rows left out."""
    ids = jobs["job_id"].combine_chunks().dictionary_encode()
    _, first, code = np.unique(ids.indices.to_numpy(), return_index=True, return_inverse=True)
    if len(first) == len(code):
        return jobs, []
    repeated = np.setdiff1d(np.arange(len(code)), first)
    rows, firsts = (jobs.take(pa.array(r)) for r in (repeated, first[code[repeated]]))
    is_repeated = np.ones(len(repeated), bool)
    for name in jobs.column_names:
        is_repeated &= _are_equal(rows[name], firsts[name])
    left_out = []
    for rule, mask in ((REPEATED, is_repeated), (CLASH, ~is_repeated)):
        count_rule(report, f"jobs: {rule}", mask)
        if mask.any():
            part = rows.filter(pa.array(mask))
            submit_s, start_s, finish_s, requested = (
                part[name].to_numpy() for name in ("submit_s", "start_s", "finish_s", "requested")
            )
            begin_s = np.where(np.isnan(start_s), submit_s, start_s)
            work_s = requested * np.maximum(finish_s - begin_s, 0.0)
            left_out.append(LeftOut(rule, submit_s, work_s))
    return jobs.take(pa.array(np.sort(first))), left_out


def _are_equal(values: pa.ChunkedArray, expected: pa.ChunkedArray) -> Mask:
    """Compare two columns; missing values are equal."""
    if pa.types.is_dictionary(values.type):
        values, expected = values.cast(pa.string()), expected.cast(pa.string())
    equal = pc.fill_null(pc.equal(values, expected), False)
    missing = [pc.is_null(column, nan_is_null=True) for column in (values, expected)]
    out: Mask = pc.or_(equal, pc.and_(*missing)).to_numpy()
    return out


def _repair_jobs(jobs: pa.Table, report: dict[str, int]) -> pa.Table:
    """Sort jobs by submission and repair times that run backward; count the repairs."""
    columns = {name: jobs[name].to_numpy() for name in ("submit_s", "start_s", "finish_s")}
    submit, start, finish = columns.values()
    start = np.where(np.isnan(start), submit, start)
    count_rule(report, "jobs: started before submission", start < submit)
    start = np.maximum(start, submit)
    count_rule(report, "jobs: ended before the start", finish < start)
    finish = np.maximum(finish, start)
    requested, compute = jobs["requested"].to_numpy(), jobs["compute_s"].to_numpy()
    compute = np.where(np.isnan(compute), requested * (finish - start), compute)
    outcome = codes_of(jobs["outcome"], pa.array(OUTCOMES))
    count_rule(report, "jobs: unknown outcome, taken as failed", outcome < 0)
    outcome = np.where(outcome < 0, OUTCOMES.index("failed"), outcome).astype(np.int32)
    run_time = codes_of(jobs["run_time"], pa.array(RUN_TIMES))
    count_rule(report, "jobs: unknown run_time, taken as known", run_time < 0)
    run_time = np.maximum(run_time, 0)
    repaired = {
        "start_s": pa.array(start),
        "finish_s": pa.array(finish),
        "compute_s": pa.array(compute),
        "organisation": _organisation(jobs),
        "outcome": pa.DictionaryArray.from_arrays(pa.array(outcome), pa.array(OUTCOMES)),
        "run_time": pa.DictionaryArray.from_arrays(pa.array(run_time), pa.array(RUN_TIMES)),
    }
    table = pa.table({n: repaired.get(n, jobs[n]) for n in jobs.column_names})
    return take_rows(table, np.argsort(submit, kind="stable"))


def _organisation(jobs: pa.Table) -> pa.Array:
    organisation = jobs["organisation"].cast(pa.string())
    root = pc.list_element(pc.split_pattern(jobs["queue"].cast(pa.string()), "/", max_splits=1), 0)
    filled = pc.if_else(pc.equal(organisation, ""), root, organisation)
    return filled.combine_chunks().dictionary_encode()
