"""Number of random examples of a test."""

from __future__ import annotations

from sim.base import jit


def examples(n: int) -> int:
    """Return half of `n`; a quarter without the JIT, where kernels run slowly."""
    return max(n // 2 if jit.JIT else n // 4, 10)
