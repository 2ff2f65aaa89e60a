"""Lines of SWF logs as columns, with the headers before them.

Logs that were put together (``cat a.swf b.swf``) are sections of one text, each with a header and
its own clock.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sim.base.arrays import F8, Mask
from sim.base.reading import (
    BadRows,
    CommentStripper,
    Field,
    Layout,
    OnBadRow,
    Section,
    first_line,
    no_job_left,
    open_text,
    read_blocks,
)

FIELDS: Final = (
    "job_number", "submit_time", "wait_time", "run_time", "allocated_processors",
    "average_cpu_time", "used_memory", "requested_processors", "requested_time", "requested_memory",
    "status", "user_id", "group_id", "executable", "queue", "partition", "preceding_job",
    "think_time",
)  # fmt: skip
"""Fields of a line, in order; -1 means unknown."""
_WHOLE = (
    "allocated_processors", "requested_processors", "status", "user_id", "executable", "queue",
    "partition", "preceding_job",
)  # fmt: skip
SECTION: Final = "section"
"""Column with the index of the header that a line stands under."""
START, SIZE = "UnixStartTime", "MaxProcs"
_KEYS = ("Version", "Computer", START, SIZE)
"""Keys that a header has once: after rows, one of them begins the header of another log."""
_MAX_NUMBER = 1e12
"""Largest valid number: times and memory of real logs are far smaller."""

Log = dict[str, F8]
"""Columns of N lines, (N,) float64 each: `FIELDS`, and `SECTION`."""


@dataclass(frozen=True)
class Headers:
    """Headers of a text.

    Attributes
    ----------
    merged : dict of str to str
        The first value of each key; but the earliest ``UnixStartTime``, to which all times are
        moved, and the largest ``MaxProcs``.
    sections : dict of int to Section
        Headers that have lines, by index.
    """

    merged: dict[str, str]
    sections: dict[int, Section]


def read_lines(
    path: str | os.PathLike[str], on_bad_row: OnBadRow, bad: BadRows
) -> tuple[Log, Headers]:
    """Read the lines of a log, and its headers; count bad lines in `bad`."""
    fields = {name: Field("number", low=-1, high=_MAX_NUMBER) for name in FIELDS}
    fields |= {name: Field("whole", low=-1, high=_MAX_NUMBER) for name in _WHOLE}
    fields["job_number"] = Field("whole", required=True)
    first_line(path)  # refuses files that are not text
    blocks: list[Log] = []
    with open_text(path) as raw:
        rows = CommentStripper(path, raw, keys=_KEYS, n_fields=len(FIELDS))
        layout = Layout(FIELDS, delimiter=" ", lines=rows.line_of)
        while True:
            for block in read_blocks(path, rows, layout, fields, on_bad_row, bad):
                section = np.full(len(block["status"]), rows.section, np.float64)
                blocks.append({**block, SECTION: section})
            if not rows.next_section():
                break
    if not sum(len(block["status"]) for block in blocks):
        raise no_job_left(path, bad)
    if rows.n_longer:
        reason = f"more than {len(FIELDS)} fields: the first {len(FIELDS)} are read"
        bad.repaired[reason] = rows.n_longer
    log = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    indices = np.unique(log[SECTION]).astype(np.int64).tolist()
    sections = {index: rows.sections[index] for index in indices}
    return log, Headers(_merged(rows.header, [*sections.values()]), sections)


def _merged(header: dict[str, str], sections: Sequence[Section]) -> dict[str, str]:
    """Return the first value of each key, but the earliest start and the largest size."""
    starts = {s.header.get(START, ""): _unix_s(s.header.get(START, "")) for s in sections}
    known_s = {text: start_s for text, start_s in starts.items() if start_s is not None}
    sizes = [text for s in sections if (text := s.header.get(SIZE, "")).isdecimal()]
    merged = dict(header)
    if known_s:
        merged[START] = min(known_s, key=known_s.__getitem__)
    if sizes:
        merged[SIZE] = max(sizes, key=int)
    return merged


def known(column: F8) -> F8:
    """Return a column with NaN for what is unknown (-1)."""
    return np.where(column >= 0, column, np.nan)


def take(log: Log, rows: Mask | np.ndarray) -> Log:
    """Return some lines of a log."""
    return {name: column[rows] for name, column in log.items()}


def align_clocks(log: Log, headers: Headers, noticed: dict[str, int]) -> list[str]:
    """Move the submissions of all sections, in place, to the earliest clock; return warnings.

    Times of a log count from its ``UnixStartTime``.
    """
    if len(headers.sections) < 2:
        return []
    noticed["another log, behind a header of its own"] = len(headers.sections) - 1
    begins_s = {i: _unix_s(s.header.get(START, "")) for i, s in headers.sections.items()}
    known_s = {index: begin_s for index, begin_s in begins_s.items() if begin_s is not None}
    for index, begin_s in known_s.items():
        is_moved = (log[SECTION] == index) & (log["submit_time"] >= 0)
        log["submit_time"][is_moved] += begin_s - min(known_s.values())
    warnings = []
    unknown = [headers.sections[i].line for i, begin_s in begins_s.items() if begin_s is None]
    if unknown:
        warnings.append(
            f"{len(unknown)} of {len(begins_s)} headers state no {START} (the first at line "
            f"{unknown[0]:,}): times there are read as if on the clock of the earliest log"
        )
    sizes = sorted({s.header[SIZE] for s in headers.sections.values() if SIZE in s.header})
    if len(sizes) > 1:
        warnings.append(f"logs of several machines ({SIZE} {', '.join(sizes)}) are read as of one")
    return warnings


def _unix_s(text: str) -> float | None:
    """Return the start time of a header, s since 1970; None if it states none."""
    try:
        time_s = float(text.split()[0])
    except (ValueError, IndexError):
        return None
    return time_s if 0 < time_s <= _MAX_NUMBER else None
