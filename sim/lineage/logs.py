"""The two logs as columns: jobs, known by their row numbers, and operations on files.

Files are independent of each other (§4.2). So where a log of operations does not fit into memory, a
part of it is `split` by file, the splits of one number of all parts are put `together` and joined
by themselves, and the joins are merged (`single_hop.merged`).
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
from sim.base.reading import OnBadRow
from sim.lineage.files import OPERATION_NAMES, OUTCOMES, PathLike, as_table, read_table
from sim.workload.tables import plain

IDLE_RULE: Final = "jobs: in no operation"
"""The rule by which such jobs are counted."""


@dataclass(frozen=True, eq=False)
class Logs:
    """What happened: jobs, and what was done to files.

    Attributes
    ----------
    jobs : pyarrow.Table
        As `sim.lineage.files.JOBS`, by time of submission; the row is the job's number.
    time_s : (O,) float64
        When each operation happened, s; in the order of the log.
    job : (O,) int32
        By which job; -1 for a download.
    operation : (O,) int8
        ``READ``, ``WRITE`` or ``DOWNLOAD`` of `sim.lineage.files`.
    file : (O,) int32
        On which file; an index into `files`.
    n : (O,) int32
        How many times (of downloads).
    files : pyarrow.StringArray
        Names of files.
    report : dict of str to int
        Rows that were dropped or mended, by rule.
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
        """How many jobs there are."""
        return int(self.jobs.num_rows)

    @property
    def n_files(self) -> int:
        """How many files there are."""
        return len(self.files)

    def column(self, name: str) -> NDArray[Any]:
        """Return a column of numbers of the jobs; of a category, its codes."""
        array = self.jobs[name].chunk(0)
        if pa.types.is_dictionary(array.type):
            array = array.indices
        out: NDArray[Any] = array.to_numpy(zero_copy_only=True)
        return out

    def has(self, name: str, value: str) -> Mask:
        """Return which jobs have `value` in the category called `name`."""
        array = self.jobs[name].chunk(0)
        code = array.dictionary.index(value).as_py()
        out: Mask = array.indices.to_numpy(zero_copy_only=True) == code
        return out if code >= 0 else np.zeros(len(out), bool)

    def names(self, name: str) -> list[str]:
        """Return the distinct strings of a category of the jobs, in the order of their codes."""
        out: list[str] = self.jobs[name].chunk(0).dictionary.to_pylist()
        return out


def read_logs(
    operations: PathLike, jobs: PathLike, on_bad_row: OnBadRow = "skip", more: Sequence[str] = ()
) -> Logs:
    """Read both logs from files, of jobs with `more` columns of numbers; see `read_table`."""
    table, report = read_jobs(jobs, on_bad_row, more)
    return read_operations(operations, table, report, on_bad_row)


def read_jobs(
    path: PathLike, on_bad_row: OnBadRow = "skip", more: Sequence[str] = ()
) -> tuple[pa.Table, dict[str, int]]:
    """Read the log of jobs; return it as `Logs.jobs`, and what was odd, by rule."""
    bad: dict[str, int] = {}
    report: dict[str, int] = {}
    jobs = _mended(_each_once(read_table("jobs", path, on_bad_row, bad, more), report), report)
    return jobs, report | {f"jobs: {rule}": n for rule, n in bad.items() if n}


def read_operations(
    path: PathLike, jobs: pa.Table, report: Mapping[str, int], on_bad_row: OnBadRow = "skip"
) -> Logs:
    """Read the log of operations of jobs that `read_jobs` has read."""
    bad: dict[str, int] = {}
    table = read_table("operations", path, on_bad_row, bad)
    logs = _joined(table, jobs, dict(report))
    logs.report.update({f"operations: {rule}": n for rule, n in bad.items() if n})
    return logs


def make_logs(
    operations: Mapping[str, Any] | pa.Table,
    jobs: Mapping[str, Any] | pa.Table,
    more: Sequence[str] = (),
) -> Logs:
    """Make logs of columns in memory, named as in `sim.lineage.files`; of jobs, `more` numbers.

    Raises
    ------
    InputError
        On a missing column or value, or a wrong type.
    """
    report: dict[str, int] = {}
    mended = _mended(_each_once(as_table("jobs", jobs, more), report), report)
    return _joined(as_table("operations", operations), mended, report)


