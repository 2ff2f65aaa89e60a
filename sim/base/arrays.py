"""Array types, named by kind and bytes as in NumPy, and helpers for offsets and permutations.

``F8`` is float64, of any shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

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


def filled(shape: int | Sequence[int], value: float, dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of one value; zeros take memory where they are first written."""
    if not value:
        return np.zeros(shape, dtype)
    array: NDArray[Any] = np.empty(shape, dtype)
    array.fill(value)  # `numpy.full` takes three times as long where the array is small
    return array


def offsets(counts: NDArray[Any]) -> I8:
    """Return the first row of each group, and the end: (n+1,) int64 from (n,) counts."""
    out = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=out[1:])
    return out


def inverse(order: NDArray[Any]) -> I8:
    """Invert a permutation: return the position of each row in `order`, (n,) int64."""
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    return position


def ranks(values: NDArray[Any]) -> I8:
    """Rank values in ascending order from 0; equal values keep their order."""
    return inverse(np.argsort(values, kind="stable"))


def ranges(begin: I8, end: I8) -> I8:
    """Concatenate the ranges begin[i], ..., end[i] - 1."""
    sizes = end - begin
    starts = np.cumsum(sizes) - sizes
    return np.repeat(begin - starts, sizes) + np.arange(sizes.sum())
