"""Sine: the argument less a multiple of pi / 2 in three parts (Cody and Waite 1980), power series.

Up to 2**20: beyond it the multiple would need more bits of pi.
"""

from __future__ import annotations

import math
from math import nan

from sim.base.intrinsics import bits_of
from sim.base.jit import jit, part
from sim.base.maths.kernels.bits import SHIFT, SHIFT_BITS, fast_two_sum, two_sum

PER_HALF_PI = float.fromhex("0x1.45f306dc9c883p-1")  # 2 / pi
HALF_PI = tuple(
    map(float.fromhex, ("0x1.921fb544p+0", "0x1.0b4611a6p-34", "0x1.3198a2e037073p-69"))
)
H1, H2, H3 = HALF_PI
LIMIT = 2.0**20

S3, S5, S7, S9, S11, S13, S15, S17, S19 = (
    (-1.0) ** (n // 2) / math.factorial(n) for n in range(3, 20, 2)
)
C4, C6, C8, C10, C12, C14, C16, C18 = (
    (-1.0) ** (n // 2) / math.factorial(n) for n in range(4, 19, 2)
)


@part
def reduced(x):
    """Return the quadrant of x, and x less its multiple of pi / 2 as a double and its rest."""
    shifted = x * PER_HALF_PI + SHIFT
    n = shifted - SHIFT
    r, rest = two_sum(x - n * H1, -n * H2)
    r, more = two_sum(r, -n * H3)
    return (bits_of(shifted) - SHIFT_BITS) & 3, r, rest + more


@part
def sin_near(r, rest):
    """Return the sine of r + rest, for abs(r) <= pi / 4."""
    z = r * r
    tail = S11 + z * (S13 + z * (S15 + z * (S17 + z * S19)))
    tail = S3 + z * (S5 + z * (S7 + z * (S9 + z * tail)))
    return r + (r * z * tail + rest * (1.0 - 0.5 * z))


@part
def cos_near(r, rest):
    """Return the cosine of r + rest, for abs(r) <= pi / 4."""
    z = r * r
    tail = C10 + z * (C12 + z * (C14 + z * (C16 + z * C18)))
    tail = C4 + z * (C6 + z * (C8 + z * tail))
    near, less = fast_two_sum(1.0, -0.5 * z)
    return near + (less + (z * z * tail - r * rest))


@jit
def sin_all(x, out):
    """Write the sine."""
    for i in range(len(x)):
        is_near = x[i] < LIMIT and x[i] > -LIMIT
        quadrant, r, rest = reduced(x[i] if is_near else 0.0)
        value = cos_near(r, rest) if quadrant & 1 else sin_near(r, rest)
        value = -value if quadrant & 2 else value
        if x[i] == 0.0:
            value = x[i]  # with its sign
        out[i] = value if is_near else nan