def _joined(operations: pa.Table, jobs: pa.Table, report: dict[str, int]) -> Logs:
    code = _codes(operations["operation"], pa.array(OPERATION_NAMES))
    row = _codes(operations["job"], jobs["job_id"].combine_chunks())
    unnamed = code != OPERATION_NAMES.index("download")
    ok = (code >= 0) & ((row >= 0) | ~unnamed)
    _count(report, "operations: unknown operation", code < 0)
    _count(report, "operations: job not in the job log", (code >= 0) & (row < 0) & unnamed)
    time_s = operations["time_s"].to_numpy()
    file = operations["file"].combine_chunks()
    named = file.chunk(0) if isinstance(file, pa.ChunkedArray) else file
    file_codes = named.indices.to_numpy()
    n = operations["n"].to_numpy()
    if not ok.all():
        time_s, row, code, file_codes, n = (a[ok] for a in (time_s, row, code, file_codes, n))
    row = np.where(code == OPERATION_NAMES.index("download"), np.int32(-1), row)
    _count(report, IDLE_RULE, idle_jobs(jobs.num_rows, row))
    if len(time_s) > 1:
        _count(report, "operations: earlier than the row before", time_s[1:] < time_s[:-1])
    return Logs(
        jobs, time_s, row, code.astype(np.int8), file_codes, n, plain(named.dictionary), report
    )


def idle_jobs(n_jobs: int, job: I4) -> Mask:
    """Return which jobs are in none of some operations."""
    doing = np.zeros(n_jobs, bool)
    doing[job[job >= 0]] = True
    return ~doing


def _codes(values: pa.ChunkedArray, known: pa.Array) -> I4:
    """Return where each value is among `known`; -1 if it is not."""
    coded = values.combine_chunks()
    coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
    place = pc.index_in(coded.dictionary, value_set=known.cast(pa.string()))
    lookup = place.fill_null(-1).to_numpy().astype(np.int32)
    return lookup[coded.indices.to_numpy()] if len(lookup) else np.empty(0, np.int32)


def _each_once(jobs: pa.Table, report: dict[str, int]) -> pa.Table:
    ids = jobs["job_id"].combine_chunks()
    ids = ids.dictionary_encode()
    codes = ids.indices.to_numpy()
    first = np.unique(codes, return_index=True)[1]
    if len(first) < len(codes):
        report["jobs: job_id given twice"] = len(codes) - len(first)
        jobs = jobs.take(pa.array(np.sort(first)))
    return jobs


def _mended(jobs: pa.Table, report: dict[str, int]) -> pa.Table:
    """Return the jobs in order of submission, with no clock that runs backward."""
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
    mended = {
        "start_s": pa.array(start),
        "finish_s": pa.array(finish),
        "compute_s": pa.array(compute),
        "organisation": _organisation(jobs),
        "outcome": pa.DictionaryArray.from_arrays(pa.array(outcome), pa.array(OUTCOMES)),
    }
    order = pa.array(np.argsort(submit, kind="stable"))
    whole = {n: mended.get(n, jobs[n]) for n in jobs.column_names}
    return pa.table(
        {
            n: plain(
                c.take(order).combine_chunks() if isinstance(c, pa.ChunkedArray) else c.take(order)
            )
            for n, c in whole.items()
        }
    )


def _organisation(jobs: pa.Table) -> pa.Array:
    given = jobs["organisation"].cast(pa.string())
    root = pc.list_element(pc.split_pattern(jobs["queue"].cast(pa.string()), "/", max_splits=1), 0)
    either = pc.if_else(pc.equal(given, ""), root, given)
    return either.combine_chunks().dictionary_encode()


def _count(report: dict[str, int], rule: str, broken: Mask) -> None:
    n = int(np.count_nonzero(broken))
    if n:
        report[rule] = n


def split(part: Logs, n: int) -> list[Logs]:
    """Split the operations by the names of their files, into `n` without jobs.

    Which one a file is in depends on its name alone.
    """
    with importing("sweep"):
        import pandas as pd  # takes long to load, and only a log in parts needs it

    names = part.files.to_numpy(zero_copy_only=False)
    number = (pd.util.hash_array(names) % np.uint64(n)).astype(np.int64)
    of = number[part.file]
    order = np.argsort(of, kind="stable")
    ends = np.searchsorted(of[order], np.arange(n + 1))
    out = []
    for k in range(n):
        rows = order[ends[k] : ends[k + 1]]
        used, file = np.unique(part.file[rows], return_inverse=True)
        named = Logs(
            part.jobs.slice(0, 0), part.time_s[rows], part.job[rows], part.operation[rows],
            file.astype(np.int32), part.n[rows], part.files.take(pa.array(used)),
        )  # fmt: skip
        out.append(named)
    return out


def concatenate(splits: Sequence[Logs], jobs: pa.Table) -> Logs:
    """Put operations together again, one split after the other, with the jobs they name."""
    named = [pa.DictionaryArray.from_arrays(pa.array(s.file), s.files) for s in splits]
    file = pa.chunked_array(named).unify_dictionaries().combine_chunks()
    time_s, job, operation, n = (
        np.concatenate([getattr(s, name) for s in splits])
        for name in ("time_s", "job", "operation", "n")
    )
    codes = file.indices.to_numpy(zero_copy_only=False)
    return Logs(jobs, time_s, job, operation, codes, n, file.dictionary)
