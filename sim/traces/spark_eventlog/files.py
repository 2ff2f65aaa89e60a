"""Find the event log files of each application, and read their lines.

Spark names a log after its application, with ``.inprogress`` while it runs. A rolled log is a
folder ``eventlog_v2_<application>`` of files ``events_<number>_<application>``; a file with
``.compact`` replaces all before it. Spark's codec ``lz4`` writes blocks in its own format, not LZ4
frames.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from sim.base.errors import InputError
from sim.base.reading import open_text

ROLLED: Final = "eventlog_v2_"
UNFINISHED: Final = ".inprogress"
MAX_LINE: Final = 1 << 26
_PART = re.compile(r"^events_(\d{1,9})_.*?(\.compact)?$")
# small, as a truncated file loses all bytes of the last read
_PIECE_BYTES = 1 << 14
_LZ4_BLOCK = b"LZ4Block"
_MAX_BLOCK = 1 << 25
_UNSUPPORTED = {b"\x82SNAPPY\0": "snappy", b"ZV\x00": "lzf", b"ZV\x01": "lzf"}


class TruncatedError(Exception):
    """A compressed file is truncated or damaged."""


@dataclass(frozen=True)
class Log:
    """The files of one application, in order."""

    path: Path
    files: tuple[Path, ...]
    unfinished: bool  # according to its name
    n_missing: int = 0  # missing files of a rolled log, by their numbers


def find_logs(path: str | os.PathLike[str], noticed: dict[str, int]) -> list[Log]:
    """Find the logs at `path`: a file, a rolled log, or all logs of a folder in order of names."""
    root = Path(path)
    if not root.is_dir():
        return [Log(root, (root,), root.name.endswith(UNFINISHED))]
    if root.name.startswith(ROLLED) or any(_PART.match(f.name) for f in root.iterdir()):
        return [_rolled(root)]
    logs = []
    for entry in sorted(root.iterdir()):
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            if entry.name.startswith(ROLLED):
                logs.append(_rolled(entry))
            else:
                _count(noticed, "a folder that is not a rolled log")
        elif entry.stat().st_size:
            logs.append(Log(entry, (entry,), entry.name.endswith(UNFINISHED)))
        else:
            _count(noticed, "an empty file")
    if not logs:
        raise InputError("the folder contains no event logs", file=root, rule="missing file")
    return logs


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
    unfinished = any(file.name.endswith(UNFINISHED) for file in folder.iterdir())
    return Log(folder, tuple(parts[key] for key in current), unfinished, n_missing)


def lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Yield the number and text of each line, and True if it ends with a line feed.

    Raises
    ------
    TruncatedError
        After the last line that can be read, if the file is truncated.
    """
    partial, n_partial, number = list[bytes](), 0, 0  # a line whose end has not been read yet
    pieces = _pieces(path)
    truncated = None
    while True:
        try:
            piece = next(pieces, b"")
        except TruncatedError as error:
            piece, truncated = b"", error
        if not piece:
            break
        first, *more = piece.split(b"\n")
        partial.append(first)
        n_partial += len(first)
        if more:
            *whole, rest = b"".join(partial), *more
            partial, n_partial = [rest], len(rest)
            for text in whole:
                number += 1
                if text.strip():
                    yield number, text, True
        if n_partial > MAX_LINE:
            raise InputError(
                f"the line is longer than the limit of {MAX_LINE:,} characters; no event of "
                "Spark's is that long",
                file=path,
                line=number + 1,
                rule="line too long",
            )
    rest = b"".join(partial)
    if rest.strip():
        yield number + 1, rest, False
    if truncated is not None:
        raise truncated


def _pieces(path: Path) -> Iterator[bytes]:
    with open_text(path) as stream:
        try:
            head = stream.read(_PIECE_BYTES)
            codec = next(
                (name for mark, name in _UNSUPPORTED.items() if head.startswith(mark)), None
            )
            if codec is not None:
                raise InputError(
                    f"the compression codec {codec} is not supported; decompress the log, or let "
                    "Spark write it with spark.eventLog.compression.codec=zstd",
                    file=path,
                    line=1,
                    rule="unknown codec",
                )
            if head.startswith(_LZ4_BLOCK):
                yield from _lz4_blocks(stream, head)
                return
            while head:
                yield head
                head = stream.read(_PIECE_BYTES)
        except (OSError, pa.ArrowInvalid) as error:
            raise TruncatedError(str(error)) from error


def _lz4_blocks(stream: Any, buffer: bytes) -> Iterator[bytes]:
    """Decompress lz4-java's LZ4BlockOutputStream: mark, method, two lengths, checksum, content."""
    codec = pa.Codec("lz4_raw")

    def take(n: int) -> bytes:
        nonlocal buffer
        while len(buffer) < n:
            more = stream.read(max(_PIECE_BYTES, n - len(buffer)))
            if not more:
                raise OSError("the last LZ4 block is incomplete")
            buffer += more
        content, buffer = buffer[:n], buffer[n:]
        return content

    while buffer or (buffer := stream.read(_PIECE_BYTES)):
        head = take(21)
        n_packed, n_unpacked = (int.from_bytes(head[i : i + 4], "little") for i in (9, 13))
        if not head.startswith(_LZ4_BLOCK) or max(n_packed, n_unpacked) > _MAX_BLOCK:
            raise OSError("an LZ4 block is damaged")
        content = take(n_packed)
        if n_unpacked:  # the last block of a stream is empty
            is_plain = head[8] & 0xF0 == 0x10
            yield content if is_plain else codec.decompress(content, n_unpacked).to_pybytes()


def _count(counts: dict[str, int], rule: str) -> None:
    counts[rule] = counts.get(rule, 0) + 1
