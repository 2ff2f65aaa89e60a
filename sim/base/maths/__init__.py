"""Bit-reproducible mathematics: transcendental functions, sums and products.

NumPy's and the C library's exponentials use other routines on other processors, with other last
bits, and so does BLAS. The functions here consist of additions, multiplications, divisions, square
roots and bit operations in fixed order, which IEEE 754 makes exact, after published algorithms;
each is within 1 ulp of the true value. Use them wherever a number is stored or decides something.

They take float64 scalars and arrays of any shape and return the same shape. Kernels call the
scalar functions of the same names in `sim.base.maths.kernels`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base.arrays import F8

Values = NDArray[Any] | Sequence[float]


def _apply(kernel: Callable[..., None], x: Any, *arguments: Any) -> Any:
    values = np.array(x, dtype=np.float64, order="C", copy=None)
    out = np.empty(values.shape)
    if not isinstance(kernel, FunctionType):
        kernel(values.reshape(-1), *arguments, out.reshape(-1))
    else:
        with np.errstate(all="ignore"):  # without the JIT NumPy's scalars warn
            kernel(values.reshape(-1), *arguments, out.reshape(-1))
    return out if values.ndim else out.item()


@overload
def exp(x: float) -> float: ...
@overload
def exp(x: Values) -> F8: ...
def exp(x: ArrayLike) -> Any:
    """Return e**x."""
    from sim.base.maths.kernels.exponential import exp_all  # loads numba

    return _apply(exp_all, x)


@overload
def expm1(x: float) -> float: ...
@overload
def expm1(x: Values) -> F8: ...
def expm1(x: ArrayLike) -> Any:
    """Return e**x - 1, exact for small x too."""
    from sim.base.maths.kernels.exponential import expm1_all  # loads numba

    return _apply(expm1_all, x)


@overload
def log(x: float) -> float: ...
@overload
def log(x: Values) -> F8: ...
def log(x: ArrayLike) -> Any:
    """Return the natural logarithm of x."""
    from sim.base.maths.kernels.logarithm import log_all  # loads numba

    return _apply(log_all, x)


@overload
def log1p(x: float) -> float: ...
@overload
def log1p(x: Values) -> F8: ...
def log1p(x: ArrayLike) -> Any:
    """Return log(1 + x), exact for small x too."""
    from sim.base.maths.kernels.logarithm import log1p_all  # loads numba

    return _apply(log1p_all, x)


@overload
def sin(x: float) -> float: ...
@overload
def sin(x: Values) -> F8: ...
def sin(x: ArrayLike) -> Any:
    """Return the sine of x, in radians; NaN from 2**20 on, either way."""
    from sim.base.maths.kernels.sine import sin_all  # loads numba

    return _apply(sin_all, x)


@overload
def normal_cdf(x: float) -> float: ...
@overload
def normal_cdf(x: Values) -> F8: ...
def normal_cdf(x: ArrayLike) -> Any:
    """Return the probability that a standard normal variable is at most x."""
    from sim.base.maths.kernels.normal import normal_cdf_all  # loads numba

    return _apply(normal_cdf_all, x)


@overload
def normal_quantile(p: float) -> float: ...
@overload
def normal_quantile(p: Values) -> F8: ...
def normal_quantile(p: ArrayLike) -> Any:
    """Return the quantile of the standard normal distribution at probability p."""
    from sim.base.maths.kernels.normal import normal_quantile_all  # loads numba

    return _apply(normal_quantile_all, p)


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
    return _apply(power_all, base.copy(), exponent.copy().reshape(-1))


def geomspace(low: float, high: float, n: int) -> F8:
    """Return n numbers from `low` to `high` in geometric progression, (n,)."""
    out: F8 = low * exp(np.arange(n) * (log(high / low) / max(n - 1, 1)))
    out[-1:] = high if n > 1 else low
    return out


@overload
def interp(x: float, points: ArrayLike, values: ArrayLike) -> float: ...
@overload
def interp(x: Values, points: ArrayLike, values: ArrayLike) -> F8: ...
def interp(x: ArrayLike, points: ArrayLike, values: ArrayLike) -> Any:
    """Interpolate linearly between values at ascending points; beyond them, the end values."""
    xs, ys = np.asarray(points, np.float64), np.asarray(values, np.float64)
    clipped = np.clip(np.asarray(x, np.float64), xs[0], xs[-1])
    left = np.clip(np.searchsorted(xs, clipped, side="right") - 1, 0, max(len(xs) - 2, 0))
    right = np.minimum(left + 1, len(xs) - 1)
    width = xs[right] - xs[left]
    share = (clipped - xs[left]) / np.where(width > 0, width, 1.0)
    out = ys[left] + share * (ys[right] - ys[left])
    out = np.where(clipped == xs[right], ys[right], out)
    return out if out.ndim else float(out)


def dot(a: ArrayLike, b: ArrayLike) -> Any:
    """Return the matrix product a @ b of arrays of one or two dimensions, summed in fixed order.

    Raise ValueError if the last dimension of a differs from the first of b.
    """
    left, right = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if left.shape[-1] != len(right):
        raise ValueError(f"shapes {left.shape} and {right.shape} do not match for a product")
    if right.ndim == 1:
        return np.add.reduce(np.ascontiguousarray(left * right), axis=-1)
    if left.ndim == 1:
        return np.add.reduce(np.ascontiguousarray((left[:, None] * right).T), axis=-1)
    out = np.zeros((len(left), right.shape[1]))
    for k in range(len(right)):
        out += left[:, k, None] * right[k]
    return out


def slope(x: ArrayLike, y: ArrayLike) -> float:
    """Return the slope of the least-squares line through points of at least two different x."""
    centred = np.asarray(x, np.float64)
    centred = centred - centred.mean()
    return float(dot(centred, y) / dot(centred, centred))


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Find a root by bisection, of a function with one change of sign between low and high."""
    is_rising = function(low) < function(high)
    while low < (middle := low + (high - low) / 2) < high:
        if (function(middle) < 0.0) == is_rising:
            low = middle
        else:
            high = middle
    return low
