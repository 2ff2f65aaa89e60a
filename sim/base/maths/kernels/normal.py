"""The normal distribution's function and quantile, by Mills' ratio.

Beyond x lies phi(x) M(x), where phi is the density and M' = x M - 1: from M at one point follow all
its derivatives there, so a table of M's power series about some points is computed exactly when the
module is loaded (Patel and Read, *Handbook of the Normal Distribution*, ch. 3). The exponential's
argument and both factors are pairs of doubles. The quantile is Wichura's (AS 241, 1988), and one
step of Newton's method from it.
"""

from __future__ import annotations

import math
from math import inf, nan, sqrt

import numpy as np

from sim.base.arrays import F8
from sim.base.intrinsics import bits_of, widely
from sim.base.jit import inlined, jit, part
from sim.base.maths.kernels.bits import (
    BLOCK,
    ONE_BITS,
    SHIFT_BITS,
    fast_two_sum,
    scaled,
    two_product,
)
from sim.base.maths.kernels.exponential import exp, exp_parts
from sim.base.maths.kernels.logarithm import log

DEGREE = 11
_PER_OCTAVE_BITS = 4
_PER_OCTAVE = 1 << _PER_OCTAVE_BITS
N_POINTS = 86
"""1 + x is split into intervals, 16 an octave, up to the last tail that a double can hold."""
FARTHEST = 38.6
_BITS = 400
_UNIT = 1 << _BITS


