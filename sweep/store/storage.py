"""Storage of results: a folder or a prefix of an object store, behind one small interface."""

from __future__ import annotations

import contextlib
import os
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from sim.base import files
from sweep.grid import remote_results
from sweep.grid.remote import is_remote
from sweep.store.bucket import Bucket, Entry


class Storage(Protocol):
    """Contents by name; names are relative, with ``/`` between their parts."""

    def get(self, name: str) -> bytes | None:
        """Return a content; None if there is none of that name."""
        ...

    def put(self, name: str, content: bytes) -> None:
        """Write a content whole or not at all, replacing an older one."""
        ...

    def put_new(self, name: str, content: bytes) -> bool:
        """Create a content unless it exists; of concurrent writers exactly one gets True."""
        ...

    def list(self, prefix: str) -> dict[str, Entry]:
        """List the contents below a prefix that ends in ``/``, by name."""
        ...

    def delete(self, name: str) -> None:
        """Delete a content, if it exists."""
        ...


def read_or_none(storage: Storage, name: str) -> bytes | None:
    """Read a content; None also where the disk fails to return it, as of a damaged file."""
    try:
        return storage.get(name)
    except OSError:
        return None


class FolderStorage:
    """A local folder, or one that machines share."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def get(self, name: str) -> bytes | None:
        """Read a file."""
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None

    def put(self, name: str, content: bytes) -> None:
        """Replace a file."""
        files.write_bytes(self.root / name, content)

    def put_new(self, name: str, content: bytes) -> bool:
        """Create a file with its whole content; fails where the name is taken.

        A hard link is atomic on shared file systems too, where locks may not work.
        """
        path = self.root / name
        with files.temporary_file(path) as (temporary, file):
            file.write(content)
            file.close()
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
            except OSError:  # a file system without links
                try:
                    with path.open("xb") as new:
                        new.write(content)
                except FileExistsError:
                    return False
        return True

    def list(self, prefix: str) -> dict[str, Entry]:
        """List the files of a folder and of those inside."""
        entries = {}
        for path in (self.root / prefix).rglob("*"):
            if path.name.startswith(".tmp-"):
                continue
            with contextlib.suppress(OSError):
                if path.is_file():
                    stat = path.stat()
                    name = path.relative_to(self.root).as_posix()
                    entries[name] = Entry(stat.st_size, stat.st_mtime)
        return dict(sorted(entries.items()))

    def delete(self, name: str) -> None:
        """Delete a file."""
        (self.root / name).unlink(missing_ok=True)


@lru_cache(maxsize=8)
def _bucket(address: str) -> Bucket:
    return Bucket(address)


def for_results(results: Path) -> Storage:
    """Return the storage of a results folder: the folder, or the object store that it copies."""
    return open_location(location_of(results))


def location_of(results: Path) -> str:
    """Return the location of results for any machine: an address, or a folder."""
    return remote_results.address_for(results) or str(results)


def open_location(location: str) -> Storage:
    """Open the storage at a location."""
    return _bucket(location) if is_remote(location) else FolderStorage(Path(location))
