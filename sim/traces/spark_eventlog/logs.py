"""Find the event log files at a path.

Spark names a log after its application, with ``.inprogress`` while it runs. A rolled log is a
folder ``eventlog_v2_<application>`` of files ``events_<number>_<application>``; a file with
``.compact`` replaces all before it. Databricks delivers a folder a cluster, with event logs some
folders below it, beside logs of other kinds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sim.base.errors import InputError
from sim.traces.spark_eventlog.files import first_piece

ROLLED: Final = "eventlog_v2_"
UNFINISHED: Final = ".inprogress"
_PART = re.compile(r"^events_(\d{1,9})_.*?(\.compact)?$")


@dataclass(frozen=True)
class LogFile:
    """A file of a log; one that is unfinished, by its name, may be truncated."""

    path: Path
    is_unfinished: bool


@dataclass(frozen=True)
class Log:
    """Files of one application, in order."""

    path: Path
    files: tuple[LogFile, ...]
    n_missing: int = 0  # missing files of a rolled log, by their numbers


def find_logs(path: str | os.PathLike[str], noticed: dict[str, int]) -> list[Log]:
    """Find the logs at `path`: a file, a rolled log, or all logs of a folder in order of names."""
    root = Path(path)
    if not root.is_dir():
        return [_log(root)]
    if _is_rolled(root):
        return [_rolled(root)]
    logs = list(_walk(root, noticed, {root.resolve()}))
    if not logs:
        raise InputError("the folder contains no event logs", file=root, rule="missing file")
    return logs


def _walk(folder: Path, noticed: dict[str, int], visited: set[Path]) -> Iterator[Log]:
    """Yield the logs in a folder and those below it; a link to a folder above is not followed."""
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            target = entry.resolve()
            if target in visited:
                continue
            visited.add(target)
            logs = [_rolled(entry)] if _is_rolled(entry) else [*_walk(entry, noticed, visited)]
            yield from logs
            if not logs:
                _count(noticed, "a folder without event logs")
        elif not entry.stat().st_size or (head := first_piece(entry)) == b"":
            _count(noticed, "an empty file")
        elif head is None or b'"Event"' in head:
            yield _log(entry)  # of one that can't be read, the error is told where it is read
        else:
            _count(noticed, "a file that is not an event log")


def _log(file: Path) -> Log:
    return Log(file, (LogFile(file, file.name.endswith(UNFINISHED)),))


def _is_rolled(folder: Path) -> bool:
    return folder.name.startswith(ROLLED) or any(_PART.match(f.name) for f in folder.iterdir())


def _rolled(folder: Path) -> Log:
    parts: dict[tuple[int, bool], Path] = {}
    for file in folder.iterdir():
        match = _PART.match(file.name)
        if match:
            parts.setdefault((int(match[1]), match[2] is not None), file)
    if not parts:
        text = "the folder of a rolled log contains no files events_*"
        raise InputError(text, file=folder, rule="missing file")
    compact = max((number for number, is_compact in parts if is_compact), default=0)
    current = sorted(key for key in parts if key[0] > compact or key == (compact, True))
    first, last = current[0][0], current[-1][0]
    n_missing = last - first + 1 - len(current) + (0 if compact else first - 1)
    is_unfinished = any(file.name.endswith(UNFINISHED) for file in folder.iterdir())
    return Log(folder, tuple(LogFile(parts[key], is_unfinished) for key in current), n_missing)


def _count(counts: dict[str, int], rule: str) -> None:
    counts[rule] = counts.get(rule, 0) + 1
