"""A text's rows without its comments and blank lines, read a piece at a time.

However long the comments are, no more than a piece of the text is held in memory.
"""

from __future__ import annotations

import bisect
import io
import os
import re
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np

from sim.base.errors import InputError
from sim.base.reading.text import broken_text_error

PIECE_BYTES = 4 << 20
LONGEST_LINE = 1 << 20
HEADER_BYTES = 16 << 20
MOST_KEYS = 1000
_PART_BYTES = 1 << 18
_BLANKS = bytes.maketrans(b"\t\r", b"  ")
LONGEST_VALUE = 2000


def _parts(text: bytes) -> Iterator[bytes]:
    """Cut a text at ends of lines, which take many times the memory of their text for a while."""
    begin = 0
    while begin < len(text):
        end = text.find(b"\n", begin + _PART_BYTES) + 1 or len(text)
        yield text[begin:end]
        begin = end


class CommentStripper(io.RawIOBase):
    """A stream of the rows of a text, one space between their fields.

    Parameters
    ----------
    path : path-like
        For messages.
    raw : file-like
        Gives the bytes of the text, as `sim.base.reading.open_text` does.
    mark : bytes
        One byte, which begins a comment anywhere in a line; its end is the line's.

    Attributes
    ----------
    header : dict of str to str
        What the comments of the first 16 MiB say as ``<mark> Key: value``; of a key the first, of
        keys the first thousand, of a value as much as a few lines hold.
    """

    def __init__(self, path: str | os.PathLike[str], raw: Any, mark: bytes = b";") -> None:
        super().__init__()
        self.header: dict[str, str] = {}
        self._path = path
        self._raw = raw
        self._mark = mark
        key_value = rb"(?m)^" + re.escape(mark) + rb"[ \t]*([A-Z]\w*):(.*)$"
        self._key_value = re.compile(key_value)
        self._comment = re.compile(re.escape(mark) + rb".*")
        self._begun = b""  # a line whose end has not been read yet
        self._ready = b""
        self._is_over = False
        self._n_lines = self._n_rows = self._n_searched = 0
        self._from_row = array("q", [0])  # from this row on, so many lines are no rows
        self._left_out = array("q", [0])

    def readable(self) -> bool:
        """Say that it is read from."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size`; none at the end."""
        while not self._ready and not self._is_over:
            self._ready = self._next()
        end = len(self._ready) if size < 0 else size
        given, self._ready = self._ready[:end], self._ready[end:]
        return given

    def line_of(self, row: int) -> int:
        """Line of the text that a row stands in, both counted from 1."""
        return row + self._left_out[bisect.bisect_right(self._from_row, row - 1) - 1]

    def _next(self) -> bytes:
        """Read a piece of the text; return its rows, if there are any."""
        try:
            read = self._raw.read(PIECE_BYTES)
        except OSError as error:
            raise broken_text_error(self._path, self._n_lines + 1, error) from error
        self._is_over = not read
        text = self._begun + (read or b"\n"[: len(self._begun)])
        whole = text.rfind(b"\n") + 1
        self._begun = text[whole:]
        if len(self._begun) > LONGEST_LINE:
            if not self._begun.startswith(self._mark):
                raise InputError(
                    f"the line is longer than {LONGEST_LINE:,} characters",
                    file=self._path,
                    line=self._n_lines + 1 + text.count(b"\n"),
                    rule="line too long",
                )
            self._begun = self._begun[:LONGEST_LINE]
        return self._rows(text[:whole])

    def _rows(self, text: bytes) -> bytes:
        if not text:
            return b""
        if self._mark in text:
            self._note_header(text)
            if self._is_all_comments(text):
                self._n_lines += text.count(b"\n")
                return b""
            text = self._comment.sub(b"", text)
        text = text.translate(_BLANKS)
        while b"  " in text:  # not a regular expression, which takes 75 bytes of memory for each
            text = text.replace(b"  ", b" ")
        return b"".join(map(self._without_blank_lines, _parts(text)))

    def _without_blank_lines(self, text: bytes) -> bytes:
        lines = [line.strip(b" ") for line in text.split(b"\n")[:-1]]
        numbers = np.flatnonzero(np.fromiter(map(len, lines), np.int64, len(lines)))
        self._note_lines(numbers)
        self._n_lines += len(lines)
        self._n_rows += len(numbers)
        return b"".join(line + b"\n" for line in lines if line)

    def _is_all_comments(self, text: bytes) -> bool:
        letters = np.frombuffer(text, np.uint8)
        begins = np.flatnonzero(letters[:-1] == ord(b"\n")) + 1
        return text.startswith(self._mark) and bool((letters[begins] == self._mark[0]).all())

    def _note_header(self, text: bytes) -> None:
        if self._n_searched > HEADER_BYTES:
            return
        self._n_searched += len(text)
        for found in self._key_value.finditer(text):
            if len(self.header) >= MOST_KEYS:
                return
            key, value = (part.decode(errors="replace").strip(" \t\r") for part in found.groups())
            self.header.setdefault(key[:LONGEST_VALUE], value[:LONGEST_VALUE])

    def _note_lines(self, numbers: Any) -> None:
        """Keep how many lines before each row are none, where that changes."""
        left_out = numbers + self._n_lines - self._n_rows - np.arange(len(numbers))
        changes = np.flatnonzero(np.diff(left_out, prepend=self._left_out[-1]))
        self._from_row.extend((changes + self._n_rows).tolist())
        self._left_out.extend(left_out[changes].tolist())
