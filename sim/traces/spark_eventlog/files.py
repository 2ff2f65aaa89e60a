"""Read the lines of an event log file, plain or compressed.

Spark's codec ``lz4`` writes blocks in its own format, not LZ4 frames.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from sim.base.errors import InputError
from sim.base.reading import open_text

MAX_LINE: Final = 1 << 26
_PIECE_BYTES = 1 << 14
_LZ4_BLOCK = b"LZ4Block"
_MAX_BLOCK = 1 << 25
_UNSUPPORTED = {b"\x82SNAPPY\0": "snappy", b"ZV\x00": "lzf", b"ZV\x01": "lzf"}


class TruncatedError(Exception):
    """A compressed file is truncated or damaged."""


def lines(path: Path) -> Generator[tuple[int, bytes, bool], None, None]:
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


def first_piece(path: Path) -> bytes | None:
    """Return the first bytes of a file's text; None if they can't be read."""
    with contextlib.closing(_pieces(path)) as pieces:
        try:
            return next(pieces, b"")
        except (TruncatedError, InputError):
            return None


def _pieces(path: Path) -> Generator[bytes, None, None]:
    """Yield a file's text; of a damaged one all that can be read, then a `TruncatedError`."""
    n_read, is_blocks = 0, False
    try:
        with open_text(path) as stream:
            head = stream.read(_PIECE_BYTES)
            _check_codec(path, head)
            is_blocks = head.startswith(_LZ4_BLOCK)
            if is_blocks:
                yield from _lz4_blocks(stream, head)
                return
            while head:
                n_read += len(head)
                yield head
                head = stream.read(_PIECE_BYTES)
    except (OSError, pa.ArrowInvalid) as error:
        if not is_blocks:
            yield _last_bytes(path, n_read)
        raise TruncatedError(str(error)) from error


def _check_codec(path: Path, head: bytes) -> None:
    codec = next((name for mark, name in _UNSUPPORTED.items() if head.startswith(mark)), None)
    if codec is not None:
        raise InputError(
            f"the compression codec {codec} is not supported; decompress the log, or let Spark "
            "write it with spark.eventLog.compression.codec=zstd",
            file=path,
            line=1,
            rule="unknown codec",
        )


def _last_bytes(path: Path, n_read: int) -> bytes:
    """Return the text between a position and the damage: a read that meets it returns nothing."""
    text = bytearray()
    with open_text(path) as stream:
        try:
            while n_read and (piece := stream.read(min(n_read, _PIECE_BYTES))):
                n_read -= len(piece)
            while byte := stream.read(1):
                text += byte
        except (OSError, pa.ArrowInvalid):
            pass
    return bytes(text)


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
