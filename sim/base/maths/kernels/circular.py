"""Sine and cosine: the argument less a multiple of pi / 2, and power series.

Up to 2**20 the multiple is taken off in three parts (Cody and Waite 1980), beyond it the product
with the bits of 2 / pi that matter is formed (Payne and Hanek 1983; Muller, *Elementary Functions*,
ch. 11).
"""

from __future__ import annotations

import math

import numpy as np

from sim.base.intrinsics import bits_of
from sim.base.jit import jit, part
from sim.base.maths.kernels.bits import SHIFT, SHIFT_BITS, fast_two_sum, two_product, two_sum

PER_HALF_PI = float.fromhex("0x1.45f306dc9c883p-1")  # 2 / pi
HALF_PI = tuple(
    map(float.fromhex, ("0x1.921fb544p+0", "0x1.0b4611a6p-34", "0x1.3198a2e037073p-69"))
)
H1, H2, H3 = HALF_PI
H, H_REST = float.fromhex("0x1.921fb54442d18p+0"), float.fromhex("0x1.1a62633145c07p-54")
LIMIT = 2.0**20

S3, S5, S7, S9, S11, S13, S15, S17, S19 = (
    (-1.0) ** (n // 2) / math.factorial(n) for n in range(3, 20, 2)
)
C4, C6, C8, C10, C12, C14, C16, C18 = (
    (-1.0) ** (n // 2) / math.factorial(n) for n in range(4, 19, 2)
)


def _two_over_pi(n_bits: int) -> int:
    """Return 2 / pi in units of 2**-n_bits, with pi by Machin's formula."""
    one = 1 << (n_bits + 64)

    def arctan_of_inverse(n: int) -> int:
        term, total, k = one // n, one // n, 3
        while term:
            term //= -n * n
            total += term // k
            k += 2
        return total

    quarter_pi = 4 * arctan_of_inverse(5) - arctan_of_inverse(239)
    return (one << n_bits) // (2 * quarter_pi)


LIMB = 24
MASK = (1 << LIMB) - 1
N_LIMBS = 11
_BITS = LIMB * 52
LIMBS = np.array([_two_over_pi(_BITS) >> (_BITS - LIMB * (i + 1)) & MASK for i in range(52)])
"""2 / pi, 24 bits an element."""


@part
def reduced(x):
    """Return the quadrant of x, and x less its multiple of pi / 2 as a double and its rest."""
    shifted = x * PER_HALF_PI + SHIFT
    n = shifted - SHIFT
    r, rest = two_sum(x - n * H1, -n * H2)
    r, more = two_sum(r, -n * H3)
    return (bits_of(shifted) - SHIFT_BITS) & 3, r, rest + more


@part
def reduced_far(x):
    """Return the same of an x of at least 2**20, by its product with the bits of 2 / pi."""
    bits = bits_of(x)
    e = ((bits >> 52) & 0x7FF) - 1075
    m = (bits & ((1 << 52) - 1)) | (1 << 52)
    first = max(e - 2, 0) // LIMB  # the limbs before it make multiples of 4
    product = np.zeros(N_LIMBS + 3, dtype=np.int64)  # least first
    for j in range(N_LIMBS):
        limb = LIMBS[first + N_LIMBS - 1 - j]
        for i in range(3):
            product[j + i] += ((m >> (LIMB * i)) & MASK) * limb
    for j in range(N_LIMBS + 2):
        product[j + 1] += product[j] >> LIMB
        product[j] &= MASK
    point = LIMB * (first + N_LIMBS) - e  # the bits below it are the fraction
    quadrant = _bit(product, point) + 2 * _bit(product, point + 1)
    is_above = _bit(product, point - 1) == 1  # then it is nearer to the next
    top = (point - 1) // LIMB
    product[top] &= (1 << (point - LIMB * top)) - 1
    if is_above:
        for j in range(top + 1):
            product[j] = MASK - product[j]
        product[top] &= (1 << (point - LIMB * top)) - 1
    while product[top] == 0 and top > 4:
        top -= 1
    r, rest = 0.0, 0.0
    for j in range(5):
        r, more = two_sum(r, product[top - j] * 2.0 ** (LIMB * (4 - j)))
        rest += more
    unit = 0.5 ** (point - LIMB * (top - 4))
    r, rest = fast_two_sum(r, rest)
    high, low = two_product(r, H)
    high, low = fast_two_sum(high * unit, (low + (r * H_REST + rest * H)) * unit)
    sign = -1.0 if is_above != (x < 0.0) else 1.0
    quadrant += is_above
    return (-quadrant if x < 0.0 else quadrant) & 3, sign * high, sign * low


@part
def _bit(limbs, i):
    return (limbs[i // LIMB] >> (i % LIMB)) & 1


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


@part
def _of_quadrant(quadrant, r, rest):
    sine, cosine = sin_near(r, rest), cos_near(r, rest)
    value = cosine if quadrant & 1 else sine
    return -value if quadrant & 2 else value


@part
def _turned(x, quadrants):
    """Return the sine of x + quadrants * pi / 2."""
    tame = x if x < LIMIT and x > -LIMIT else 0.0
    quadrant, r, rest = reduced(tame)
    return _of_quadrant((quadrant + quadrants) & 3, r, rest)


@part
def _turned_far(x, quadrants):
    if x - x != 0.0:
        return x - x
    quadrant, r, rest = reduced_far(x)
    return _of_quadrant((quadrant + quadrants) & 3, r, rest)


@part
def sin(x):
    """Return the sine of x."""
    if x < LIMIT and x > -LIMIT:
        return _turned(x, 0) if x != 0.0 else x
    return _turned_far(x, 0)


@part
def cos(x):
    """Return the cosine of x."""
    if x < LIMIT and x > -LIMIT:
        return _turned(x, 1)
    return _turned_far(x, 1)


@jit
def circular_all(x, quadrants, out):
    """Write the sine of x + quadrants * pi / 2."""
    for i in range(len(x)):
        near = _turned(x[i], quadrants)
        out[i] = near if quadrants or x[i] != 0.0 else x[i]
    for i in range(len(x)):
        if not (x[i] < LIMIT and x[i] > -LIMIT):
            out[i] = _turned_far(x[i], quadrants)
