"""SHA-256 checksums of a folder's files, in a file of their own that ``sha256sum -c`` reads too."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from sim.base import files

NAME = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  ([^/\0]+)")
_BLOCK_BYTES = 2**20
_VERIFIED: dict[Path, tuple[object, ...]] = {}
"""Size, times, inode and checksum of files that this process has verified."""


def read(folder: Path) -> dict[str, str]:
    """Read the checksums of a folder, in hex by file name; other lines are skipped."""
    try:
        text = (folder / NAME).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return {}
    matches = map(_LINE.fullmatch, text.split("\n"))
    return {match[2]: match[1] for match in matches if match is not None}


def write(folder: Path, checksums: Mapping[str, str]) -> None:
    """Replace the checksums of a folder."""
    lines = [f"{checksum}  {name}\n" for name, checksum in sorted(checksums.items())]
    files.write_text(folder / NAME, "".join(lines))


def is_intact(path: Path, checksum: str) -> bool:
    """Tell whether a file has a checksum.

    A process reads it once, as long as its size, its times and its inode stay the same.
    """
    try:
        with path.open("rb") as file:
            return matches(path, file, checksum)
    except OSError:  # it is missing, or the disk does not give it
        return False


def matches(path: Path, file: BinaryIO, checksum: str) -> bool:
    """Tell whether an open file has a checksum; its position is at the beginning afterwards."""
    stat = path.stat()
    state = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, checksum)
    if _VERIFIED.get(path) == state:
        return True
    is_match = _digest(file) == checksum
    file.seek(0)
    if is_match:
        _VERIFIED[path] = state
    return is_match


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while block := file.read(_BLOCK_BYTES):
        digest.update(block)
    return digest.hexdigest()


class HashingWriter(io.RawIOBase):
    """A binary stream that forwards all that is written to a file, and hashes it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest_state = hashlib.sha256()

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any, /) -> int:
        """Write bytes; return how many."""
        self._digest_state.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Flush the file."""
        if not (self.closed or self._file.closed):  # Python 3.13 flushes as it deletes a stream
            self._file.flush()

    @property
    def checksum(self) -> str:
        """SHA-256 of everything written so far, in hex."""
        return self._digest_state.hexdigest()
