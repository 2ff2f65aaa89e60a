"""Number of random examples of a test."""

from __future__ import annotations

import os

from sim.base import jit

FEW = bool(os.environ.get("FEW_EXAMPLES"))
"""True in the lanes that run before each commit and each landing, not in ``make test-long``."""


def examples(n: int) -> int:
    """Return half of `n`; a quarter without the JIT, where kernels run slowly; few if FEW."""
    if FEW:
        return max(n // 16, 5)
    return max(n // 2 if jit.JIT else n // 4, 10)


COMPILED_WIDE = jit.JIT and os.environ.get("SIM_VARIANTS", "common") != "exact"
"""True where kernels are compiled in a few wide variants, which leave out mechanisms of few runs.

Their tests run as plain Python in a lane of their own, and compiled in ``make test-long``.
"""
