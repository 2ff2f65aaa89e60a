"""Ragged arrays: groups of rows that lie one after the other, known by where each begins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I8


def offsets(counts: NDArray[Any]) -> I8:
    """Return where each group begins, and the end: (n+1,) int64 from (n,) counts."""
    out = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=out[1:])
    return out


def ranges(begin: I8, end: I8) -> I8:
    """Return the numbers begin[i], ..., end[i] - 1 for each i, one range after the other."""
    sizes = end - begin
    starts = np.cumsum(sizes) - sizes
    return np.repeat(begin - starts, sizes) + np.arange(sizes.sum())
