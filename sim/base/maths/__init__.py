"""Numbers that are the same bits on every machine: transcendental functions, sums, products.

NumPy's and the C library's exponentials take other routines on other processors, with other last
bits, and so does BLAS. The functions here are made of additions, multiplications, divisions,
square roots and bit operations in fixed order, which IEEE 754 makes exact, after published
algorithms; each is within 1 ulp of the true value. Take them wherever a number is kept or decides.

They take float64 scalars and arrays of any shape and return the like. Kernels call those of the
same names for scalars in `sim.base.maths.kernels`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base.arrays import F8

Values = NDArray[Any] | Sequence[float]


def _each(kernel: Callable[..., None], x: Any, *others: Any) -> Any:
    given = np.array(x, dtype=np.float64, order="C", copy=None)
    out = np.empty(given.shape)
    if not isinstance(kernel, FunctionType):
        kernel(given.reshape(-1), *others, out.reshape(-1))
    else:
        with np.errstate(all="ignore"):  # without the JIT NumPy's scalars warn
            kernel(given.reshape(-1), *others, out.reshape(-1))
    return out if given.ndim else out.item()


@overload
def exp(x: float) -> float: ...
@overload
def exp(x: Values) -> F8: ...
def exp(x: ArrayLike) -> Any:
    """Return e**x."""
    from sim.base.maths.kernels.exponential import exp_all  # loads numba

    return _each(exp_all, x)


@overload
def expm1(x: float) -> float: ...
@overload
def expm1(x: Values) -> F8: ...
def expm1(x: ArrayLike) -> Any:
    """Return e**x - 1, exact for small x too."""
    from sim.base.maths.kernels.exponential import expm1_all  # loads numba

    return _each(expm1_all, x)


@overload
def log(x: float) -> float: ...
@overload
def log(x: Values) -> F8: ...
def log(x: ArrayLike) -> Any:
    """Return the natural logarithm of x."""
    from sim.base.maths.kernels.logarithm import log_all  # loads numba

    return _each(log_all, x)


@overload
def log1p(x: float) -> float: ...
@overload
def log1p(x: Values) -> F8: ...
def log1p(x: ArrayLike) -> Any:
    """Return log(1 + x), exact for small x too."""
    from sim.base.maths.kernels.logarithm import log1p_all  # loads numba

    return _each(log1p_all, x)


@overload
def sin(x: float) -> float: ...
@overload
def sin(x: Values) -> F8: ...
def sin(x: ArrayLike) -> Any:
    """Return the sine of x, in radians; NaN from 2**20 on, either way."""
    from sim.base.maths.kernels.sine import sin_all  # loads numba

    return _each(sin_all, x)


@overload
def normal_cdf(x: float) -> float: ...
@overload
def normal_cdf(x: Values) -> F8: ...
def normal_cdf(x: ArrayLike) -> Any:
    """Return the probability that a standard normal variable is at most x."""
    from sim.base.maths.kernels.normal import normal_cdf_all  # loads numba

    return _each(normal_cdf_all, x)


@overload
def normal_quantile(p: float) -> float: ...
@overload
def normal_quantile(p: Values) -> F8: ...
def normal_quantile(p: ArrayLike) -> Any:
    """Return what a standard normal variable is at most with probability p."""
    from sim.base.maths.kernels.normal import normal_quantile_all  # loads numba

    return _each(normal_quantile_all, p)


@overload
def power(x: float, y: float) -> float: ...
@overload
def power(x: Values, y: Values | float) -> F8: ...
@overload
def power(x: float, y: Values) -> F8: ...
def power(x: ArrayLike, y: ArrayLike) -> Any:
    """Return x**y."""
    from sim.base.maths.kernels.power import power_all  # loads numba

    base, exponent = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
    return _each(power_all, base.copy(), exponent.copy().reshape(-1))


def geomspace(low: float, high: float, n: int) -> F8:
    """Return (n,) numbers from `low` to `high`, each the same factor above the one before."""
    out: F8 = low * exp(np.arange(n) * (log(high / low) / max(n - 1, 1)))
    out[-1:] = high if n > 1 else low
    return out


@overload
def interp(x: float, at: ArrayLike, values: ArrayLike) -> float: ...
@overload
def interp(x: Values, at: ArrayLike, values: ArrayLike) -> F8: ...
def interp(x: ArrayLike, at: ArrayLike, values: ArrayLike) -> Any:
    """Return the values at x of the lines between points at rising `at`; beyond them, the ends'."""
    where, ends = np.asarray(at, np.float64), np.asarray(values, np.float64)
    given = np.clip(np.asarray(x, np.float64), where[0], where[-1])
    left = np.clip(np.searchsorted(where, given, side="right") - 1, 0, max(len(where) - 2, 0))
    right = np.minimum(left + 1, len(where) - 1)
    width = where[right] - where[left]
    share = (given - where[left]) / np.where(width > 0, width, 1.0)
    out = ends[left] + share * (ends[right] - ends[left])
    out = np.where(given == where[right], ends[right], out)
    return out if out.ndim else float(out)


def dot(a: ArrayLike, b: ArrayLike) -> Any:
    """Return the matrix product a @ b of arrays of one or two dimensions, summed in one order.

    ValueError where the last dimension of a is not the first of b.
    """
    left, right = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if left.shape[-1] != len(right):
        raise ValueError(f"a product of arrays of shapes {left.shape} and {right.shape}")
    if right.ndim == 1:
        return np.add.reduce(np.ascontiguousarray(left * right), axis=-1)
    if left.ndim == 1:
        return np.add.reduce(np.ascontiguousarray((left[:, None] * right).T), axis=-1)
    out = np.zeros((len(left), right.shape[1]))
    for k in range(len(right)):
        out += left[:, k, None] * right[k]
    return out


def slope(x: ArrayLike, y: ArrayLike) -> float:
    """Return the slope of the line of least squares through points of two x or more."""
    across = np.asarray(x, np.float64)
    across = across - across.mean()
    return float(dot(across, y) / dot(across, across))


def root(of: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function that is negative on one side of it changes its sign, by bisection."""
    is_rising = of(low) < of(high)
    while low < (middle := low + (high - low) / 2) < high:
        if (of(middle) < 0.0) == is_rising:
            low = middle
        else:
            high = middle
    return low
