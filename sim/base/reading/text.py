"""Opening a trace's text file, plain or packed, and the errors that all readers share."""

from __future__ import annotations

import contextlib
import io
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from sim.base.errors import InputError
from sim.base.memory import NEGLIGIBLE_BYTES, MemoryGuard, available_bytes

_PIECE_BYTES = 16 << 20
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
"""The first bytes of packed files."""


def open_text(path: str | os.PathLike[str]) -> Any:
    """Open a file to read its bytes, unpacked if gzip, zstd or lz4 (told by its first bytes).

    Reading on is an error once what was read so far fills too much of the memory: a few bytes of a
    packed file may stand for any number (`sim.base.memory.Growth`).
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
    raw = pa.OSFile(os.fspath(file))
    packed = next((name for mark, name in _PACKED.items() if head.startswith(mark)), None)
    return _Watched(path, pa.CompressedInputStream(raw, packed) if packed else raw)


class _Watched(io.RawIOBase):
    """A stream that watches how much memory its reader takes."""

    def __init__(self, path: str | os.PathLike[str], raw: Any) -> None:
        super().__init__()
        self._path = path
        self._raw = raw
        self._growth = MemoryGuard(path)
        self._n_lines = self._n_unchecked = 0

    def readable(self) -> bool:
        """Say that it is read from."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size`, or all that are left; none at the end."""
        if size < 0:
            whole = io.BytesIO()
            while piece := self.read(_PIECE_BYTES):
                whole.write(piece)
            return whole.getvalue()
        read: bytes = self._raw.read(size)
        self._n_unchecked += len(read)
        if self._n_unchecked >= _PIECE_BYTES:
            self._n_unchecked = 0
            self._growth.check(self._n_lines + 1)
        self._n_lines += read.count(b"\n")
        return read

    def close(self) -> None:
        """Close the file."""
        self._raw.close()
        super().close()


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Read a plain or packed file whole, if there is room for what its text comes to."""
    with open_text(path) as stream:
        try:
            content: bytes = stream.read()
        except OSError as error:
            raise broken_text_error(path, 1, error) from error
    _check_values(path, content)
    return content


def read_text(path: str | os.PathLike[str]) -> str:
    """Read a plain or packed file whole, as UTF-8; see `read_bytes`."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise broken_text_error(path, 1, error) from error


_VALUE_BYTES = {b"{": 200, b"[": 80, b",": 64, b"\n": 64}
"""Memory that Python takes for an object, a list, a value and a line of a text, about."""


def _check_values(path: str | os.PathLike[str], content: bytes) -> None:
    """Refuse a text of which lists, objects and lines would not fit into memory."""
    if len(content) * max(_VALUE_BYTES.values()) <= NEGLIGIBLE_BYTES:
        return
    letter = 1 if content.isascii() else 4
    needed = letter * len(content)
    needed += sum(size * content.count(sign) for sign, size in _VALUE_BYTES.items())
    left = available_bytes()
    if needed > left:
        raise InputError(
            f"its {len(content) / 1e6:,.0f} MB of text would take up to {needed / 1e9:,.1f} GB of "
            f"memory, and {left / 1e9:,.1f} GB are free: take a part of it, or a larger machine",
            file=path,
            line=1,
            rule="too large",
        )


class BadLineError(Exception):
    """A line that breaks a rule, which has a name."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(text)
        self.rule = rule


@contextlib.contextmanager
def handle_bad_line(
    path: str | os.PathLike[str], line: int, on_bad_row: str, bad: dict[str, int]
) -> Iterator[None]:
    """Take in a line: one that breaks a rule is an error, or is left out and counted."""
    try:
        yield
    except BadLineError as error:
        if on_bad_row == "error":
            text = f"{error}; mend the file, or read it with on_bad_row=skip"
            raise InputError(text, file=path, line=line, rule=error.rule) from None
        bad[error.rule] = bad.get(error.rule, 0) + 1


def first_line(path: str | os.PathLike[str]) -> str:
    """Return the first line of a plain or gzipped text file, without its end."""
    with open_text(path) as stream:
        try:
            head = stream.read(1 << 16)
        except OSError as error:
            raise broken_text_error(path, 1, error) from error
    if not head.strip():
        raise empty_file_error(path)
    if b"\0" in head:
        raise InputError(
            "the file is no text; unpack archives (.tar, .tar.gz, .zip) first",
            file=path,
            line=1,
            rule="not text",
        )
    line: str = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode(errors="replace")
    return line.rstrip("\r")


def column_names(
    path: str | os.PathLike[str], delimiter: str, needed: Sequence[str], hint: str = ""
) -> tuple[str, ...]:
    """Return the names of all columns, which the first line says.

    The first of the `needed` ones tells that line from a row; ``A/B`` is a need for either.
    """
    names = tuple(name.strip() for name in first_line(path).split(delimiter))
    known = [name for name in names if name]
    missing = [name for name in needed if not {*name.split("/")} & {*names}]
    rule = "no header"
    if needed[0] in missing:
        words = delimiter.join(needed)
        text = f"the first line must name the columns, {words}, not {names[0]!r}{hint}"
    elif missing:
        text, rule = f"there is no column {' and no '.join(missing)}{hint}", "missing column"
    elif len({*known}) < len(known):
        text = "a column is there twice"
    else:
        return names
    raise InputError(text, file=path, line=1, rule=rule)


def broken_text_error(path: str | os.PathLike[str], line: int, error: Exception) -> InputError:
    """Word the error of a text that ends or breaks while it is read at `line`."""
    if "runcated" in str(error) or "inflate" in str(error):
        text = f"the gzip stream ends or breaks here ({error}); fetch the file again"
        return InputError(text, file=path, line=_readable_lines(path) + 1, rule="truncated gzip")
    return InputError(
        f"the file can't be read on: {error}", file=path, line=line, rule="unreadable"
    )


def _readable_lines(path: str | os.PathLike[str]) -> int:
    """Count the whole lines of a gzipped file up to where it breaks."""
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
    """Word the error of a file without content."""
    return InputError("the trace is empty", file=path, line=1, rule="empty file")


def no_job_left(path: str | os.PathLike[str], dropped: Mapping[str, int]) -> InputError:
    """Word the error of a trace of which no job is left."""
    why = ", ".join(f"{n} × {rule}" for rule, n in dropped.items() if n)
    if not why:
        return InputError("the trace has no rows", file=path, line=1, rule="empty file")
    return InputError(f"no job is left; dropped: {why}", file=path, line=1, rule="no job left")
