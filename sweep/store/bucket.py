"""Results in an object store: what `pyarrow.fs` reads and writes, below a prefix."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa

from sim.base.errors import InputError, in_a_line
from sim.base.masking import mask
from sweep.store import signed

TRIES, PAUSE_S = 6, 0.25
WAY_OUT = (
    "see that the address, the credentials (in the environment, as for other tools of the store) "
    "and the network are right, or give paths.results=DIR"
)
T = TypeVar("T")


class Bucket:
    """A prefix of an object store.

    A content is written whole or not at all, as the store promises. A request that fails is made
    again a few times.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    @cached_property
    def _there(self) -> tuple[Any, str]:
        from pyarrow import fs  # the clients of all stores: only for who names one

        try:
            system, root = fs.FileSystem.from_uri(self._address)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise self._unreachable(error) from None
        return system, root.rstrip("/")

    def get(self, name: str) -> bytes | None:
        """Read an object."""

        def read() -> bytes | None:
            system, root = self._there
            try:
                with system.open_input_stream(f"{root}/{name}") as stream:
                    content: bytes = stream.read()
            except FileNotFoundError:
                return None
            return content

        return self._tried(read)

    def put(self, name: str, content: bytes) -> None:
        """Write an object."""

        def write() -> None:
            system, root = self._there
            with system.open_output_stream(f"{root}/{name}") as stream:
                stream.write(content)

        self._tried(write)

    def put_new(self, name: str, content: bytes) -> bool:
        """Write an object unless there is one: by a conditional put where that can be signed.

        Where it can't, those who try at once each write an object of their own beside the name,
        look, and step back unless theirs is the only one: of two who write and then look, one at
        least sees both. The first look is for all: whoever stepped back tries again.
        """
        made = self._tried(lambda: signed.put_new(self._address, name, content))
        if made is not None:
            return made
        if self._like(name):
            return False
        mine = f"{name}~{secrets.token_hex(8)}"
        self.put(mine, content)
        if [*self._like(name)] != [mine]:
            self.delete(mine)
            time.sleep(PAUSE_S * (1 + secrets.randbelow(8)) / 8)
            return False
        self.put(name, content)
        self.delete(mine)
        return True

    def _like(self, name: str) -> list[str]:
        folder = name.rpartition("/")[0] + "/"
        return [
            other for other in self._listed(folder) if other == name or other.startswith(f"{name}~")
        ]

    def list(self, prefix: str) -> dict[str, int]:
        """List objects."""
        return {name: info[0] for name, info in self._listed(prefix).items() if "~" not in name}

    def times_s(self, prefix: str) -> dict[str, float]:
        """Return when each was written, as the store says."""
        return {name: at / 1e9 for name, (_, at) in self._listed(prefix).items()}

    def stamps(self, prefix: str) -> dict[str, str]:
        """Return of each object what changes when it is written anew."""
        return {name: f"{size} {at}" for name, (size, at) in self._listed(prefix).items()}

    def _listed(self, prefix: str) -> dict[str, tuple[int, int]]:
        def look() -> dict[str, tuple[int, int]]:
            from pyarrow import fs  # as above

            system, root = self._there
            where = f"{root}/{prefix.rstrip('/')}"
            wanted = fs.FileSelector(where, recursive=True, allow_not_found=True)
            return {
                info.path[len(root) + 1 :]: (int(info.size), int(info.mtime_ns or 0))
                for info in sorted(system.get_file_info(wanted), key=lambda info: str(info.path))
                if info.type == fs.FileType.File
            }

        return self._tried(look)

    def delete(self, name: str) -> None:
        """Delete an object."""

        def remove() -> None:
            system, root = self._there
            with contextlib.suppress(FileNotFoundError):
                system.delete_file(f"{root}/{name}")

        self._tried(remove)

    def _tried(self, what: Callable[[], T]) -> T:
        for n in range(TRIES):
            try:
                return what()
            except (OSError, pa.ArrowException) as error:
                if isinstance(error, InputError) or n == TRIES - 1:
                    raise self._unreachable(error) from None
                time.sleep(PAUSE_S * 2**n)
        raise AssertionError

    def _unreachable(self, error: Exception) -> InputError:
        if isinstance(error, InputError):
            return error
        return InputError(
            f"paths.results={mask(self._address)}: {mask(in_a_line(error))}; {WAY_OUT}",
            rule="results folder",
        )
