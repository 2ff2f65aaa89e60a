"""SHA-256 of trace files, cached by size and modification time."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from sim.base import files
from sim.base.errors import InputError

Stamp = tuple[int, int]
"""Size in bytes, and modification time in ns."""


class FileDigests:
    """Digests of files, in one JSON file, so that a large trace is hashed once.

    If it can't be written, the traces are hashed again and nothing else is lost.
    """

    def __init__(self, cache_file: Path) -> None:
        self._file = cache_file
        self._entries: dict[str, list[object]] | None = None
        self._has_new = False

    def digest(self, file: Path) -> str:
        """Return the SHA-256 of a file, as 64 hex digits.

        Raises InputError where it can't be read.
        """
        if self._entries is None:
            self._entries = files.read_checked_json(self._file) or {}
        # a path may hold a secret
        name = hashlib.sha256(str(file.resolve()).encode(errors="surrogateescape")).hexdigest()
        size, changed_ns = stamp(file)
        entry = self._entries.get(name)
        if entry is not None and entry[:2] == [size, changed_ns]:
            return str(entry[2])
        try:
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise InputError(f"can't be read: {error}", file=file) from error
        self._entries[name] = [size, changed_ns, digest]
        self._has_new = True
        return digest

    def save(self) -> None:
        """Write new entries to the file."""
        if self._has_new and self._entries is not None:
            with contextlib.suppress(OSError):
                files.write_checked_json(self._file, self._entries)
            self._has_new = False


def stamp(file: Path) -> Stamp:
    """Return a file's size and modification time; zeros where it is missing."""
    with contextlib.suppress(OSError):
        stat = file.stat()
        return stat.st_size, stat.st_mtime_ns
    return 0, 0
