"""Join of files that are not replaced whole: appended to, emptied, or written in parts.

A read depends on the last change that replaced its data and on all that were added since, but only
on those since a run of its program last read it and ended well: a daily report depends on the 24
hourly loads since yesterday's. Without a new one it depends on the last. What was in a file before
it was emptied counts no more. With partitions inside folders, a read of a folder depends on what is
written inside it too, and a read inside on what is written to the folder.

The loops are in Python, as few files are written so. Operations at one instant are in order of
their jobs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from policies.wing.lineage.files import APPEND, DOWNLOAD, OVERWRITE, READ, TRUNCATE, WRITE
from policies.wing.lineage.logs import Logs
from sim.base.arrays import I4, I8, Mask

CHANGES: Final = (WRITE, APPEND, OVERWRITE, TRUNCATE)
EMPTIED: Final = "of files emptied before"
NEVER_WRITTEN: Final = "of files never written"
TOO_EARLY: Final = "before the first write"
TOO_OLD: Final = "of writes older than the window"
NESTED_HINT: Final = "--set partitions=inside joins them"
ALIKE: Final = (
    "reads of names that another job writes in other letters, or with another scheme or port; if "
    "they are one, name them alike, or say so by symlinks"
)
SELF_READ: Final = "of a job's own output"
Folders = Mapping[int, tuple[int, ...]]
"""Files that contain a file, the outermost first."""


@dataclass
class Matches:
    """Writes and the reads and downloads of them, as lists of equal lengths; counts by rule."""

    writer: list[int] = field(default_factory=list)
    reader: list[int] = field(default_factory=list)  # -1: a download
    read_s: list[float] = field(default_factory=list)
    written_s: list[float] = field(default_factory=list)
    n: list[int] = field(default_factory=list)
    report: dict[str, int] = field(default_factory=dict)


class _Change(NamedTuple):
    number: int  # in order of time
    time_s: float
    job: int
    code: int
    file: int


class _Group:
    """Changes of files that contain one another, until now."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._on: dict[int, list[_Change]] = defaultdict(list)
        self._inside: dict[int, list[_Change]] = defaultdict(list)
        self._replaced: dict[int, int] = {}  # number of the last change that replaced a file
        self._seen: dict[tuple[int, int], int] = {}  # number until which a program has read a file

    def add(self, change: _Change) -> None:
        """Add a change of a file, which is also one inside each of its folders."""
        self._on[change.file].append(change)
        for folder in self._folders.get(change.file, ()):
            self._inside[folder].append(change)
        if change.code != APPEND:
            self._replaced[change.file] = change.number

    def sources(self, file: int, program: int) -> list[_Change]:
        """Return the changes that a program sees in a file, the latest first."""
        above = (*self._folders.get(file, ()), file)
        lists = [self._on[name] for name in above if name in self._on]
        lists += [self._inside[file]] if file in self._inside else []
        first = max(self._replaced.get(name, -1) for name in above)
        first = max(first, self._seen.get((program, file), -1) + 1)
        fresh = [change for changes in lists for change in _since(changes, first)]
        fresh.sort(reverse=True)
        latest = sorted((changes[-1] for changes in lists), reverse=True)[:1]
        return list(self._current(fresh)) or latest

    def read(self, file: int, program: int, number: int) -> None:
        """Note that a run of a program has read a file."""
        self._seen[program, file] = number

    def _current(self, changes: Sequence[_Change]) -> Iterator[_Change]:
        """Yield those of the changes, the latest first, that no later one replaced."""
        replaced: set[int] = set()
        for change in changes:
            if not replaced.intersection((change.file, *self._folders.get(change.file, ()))):
                yield change
            if change.code != APPEND:
                replaced.add(change.file)


def _since(changes: Sequence[_Change], number: int) -> Iterator[_Change]:
    for change in reversed(changes):
        if change.number < number:
            return
        yield change


def in_order(logs: Logs, rows: I8, group: I4) -> I8:
    """Sort operations by group of their file, time and job; a job reads before it writes.

    A job that was submitted before the instant reads what was written before it was submitted.
    """
    submit_s = logs.column("submit_s")
    time_s, job = logs.time_s[rows], logs.job[rows].astype(np.int64)
    is_read = logs.operation[rows] == READ
    reads = np.flatnonzero(is_read & (job >= 0))
    ran_before = reads[submit_s[job[reads]] != time_s[reads]]
    job[ran_before] = np.searchsorted(submit_s, submit_s[job[ran_before]])
    job[logs.operation[rows] == DOWNLOAD] = logs.n_jobs
    out: I8 = rows[np.lexsort((~is_read, job, time_s, group[logs.file[rows]]))]
    return out


def match(
    logs: Logs, rows: I8, group: I4, folders: Folders, program: I4, window_s: float
) -> Matches:
    """Join reads and downloads to the changes that they see.

    Parameters
    ----------
    logs : Logs
        Operations.
    rows : (K,) int64
        Those on files that are not replaced whole.
    group : (F,) int32
        Group of each file: files that contain one another are in one.
    folders : mapping of int to tuple of int
        Files that contain a file, the outermost first.
    program : (N,) int32
        Program of each job.
    window_s : float
        Maximum age of a change when it is read, s.
    """
    matches = Matches()
    ended_well = logs.has("outcome", "done")
    ordered = in_order(logs, rows, group)
    columns = (logs.time_s, logs.job, logs.operation, logs.file, logs.n, group[logs.file])
    writes = np.isin(logs.operation, CHANGES)
    is_written = np.zeros(logs.n_files, bool)
    is_written[logs.file[writes]] = True
    state, present = _Group(folders), -1
    for number, values in enumerate(zip(*(c[ordered].tolist() for c in columns), strict=True)):
        time_s, job, code, file, n, at_group = values
        if at_group != present:
            state, present = _Group(folders), at_group
        if code in CHANGES:
            state.add(_Change(number, time_s, job, code, file))
        elif code in (READ, DOWNLOAD):
            reader = int(program[job]) if job >= 0 else -1
            sources = state.sources(file, reader)
            if code == DOWNLOAD:
                _add(
                    matches, "downloads", sources[:1], (job, time_s, n), window_s, is_written[file]
                )
                continue
            _add(matches, "reads", sources, (job, time_s, 1), window_s, is_written[file])
            if ended_well[job]:
                state.read(file, reader, number)
    return matches


