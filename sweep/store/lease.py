"""One holder at a time, wherever results lie: a lease with a heartbeat and a fencing token.

A lease is a file that its holder alone may create (`Storage.put_new`), named by a number that only
grows: its token. The holder writes it anew every few seconds. Who finds one that has not changed
for long, by their own clock and no other, creates the next; the highest token holds. No lock of an
operating system is asked for: on a shared file system that may be none.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
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
    """Another process has taken over what this one held."""


@dataclass
class Lease:
    """What one process at a time may hold."""

    place: Storage
    name: str  # what is held, such as ``journal/demo-6de33191``
    beat_s: float = BEAT_S
    expires_s: float = EXPIRES_S
    on_beat: Callable[[], None] | None = None
    token: int = 0  # of this holder, once it has it
    _n_beats: int = 0
    _beaten_s: float = 0.0  # when the last heartbeat that came through began
    _is_lost: bool = False
    _id: str = field(default_factory=lambda: secrets.token_hex(8))
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def take(self, on_wait: Callable[[], None] = lambda: None) -> None:
        """Hold it; call `on_wait` once and wait if another process does."""
        seen: tuple[int, bytes | None] = (0, None)
        seen_s, has_said = time.monotonic(), False
        while True:
            now_s = time.monotonic()
            token, content = self._latest()
            looked_s = time.monotonic()
            was_away = looked_s - now_s > self.expires_s / 2  # and no heartbeat could be seen
            if (token, content) != seen or was_away:
                seen, seen_s = (token, content), looked_s
            has_expired = looked_s - seen_s >= self.expires_s
            is_free = not token or has_expired or _is_free(content)
            if is_free and self._create(token + 1):
                break
            if not is_free:
                if not has_said:
                    on_wait()
                    has_said = True
                time.sleep(self.beat_s / 10)
        self._over.clear()
        self._beaten_s, self._is_lost = now_s, False
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Let others have it; where that can't be written now, it expires."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        with waiting(None), contextlib.suppress(OSError, InputError):
            if not self._is_lost and self.is_held():
                try:
                    self.place.put(self._file(self.token), self._content(0, released=True))
                except OSError:  # a full disk: a file less needs no room
                    self.place.delete(self._file(self.token))

    def is_held(self) -> bool:
        """Tell whether this process still has it."""
        token, content = self._latest()
        return token == self.token and _read(content).get("id") == self._id

    def confirm(self) -> None:
        """Refuse to go on where another process has taken over, as far as heartbeats tell.

        Where none has come through for so long that another may have, the place is asked.
        """
        if self._is_lost or time.monotonic() - self._beaten_s >= self.expires_s:
            self.check()

    def check(self) -> None:
        """Refuse to go on where another process has taken over; beat where none has."""
        now_s = time.monotonic()
        self._is_lost = self._is_lost or not self.is_held()
        if self._is_lost:
            raise LeaseLostError(
                f"{self.name} was taken over by another process, as this one was not heard of for "
                f"{self.expires_s:g} s; what it computed is kept, and the same command goes on"
            )
        self._n_beats += 1
        self.place.put(self._file(self.token), self._content(self._n_beats))
        self._beaten_s = now_s

    def may_be_taken(self) -> bool:
        """Tell whether some process has it, if its heart still beats."""
        token, content = self._latest()
        return bool(token) and not _is_free(content)

    def is_taken(self) -> bool:
        """Tell whether some process has it, as far as can be seen at once."""
        token, content = self._latest()
        if not token or _is_free(content):
            return False
        if _is_gone(content) is False:
            return True
        time.sleep(1.5 * self.beat_s)  # of another machine: whether its heart beats
        return self._latest()[1] != content

    def _create(self, token: int) -> bool:
        """Take a token; the place is tested, as one that gives it twice keeps nobody apart."""
        name, content = self._file(token), self._content(0)
        if not self.place.put_new(name, content):
            return False
        if self.place.put_new(name, self._content(-1)) or self.place.get(name) != content:
            raise InputError(
                f"{self.name} can't be held: what is there can be created twice; results need a "
                "folder or a store that creates a file once (paths.results=DIR)",
                rule="lease",
            )
        tokens = self._tokens()
        if tokens[-1] > token:  # others had it meanwhile, and forgot who was before them
            self.place.delete(name)
            return False
        self.token = token
        for older in tokens[:-1]:
            self.place.delete(self._file(older))
        return True

    def _beat(self) -> None:
        while not self._over.wait(self.beat_s):
            try:
                self.check()
                if self.on_beat is not None:
                    self.on_beat()
            except LeaseLostError:
                return
            except (OSError, InputError):
                continue  # the next may come through

    def _content(self, n: int, *, released: bool = False) -> bytes:
        about = {"id": self._id, "process": process.current(), "beat": n, "released": released}
        return json.dumps(about).encode()

    def _tokens(self) -> list[int]:
        names = self.place.list(f"{self.name}.lease/")
        return sorted(int(name.rpartition("/")[2]) for name in names)

    def _latest(self) -> tuple[int, bytes | None]:
        tokens = self._tokens()
        return (tokens[-1], self.place.get(self._file(tokens[-1]))) if tokens else (0, None)

    def _file(self, token: int) -> str:
        return f"{self.name}.lease/{token:08d}"


def _read(content: bytes | None) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        about = json.loads(content or b"{}")
        if isinstance(about, dict):
            return about
    return {}


def _is_gone(content: bytes | None) -> bool | None:
    """Tell whether the process that wrote this has ended; None where that can't be seen."""
    about = _read(content).get("process")
    try:
        return None if about is None else process.has_ended(process.Process(*about))
    except TypeError:
        return None


def _is_free(content: bytes | None) -> bool:
    """Tell whether nobody holds it, for sure."""
    return bool(_read(content).get("released")) or _is_gone(content) is True


@contextlib.contextmanager
def exclusive(file: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[Lease]:
    """Hold what a file of this machine's stands for; wait if another process does."""
    lease = Lease(storage.Folder(file.parent), file.name)
    lease.take(on_wait)
    try:
        yield lease
    finally:
        lease.release()
