"""Stream of a text's rows without comments and blank lines, read in pieces.

Only one piece of the text is in memory at a time, however long the comments are.
"""

from __future__ import annotations

import bisect
import io
import os
import re
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sim.base.errors import InputError
from sim.base.reading.text import broken_text_error

PIECE_BYTES = 4 << 20
MAX_LINE = 1 << 20
HEADER_BYTES = 16 << 20
MAX_KEYS = 1000
MAX_SECTIONS = 1000
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


@dataclass
class Section:
    """Rows of a text with a header of their own, as of logs that were put together.

    Attributes
    ----------
    line : int
        Line of the text where the header begins, from 1.
    first_row : int
        Number of rows in the sections before.
    header : dict of str to str
        First value of each of the stripper's `keys`.
    """

    line: int = 1
    first_row: int = 0
    header: dict[str, str] = field(default_factory=dict)


class CommentStripper(io.RawIOBase):
    """Stream of the rows of a text, with one space between fields.

    A text may have several headers, each before its rows: the stream ends after the rows of one,
    and `next_section` goes on.

    Parameters
    ----------
    path : path-like
        The file's path, for messages.
    raw : file-like
        Stream of the text's bytes, as from `sim.base.reading.open_text`.
    mark : bytes
        One byte that begins a comment anywhere in a line; the comment ends with the line.
    keys : sequence of str
        Keys of a header: one of them after rows begins another section.
    n_fields : int, optional
        Number of fields of a row; those after them are left out. By default there is no limit.

    Attributes
    ----------
    header : dict of str to str
        Entries ``<mark> Key: value`` of the comments in the first 16 MiB: the first value of each
        key, up to 1,000 keys, up to 2,000 characters a value.
    sections : list of Section
        Headers so far, and where their rows begin.
    section : int
        Index of the one whose rows are read.
    n_longer : int
        Number of rows so far with more than `n_fields` fields.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        raw: Any,
        mark: bytes = b";",
        *,
        keys: Sequence[str] = (),
        n_fields: int | None = None,
    ) -> None:
        super().__init__()
        self.header: dict[str, str] = {}
        self.sections = [Section()]
        self.section = 0
        self.n_longer = 0
        self._path = path
        self._raw = raw
        self._mark = mark
        key_value = rb"(?m)^" + re.escape(mark) + rb"[ \t]*([A-Z]\w*):(.*)$"
        self._key_value = re.compile(key_value)
        self._comment = re.compile(re.escape(mark) + rb".*")
        self._keys = [key.encode() for key in keys]
        self._key = re.compile(
            rb"(?m)^" + re.escape(mark) + rb"[ \t]*(" + b"|".join(self._keys) + rb"):(.*)$"
        )
        self._n_fields = n_fields
        self._partial_line = b""  # its end has not been read yet
        self._ready = b""
        self._later: deque[tuple[int, bytes]] = deque()  # section and rows
        self._is_over = False
        self._n_lines = self._n_rows = self._n_searched = 0
        self._from_row = array("q", [0])  # rows from which on `_n_skipped` lines were skipped
        self._n_skipped = array("q", [0])

    def readable(self) -> bool:
        """Return True: the stream is readable."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size`; empty at the end of a section."""
        while not self._ready and not (self._is_over and not self._later):
            if not self._later:
                self._strip_piece()
            elif self._later[0][0] == self.section:
                self._ready = self._later.popleft()[1]
            else:
                break
        end = len(self._ready) if size < 0 else size
        content, self._ready = self._ready[:end], self._ready[end:]
        return content

    def next_section(self) -> bool:
        """Go on to the next section that has rows, at the end of one; False if there is none."""
        if self._later:
            self.section = self._later[0][0]
        return bool(self._later)

    def line_of(self, row: int) -> int:
        """Return the line in the text of a row of this section, both counted from 1."""
        row += self.sections[self.section].first_row
        return row + self._n_skipped[bisect.bisect_right(self._from_row, row - 1) - 1]

    def _strip_piece(self) -> None:
        """Read a piece of the text, and keep its rows for later."""
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
        text = text[:end]
        begin = 0
        if self._mark in text:
            self._read_header(text)
            for match in self._key_lines(text):
                self._keep(text[begin : match.start()])
                begin = match.start()
                self._state(*(_decode(part) for part in match.groups()))
        self._keep(text[begin:])

    def _key_lines(self, text: bytes) -> Iterator[re.Match[bytes]]:
        if any(key in text for key in self._keys):
            yield from self._key.finditer(text)

    def _state(self, key: str, value: str) -> None:
        """Enter a key's value into the header of the rows that follow."""
        if self._n_rows > self.sections[-1].first_row:
            self.sections.append(Section(self._n_lines + 1, self._n_rows))
        if len(self.sections) > MAX_SECTIONS:
            raise InputError(
                f"more than {MAX_SECTIONS:,} headers, each with rows: read fewer logs at a time",
                file=self._path,
                line=self._n_lines + 1,
                rule="too many headers",
            )
        self.sections[-1].header.setdefault(key, value)

    def _keep(self, text: bytes) -> None:
        if rows := self._rows(text):
            self._later.append((len(self.sections) - 1, rows))

    def _rows(self, text: bytes) -> bytes:
        if self._mark in text:
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
        if self._n_fields is not None:
            self._shorten(lines, self._n_fields)
        numbers = np.flatnonzero(np.fromiter(map(len, lines), np.int64, len(lines)))
        self._record_skipped(numbers)
        self._n_lines += len(lines)
        self._n_rows += len(numbers)
        return b"".join(line + b"\n" for line in lines if line)

    def _shorten(self, lines: list[bytes], n_fields: int) -> None:
        """Leave out, in place, the fields of each line after the first `n_fields`."""
        for index in [i for i, line in enumerate(lines) if line.count(b" ") >= n_fields]:
            self.n_longer += 1
            lines[index] = b" ".join(lines[index].split(b" ", n_fields)[:n_fields])

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
            key, value = (_decode(part) for part in match.groups())
            self.header.setdefault(key, value)

    def _record_skipped(self, numbers: Any) -> None:
        """Record the number of skipped lines before each row, where it changes."""
        n_skipped = numbers + self._n_lines - self._n_rows - np.arange(len(numbers))
        changes = np.flatnonzero(np.diff(n_skipped, prepend=self._n_skipped[-1]))
        self._from_row.extend((changes + self._n_rows).tolist())
        self._n_skipped.extend(n_skipped[changes].tolist())


def _decode(text: bytes) -> str:
    return text.decode(errors="replace").strip(" \t\r")[:MAX_VALUE]
