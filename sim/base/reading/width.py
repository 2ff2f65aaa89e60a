"""Rows with another number of fields than there are columns: put right where that is certain.

Some programs, ``sacct`` among them, write texts of users without escaping the delimiter or a line
end. A row with more fields is put right by joining fields of one free-text column; a row on several
lines by joining these there; both only if all values are valid then, and no other way gives other
values.
"""

from __future__ import annotations

import bisect
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sim.base.reading.layout import Field, Layout
from sim.base.reading.quotes import split_fields
from sim.base.reading.utf8 import INVALID

RULE: Final = "wrong number of fields"
MAX_WRONG: Final = 100_000
"""Limit of such lines in a block: more are no accident, and Arrow would search the whole rest of
the file for a row."""
_MAX_JOINED = 100
"""Largest number of lines that one row may be spread over."""


@dataclass(frozen=True)
class BadRow:
    """A bad row: its line in the file, the broken rule, and a text for the error."""

    line: int
    rule: str
    text: str


@dataclass(frozen=True)
class _Short:
    """A row with too few fields so far; its next line may complete it."""

    line: int
    last: int
    values: list[str]


def _places(layout: Layout, fields: Mapping[str, Field]) -> list[int]:
    """Return the positions of free texts in which fields may be joined, in their order.

    Of those between the same two columns with a constraint, the first is enough: joined in another
    one, the values of these are the same. A table may have thousands of columns.
    """
    free = set(layout.free_text)
    places: dict[tuple[int, int], int] = {}
    n_before = 0
    for position, name in enumerate(layout.names):
        is_plain = name not in fields or (name in free and fields[name] == Field())
        n_before += not is_plain
        if name in free:
            places.setdefault((n_before, -1 if is_plain else position), position)
    return list(places.values())


class WrongWidth:
    """Lines of a wrong width: their numbers, the rows put right, and the bad ones."""

    def __init__(self, layout: Layout, fields: Mapping[str, Field], *, is_error: bool) -> None:
        self.is_error = is_error
        self.lines = array("q")  # Arrow's line numbers, blank lines included
        self.n = 0  # bad rows
        self.first: BadRow | None = None
        self.repaired: deque[tuple[int, list[str]]] = deque()  # line and values of rows put right
        self.short: list[list[str]] = []  # values of rows that end too early
        self.reasons: dict[str, int] = {}
        self._layout = layout
        self._fields = [(i, fields[name]) for i, name in enumerate(layout.names) if name in fields]
        self._strict = [(i, field) for i, field in self._fields if field != Field()]
        self._free = _places(layout, fields)
        free = set(layout.free_text)
        self._fixed = [i for i, _ in self._fields if layout.names[i] not in free]
        self._open: _Short | None = None

    def __call__(self, row: Any) -> str:
        """Skip a row (a callback of Arrow); end the reading if an error is certain and too many."""
        self.lines.append(row.number)
        if row.text.strip():  # a blank line is no row
            self._add(row.number, self._split(row.text))
        return "error" if self.is_error and self.n > MAX_WRONG else "skip"

    def close(self, line: int) -> None:
        """Count a row that is still too short when `line` has been read."""
        if self._open is not None and self._open.last < line:
            short, self._open = self._open, None
            self._bad(short.line, short.values)

    def take(self, before: int, n_rows: int) -> list[tuple[int, list[str]]]:
        """Return and forget the rows put right that lie in a block or before it.

        The block has `n_rows` rows of the right width; `before` lines and such rows precede it.
        Each row comes with the number of the block's rows before it.
        """
        taken = []
        while self.repaired:
            line, values = self.repaired[0]
            position = line - 1 - bisect.bisect_left(self.lines, line) - before
            if position > n_rows:
                break
            taken.append((position, values))
            self.repaired.popleft()
        return taken

    def _split(self, text: str) -> list[str]:
        text = text.rstrip("\r\n")
        if self._layout.quoted and '"' in text:
            return split_fields(text, self._layout.delimiter)
        return text.split(self._layout.delimiter)

    def _add(self, line: int, values: list[str]) -> None:
        if self._open is not None:
            short = self._open
            joined = [*short.values[:-1], f"{short.values[-1]}\n{values[0]}", *values[1:]]
            follows = line == short.last + 1 and len(short.values) > min(self._free)
            if follows and self._completes(short.line, line, joined):
                return
            self.close(line)
        n = len(self._layout.names)
        if len(values) > n:
            self._long(line, values)
        elif self._free:
            self._open = _Short(line, line, values)
        else:
            self._bad(line, values)

    def _completes(self, first: int, line: int, values: list[str]) -> bool:
        """Take a line as the next one of a short row; False if it is not."""
        n = len(self._layout.names)
        if len(values) < n and line - first < _MAX_JOINED:
            self._open = _Short(first, line, values)
            return True
        ways = self._ways(values)
        if ways:
            self._open = None
            self._repair(first, ways[0], "a line end in a text: its lines are joined")
        return bool(ways)

    def _long(self, line: int, values: list[str]) -> None:
        ways = self._ways(values)
        if ways:
            delimiter = self._layout.delimiter
            self._repair(line, ways[0], f"a {delimiter!r} in a text: its fields are joined")
        else:
            self._bad(line, values)

    def _ways(self, values: list[str]) -> list[list[str]]:
        """Return the valid ways to join fields of a free-text column; none if they differ."""
        end = len(values) - len(self._layout.names) + 1
        delimiter = self._layout.delimiter
        ways = [
            [*values[:i], delimiter.join(values[i : i + end]), *values[i + end :]]
            for i in self._free
        ]
        ways = [way for way in ways if self._is_valid(way)]
        return ways if len({tuple(way[i] for i in self._fixed) for way in ways}) == 1 else []

    def _is_valid(self, values: Sequence[str]) -> bool:
        marked = any(INVALID in value for value in values)
        fields = self._fields if marked else self._strict  # others may have any text
        return all(field.accepts(values[i]) for i, field in fields)

    def _repair(self, line: int, values: list[str], reason: str) -> None:
        self.repaired.append((line, values))
        self.reasons[reason] = self.reasons.get(reason, 0) + 1

    def _bad(self, line: int, values: list[str]) -> None:
        self.n += 1
        names = self._layout.names
        if self.first is None:
            text = f"the row has {len(values)} fields; it needs {len(names)}"
            if len(values) > len(names) and self._free:
                text += f" (a {self._layout.delimiter!r} in {names[self._free[0]]}?)"
            number = self._layout.lines(line) if self._layout.lines else line
            self.first = BadRow(number, RULE, text)
        if len(values) < len(names) and len(self.short) < MAX_WRONG:
            self.short.append(values[:-1])  # the last one may be cut off
