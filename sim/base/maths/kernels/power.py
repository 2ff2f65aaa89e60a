"""x**y = exp(y log x), with the logarithm to 65 bits in a pair of doubles.

log x = log(x / c) - log(1 / c), where c is near x, and its inverse has so few bits that x / c is
exact (Tang 1990, *Table-driven implementation of the logarithm function*; Muller, *Elementary
Functions*, ch. 11). Leading terms are pairs of doubles (Dekker 1971). Special cases are those of
IEEE 754-2019, 9.2.1.
"""

from __future__ import annotations

from math import inf, nan

import numpy as np

from sim.base.arrays import F8
from sim.base.intrinsics import bits_of, float_of, widely
from sim.base.jit import inlined, jit, part
from sim.base.maths.kernels.bits import BLOCK, SHIFT, SHIFT_BITS, fast_two_sum, scaled, to_float
from sim.base.maths.kernels.exponential import LN2_HIGH, LN2_LOW, PLAIN, exp_parts
from sim.base.maths.kernels.logarithm import SMALLEST, parts

LARGEST = 2.0**70
"""A larger exponent gives the same result: 0, 1 or infinity."""

N = 256
"""Inverses of the table are multiples of 1 / N."""
FIRST = 181
_HIGH = -1 << 27
_UNIT = 1 << 200


def _logarithms() -> tuple[F8, F8]:
    """Return log(N / k) for k from FIRST to N sqrt(2), to 42 bits, and the rest of each."""
    logs = [0]
    for k in range(FIRST, 363):  # log((k + 1) / k) = 2 artanh(1 / (2 k + 1))
        x, term, n = 2 * k + 1, 2 * _UNIT // (2 * k + 1), 1
        total = 0
        while term:
            total += term // n
            term, n = term // (x * x), n + 2
        logs.append(logs[-1] + total)
    log_n = logs[N - FIRST]
    exact = [log_n - log for log in logs]
    high = [(log + (1 << 157)) >> 158 for log in exact]
    low = [(log - (near << 158)) / _UNIT for log, near in zip(exact, high, strict=True)]
    return np.array([near / 2**42 for near in high]), np.array(low)


LOG, LOG_REST = _logarithms()
L3, L4, L5, L6, L7, L8 = 1.0 / 3, -1.0 / 4, 1.0 / 5, -1.0 / 6, 1.0 / 7, -1.0 / 8


@part
def split(x):
    """Return the first 26 bits of x, and the others: products of such are exact."""
    high = float_of(bits_of(x) & _HIGH)
    return high, x - high


@inlined
def _log_pair(k, z):
    """Return log(2**k z), and its rounding error."""
    shifted = N / z + SHIFT
    inverse = (shifted - SHIFT) * (1.0 / N)
    i = bits_of(shifted) - (SHIFT_BITS + FIRST)
    high, low = split(z)
    r = (high * inverse - 1.0) + low * inverse  # exact: both have few bits
    k = to_float(k)
    before = k * LN2_HIGH + LOG[i]  # exact
    log, rest = fast_two_sum(before, r)
    high, low = split(r)
    log, more = fast_two_sum(log, -0.5 * high * high)
    rest += more + (k * LN2_LOW + LOG_REST[i]) - 0.5 * low * (r + high)
    series = L3 + r * (L4 + r * (L5 + r * (L6 + r * (L7 + r * L8))))
    return fast_two_sum(log, rest + r * r * r * series)


@inlined
def _exponent(y, k, z):
    """Return y log(2**k z), and its rounding error."""
    log, log_rest = _log_pair(k, z)
    (y_high, y_low), (log_high, log_low) = split(y), split(log)
    high = y * log
    low = ((y_high * log_high - high) + y_high * log_low + y_low * log_high) + y_low * log_low
    return high, low + y * log_rest


@inlined
def _plain_power(high, low):
    k, m, rest = exp_parts(high, low)
    return float_of(bits_of(m + rest) + (k << 52))


@part
def _positive_power(x, y):
    """Return x**y, for a positive, finite x and a y that is a number."""
    is_small = x < SMALLEST
    k, z = parts(x * 2.0**54 if is_small else x)
    high, low = _exponent(min(max(y, -LARGEST), LARGEST), k - (54 if is_small else 0), z)
    if high >= -PLAIN and high <= PLAIN:
        return _plain_power(high, low)
    if high > -746.0 and high < 710.0:
        k, m, rest = exp_parts(high, low)
        return scaled(m + rest, k - SHIFT_BITS)
    return inf if high > 0.0 else 0.0


@part
def power(x, y):
    """Return x**y."""
    if x == 1.0 or y == 0.0:
        return 1.0
    if x != x or y != y:
        return nan
    is_whole = y == np.floor(y)
    is_odd = is_whole and abs(y) < 2.0**53 and 0.5 * y != np.floor(0.5 * y)
    size = abs(x)
    if size > 0.0 and size < inf:
        if x < 0.0 and not is_whole:
            return nan
        result = _positive_power(size, y)
    else:
        result = inf if (y > 0.0) == (size > 0.0) else 0.0
    is_negative = x < 0.0 or (x == 0.0 and 1.0 / x < 0.0)
    return -result if is_negative and is_odd else result


@jit
def power_all(x, y, out):
    """Write x**y."""
    widely()
    for begin in range(0, len(x), BLOCK):
        n = min(len(x) - begin, BLOCK)
        base, exponent = x[begin : begin + n], y[begin : begin + n]
        write = out[begin : begin + n]
        n_plain = 0
        for i in range(n):
            k, z = parts(base[i])
            high, low = _exponent(exponent[i], k, z)
            write[i] = _plain_power(high, low)
            n_plain += (base[i] >= SMALLEST) & (base[i] < inf) & (high >= -PLAIN) & (high <= PLAIN)
        if n_plain < n:
            for i in range(n):
                write[i] = power(base[i], exponent[i])
