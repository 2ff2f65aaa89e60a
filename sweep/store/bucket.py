"""Results in an object store: what `pyarrow.fs` reads and writes, below a prefix."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa

from sim.base.errors import InputError, summary_line
from sim.base.masking import mask
from sweep.store import signed_put

TRIES, PAUSE_S = 6, 0.25
MOST_PAUSE_S = 4.0
PART_BYTES = 10_000_000
"""From this size on Arrow puts an object in several requests."""
OUTAGE_S = 86_400.0
"""For so long a sweep waits for a store that has answered before."""
WAY_OUT = (
    "see that the address, the credentials (in the environment, as for other tools of the store) "
    "and the network are right, or give paths.results=DIR"
)
T = TypeVar("T")
Say = Callable[[str], object]
_WAITS: ContextVar[Say | None] = ContextVar("waits", default=None)


@contextlib.contextmanager
def waiting(say: Say | None) -> Iterator[None]:
    """Have requests of this thread outlast an outage, which is said; None has them fail early.

    Threads that are started inside fail early: nothing could interrupt them.
    """
    token = _WAITS.set(say)
    try:
        yield
    finally:
        _WAITS.reset(token)


class Bucket:
    """A prefix of an object store.

    A content is written whole or not at all, as the store promises. A request that fails is made
    again a few times, by a client that looks for its credentials anew.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._has_answered = False
        self._is_out = False  # the last request failed for good: the next is made once

    @cached_property
    def _there(self) -> tuple[Any, str]:
        from pyarrow import fs  # the clients of all stores: only for who names one

        try:
            try:
                system, root = fs.FileSystem.from_uri(_in_one_request(self._address))
            except ValueError:  # a version of Arrow without that option, or it is no address
                system, root = fs.FileSystem.from_uri(self._address)
        except (ValueError, pa.ArrowException) as error:
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
            # Arrow cuts it into parts: what a failure leaves of them stays in the store, and an
            # answer that it does not understand is logged on standard error
            if len(content) >= PART_BYTES and signed_put.put(self._address, name, content):
                return
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
        n_asked = 0

        def write() -> bool | None:
            nonlocal n_asked
            n_asked += 1
            return signed_put.put(self._address, name, content, is_new=True)

        made = self._tried(write)
        if made is False and n_asked > 1:  # the first may have come through, and its answer not
            return self.get(name) == content
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
        begin_s, n_failed = time.monotonic(), 0
        try:
            while True:
                try:
                    answer = what()
                    break
                except (OSError, pa.ArrowException) as error:
                    self.__dict__.pop("_there", None)  # credentials may have been renewed
                    n_failed += 1
                    self._failed(error, n_failed, time.monotonic() - begin_s)
                time.sleep(min(PAUSE_S * 2 ** min(n_failed - 1, TRIES), MOST_PAUSE_S))
        except KeyboardInterrupt:
            _WAITS.set(None)  # what is still to be written on the way out is tried and left
            raise
        say = _WAITS.get()
        if say is not None and n_failed >= TRIES:
            say(f"{self._shown} answers again after {time.monotonic() - begin_s:.0f} s")
        self._has_answered, self._is_out = True, False
        return answer

    def _failed(self, error: Exception, n_failed: int, since_s: float) -> None:
        """Raise an error unless the request is to be made again."""
        say = _WAITS.get()
        may_return = isinstance(error, OSError) and self._has_answered and since_s < OUTAGE_S
        if say is not None and may_return:
            if n_failed == TRIES:
                reason = mask(summary_line(error))
                say(f"{self._shown} does not answer, waiting for it (Ctrl-C ends): {reason}")
        elif n_failed >= TRIES or self._is_out:
            self._is_out = True
            raise self._unreachable(error) from None

    @property
    def _shown(self) -> str:
        return f"paths.results={mask(self._address)}"

    def _unreachable(self, error: Exception) -> InputError:
        if isinstance(error, InputError):
            return error
        return InputError(
            f"{self._shown}: {mask(summary_line(error))}; {WAY_OUT}", rule="results folder"
        )


def _in_one_request(address: str) -> str:
    """Have Arrow put what is small in one request, not in the three of a multipart upload."""
    if not address.startswith("s3://") or "allow_delayed_open" in address:
        return address
    return f"{address}{'&' if '?' in address else '?'}allow_delayed_open=true"
