"""Cells in work: claimed by one sweep, so that another that needs them waits for them."""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
import time
from typing import Any

import numpy as np

from sim.base import process
from sim.base.errors import InputError
from sweep.store import shards
from sweep.store.bucket import waiting
from sweep.store.index import Keys, as_keys
from sweep.store.lease import BEAT_S, EXPIRES_S, Lease
from sweep.store.place import Place

CLAIMS = "cache/claims/"
Flags = np.ndarray[Any, np.dtype[np.bool_]]


class Claims:
    """The keys that this process computes, and those that others say they do.

    A claim is two files: its keys, and a heartbeat beside them. One whose heart does not beat for
    `expires_s`, by the clock of who looks, or whose process has ended, counts no more.
    """

    def __init__(
        self, place: Place, *, beat_s: float = BEAT_S, expires_s: float = EXPIRES_S
    ) -> None:
        self._place = place
        self._beat_s, self._expires_s = beat_s, expires_s
        self._name = CLAIMS + secrets.token_hex(8)
        self._mine: Keys = as_keys(b"")
        self._seen: dict[str, tuple[bytes | None, float]] = {}
        self._begin_s = 0.0  # when claims began to be looked at
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, keys: Keys, still: Keys | None = None) -> Flags:
        """Claim what nobody else has claimed; tell of each key whether it is ours.

        What was claimed before is given up, all but what is `still` in work.
        """
        self._begin_s = time.monotonic()
        lease = Lease(self._place, CLAIMS + "one", self._beat_s, self._expires_s)
        lease.take()
        try:
            free = ~np.isin(keys, self._others())
            if free.any():
                before = as_keys(b"") if still is None else still
                self._mine = np.concatenate([before, keys[free]])
                self._write(0)
                self._place.put(f"{self._name}.keys", self._mine.tobytes())
        finally:
            lease.release()
        if self._thread is None and free.any():
            self._thread = threading.Thread(target=self._beat, daemon=True)
            self._thread.start()
        return free

    def close(self) -> None:
        """Give up what is claimed: it is computed, or will not be.

        Where that can't be written now, the claim expires.
        """
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            with waiting(None), contextlib.suppress(OSError, InputError):
                self._place.delete(f"{self._name}.keys")
                self._place.delete(f"{self._name}.beat")
        self._mine = as_keys(b"")
        self._over = threading.Event()

    def _others(self) -> Keys:
        """Return what others have claimed, and forget those whose claims have expired."""
        found = [as_keys(b"")]
        for name in self._place.list(CLAIMS):
            claim, _, kind = name.rpartition(".")
            if kind != "keys" or claim == self._name:
                continue
            if self._is_live(claim):
                content = self._place.get(name) or b""
                whole = len(content) // shards.KEY_BYTES * shards.KEY_BYTES
                found.append(as_keys(content[:whole]))
            else:
                self._place.delete(name)
                self._place.delete(f"{claim}.beat")
        return np.concatenate(found)

    def _is_live(self, claim: str) -> bool:
        beat = self._place.get(f"{claim}.beat")
        now_s = time.monotonic()
        was_away = now_s - self._begin_s > self._expires_s / 2  # and nobody's heart could beat
        if claim not in self._seen or self._seen[claim][0] != beat or was_away:
            self._seen[claim] = (beat, now_s)
        with contextlib.suppress(ValueError, TypeError):
            if beat is not None and process.is_gone(process.Process(*json.loads(beat)["process"])):
                return False
        return now_s - self._seen[claim][1] < self._expires_s

    def _beat(self) -> None:
        n = 0
        while not self._over.wait(self._beat_s):
            n += 1
            with contextlib.suppress(OSError, InputError):  # the next may come through
                self._write(n)

    def _write(self, n: int) -> None:
        about = {"process": process.this(), "beat": n}
        self._place.put(f"{self._name}.beat", json.dumps(about).encode())
