"""How many random examples a test tries."""

from __future__ import annotations

import os

from sim.base import jit

CHECKED = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")


def examples(n: int) -> int:
    """Return half of `n`; a quarter where kernels run slowly: without the JIT, or checked."""
    return max(n // 2 if jit.JIT and not CHECKED else n // 4, 10)
