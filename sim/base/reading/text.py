"""Opening of text files of traces, plain or compressed, and the errors that all readers share."""

from __future__ import annotations

import contextlib
import io
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sim.base.errors import InputError
from sim.base.memory import NEGLIGIBLE_BYTES, MemoryGuard, available_bytes
from sim.base.reading.bad_rows import BadRows
from sim.base.reading.unpack import HEAD_BYTES, codec_name, open_bytes

_PIECE_BYTES = 16 << 20


def open_text(path: str | os.PathLike[str]) -> Any:
    """Open a file to read its bytes, unpacked and as UTF-8 (`sim.base.reading.unpack`).

    gzip, zstd, lz4, bz2, xz, a zip archive of one file, and UTF-16 are detected by the first bytes.

    Reading is an error once the content fills too much of the memory: a few bytes of a compressed
    file may expand to any number (`sim.base.memory.MemoryGuard`).
    """
    file = Path(path)
    if not file.is_file():
        problem = "is a folder, not a file" if file.is_dir() else "does not exist"
        raise InputError(f"the trace {problem}", file=path, rule="missing file")
    try:
        with file.open("rb") as stream:
            head = stream.read(4)
    except OSError as error:
        raise InputError(f"can't be read: {error}", file=path, rule="missing file") from error
    if not head:
        raise empty_file_error(path)
    return _GuardedStream(path, open_bytes(path))


class _GuardedStream(io.RawIOBase):
    """Stream that limits the memory of its reader (`sim.base.memory.MemoryGuard`)."""

    def __init__(self, path: str | os.PathLike[str], raw: Any) -> None:
        super().__init__()
        self._path = path
        self._raw = raw
        self._guard = MemoryGuard(path)
        self._n_lines = self._n_unchecked = 0

    def readable(self) -> bool:
        """Return True: the stream is readable."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size` (all if negative); empty at the end."""
        if size < 0:
            whole = io.BytesIO()
            while block := self.read(_PIECE_BYTES):
                whole.write(block)
            return whole.getvalue()
        piece: bytes = self._raw.read(size)
        self._n_unchecked += len(piece)
        if self._n_unchecked >= _PIECE_BYTES:
            self._n_unchecked = 0
            self._guard.check(self._n_lines + 1)
        self._n_lines += piece.count(b"\n")
        return piece

    def close(self) -> None:
        """Close the file."""
        self._raw.close()
        super().close()


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Read a whole file, plain or compressed, if memory suffices for the values of its text."""
    with open_text(path) as stream:
        try:
            content: bytes = stream.read()
        except OSError as error:
            raise broken_text_error(path, 1, error) from error
    check_values(path, content)
    return content


def read_text(path: str | os.PathLike[str]) -> str:
    """Read a whole file, plain or compressed, as UTF-8; see `read_bytes`."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise broken_text_error(path, 1, error) from error


_VALUE_BYTES = {b"{": 200, b"[": 80, b",": 64, b"\n": 64}
"""Estimated memory in Python of an object, a list, a value and a line, by the sign for each."""


def check_values(path: str | os.PathLike[str], content: bytes, line: int = 1) -> None:
    """Refuse a text, from `line` on, whose lists, objects and lines would not fit into memory."""
    if len(content) * max(_VALUE_BYTES.values()) <= NEGLIGIBLE_BYTES:
        return
    character_bytes = 1 if content.isascii() else 4
    needed = character_bytes * len(content)
    needed += sum(size * content.count(sign) for sign, size in _VALUE_BYTES.items())
    free = available_bytes()
    if needed > free:
        raise InputError(
            f"its {len(content) / 1e6:,.0f} MB of text would take up to {needed / 1e9:,.1f} GB of "
            f"memory, and {free / 1e9:,.1f} GB are free: take a part of it, or a larger machine",
            file=path,
            line=line,
            rule="too large",
        )


