"""How many random examples a test tries."""

from __future__ import annotations

import os

from sim.kernels import _jit

CHECKED = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")


def examples(n: int) -> int:
    """Return two thirds of `n`; a quarter where kernels run slowly: without the JIT, or checked."""
    return max(2 * n // 3 if _jit.JIT and not CHECKED else n // 4, 10)