def _add(
    matches: Matches,
    verb: str,
    sources: Sequence[_Change],
    reader: tuple[int, float, int],
    window_s: float,
    is_written: bool,
) -> None:
    """Add the matches of a read or download, or count the reason why it has none."""
    job, time_s, n = reader
    recent = [c for c in sources if time_s - c.time_s <= window_s]
    writes = [c for c in recent if c.code != TRUNCATE]
    foreign = [c for c in writes if c.job != job]
    for change in foreign:
        matches.writer.append(change.job)
        matches.reader.append(job)
        matches.read_s.append(time_s)
        matches.written_s.append(change.time_s)
        matches.n.append(n)
    if foreign:
        return
    if not sources:
        rule = TOO_EARLY if is_written else NEVER_WRITTEN
    elif not recent:
        rule = TOO_OLD
    else:
        rule = SELF_READ if writes else EMPTIED
    matches.report[f"{verb} {rule}"] = matches.report.get(f"{verb} {rule}", 0) + 1


def folders_of(names: Sequence[str]) -> dict[int, tuple[int, ...]]:
    """Return the names that contain a name, for those that have such.

    A partition ``table$20250303`` is inside its table.
    """
    number = {name: index for index, name in enumerate(names)}
    folders = {}
    for index, name in enumerate(names):
        outer = tuple(number[prefix] for prefix in outer_names(name) if prefix in number)
        if outer:
            folders[index] = outer
    return folders


def outer_names(name: str) -> Iterator[str]:
    """Yield what may contain a name, the outermost first."""
    end = name.find("/")
    while end >= 0:
        yield name[:end]
        end = name.find("/", end + 1)
    table, mark, partition = name.rpartition("$")
    if mark and partition.isdigit():
        yield table


def unread_writes(logs: Logs, order: I8) -> int:
    """Count the writes that another job's write follows before anyone reads the file.

    `order` has the operations by file, then time. Files that nobody ever reads, and changes that
    are known to replace a file or to add to it, are not counted. Nor is a write at whose instant,
    or at that of the next one, the file is read.
    """
    if len(order) < 2:
        return 0
    operation, file, job = logs.operation[order], logs.file[order], logs.job[order]
    time_s = logs.time_s[order]
    reads = (operation == READ) | (operation == DOWNLOAD)
    is_read = np.zeros(logs.n_files, bool)
    is_read[file[reads]] = True
    is_next = (operation[1:] == WRITE) | (operation[1:] == OVERWRITE)
    unread = (operation[:-1] == WRITE) & is_next & is_read[file[:-1]]
    unread &= (file[:-1] == file[1:]) & (job[:-1] != job[1:])
    at_once = (file[:-1] == file[1:]) & (time_s[:-1] == time_s[1:])
    unread[1:] &= ~(reads[:-2] & at_once[:-1])
    unread[:-1] &= ~(reads[2:] & at_once[1:])
    return int(np.count_nonzero(unread))


def near_reads(logs: Logs, inside: bool) -> dict[str, int]:
    """Count the reads of names that nobody writes, but that are near one that somebody does.

    They are of another spelling, or, unless names inside folders are joined (`inside`), inside a
    folder that is written or of a folder that is written inside.
    """
    is_read = np.zeros(logs.n_files, bool)
    is_read[logs.file[logs.operation == READ]] = True
    is_written = np.zeros(logs.n_files, bool)
    is_written[logs.file[np.isin(logs.operation, CHANGES)]] = True
    names = logs.files
    lost = np.flatnonzero(is_read & ~is_written)
    if not len(lost) or not is_written.any():
        return {}
    n_reads = np.bincount(logs.file[logs.operation == READ], minlength=logs.n_files)[lost]
    spelling = _spelling(names)
    is_alike = pc.is_in(spelling.take(lost), value_set=spelling.filter(is_written)).to_numpy(False)
    counts = {ALIKE: n_reads[is_alike].sum()}
    if not inside:
        counts |= _nested(names, lost, is_written, n_reads)
    return {rule: int(n) for rule, n in counts.items() if n}


def _spelling(names: pa.Array) -> pa.Array:
    """Return names in small letters, without schemes and ports."""
    plain = pc.replace_substring_regex(names, r"^[\w+.-]+://", "")
    return pc.utf8_lower(pc.replace_substring_regex(plain, r"^([^/:]*):\d+/", r"\1/"))


def _nested(names: pa.Array, lost: I8, is_written: Mask, n_reads: I8) -> dict[str, int]:
    """Count the reads of names inside a folder that is written, and of folders written inside."""
    written = set(names.filter(is_written).to_pylist())
    lost_names = names.take(lost).to_pylist()
    outer = {prefix for name in written for prefix in outer_names(name)}.intersection(lost_names)
    inside = [any(prefix in written for prefix in outer_names(name)) for name in lost_names]
    holds = [name in outer for name in lost_names]
    return {
        f"reads of names inside a folder that another job writes; {NESTED_HINT}": (
            n_reads[inside].sum()
        ),
        f"reads of folders inside which another job writes; {NESTED_HINT}": n_reads[holds].sum(),
    }
