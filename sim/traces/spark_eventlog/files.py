"""Files of event logs: which of a folder belong to which application, and their lines.

Spark names a log after its application, with ``.inprogress`` while it runs; a rolled log is a
folder ``eventlog_v2_<application>`` of files ``events_<number>_<application>``, of which one with
``.compact`` stands for all before it. Its codec ``lz4`` writes blocks of its own, no LZ4 frames.
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
LONGEST_LINE: Final = 1 << 26
_PART = re.compile(r"^events_(\d{1,9})_.*?(\.compact)?$")
# what breaks off loses what was asked for at once
_PIECE_BYTES = 1 << 14
_LZ4_BLOCK = b"LZ4Block"
_LARGEST_BLOCK = 1 << 25
_UNREAD = {b"\x82SNAPPY\0": "snappy", b"ZV\x00": "lzf", b"ZV\x01": "lzf"}


class CutOffError(Exception):
    """A compressed file ends or breaks in its midst."""


@dataclass(frozen=True)
class Log:
    """The files of one application, in order."""

    path: Path
    files: tuple[Path, ...]
    unfinished: bool  # by its name
    n_missing: int = 0  # of the numbers of a rolled log


def logs(path: str | os.PathLike[str], noticed: dict[str, int]) -> list[Log]:
    """Find the logs: a file, a rolled folder, or a folder of many of either, by name."""
    given = Path(path)
    if not given.is_dir():
        return [Log(given, (given,), given.name.endswith(UNFINISHED))]
    if given.name.startswith(ROLLED) or any(_PART.match(f.name) for f in given.iterdir()):
        return [_rolled(given)]
    found = []
    for entry in sorted(given.iterdir()):
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            if entry.name.startswith(ROLLED):
                found.append(_rolled(entry))
            else:
                _count(noticed, "a folder that is no rolled log")
        elif entry.stat().st_size:
            found.append(Log(entry, (entry,), entry.name.endswith(UNFINISHED)))
        else:
            _count(noticed, "an empty file")
    if not found:
        raise InputError("the folder holds no event logs", file=given, rule="missing file")
    return found


def _rolled(folder: Path) -> Log:
    parts: dict[tuple[int, bool], Path] = {}
    for file in folder.iterdir():
        match = _PART.match(file.name)
        if match:
            parts.setdefault((int(match[1]), match[2] is not None), file)
    if not parts:
        raise InputError("a rolled log without events_*", file=folder, rule="missing file")
    compact = max((number for number, whole in parts if whole), default=0)
    kept = sorted(key for key in parts if key[0] > compact or key == (compact, True))
    n_missing = kept[-1][0] - kept[0][0] + 1 - len(kept) + (0 if compact else kept[0][0] - 1)
    unfinished = any(file.name.endswith(UNFINISHED) for file in folder.iterdir())
    return Log(folder, tuple(parts[key] for key in kept), unfinished, n_missing)


def lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Yield the number of each line, its text, and whether its end is there.

    Raises
    ------
    CutOffError
        After the last line that can be read, where the file breaks off.
    """
    begun, n_begun, number = list[bytes](), 0, 0  # a line whose end has not been read yet
    pieces = _pieces(path)
    broken = None
    while True:
        try:
            piece = next(pieces, b"")
        except CutOffError as error:
            piece, broken = b"", error
        if not piece:
            break
        first, *others = piece.split(b"\n")
        begun.append(first)
        n_begun += len(first)
        if others:
            *whole, rest = b"".join(begun), *others
            begun, n_begun = [rest], len(rest)
            for text in whole:
                number += 1
                if text.strip():
                    yield number, text, True
        if n_begun > LONGEST_LINE:
            raise InputError(
                f"the line is longer than {LONGEST_LINE:,} characters",
                file=path,
                line=number + 1,
                rule="line too long",
            )
    rest = b"".join(begun)
    if rest.strip():
        yield number + 1, rest, False
    if broken is not None:
        raise broken


def _pieces(path: Path) -> Iterator[bytes]:
    with open_text(path) as stream:
        try:
            head = stream.read(_PIECE_BYTES)
            codec = next((name for mark, name in _UNREAD.items() if head.startswith(mark)), None)
            if codec is not None:
                raise InputError(
                    f"{codec} is not read here; have the log written with "
                    "spark.eventLog.compression.codec=zstd, or unpack it",
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
            raise CutOffError(str(error)) from error


def _lz4_blocks(stream: Any, begun: bytes) -> Iterator[bytes]:
    """Unpack lz4-java's LZ4BlockOutputStream: mark, method, two lengths, checksum, content."""
    codec = pa.Codec("lz4_raw")
    held = begun

    def take(n: int) -> bytes:
        nonlocal held
        while len(held) < n:
            more = stream.read(max(_PIECE_BYTES, n - len(held)))
            if not more:
                raise OSError("the last block is not whole")
            held += more
        taken, held = held[:n], held[n:]
        return taken

    while held or (held := stream.read(_PIECE_BYTES)):
        head = take(21)
        packed, unpacked = (int.from_bytes(head[at : at + 4], "little") for at in (9, 13))
        if not head.startswith(_LZ4_BLOCK) or max(packed, unpacked) > _LARGEST_BLOCK:
            raise OSError("no LZ4 block where one must be")
        content = take(packed)
        if unpacked:  # the last of a stream has none
            plain = head[8] & 0xF0 == 0x10
            yield content if plain else codec.decompress(content, unpacked).to_pybytes()


def _count(counts: dict[str, int], rule: str) -> None:
    counts[rule] = counts.get(rule, 0) + 1
