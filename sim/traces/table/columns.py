"""Columns of a table of jobs: their kinds, and which of a file's columns they are."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from sim.base.errors import InputError

Kind = Literal["time", "span", "amount", "count", "memory", "priority", "text", "ids"]

COLUMNS: Mapping[str, Kind] = {
    "job_id": "text", "submit_s": "time", "eligible_s": "time", "start_s": "time",
    "end_s": "time", "run_s": "span", "limit_s": "span", "cpus": "amount", "gpus": "amount",
    "gpu_type": "text", "mem": "memory", "nodes": "count", "workers": "count", "state": "text",
    "user": "text", "account": "text", "queue": "text", "partition": "text", "qos": "text",
    "priority": "priority", "depends_on": "ids", "parent_id": "text", "checkpoint_s": "span",
    "restart_s": "span", "width_min": "count", "width_max": "count", "speedup": "text",
    "reconfigure_s": "span", "wait_s": "span", "part_of": "text",
    "topology_required": "text", "topology_preferred": "text",
    "retry_of": "text", "deadline_s": "span",
}  # fmt: skip
"""Columns that are read, and their kinds: a point in time, a time that passes, a number of at least
0, a whole one, an amount of memory, any number or a word, text, ids of other jobs."""
TIMES = ("submit_s", "start_s", "end_s")
REQUIRED = frozenset({*TIMES, "run_s"})
"""Columns of which a job needs some: these can't be left out at will."""
_RAN = {"run_s", "start_s", "end_s"}
"""Two of them give the third."""
_OTHER_NAMES = {
    "limit_s": ("requested_s",), "mem": ("mem_gib",), "parent_id": ("parent_job_id",),
}  # fmt: skip
"""Further names under which a column is read without being chosen."""
_PATTERNS = {
    column: re.compile(pattern)
    for column, pattern in {
        "job_id": r"jobid|id|job",
        "submit_s": r"submi|arriv|creat|queuedat|queueddttm|qtime",
        "eligible_s": r"eligib",
        "start_s": r"start|begin|launch",
        "end_s": r"end|finish|complet|stop",
        "run_s": r"run(?!id)|elapsed|duration|walltime|length",
        "limit_s": r"limit|timelimit|requestedtime|reqtime|wallclock",
        "gpu_type": r"gpu(type|model|spec)",
        "gpus": r"n?gpus?$|gpu(num|count|req)|(num|alloc|req|requested)gpu",
        "cpus": r"cpu|core|proc|ncpu|numcore|numcpu|reqcpu|alloccpu|slot|poolslots",
        "mem": r"mem|reqmem|allocmem",
        "nodes": r"nodes$|node(num|count|cnt)|(n|num|alloc|req)nodes",
        "workers": r"workers?$|worker(num|count)|numworkers|replicas",
        "state": r"state$|status|jobstate",
        "user": r"user|owner",
        "account": r"account",
        "queue": r"queue",
        "partition": r"partition",
        "qos": r"qos",
        "priority": r"prio",
        "depends_on": r"depend",
        "parent_id": r"parent(job)?id",
        "checkpoint_s": r"checkpoint|ckpt",
        "restart_s": r"restart",
        "deadline_s": r"deadline",
        "retry_of": r"retr(y|ied)of|(previous|prior)attempt",
    }.items()
}
"""Beginnings of other names for a column, in lower case and without other signs."""
_MAX_LISTED = 20
_MAX_NAME = 40

Columns: TypeAlias = Mapping[str, str]
"""The file's name of each column that is read."""
Finder: TypeAlias = Callable[[Sequence[str]], tuple[Columns, tuple[str, ...]]]


def find_columns(
    path: str | os.PathLike[str], names: Sequence[str], chosen: Mapping[str, str | None]
) -> tuple[Columns, tuple[str, ...]]:
    """Return the file's name of each column, and hints at columns that resemble a missing one.

    `chosen` has names by column; None leaves the column out.

    Raises
    ------
    InputError
        If a chosen name is not in the file, a column is in it twice, or submission or run time are
        missing; the message lists the file's columns and names those to give.
    """
    listing = f"the file has {_listing(names)}"
    name_of = {}
    for column in COLUMNS:
        name = chosen.get(column, column)
        if name == column:
            name = next((n for n in (column, *_OTHER_NAMES.get(column, ())) if n in names), None)
        elif name is not None and name not in names:
            text = f"there is no column {name!r} (trace.columns.{column}); {listing}"
            raise InputError(text, file=path, rule="missing column")
        if name is not None:
            name_of[column] = name
    for name in name_of.values():
        if list(names).count(name) > 1:
            text = f"two columns are called {name!r}; rename one"
            raise InputError(text, file=path, rule="no header")
    missing_columns = [c for c in _PATTERNS if c not in name_of and chosen.get(c, c) is not None]
    similar = _similar(missing_columns, set(names) - {*name_of.values()})
    missing = [] if "submit_s" in name_of else ["submit_s"]
    if "run_s" not in name_of and not {"start_s", "end_s"} <= name_of.keys():
        has_times = {"start_s", "end_s"} & {*name_of, *similar} and "run_s" not in similar
        needed = ("start_s", "end_s") if has_times else ("run_s",)
        missing += [column for column in needed if column not in name_of]
    if missing:
        hints = " ".join(_override(c, similar.get(c, "NAME")) for c in missing)
        text = f"there is no column {' and no '.join(missing)}; {listing}: give {hints}"
        raise InputError(text, file=path, line=1, rule="missing column")
    needless = {"job_id"} | (_RAN if len(_RAN & name_of.keys()) > 1 else set())
    return name_of, tuple(
        f"{name}: did you mean {_override(column, name)}?"
        for column, name in similar.items()
        if column not in needless
    )


def without(column: str) -> str:
    """Return the advice how to leave a column out; empty for one that a job needs."""
    return "" if column in REQUIRED else f"; trace.columns.{column}=null leaves the column out"


def _override(column: str, name: str) -> str:
    """Return the word of a command line that gives a column's name."""
    return shlex.quote(f"trace.columns.{column}={_cut(name)}")


def _listing(names: Sequence[str]) -> str:
    more = [f"{len(names) - _MAX_LISTED:,} more"] if len(names) > _MAX_LISTED else []
    return ", ".join([*map(_cut, names[:_MAX_LISTED]), *more]) or "none"


def _cut(name: str) -> str:
    return name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}..."


def _similar(columns: Sequence[str], names: Iterable[str]) -> dict[str, str]:
    """Return a name for each of the columns that one begins like; no name twice."""
    spare = {name: re.sub(r"[^a-z]", "", name.lower()) for name in sorted(names)}
    name_of: dict[str, str] = {}
    for column in columns:
        for name, letters in spare.items():
            if _PATTERNS[column].match(letters):
                name_of[column] = name
                del spare[name]
                break
    return name_of
