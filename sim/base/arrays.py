"""Types of arrays, by kind and bytes as NumPy spells them, and groups of rows by where each begins.

``F8`` is float64, of any shape.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
I4 = NDArray[np.int32]
I1 = NDArray[np.int8]
U8 = NDArray[np.uint64]
U1 = NDArray[np.uint8]
Mask = NDArray[np.bool_]


A = TypeVar("A", bound=NDArray[Any])


def frozen(array: A) -> A:
    """Make an array read-only, and return it."""
    array.setflags(write=False)
    return array


def offsets(counts: NDArray[Any]) -> I8:
    """Return where each group begins, and the end: (n+1,) int64 from (n,) counts."""
    out = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=out[1:])
    return out


def inverse(order: NDArray[Any]) -> I8:
    """Return the place that each row has in an order of all rows, (n,) int64."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place


def ranks(values: NDArray[Any]) -> I8:
    """Return how many values come before each in ascending order, equal ones as they stand."""
    return inverse(np.argsort(values, kind="stable"))


def ranges(begin: I8, end: I8) -> I8:
    """Return the numbers begin[i], ..., end[i] - 1 for each i, one range after the other."""
    sizes = end - begin
    starts = np.cumsum(sizes) - sizes
    return np.repeat(begin - starts, sizes) + np.arange(sizes.sum())
