"""Counter-based random streams: one of its own for each (seed, purpose)."""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, *purpose: str | int) -> np.random.Generator:
    """Return the Philox stream of (seed, purpose).

    The same arguments give the same numbers on every machine, in every process; different
    purposes give independent streams, so that drawing more for one never shifts another.
    """
    text = "\x1f".join([str(int(seed)), *map(str, purpose)])
    key = np.frombuffer(hashlib.sha256(text.encode()).digest()[:16], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key))
