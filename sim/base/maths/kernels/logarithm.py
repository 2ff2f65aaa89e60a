"""The natural logarithm: log(2**k (1 + f)) = k ln 2 + 2 artanh(f / (2 + f)), by a polynomial.

1 + f lies in [sqrt(1/2), sqrt(2)), so that the argument is at most 0.172 (Muller, *Elementary
Functions*, ch. 11).
"""

from __future__ import annotations

from math import inf, nan

from sim.base.intrinsics import bits_of, float_of, widely
from sim.base.jit import jit, part
from sim.base.maths.kernels.bits import BLOCK, fast_two_sum, power_of_two, to_float, two_sum
from sim.base.maths.kernels.exponential import LN2_HIGH, LN2_LOW

LEAST_BITS = 0x3FE6A09E667F3BCD  # of sqrt(1/2)
_EXPONENT = -1 << 52
SMALLEST = 2.0**-1022
"""The smallest normal double."""
LARGEST = 2.0**1000

T3, T5, T7, T9, T11, T13, T15 = map(
    float.fromhex,
    (
        "0x1.5555555555558p-1", "0x1.99999999952d7p-2", "0x1.2492492df281ap-2",
        "0x1.c71c62e3f11e6p-3", "0x1.7462b51cb66b1p-3", "0x1.39fe51a7c18f9p-3",
        "0x1.2b5900de53b32p-3",
    ),
)  # fmt: skip
"""2 artanh(s) / s - 2 in powers of s**2: the Chebyshev fit, off by 2**-56 of its argument."""


@part
def parts(x):
    """Return k and z of x = 2**k z, with z of sqrt(1/2) to sqrt(2), for a normal x."""
    bits = bits_of(x)
    above = bits - LEAST_BITS
    return above >> 52, float_of(bits - (above & _EXPONENT))


@part
def log_scaled(k, f, rest):
    """Return log(2**k (1 + f)) + rest."""
    s = f / (2.0 + f)
    w = s * s
    series = w * (T3 + w * (T5 + w * (T7 + w * (T9 + w * (T11 + w * (T13 + w * T15))))))
    half = 0.5 * f * f
    k = to_float(k)
    large, left = fast_two_sum(k * LN2_HIGH, f)
    return large + (left - (half - (s * (half + series) + (k * LN2_LOW + rest))))


@part
def _plain_log(x):
    k, z = parts(x)
    return log_scaled(k, z - 1.0, 0.0)


@part
def log(x):
    """Return the natural logarithm of x."""
    if x >= SMALLEST and x < inf:
        return _plain_log(x)
    if x > 0.0 and x < inf:
        k, z = parts(x * 2.0**54)
        return log_scaled(k - 54, z - 1.0, 0.0)
    if x == 0.0:
        return -inf
    return nan if x < 0.0 else x


@part
def _plain_log1p(x):
    total, rest = two_sum(1.0, x)
    k, z = parts(total)
    f, rest = two_sum(z - 1.0, rest * power_of_two(-k))
    result = log_scaled(k, f, rest / (1.0 + f))
    return result if x != 0.0 else x  # keeps the sign of 0


@part
def log1p(x):
    """Return log(1 + x), exact for small x too."""
    if x > -1.0 and x < LARGEST:
        return _plain_log1p(x)
    if x == -1.0:
        return -inf
    return nan if x < -1.0 else log(x)


@jit
def log_all(x, out):
    """Write the natural logarithm."""
    widely()
    for begin in range(0, len(x), BLOCK):
        n = min(len(x) - begin, BLOCK)
        block, write = x[begin : begin + n], out[begin : begin + n]
        n_plain = 0
        for i in range(n):
            write[i] = _plain_log(block[i])
            n_plain += (block[i] >= SMALLEST) & (block[i] < inf)
        if n_plain < n:
            for i in range(n):
                write[i] = log(block[i])


@jit
def log1p_all(x, out):
    """Write log(1 + x)."""
    widely()
    for begin in range(0, len(x), BLOCK):
        n = min(len(x) - begin, BLOCK)
        block, write = x[begin : begin + n], out[begin : begin + n]
        n_plain = 0
        for i in range(n):
            write[i] = _plain_log1p(block[i])
            n_plain += (block[i] > -1.0) & (block[i] < LARGEST)
        if n_plain < n:
            for i in range(n):
                write[i] = log1p(block[i])