def _point(i: int) -> int:
    """Return the middle of an interval."""
    octave, step = divmod(i, _PER_OCTAVE)
    return ((2 * (_PER_OCTAVE + step) + 1) * _UNIT // (2 * _PER_OCTAVE) << octave) - _UNIT


def _ratio_at(point: int) -> int:
    """Return M at a point from 3 on: Laplace's continued fraction 1 / (x + 1 / (x + 2 / (x + ..."""
    below = point
    for k in range(200, 0, -1):
        below = point + k * _UNIT * _UNIT // below
    return _UNIT * _UNIT // below


def _series(point: int, ratio: int, n: int) -> list[int]:
    """Return the power series of M about a point, from its value there."""
    series = [ratio, point * ratio // _UNIT - _UNIT]
    for k in range(1, n):
        series.append((point * series[k] // _UNIT + series[k - 1]) // (k + 1))
    return series


def _value(series: list[int], step: int) -> int:
    total = 0
    for term in reversed(series):
        total = total * step // _UNIT + term
    return total


def _table() -> tuple[F8, F8, F8]:
    """Return points, the series of M / sqrt(2 pi) about them, and the rounding errors of M."""
    expansions: list[list[int]] = []
    above = 0
    for i in reversed(range(N_POINTS)):
        point = _point(i)
        ratio = _ratio_at(point) if point >= 3 * _UNIT else _value(expansions[-1], point - above)
        expansions.append(_series(point, ratio, 60))
        above = point
    # M(0) = sqrt(pi / 2), so M / sqrt(2 pi) = M / (2 M(0))
    twice = 2 * _value(expansions[-1], -above)
    scaled_terms = [
        [term * _UNIT // twice for term in terms[: DEGREE + 1]] for terms in expansions[::-1]
    ]
    series = np.array([[term / _UNIT for term in terms] for terms in scaled_terms])
    # a double is a whole number of 2**-80
    rests = [
        terms[0] - (int(near * 2.0**80) << _BITS - 80)
        for terms, near in zip(scaled_terms, series[:, 0], strict=True)
    ]
    points = [_point(i) / _UNIT for i in range(N_POINTS)]
    return np.array(points), series, np.array([rest / _UNIT for rest in rests])


POINT, SERIES, REST = _table()
DENSITY, DENSITY_REST = (
    float.fromhex("0x1.9884533d43651p-2"),
    float.fromhex("-0x1.cbc0d30ebfd15p-56"),
)
"""1 / sqrt(2 pi), and its rounding error."""
HALF_SERIES = np.array([(-0.5) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(14)])
"""The probability between 0 and x, over x / sqrt(2 pi), in powers of x**2."""
MIDDLE = np.array(
    [
        [
            3.3871328727963666080, 1.3314166789178437745e2, 1.9715909503065514427e3,
            1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
            3.3430575583588128105e4, 2.5090809287301226727e3,
        ],
        [
            1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
            2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
            5.2264952788528545610e3,
        ],
    ]
)  # fmt: skip
"""Wichura's x / (p - 1/2), in powers of 0.425**2 - (p - 1/2)**2: numerator and denominator."""
NEAR = np.array(
    [
        [
            1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550,
            3.64784832476320460504, 1.27045825245236838258, 2.41780725177450611770e-1,
            2.27238449892691845833e-2, 7.74545014278341407640e-4,
        ],
        [
            1.0, 2.05319162663775882187, 1.67638483018380384940, 6.89767334985100004550e-1,
            1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
            1.05075007164441684324e-9,
        ],
    ]
)  # fmt: skip
"""Wichura's -x, in powers of sqrt(-log p) - 1.6."""
FAR = np.array(
    [
        [
            6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580,
            2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
            2.71155556874348757815e-5, 2.01033439929228813265e-7,
        ],
        [
            1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
            7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
            2.04426310338993978564e-15,
        ],
    ]
)  # fmt: skip
"""Wichura's -x, in powers of sqrt(-log p) - 5."""


@inlined
def tail(x):
    """Return k, q, rest and e for x >= 0: the tail is 2**k (q + rest), exp(-x**2 / 2) is 2**k e."""
    square, square_rest = two_product(x, x)
    k, e, e_rest = exp_parts(-0.5 * square, -0.5 * square_rest)
    e, e_rest = fast_two_sum(e, e_rest)
    i = (bits_of(1.0 + x) - ONE_BITS) >> (52 - _PER_OCTAVE_BITS)
    t = x - POINT[i]
    high = SERIES[i, 8] + t * (SERIES[i, 9] + t * (SERIES[i, 10] + t * SERIES[i, 11]))
    high = SERIES[i, 4] + t * (SERIES[i, 5] + t * (SERIES[i, 6] + t * (SERIES[i, 7] + t * high)))
    high = SERIES[i, 1] + t * (SERIES[i, 2] + t * (SERIES[i, 3] + t * high))
    ratio, ratio_rest = fast_two_sum(SERIES[i, 0], REST[i] + t * high)
    q, rest = two_product(e, ratio)
    q, rest = fast_two_sum(q, rest + (e * ratio_rest + e_rest * ratio))
    return k - SHIFT_BITS, q, rest, e


@inlined
def _plain_cdf(x):
    size = abs(x)
    k, q, rest, _ = tail(size if size < FARTHEST else FARTHEST)
    below = scaled(q + rest, k)
    q, rest = scaled(q, k), scaled(rest, k)
    above, less = fast_two_sum(1.0, -q)
    return above + (less - rest) if x > 0.0 else below


@part
def normal_cdf(x):
    """Return the probability that a standard normal variable is at most x."""
    if x != x:
        return x
    return _plain_cdf(x) if x > -FARTHEST else 0.0


@part
def normal_quantile(p):
    """Return the quantile of the standard normal distribution at p."""
    is_low = p < 0.5
    left = p if is_low else 1.0 - p
    clamped = left if left > 0.0 else 0.25
    off, off_rest = fast_two_sum(0.5, -clamped)
    if off <= 0.425:
        x = off * _ratio(MIDDLE[0], MIDDLE[1], 0.180625 - off * off)
    else:
        r = sqrt(-log(clamped))
        x = _ratio(NEAR[0], NEAR[1], r - 1.6) if r <= 5.0 else _ratio(FAR[0], FAR[1], r - 5.0)
    if off <= 0.25:
        z, high = x * x, 0.0
        for n in range(len(HALF_SERIES) - 1, 0, -1):
            high = z * (HALF_SERIES[n] + high)
        area, rest = two_product(x, DENSITY)
        area, more = fast_two_sum(area, rest + x * DENSITY_REST + area * high)
        x -= ((area - off) + (more - off_rest)) / (DENSITY * exp(-0.5 * z))
    else:
        k, q, rest, e = tail(x)
        x += ((q - scaled(clamped, -k)) + rest) / (DENSITY * e)
    x = -x if is_low else x
    x = x if left > 0.0 else (inf if p == 1.0 else -inf)
    return x if p >= 0.0 and p <= 1.0 else nan


@part
def _ratio(top, bottom, r):
    """Return one polynomial over another, of the same degree."""
    above, below = 0.0, 0.0
    for i in range(len(top) - 1, -1, -1):
        above = above * r + top[i]
        below = below * r + bottom[i]
    return above / below


@jit
def normal_cdf_all(x, out):
    """Write the normal distribution's function."""
    widely()
    for begin in range(0, len(x), BLOCK):
        n = min(len(x) - begin, BLOCK)
        block, write = x[begin : begin + n], out[begin : begin + n]
        n_plain = 0
        for i in range(n):
            write[i] = _plain_cdf(block[i])
            n_plain += block[i] > -FARTHEST
        if n_plain < n:
            for i in range(n):
                write[i] = normal_cdf(block[i])


@jit
def normal_quantile_all(p, out):
    """Write the normal distribution's quantile."""
    for i in range(len(p)):
        out[i] = normal_quantile(p[i])
