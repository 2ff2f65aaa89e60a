"""Results in an object store: all objects below a prefix, by `pyarrow.fs`."""

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

N_TRIES, PAUSE_S = 6, 0.25
MAX_PAUSE_S = 4.0
MULTIPART_BYTES = 10_000_000
"""Arrow uploads objects of this size and above in several requests."""
OUTAGE_S = 86_400.0
"""Longest time that a sweep waits for a store that has answered before."""
WAY_OUT = (
    "check the address, the credentials (in the environment, as for other tools of the store) "
    "and the network, or give paths.results=DIR"
)
T = TypeVar("T")
Report = Callable[[str], object]
_WAITS: ContextVar[Report | None] = ContextVar("waits", default=None)


@contextlib.contextmanager
def waiting(report: Report | None) -> Iterator[None]:
    """Let requests of this thread outlast an outage, which is reported; None lets them fail early.

    Threads that are started inside fail early, as nothing could interrupt them.
    """
    token = _WAITS.set(report)
    try:
        yield
    finally:
        _WAITS.reset(token)


class Bucket:
    """Storage below a prefix of an object store.

    An object is written whole or not at all, as the store promises. A failed request is repeated a
    few times, each time by a new client, which loads its credentials again.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._has_answered = False
        self._is_down = False  # the last request failed for good: the next is tried once

    @cached_property
    def _filesystem(self) -> tuple[Any, str]:
        from pyarrow import fs  # the clients of all stores: slow to load

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
            system, root = self._filesystem
            try:
                with system.open_input_stream(f"{root}/{name}") as stream:
                    content: bytes = stream.read()
            except FileNotFoundError:
                return None
            return content

        return self._retry(read)

    def put(self, name: str, content: bytes) -> None:
        """Write an object."""

        def write() -> None:
            # Arrow splits it into parts: after a failure they stay in the store, and an answer that
            # it does not understand is logged on standard error
            if len(content) >= MULTIPART_BYTES and signed_put.put(self._address, name, content):
                return
            system, root = self._filesystem
            with system.open_output_stream(f"{root}/{name}") as stream:
                stream.write(content)

        self._retry(write)

    def put_new(self, name: str, content: bytes) -> bool:
        """Create an object unless it exists: by a conditional put where that can be signed.

        Elsewhere, each concurrent writer writes a claim of its own beside the name, lists the
        claims, and withdraws unless its claim is the only one: of two that write and then list, at
        least one sees both. They list before writing, too, as a writer that withdrew tries again.
        """
        n_requests = 0

        def write() -> bool | None:
            nonlocal n_requests
            n_requests += 1
            return signed_put.put(self._address, name, content, is_new=True)

        is_created = self._retry(write)
        # an earlier request may have succeeded, and its answer was lost
        if is_created is False and n_requests > 1:
            return self.get(name) == content
        if is_created is not None:
            return is_created
        if self._names_like(name):
            return False
        claim = f"{name}~{secrets.token_hex(8)}"
        self.put(claim, content)
        if [*self._names_like(name)] != [claim]:
            self.delete(claim)
            time.sleep(PAUSE_S * (1 + secrets.randbelow(8)) / 8)
            return False
        self.put(name, content)
        self.delete(claim)
        return True

    def _names_like(self, name: str) -> list[str]:
        folder = name.rpartition("/")[0] + "/"
        return [
            other for other in self._listed(folder) if other == name or other.startswith(f"{name}~")
        ]

    def list(self, prefix: str) -> dict[str, int]:
        """List the sizes of objects."""
        return {name: info[0] for name, info in self._listed(prefix).items() if "~" not in name}

    def times_s(self, prefix: str) -> dict[str, float]:
        """Return when each object was written, by the store's clock."""
        return {name: mtime_ns / 1e9 for name, (_, mtime_ns) in self._listed(prefix).items()}

    def stamps(self, prefix: str) -> dict[str, str]:
        """Return a version of each object that changes when it is rewritten."""
        return {
            name: f"{size} {mtime_ns}" for name, (size, mtime_ns) in self._listed(prefix).items()
        }

    def _listed(self, prefix: str) -> dict[str, tuple[int, int]]:
        def request() -> dict[str, tuple[int, int]]:
            from pyarrow import fs  # as above

            system, root = self._filesystem
            root_prefix = f"{root}/{prefix.rstrip('/')}"
            selector = fs.FileSelector(root_prefix, recursive=True, allow_not_found=True)
            return {
                info.path[len(root) + 1 :]: (int(info.size), int(info.mtime_ns or 0))
                for info in sorted(system.get_file_info(selector), key=lambda info: str(info.path))
                if info.type == fs.FileType.File
            }

        return self._retry(request)

    def delete(self, name: str) -> None:
        """Delete an object."""

        def remove() -> None:
            system, root = self._filesystem
            with contextlib.suppress(FileNotFoundError):
                system.delete_file(f"{root}/{name}")

        self._retry(remove)

    def _retry(self, request: Callable[[], T]) -> T:
        begin_s, n_failed = time.monotonic(), 0
        try:
            while True:
                try:
                    answer = request()
                    break
                except (OSError, pa.ArrowException) as error:
                    self.__dict__.pop("_filesystem", None)  # credentials may have been renewed
                    n_failed += 1
                    self._handle_failure(error, n_failed, time.monotonic() - begin_s)
                time.sleep(min(PAUSE_S * 2 ** min(n_failed - 1, N_TRIES), MAX_PAUSE_S))
        except KeyboardInterrupt:
            _WAITS.set(None)  # writes during the shutdown fail early
            raise
        report = _WAITS.get()
        if report is not None and n_failed >= N_TRIES:
            report(f"{self._label} answers again after {time.monotonic() - begin_s:.0f} s")
        self._has_answered, self._is_down = True, False
        return answer

    def _handle_failure(self, error: Exception, n_failed: int, elapsed_s: float) -> None:
        """Raise an error unless the request is to be repeated."""
        report = _WAITS.get()
        may_recover = isinstance(error, OSError) and self._has_answered and elapsed_s < OUTAGE_S
        if report is not None and may_recover:
            if n_failed == N_TRIES:
                reason = mask(summary_line(error))
                report(f"{self._label} does not answer, waiting for it (Ctrl-C ends): {reason}")
        elif n_failed >= N_TRIES or self._is_down:
            self._is_down = True
            raise self._unreachable(error) from None

    @property
    def _label(self) -> str:
        return f"paths.results={mask(self._address)}"

    def _unreachable(self, error: Exception) -> InputError:
        if isinstance(error, InputError):
            return error
        return InputError(
            f"{self._label}: {mask(summary_line(error))}; {WAY_OUT}", rule="results folder"
        )


def _in_one_request(address: str) -> str:
    """Make Arrow upload small objects in one request, not in the three of a multipart upload."""
    if not address.startswith("s3://") or "allow_delayed_open" in address:
        return address
    return f"{address}{'&' if '?' in address else '?'}allow_delayed_open=true"
