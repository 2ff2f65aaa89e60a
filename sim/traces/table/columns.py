"""Columns of a table of jobs: their kinds, and which of a file's columns they are."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from sim.base.errors import InputError

Kind = Literal["time", "span", "count", "number", "text"]

COLUMNS: Mapping[str, Kind] = {
    "job_id": "text", "submit_s": "time", "start_s": "time", "end_s": "time", "run_s": "span",
    "cpus": "count", "limit_s": "span", "user": "text", "queue": "text", "priority": "number",
}  # fmt: skip
"""Columns that are read, and their kinds: a point in time, a time that passes, a whole number of at
least 0, any number, text."""
TIMES = ("submit_s", "start_s", "end_s")
_RAN = {"run_s", "start_s", "end_s"}
"""Two of them give the third."""
_SYNONYMS = {
    "job_id": ("jobid", "id", "job"),
    "submit_s": ("submit", "arriv", "creat", "queuedat", "qtime"),
    "start_s": ("start", "begin", "launch"),
    "end_s": ("end", "finish", "complet", "stop"),
    "run_s": ("run", "elapsed", "duration", "walltime", "length"),
    "cpus": ("cpu", "core", "proc", "ncpu", "reqcpu", "alloccpu", "slot"),
    "limit_s": ("limit", "timelimit", "requestedtime", "reqtime", "wallclock"),
    "user": ("user", "owner"),
    "queue": ("queue", "partition"),
    "priority": ("prio",),
}
"""Beginnings of other names for a column, in lower case and without other signs."""

Columns: TypeAlias = Mapping[str, str]
"""The file's name of each column that is read."""
Finder: TypeAlias = Callable[[Sequence[str]], tuple[Columns, tuple[str, ...]]]


def find_columns(
    path: str | os.PathLike[str], names: Sequence[str], chosen: Mapping[str, str]
) -> tuple[Columns, tuple[str, ...]]:
    """Return the file's name of each column, and hints at columns that resemble a missing one.

    Raises
    ------
    InputError
        If a chosen name is not in the file, a column is in it twice, or submission or run time are
        missing; the message lists the file's columns and names those to give.
    """
    listing = f"the file has {', '.join(names) or 'none'}"
    for column, name in chosen.items():
        if name not in names:
            text = f"there is no column {name!r} (trace.columns.{column}); {listing}"
            raise InputError(text, file=path, rule="missing column")
    name_of = {column: chosen.get(column, column) for column in COLUMNS}
    name_of = {column: name for column, name in name_of.items() if name in names}
    for name in name_of.values():
        if list(names).count(name) > 1:
            text = f"two columns are called {name!r}; rename one"
            raise InputError(text, file=path, rule="no header")
    similar = _similar([c for c in COLUMNS if c not in name_of], set(names) - {*name_of.values()})
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


def _override(column: str, name: str) -> str:
    """Return the word of a command line that gives a column's name."""
    return shlex.quote(f"trace.columns.{column}={name}")


def _similar(columns: Sequence[str], names: Iterable[str]) -> dict[str, str]:
    """Return a name for each of the columns that one begins like; no name twice."""
    spare = {name: re.sub(r"[^a-z]", "", name.lower()) for name in sorted(names)}
    name_of: dict[str, str] = {}
    for column in columns:
        for name, letters in spare.items():
            if letters.startswith(_SYNONYMS[column]):
                name_of[column] = name
                del spare[name]
                break
    return name_of
