"""SHA-256 of the files that workloads are read from, remembered by size and time of change."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from sim.base import files
from sim.base.errors import InputError

Stamp = tuple[int, int]
"""Size in bytes, and time of change in ns."""


class FileDigests:
    """Digests of files, kept in one JSON file so that a large trace is hashed once.

    A file that cannot be written costs hashing the traces again, nothing else.
    """

    def __init__(self, kept: Path) -> None:
        self._kept = kept
        self._known: dict[str, list[object]] | None = None
        self._has_new = False

    def digest(self, file: Path) -> str:
        """Return the SHA-256 of a file, as 64 hex digits.

        Raises InputError where it can't be read.
        """
        if self._known is None:
            self._known = files.read_checked_json(self._kept) or {}
        # a path may hold a secret
        name = hashlib.sha256(str(file.resolve()).encode(errors="surrogateescape")).hexdigest()
        size, changed_ns = stamp(file)
        known = self._known.get(name)
        if known is not None and known[:2] == [size, changed_ns]:
            return str(known[2])
        try:
            with file.open("rb") as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
        except OSError as error:
            raise InputError(f"can't be read: {error}", file=file) from error
        self._known[name] = [size, changed_ns, digest]
        self._has_new = True
        return digest

    def save(self) -> None:
        """Keep what is new."""
        if self._has_new and self._known is not None:
            with contextlib.suppress(OSError):
                files.write_checked_json(self._kept, self._known)
            self._has_new = False


def stamp(file: Path) -> Stamp:
    """Return a file's size and time of change; zeros where it is gone."""
    with contextlib.suppress(OSError):
        about = file.stat()
        return about.st_size, about.st_mtime_ns
    return 0, 0
