"""Tests, in rooms like those of the code; `CHECKED=1` compiles their kernels with bounds checks.

What they start compiles as users do, except where it imports this package.
"""

import os

CHECKED = os.environ.get("CHECKED") == "1"
if CHECKED:
    os.environ["NUMBA_BOUNDSCHECK"] = "1"
    from sim.base import jit  # noqa: F401  # it and numba look at it when they are imported

    del os.environ["NUMBA_BOUNDSCHECK"]
