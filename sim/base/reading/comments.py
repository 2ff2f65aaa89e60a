"""Stream of a text's rows without comments and blank lines, read in pieces.

Only one piece of the text is in memory at a time, however long the comments are.
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
MAX_LINE = 1 << 20
HEADER_BYTES = 16 << 20
MAX_KEYS = 1000
_PART_BYTES = 1 << 18
_BLANKS = bytes.maketrans(b"\t\r", b"  ")
MAX_VALUE = 2000


def _parts(text: bytes) -> Iterator[bytes]:
    """Split a text at line ends into small parts: a list of lines takes many times their memory."""
    begin = 0
    while begin < len(text):
        end = text.find(b"\n", begin + _PART_BYTES) + 1 or len(text)
        yield text[begin:end]
        begin = end


class CommentStripper(io.RawIOBase):
    """Stream of the rows of a text, with one space between fields.

    Parameters
    ----------
    path : path-like
        The file's path, for messages.
    raw : file-like
        Stream of the text's bytes, as from `sim.base.reading.open_text`.
    mark : bytes
        One byte that begins a comment anywhere in a line; the comment ends with the line.

    Attributes
    ----------
    header : dict of str to str
        Entries ``<mark> Key: value`` of the comments in the first 16 MiB: the first value of each
        key, up to 1,000 keys, up to 2,000 characters a value.
    changes : list of (int, str, str)
        Later entries with another value: the number of rows before it, key and value.
    """

    def __init__(self, path: str | os.PathLike[str], raw: Any, mark: bytes = b";") -> None:
        super().__init__()
        self.header: dict[str, str] = {}
        self.changes: list[tuple[int, str, str]] = []
        self._path = path
        self._raw = raw
        self._mark = mark
        key_value = rb"(?m)^" + re.escape(mark) + rb"[ \t]*([A-Z]\w*):(.*)$"
        self._key_value = re.compile(key_value)
        self._comment = re.compile(re.escape(mark) + rb".*")
        self._partial_line = b""  # its end has not been read yet
        self._ready = b""
        self._is_over = False
        self._n_lines = self._n_rows = self._n_searched = 0
        self._from_row = array("q", [0])  # rows from which on `_n_skipped` lines were skipped
        self._n_skipped = array("q", [0])

    def readable(self) -> bool:
        """Return True: the stream is readable."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size`; empty at the end."""
        while not self._ready and not self._is_over:
            self._ready = self._next()
        end = len(self._ready) if size < 0 else size
        content, self._ready = self._ready[:end], self._ready[end:]
        return content

    def line_of(self, row: int) -> int:
        """Return the line of a row in the text, both counted from 1."""
        return row + self._n_skipped[bisect.bisect_right(self._from_row, row - 1) - 1]

    def _next(self) -> bytes:
        """Read a piece of the text and return its rows, possibly none."""
        try:
            read = self._raw.read(PIECE_BYTES)
        except OSError as error:
            raise broken_text_error(self._path, self._n_lines + 1, error) from error
        self._is_over = not read
        text = self._partial_line + (read or b"\n"[: len(self._partial_line)])
        end = text.rfind(b"\n") + 1
        self._partial_line = text[end:]
        if len(self._partial_line) > MAX_LINE:
            if not self._partial_line.startswith(self._mark):
                raise InputError(
                    f"the line is longer than {MAX_LINE:,} characters",
                    file=self._path,
                    line=self._n_lines + 1 + text.count(b"\n"),
                    rule="line too long",
                )
            self._partial_line = self._partial_line[:MAX_LINE]
        return self._rows(text[:end])

    def _rows(self, text: bytes) -> bytes:
        if not text:
            return b""
        if self._mark in text:
            self._read_header(text)
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
        self._record_skipped(numbers)
        self._n_lines += len(lines)
        self._n_rows += len(numbers)
        return b"".join(line + b"\n" for line in lines if line)

    def _is_all_comments(self, text: bytes) -> bool:
        letters = np.frombuffer(text, np.uint8)
        begins = np.flatnonzero(letters[:-1] == ord(b"\n")) + 1
        return text.startswith(self._mark) and bool((letters[begins] == self._mark[0]).all())

    def _read_header(self, text: bytes) -> None:
        if self._n_searched > HEADER_BYTES:
            return
        self._n_searched += len(text)
        for match in self._key_value.finditer(text):
            if len(self.header) >= MAX_KEYS:
                return
            key, value = (part.decode(errors="replace").strip(" \t\r") for part in match.groups())
            first = self.header.setdefault(key[:MAX_VALUE], value[:MAX_VALUE])
            if first != value[:MAX_VALUE] and len(self.changes) < MAX_KEYS:
                before = self._comment.sub(b"", text[: match.start()]).split(b"\n")
                n_rows = self._n_rows + sum(bool(line.strip()) for line in before)
                self.changes.append((n_rows, key[:MAX_VALUE], value[:MAX_VALUE]))

    def _record_skipped(self, numbers: Any) -> None:
        """Record the number of skipped lines before each row, where it changes."""
        n_skipped = numbers + self._n_lines - self._n_rows - np.arange(len(numbers))
        changes = np.flatnonzero(np.diff(n_skipped, prepend=self._n_skipped[-1]))
        self._from_row.extend((changes + self._n_rows).tolist())
        self._n_skipped.extend(n_skipped[changes].tolist())
