"""Results in an object store: all objects below a prefix, by `obstore`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from sim.base.errors import InputError, summary_line
from sim.base.masking import mask
from sweep.store import object_store

N_TRIES, PAUSE_S = 6, 0.25
MAX_PAUSE_S = 4.0
MIN_BYTES_PER_S = 2**15
"""Speed of the slowest link over which a large object arrives in time."""
OUTAGE_S = 86_400.0
"""Longest time that a sweep waits for a store that has answered before."""
WAY_OUT = (
    "check the address, the credentials (in the environment, as for other tools of the store) "
    "and the network, or give paths.results=DIR"
)
T = TypeVar("T")


class Entry(NamedTuple):
    """A content of a storage."""

    n_bytes: int
    time_s: float  # when it was written, by the storage's own clock
    tag: str | None = None  # of a store: another one for another content


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
    def _store(self) -> Any:
        try:
            return object_store.connect(self._address)
        except ValueError as error:
            raise self._unreachable(error) from None

    def get(self, name: str) -> bytes | None:
        """Read an object."""

        def read() -> bytes | None:
            try:
                return bytes(self._store.get(name).bytes())
            except FileNotFoundError:
                return None

        return self._retry(read)

    def put(self, name: str, content: bytes) -> None:
        """Write an object, in one request: parts of a failed one would stay in the store."""
        upload_s = len(content) / MIN_BYTES_PER_S

        def write() -> None:
            is_quick = upload_s <= object_store.TIMEOUT_S
            store = self._store if is_quick else object_store.connect(self._address, upload_s)
            store.put(name, content, use_multipart=False)

        self._retry(write)

    def put_new(self, name: str, content: bytes) -> bool:
        """Create an object unless it exists, by a conditional put."""
        n_requests = 0

        def create() -> bool:
            nonlocal n_requests
            from obstore.exceptions import AlreadyExistsError

            n_requests += 1
            try:
                self._store.put(name, content, mode="create")
            except AlreadyExistsError:
                return False
            return True

        # an earlier request may have succeeded, and its answer was lost
        return self._retry(create) or (n_requests > 1 and self.get(name) == content)

    def list(self, prefix: str) -> dict[str, Entry]:
        """List objects."""
        infos = self._retry(lambda: self._store.list(prefix).collect())
        entries = {
            info["path"]: Entry(info["size"], info["last_modified"].timestamp(), info["e_tag"])
            for info in infos
        }
        return dict(sorted(entries.items()))

    def delete(self, name: str) -> None:
        """Delete an object."""

        def remove() -> None:
            with contextlib.suppress(FileNotFoundError):
                self._store.delete(name)

        self._retry(remove)

    def _retry(self, request: Callable[[], T]) -> T:
        from obstore.exceptions import BaseError  # the clients of all stores: slow to load

        begin_s, n_failed = time.monotonic(), 0
        try:
            while True:
                try:
                    answer = request()
                    break
                except (OSError, BaseError) as error:
                    self.__dict__.pop("_store", None)  # credentials may have been renewed
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
        is_supported = "501 Not Implemented" not in str(error)
        may_recover = is_supported and self._has_answered and elapsed_s < OUTAGE_S
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
