"""Where results lie: a folder, or a prefix of an object store; the same few requests of both."""

from __future__ import annotations

import contextlib
import os
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from sim.base import files
from sweep.grid import remote_results
from sweep.grid.remote import is_remote
from sweep.store.bucket import Bucket


class Storage(Protocol):
    """Contents by name; names are relative and have ``/`` between their parts."""

    def get(self, name: str) -> bytes | None:
        """Return a content; None if there is none of that name."""
        ...

    def put(self, name: str, content: bytes) -> None:
        """Write a content whole or not at all, whatever was there."""
        ...

    def put_new(self, name: str, content: bytes) -> bool:
        """Write a content unless there is one; of several who try at once one alone gets True."""
        ...

    def list(self, prefix: str) -> dict[str, int]:
        """Return the sizes of all contents below a prefix that ends in ``/``, by name."""
        ...

    def times_s(self, prefix: str) -> dict[str, float]:
        """Return when each of these was written, by the clock of the place itself."""
        ...

    def delete(self, name: str) -> None:
        """Delete a content, if it is there."""
        ...


def read(place: Storage, name: str) -> bytes | None:
    """Return a content; None too where the disk does not give it, as of one that is damaged."""
    try:
        return place.get(name)
    except OSError:
        return None


class Folder:
    """A folder of this machine, or one that machines share."""

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
        """Give a file that is whole its name, which fails where the name is taken.

        A link is made in one step on shared file systems too, where a lock may be none.
        """
        path = self.root / name
        with files.temporary_file(path) as (part, file):
            file.write(content)
            file.close()
            try:
                os.link(part, path)
            except FileExistsError:
                return False
            except OSError:  # a file system without links
                try:
                    with path.open("xb") as new:
                        new.write(content)
                except FileExistsError:
                    return False
        return True

    def list(self, prefix: str) -> dict[str, int]:
        """Look through a folder and those inside."""
        return {name: about.st_size for name, about in self._listed(prefix).items()}

    def times_s(self, prefix: str) -> dict[str, float]:
        """Return the times of change that the file system gives."""
        return {name: about.st_mtime for name, about in self._listed(prefix).items()}

    def _listed(self, prefix: str) -> dict[str, os.stat_result]:
        found = {}
        for path in (self.root / prefix).rglob("*"):
            if path.name.startswith(".tmp-"):
                continue
            with contextlib.suppress(OSError):
                if path.is_file():
                    found[path.relative_to(self.root).as_posix()] = path.stat()
        return dict(sorted(found.items()))

    def delete(self, name: str) -> None:
        """Delete a file."""
        (self.root / name).unlink(missing_ok=True)


@lru_cache(maxsize=8)
def _bucket(address: str) -> Bucket:
    return Bucket(address)


def for_results(results: Path) -> Storage:
    """Return where the results lie that are worked on in a folder: there, unless elsewhere."""
    return open_location(location_of(results))


def location_of(results: Path) -> str:
    """Return what these results are called from everywhere: an address, or a folder."""
    return remote_results.address_for(results) or str(results)


def open_location(name: str) -> Storage:
    """Return the place of a name."""
    return _bucket(name) if is_remote(name) else Folder(Path(name))
