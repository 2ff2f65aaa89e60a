"""Types of arrays, by kind and bytes as NumPy spells them, and groups of rows by where each begins.

``F8`` is float64, of any shape.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

# not NDArray[...]: from NumPy 2.5 on that is an alias in which readers of annotations find no dtype
F8 = np.ndarray[tuple[Any, ...], np.dtype[np.float64]]
I8 = np.ndarray[tuple[Any, ...], np.dtype[np.int64]]
I4 = np.ndarray[tuple[Any, ...], np.dtype[np.int32]]
I1 = np.ndarray[tuple[Any, ...], np.dtype[np.int8]]
U8 = np.ndarray[tuple[Any, ...], np.dtype[np.uint64]]
U1 = np.ndarray[tuple[Any, ...], np.dtype[np.uint8]]
Mask = np.ndarray[tuple[Any, ...], np.dtype[np.bool_]]


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
