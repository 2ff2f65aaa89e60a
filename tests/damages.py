"""Random damage to bytes: a flipped bit, a truncation, a range of zeros."""

from __future__ import annotations

import random
from collections.abc import Iterator


def damages(content: bytes, n: int, seed: int = 0) -> Iterator[bytes]:
    """Yield `n` contents that differ from this one."""
    draw = random.Random(seed)
    n_yielded = 0
    while n_yielded < n:
        damaged = bytearray(content)
        begin = draw.randrange(len(content))
        kind = n_yielded % 3
        if kind == 0:
            damaged[begin] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del damaged[begin:]
        else:
            end = min(len(content), begin + draw.randrange(1, 512))
            damaged[begin:end] = bytes(end - begin)
        if damaged != content:
            n_yielded += 1
            yield bytes(damaged)