class BadLineError(Exception):
    """A line that breaks a named rule."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(text)
        self.rule = rule


@contextlib.contextmanager
def handle_bad_line(
    path: str | os.PathLike[str], line: int, on_bad_row: str, bad: BadRows
) -> Iterator[None]:
    """Turn a `BadLineError` inside into an InputError, or count and skip the line."""
    try:
        yield
    except BadLineError as error:
        if on_bad_row == "error":
            text = f"{error}; correct the file, or read it with on_bad_row=skip"
            raise InputError(text, file=path, line=line, rule=error.rule) from None
        bad.add(error.rule, 1, line, str(error))


def first_line(path: str | os.PathLike[str]) -> str:
    """Return the first line of a text file, plain or compressed, without its line end."""
    with open_text(path) as stream:
        try:
            head = stream.read(1 << 16)
        except OSError as error:
            raise broken_text_error(path, 1, error) from error
    if not head.strip():
        raise empty_file_error(path)
    if b"\0" in head:
        raise InputError(
            "not a text file; unpack archives (.tar, .tar.gz) first, and save UTF-16 as UTF-8",
            file=path,
            line=1,
            rule="not text",
        )
    line: str = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode(errors="replace")
    return line.rstrip("\r")


def column_names(
    path: str | os.PathLike[str], delimiter: str, needed: Sequence[str], hint: str = ""
) -> tuple[str, ...]:
    """Return the names of all columns, from the first line.

    Without the first of the `needed` names the line is taken for a row. ``A/B`` needs either name.
    """
    names = tuple(name.strip() for name in first_line(path).split(delimiter))
    nonempty = [name for name in names if name]
    missing = [name for name in needed if not {*name.split("/")} & {*names}]
    rule = "no header"
    if needed[0] in missing:
        header = delimiter.join(needed)
        text = f"the first line must name the columns, {header}, not {names[0]!r}{hint}"
    elif missing:
        text, rule = f"there is no column {' and no '.join(missing)}{hint}", "missing column"
    elif len({*nonempty}) < len(nonempty):
        text = "a column is named twice"
    else:
        return names
    raise InputError(text, file=path, line=1, rule=rule)


def broken_text_error(path: str | os.PathLike[str], line: int, error: Exception) -> InputError:
    """Return the error of a text that is truncated or damaged at `line`."""
    if "runcated" in str(error) or "inflate" in str(error):
        with Path(path).open("rb") as stream:
            codec = codec_name(stream.read(HEAD_BYTES))
        return InputError(
            f"the {codec or 'compressed'} stream is truncated or damaged here ({error}); fetch the "
            "file again",
            file=path,
            line=_readable_lines(path) + 1 if codec == "gzip" else line,
            rule=f"truncated {codec or 'file'}",
        )
    return InputError(
        f"the file can't be read on: {error}", file=path, line=line, rule="unreadable"
    )


def _readable_lines(path: str | os.PathLike[str]) -> int:
    """Count the complete lines of a gzip file before its damage."""
    unpack = zlib.decompressobj(31)
    n = 0
    with Path(path).open("rb") as stream, contextlib.suppress(zlib.error):
        while packed := stream.read(1 << 16):
            while packed:
                n += unpack.decompress(packed).count(b"\n")
                packed = unpack.unused_data
                if unpack.eof:  # the next member
                    unpack = zlib.decompressobj(31)
    return n


def empty_file_error(path: str | os.PathLike[str]) -> InputError:
    """Return the error of a file without content."""
    return InputError("the trace is empty", file=path, line=1, rule="empty file")


def no_job_left(
    path: str | os.PathLike[str], bad: Mapping[str, int], dropped: Mapping[str, int] | None = None
) -> InputError:
    """Return the error of a trace without a valid job, with the first bad row of each rule.

    `bad` are the bad rows by rule, with examples if it is a `BadRows`; `dropped` the other rows.
    """
    examples: Mapping[str, str] = getattr(bad, "examples", {})
    counts = {**bad, **(dropped or {})}
    reasons = ", ".join(
        f"{n} × {rule}" + (f" ({examples[rule]})" if rule in examples else "")
        for rule, n in counts.items()
        if n
    )
    if not reasons:
        return InputError("the trace has no rows", file=path, line=1, rule="empty file")
    return InputError(f"no job is left; dropped: {reasons}", file=path, line=1, rule="no job left")
