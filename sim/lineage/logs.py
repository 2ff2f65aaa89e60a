"""The two logs in memory, as columns: jobs, identified by row number, and operations on files.

Files are independent of each other (§4.2). So a log of operations that does not fit into memory is
processed in parts: each part is `split` into buckets by file, the buckets of one number are put
together (`concatenate`) and joined separately, and the joins are merged (`dependencies.merge`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sim.base.arrays import F8, I1, I4, Mask
from sim.base.extras import importing
from sim.base.reading import BadRows, OnBadRow
from sim.lineage.files import OPERATION_NAMES, OUTCOMES, PathLike, as_table, read_table
from sim.workload.tables import plain

IDLE_RULE: Final = "jobs: in no operation"
"""Report key for jobs that no operation names."""


@dataclass(frozen=True, eq=False)
class Logs:
    """Jobs and their operations on files.

    Attributes
    ----------
    jobs : pyarrow.Table
        Columns of `sim.lineage.files.JOBS`, by time of submission; the row is the job's number.
    time_s : (O,) float64
        Time of each operation, s; in the order of the log.
    job : (O,) int32
        Row of the job; -1 for a download.
    operation : (O,) int8
        ``READ``, ``WRITE`` or ``DOWNLOAD`` of `sim.lineage.files`.
    file : (O,) int32
        Index of the file in `files`.
    n : (O,) int32
        Number of downloads.
    files : pyarrow.StringArray
        Names of files.
    report : dict of str to int
        Counts of rows that were dropped or repaired, by rule.
    """

    jobs: pa.Table
    time_s: F8
    job: I4
    operation: I1
    file: I4
    n: I4
    files: pa.Array
    report: dict[str, int] = field(default_factory=dict)

    @property
    def n_jobs(self) -> int:
        """Number of jobs."""
        return int(self.jobs.num_rows)

    @property
    def n_files(self) -> int:
        """Number of files."""
        return len(self.files)

    def column(self, name: str) -> NDArray[Any]:
        """Return a numeric column of the jobs, or the codes of a category."""
        array = self.jobs[name].chunk(0)
        if pa.types.is_dictionary(array.type):
            array = array.indices
        out: NDArray[Any] = array.to_numpy(zero_copy_only=True)
        return out

    def has(self, name: str, value: str) -> Mask:
        """Return a mask of the jobs with `value` in the category `name`."""
        array = self.jobs[name].chunk(0)
        code = array.dictionary.index(value).as_py()
        out: Mask = array.indices.to_numpy(zero_copy_only=True) == code
        return out if code >= 0 else np.zeros(len(out), bool)

    def names(self, name: str) -> list[str]:
        """Return the distinct strings of a category of the jobs, in the order of their codes."""
        out: list[str] = self.jobs[name].chunk(0).dictionary.to_pylist()
        return out


def read_logs(
    operations: PathLike, jobs: PathLike, on_bad_row: OnBadRow = "skip", extra: Sequence[str] = ()
) -> Logs:
    """Read both logs from files, the jobs with `extra` numeric columns; see `read_table`."""
    table, report = read_jobs(jobs, on_bad_row, extra)
    return read_operations(operations, table, report, on_bad_row)


def read_jobs(
    path: PathLike, on_bad_row: OnBadRow = "skip", extra: Sequence[str] = ()
) -> tuple[pa.Table, dict[str, int]]:
    """Read the log of jobs; return it as `Logs.jobs`, and counts of anomalies by rule."""
    bad = BadRows()
    report: dict[str, int] = {}
    jobs = _repair_jobs(
        _drop_duplicate_ids(read_table("jobs", path, on_bad_row, bad, extra), report), report
    )
    return jobs, report | {f"jobs: {rule}": n for rule, n in bad.items() if n}


def read_operations(
    path: PathLike, jobs: pa.Table, report: Mapping[str, int], on_bad_row: OnBadRow = "skip"
) -> Logs:
    """Read the log of operations for jobs read by `read_jobs`."""
    bad = BadRows()
    table = read_table("operations", path, on_bad_row, bad)
    logs = _resolve_names(table, jobs, dict(report))
    logs.report.update({f"operations: {rule}": n for rule, n in bad.items() if n})
    return logs


def make_logs(
    operations: Mapping[str, Any] | pa.Table,
    jobs: Mapping[str, Any] | pa.Table,
    extra: Sequence[str] = (),
) -> Logs:
    """Build logs from columns in memory, named as in `sim.lineage.files`, with `extra` job columns.

    Raises
    ------
    InputError
        On a missing column or value, or a wrong type.
    """
    report: dict[str, int] = {}
    job_table = _repair_jobs(_drop_duplicate_ids(as_table("jobs", jobs, extra), report), report)
    return _resolve_names(as_table("operations", operations), job_table, report)


def _resolve_names(operations: pa.Table, jobs: pa.Table, report: dict[str, int]) -> Logs:
    code = _codes(operations["operation"], pa.array(OPERATION_NAMES))
    row = _codes(operations["job"], jobs["job_id"].combine_chunks())
    needs_job = code != OPERATION_NAMES.index("download")
    ok = (code >= 0) & ((row >= 0) | ~needs_job)
    _count(report, "operations: unknown operation", code < 0)
    _count(report, "operations: job not in the job log", (code >= 0) & (row < 0) & needs_job)
    time_s = operations["time_s"].to_numpy()
    file = operations["file"].combine_chunks()
    file_names = file.chunk(0) if isinstance(file, pa.ChunkedArray) else file
    file_codes = file_names.indices.to_numpy()
    n = operations["n"].to_numpy()
    if not ok.all():
        time_s, row, code, file_codes, n = (a[ok] for a in (time_s, row, code, file_codes, n))
    row = np.where(code == OPERATION_NAMES.index("download"), np.int32(-1), row)
    _count(report, IDLE_RULE, idle_jobs(jobs.num_rows, row))
    if len(time_s) > 1:
        _count(report, "operations: earlier than the row before", time_s[1:] < time_s[:-1])
    return Logs(
        jobs, time_s, row, code.astype(np.int8), file_codes, n, plain(file_names.dictionary), report
    )


def idle_jobs(n_jobs: int, job: I4) -> Mask:
    """Return a mask of the jobs that no operation names."""
    doing = np.zeros(n_jobs, bool)
    doing[job[job >= 0]] = True
    return ~doing


def _codes(values: pa.ChunkedArray, known: pa.Array) -> I4:
    """Return the index of each value in `known`; -1 if it is absent."""
    coded = values.combine_chunks()
    coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
    index = pc.index_in(coded.dictionary, value_set=known.cast(pa.string()))
    lookup = index.fill_null(-1).to_numpy().astype(np.int32)
    return lookup[coded.indices.to_numpy()] if len(lookup) else np.empty(0, np.int32)


def _drop_duplicate_ids(jobs: pa.Table, report: dict[str, int]) -> pa.Table:
    ids = jobs["job_id"].combine_chunks()
    ids = ids.dictionary_encode()
    codes = ids.indices.to_numpy()
    first = np.unique(codes, return_index=True)[1]
    if len(first) < len(codes):
        report["jobs: job_id given twice"] = len(codes) - len(first)
        jobs = jobs.take(pa.array(np.sort(first)))
    return jobs


def _repair_jobs(jobs: pa.Table, report: dict[str, int]) -> pa.Table:
    """Sort jobs by submission and repair times that run backward; count the repairs."""
    columns = {name: jobs[name].to_numpy() for name in ("submit_s", "start_s", "finish_s")}
    submit, start, finish = columns.values()
    start = np.where(np.isnan(start), submit, start)
    _count(report, "jobs: started before submission", start < submit)
    start = np.maximum(start, submit)
    _count(report, "jobs: ended before the start", finish < start)
    finish = np.maximum(finish, start)
    requested, compute = jobs["requested"].to_numpy(), jobs["compute_s"].to_numpy()
    compute = np.where(np.isnan(compute), requested * (finish - start), compute)
    outcome = _codes(jobs["outcome"], pa.array(OUTCOMES))
    _count(report, "jobs: unknown outcome, taken as failed", outcome < 0)
    outcome = np.where(outcome < 0, OUTCOMES.index("failed"), outcome).astype(np.int32)
    repaired = {
        "start_s": pa.array(start),
        "finish_s": pa.array(finish),
        "compute_s": pa.array(compute),
        "organisation": _organisation(jobs),
        "outcome": pa.DictionaryArray.from_arrays(pa.array(outcome), pa.array(OUTCOMES)),
    }
    order = pa.array(np.argsort(submit, kind="stable"))
    columns_ = {n: repaired.get(n, jobs[n]) for n in jobs.column_names}
    return pa.table(
        {
            n: plain(
                c.take(order).combine_chunks() if isinstance(c, pa.ChunkedArray) else c.take(order)
            )
            for n, c in columns_.items()
        }
    )


def _organisation(jobs: pa.Table) -> pa.Array:
    organisation = jobs["organisation"].cast(pa.string())
    root = pc.list_element(pc.split_pattern(jobs["queue"].cast(pa.string()), "/", max_splits=1), 0)
    filled = pc.if_else(pc.equal(organisation, ""), root, organisation)
    return filled.combine_chunks().dictionary_encode()


def _count(report: dict[str, int], rule: str, broken: Mask) -> None:
    n = int(np.count_nonzero(broken))
    if n:
        report[rule] = n


def split(logs: Logs, n: int) -> list[Logs]:
    """Split the operations into `n` buckets by a hash of the file name; the buckets have no jobs.

    A file's bucket depends on its name alone, so it is the same in every part of a log.
    """
    with importing("frames"):
        import pandas as pd  # takes long to load, and only a log in parts needs it

    names = logs.files.to_numpy(zero_copy_only=False)
    file_bucket = (pd.util.hash_array(names) % np.uint64(n)).astype(np.int64)
    bucket = file_bucket[logs.file]
    order = np.argsort(bucket, kind="stable")
    ends = np.searchsorted(bucket[order], np.arange(n + 1))
    out = []
    for k in range(n):
        rows = order[ends[k] : ends[k + 1]]
        used, file = np.unique(logs.file[rows], return_inverse=True)
        bucket_logs = Logs(
            logs.jobs.slice(0, 0), logs.time_s[rows], logs.job[rows], logs.operation[rows],
            file.astype(np.int32), logs.n[rows], logs.files.take(pa.array(used)),
        )  # fmt: skip
        out.append(bucket_logs)
    return out


def concatenate(splits: Sequence[Logs], jobs: pa.Table) -> Logs:
    """Concatenate buckets of operations in order, and attach the jobs they refer to."""
    files = [pa.DictionaryArray.from_arrays(pa.array(s.file), s.files) for s in splits]
    file = pa.chunked_array(files).unify_dictionaries().combine_chunks()
    time_s, job, operation, n = (
        np.concatenate([getattr(s, name) for s in splits])
        for name in ("time_s", "job", "operation", "n")
    )
    codes = file.indices.to_numpy(zero_copy_only=False)
    return Logs(jobs, time_s, job, operation, codes, n, file.dictionary)
