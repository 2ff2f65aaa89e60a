"""Distributed lock: a lease with a heartbeat and a fencing token, wherever results are stored.

A lease is a file that its holder alone may create (`Storage.put_new`), named by a number that only
grows: its token. The holder rewrites it every few seconds. A process that finds it unchanged for
long, by its own clock and no other, creates the next; the highest token holds. Locks of the
operating system are not used: on a shared file system they may not work.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sim.base import process
from sim.base.errors import InputError
from sweep.store import storage
from sweep.store.bucket import waiting
from sweep.store.storage import Storage

BEAT_S, EXPIRES_S = 3.0, 30.0


class LeaseLostError(InputError):
    """Another process has taken over the lease of this one."""


@dataclass(frozen=True)
class Holder:
    """Holder of a lease, as one look shows it.

    Attributes
    ----------
    content : bytes
        Its last heartbeat.
    is_alive : bool or None
        False if it released the lease or its process has ended; None if that can't be seen, as it
        is on another machine.
    status : mapping
        What it said of itself with that heartbeat.
    """

    content: bytes
    is_alive: bool | None
    status: Mapping[str, Any]


@dataclass
class Lease:
    """Lease that one process at a time may hold."""

    storage: Storage
    name: str  # of the protected resource, such as ``journal/demo-6de33191``
    beat_s: float = BEAT_S
    expires_s: float = EXPIRES_S
    on_beat: Callable[[], None] | None = None
    status: Mapping[str, Any] = field(default_factory=dict)  # written with each heartbeat
    token: int = 0  # of this holder, once it holds the lease
    _n_beats: int = 0
    _last_beat_s: float = 0.0  # start of the last heartbeat that succeeded
    _is_lost: bool = False
    _id: str = field(default_factory=lambda: secrets.token_hex(8))
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def take(self, on_wait: Callable[[], None] = lambda: None) -> None:
        """Acquire the lease; call `on_wait` once and wait if another process holds it."""
        last_state: tuple[int, bytes | None] = (0, None)
        changed_s, has_reported = time.monotonic(), False
        while True:
            now_s = time.monotonic()
            token, content = self._latest()
            looked_s = time.monotonic()
            # if so, this process could not see heartbeats meanwhile
            was_suspended = looked_s - now_s > self.expires_s / 2
            if (token, content) != last_state or was_suspended:
                last_state, changed_s = (token, content), looked_s
            has_expired = looked_s - changed_s >= self.expires_s
            is_free = not token or has_expired or _is_free(content)
            if is_free and self._create(token + 1):
                break
            if not is_free:
                if not has_reported:
                    on_wait()
                    has_reported = True
                time.sleep(self.beat_s / 10)
        self._stop.clear()
        self._last_beat_s, self._is_lost = now_s, False
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Release the lease; where that can't be written now, it expires."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        with waiting(None), contextlib.suppress(OSError, InputError):
            if not self._is_lost and self.is_held():
                try:
                    self.storage.put(self._file(self.token), self._content(0, released=True))
                except OSError:  # a full disk: deleting a file needs no room
                    self.storage.delete(self._file(self.token))

    def is_held(self) -> bool:
        """Tell whether this process still holds the lease."""
        token, content = self._latest()
        return token == self.token and _read(content).get("id") == self._id

    def confirm(self) -> None:
        """Refuse to go on where another process has taken over, as far as heartbeats tell.

        Where none has succeeded for so long that another may have, the storage is asked.
        """
        if self._is_lost or time.monotonic() - self._last_beat_s >= self.expires_s:
            self.check()

    def check(self) -> None:
        """Refuse to go on where another process has taken over; else write a heartbeat."""
        now_s = time.monotonic()
        self._is_lost = self._is_lost or not self.is_held()
        if self._is_lost:
            raise LeaseLostError(
                f"{self.name} was taken over by another process, as this one wrote no heartbeat "
                f"for {self.expires_s:g} s; finished cells are stored, the same command resumes"
            )
        self._n_beats += 1
        self.storage.put(self._file(self.token), self._content(self._n_beats))
        self._last_beat_s = now_s

    def may_be_held(self) -> bool:
        """Tell whether some process holds the lease, if its heart still beats."""
        token, content = self._latest()
        return bool(token) and not _is_free(content)

    def holder(self) -> Holder | None:
        """Return the last holder; None if there was none. Never waits for a heartbeat."""
        _, content = self._latest()
        if content is None:
            return None
        is_gone, status = _is_gone(content), _read(content).get("status")
        is_alive = False if _is_free(content) else True if is_gone is False else None
        return Holder(content, is_alive, status if isinstance(status, dict) else {})

    def latest_token(self) -> int:
        """Return the token of the last holder; 0 if there was none."""
        return self._latest()[0]

    def is_held_by_any(self) -> bool:
        """Tell whether some process holds the lease; of another machine's, await a heartbeat."""
        token, content = self._latest()
        if not token or _is_free(content):
            return False
        if _is_gone(content) is False:
            return True
        time.sleep(1.5 * self.beat_s)  # of another machine: wait for a heartbeat
        return self._latest()[1] != content

    def _create(self, token: int) -> bool:
        """Create a token's file; refuse a storage that creates the same file twice."""
        name, content = self._file(token), self._content(0)
        if not self.storage.put_new(name, content):
            return False
        if self.storage.put_new(name, self._content(-1)) or self.storage.get(name) != content:
            raise InputError(
                f"{self.name} can't be locked: its storage creates the same file twice; results "
                "need a folder or a store with atomic creation (paths.results=DIR)",
                rule="lease",
            )
        tokens = self._tokens()
        if tokens[-1] > token:  # others held it meanwhile, and deleted older tokens
            self.storage.delete(name)
            return False
        self.token = token
        for older in tokens[:-1]:
            self.storage.delete(self._file(older))
        return True

    def _beat(self) -> None:
        while not self._stop.wait(self.beat_s):
            try:
                self.check()
                if self.on_beat is not None:
                    self.on_beat()
            except LeaseLostError:
                return
            except (OSError, InputError):
                continue  # the next may succeed

    def _content(self, n: int, *, released: bool = False) -> bytes:
        record = {"id": self._id, "process": process.current(), "beat": n, "released": released}
        return json.dumps({**record, "status": self.status}).encode()

    def _tokens(self) -> list[int]:
        names = self.storage.list(f"{self.name}.lease/")
        return sorted(int(name.rpartition("/")[2]) for name in names)

    def _latest(self) -> tuple[int, bytes | None]:
        tokens = self._tokens()
        return (tokens[-1], self.storage.get(self._file(tokens[-1]))) if tokens else (0, None)

    def _file(self, token: int) -> str:
        return f"{self.name}.lease/{token:08d}"


def _read(content: bytes | None) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        record = json.loads(content or b"{}")
        if isinstance(record, dict):
            return record
    return {}


def _is_gone(content: bytes | None) -> bool | None:
    """Tell whether the process that wrote this has ended; None where that is not known."""
    process_record = _read(content).get("process")
    try:
        return (
            None if process_record is None else process.has_ended(process.Process(*process_record))
        )
    except TypeError:
        return None


def _is_free(content: bytes | None) -> bool:
    """Tell whether the lease is certainly free: released, or its process has ended."""
    return bool(_read(content).get("released")) or _is_gone(content) is True


@contextlib.contextmanager
def exclusive(file: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[Lease]:
    """Hold the lease of a file on this machine; wait if another process holds it."""
    lease = Lease(storage.FolderStorage(file.parent), file.name)
    lease.take(on_wait)
    try:
        yield lease
    finally:
        lease.release()
