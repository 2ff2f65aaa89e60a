"""The two logs in memory, as columns: jobs, identified by row number, and operations on files.

Files are independent of each other (§4.2). So a log of operations that does not fit into memory is
processed in parts: each part is `split` into buckets by file, the buckets of one number are put
together (`concatenate`) and joined separately, and the joins are merged (`dependencies.merge`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from policies.wing.lineage.files import (
    DOWNLOAD,
    OPERATION_ALIASES,
    OPERATION_NAMES,
    PathLike,
    as_table,
    is_parquet,
    read_table,
)
from policies.wing.lineage.job_log import (
    JobLog,
    LeftOut,
    bad_notes,
    build_jobs,
    codes_of,
    look_up,
    read_jobs,
)
from sim.base.arrays import F8, I1, I4, Mask
from sim.base.errors import InputError
from sim.base.extras import importing
from sim.base.reading import BadRows, OnBadRow, count_rule
from sim.workload.tables import plain

IDLE_RULE: Final = "jobs: in no operation"
"""Report key for jobs that no operation names."""


@dataclass(frozen=True, eq=False)
class Logs:
    """Jobs and their operations on files.

    Attributes
    ----------
    jobs : pyarrow.Table
        Columns of `policies.wing.lineage.files.JOBS`, by time of submission; the row is the job's
        number.
    time_s : (O,) float64
        Time of each operation, s; in the order of the log.
    job : (O,) int32
        Row of the job; -1 for a download.
    operation : (O,) int8
        Its code in `policies.wing.lineage.files`: ``READ``, ``WRITE``, ``DOWNLOAD``, …
    file : (O,) int32
        Index of the file in `files`.
    n : (O,) int32
        Number of downloads.
    files : pyarrow.StringArray
        Names of files.
    report : dict of str to int
        Counts of rows that were dropped or repaired, by rule.
    notes : tuple of str
        What to know of the log before all else, a sentence each.
    left_out : tuple of LeftOut
        Runs that are no jobs here.
    """

    jobs: pa.Table
    time_s: F8
    job: I4
    operation: I1
    file: I4
    n: I4
    files: pa.Array
    report: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

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

    def run_s(self) -> F8:
        """Return the run time of each job, s; NaN where it is not known."""
        elapsed_s: F8 = self.column("finish_s") - self.column("start_s")
        return np.where(self.is_unknown(), np.nan, elapsed_s)

    def is_unknown(self) -> Mask:
        """Return a mask of the jobs whose run time is not known."""
        return self.has("run_time", "no_start") | self.has("run_time", "no_end")

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
    return read_operations(operations, read_jobs(jobs, on_bad_row, extra), on_bad_row)


def read_operations(path: PathLike, jobs: JobLog, on_bad_row: OnBadRow = "skip") -> Logs:
    """Read the log of operations for jobs read by `read_jobs`."""
    bad = BadRows()
    table = read_table("operations", path, on_bad_row, bad)
    unknown = _unknown_operations(table, jobs.jobs, path)
    if unknown is not None and on_bad_row == "error":
        raise unknown[1]
    logs = _resolve_names(table, jobs)
    logs.report.update({f"operations: {rule}": n for rule, n in bad.items() if n})
    notes = [*logs.notes, *bad_notes(path, bad)]
    if unknown is not None:
        n, error = unknown
        place = "" if bad else f", the first in line {error.line}"
        reason = error.message.partition(";")[0]
        notes.append(f"{n:,} of {table.num_rows:,} operations are left out{place}: {reason}")
    return replace(logs, notes=tuple(notes))


def make_logs(
    operations: Mapping[str, Any] | pa.Table,
    jobs: Mapping[str, Any] | pa.Table,
    extra: Sequence[str] = (),
) -> Logs:
    """Build logs from columns in memory, named as in `lineage.files`, with `extra` job columns.

    Raises
    ------
    InputError
        On a missing column or value, or a wrong type.
    """
    return _resolve_names(as_table("operations", operations), build_jobs(jobs, extra))


def _unknown_operations(
    operations: pa.Table, jobs: pa.Table, path: PathLike
) -> tuple[int, InputError] | None:
    """Return the number of operations that are unknown or by unknown jobs, and the first's error.

    The line is right if no row was dropped before.
    """
    code = operation_codes(operations["operation"])
    row = codes_of(operations["job"], jobs["job_id"].combine_chunks())
    bad = np.flatnonzero((code < 0) | ((row < 0) & (code != DOWNLOAD)))
    if not len(bad):
        return None
    first = int(bad[0])
    name, job = (operations[column][first].as_py() for column in ("operation", "job"))
    known = ", ".join((*OPERATION_NAMES, *OPERATION_ALIASES))
    is_unknown = code[first] < 0
    text = f"the job {job!r} is not in the log of jobs"
    if is_unknown:
        text = f"operation is {name!r}; valid: {known}"
    return len(bad), InputError(
        f"{text}; fix the log, or skip such rows (on_bad_row=skip)",
        file=path,
        line=first + 1 + (not is_parquet(path)),
        rule="unknown operation" if is_unknown else "unknown job",
    )


def _resolve_names(operations: pa.Table, log: JobLog) -> Logs:
    jobs, report = log.jobs, dict(log.report)
    code = operation_codes(operations["operation"])
    row = codes_of(operations["job"], jobs["job_id"].combine_chunks())
    needs_job = code != DOWNLOAD
    ok = (code >= 0) & ((row >= 0) | ~needs_job)
    count_rule(report, "operations: unknown operation", code < 0)
    count_rule(report, "operations: job not in the job log", (code >= 0) & (row < 0) & needs_job)
    time_s = operations["time_s"].to_numpy()
    file = operations["file"].combine_chunks()
    file_names = file.chunk(0) if isinstance(file, pa.ChunkedArray) else file
    file_codes = file_names.indices.to_numpy()
    n = operations["n"].to_numpy()
    if not ok.all():
        time_s, row, code, file_codes, n = (a[ok] for a in (time_s, row, code, file_codes, n))
    row = np.where(code == DOWNLOAD, np.int32(-1), row)
    count_rule(report, IDLE_RULE, idle_jobs(jobs.num_rows, row))
    if len(time_s) > 1:
        count_rule(report, "operations: earlier than the row before", time_s[1:] < time_s[:-1])
    return Logs(
        jobs, time_s, row, code.astype(np.int8), file_codes, n, plain(file_names.dictionary),
        report, log.notes, log.left_out,
    )  # fmt: skip


def idle_jobs(n_jobs: int, job: I4) -> Mask:
    """Return a mask of the jobs that no operation names."""
    doing = np.zeros(n_jobs, bool)
    doing[job[job >= 0]] = True
    return ~doing


def operation_codes(values: pa.ChunkedArray) -> I4:
    """Return the code of each operation; -1 for an unknown one."""
    names = {name: code for code, name in enumerate(OPERATION_NAMES)}
    names |= {alias: names[name] for alias, name in OPERATION_ALIASES.items()}
    return look_up(
        values,
        lambda texts: np.array([names.get(t.strip().lower(), -1) for t in texts.to_pylist()], "i4"),
    )


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
