"""Building blocks of the functions: bits, exact sums and products, powers of two.

Additions, multiplications, divisions and square roots are exact by IEEE 754: each gives the double
that is nearest to the true result, on every machine. Nothing here may be contracted or reordered.
"""

from __future__ import annotations

from sim.base.intrinsics import float_of
from sim.base.jit import part

SHIFT = 1.5 * 2.0**52
"""Added to a double of less than 2**51 it leaves no bit below one: the sum ends in the nearest
integer."""
SHIFT_BITS = 0x4338 << 48
"""The bits of SHIFT."""
ONE_BITS = 0x3FF << 52
"""The bits of 1.0."""
BLOCK = 512
"""Arguments processed together: if none is a special case, as nearly always, one loop without
branches serves them."""
_SPLIT = 2.0**27 + 1.0


@part
def two_sum(a, b):
    """Return a + b, rounded, and the rounding error."""
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


@part
def fast_two_sum(a, b):
    """Return a + b, rounded, and the rounding error; for abs(a) >= abs(b), or a of 0."""
    total = a + b
    return total, b - (total - a)


@part
def two_product(a, b):
    """Return a * b, rounded, and the rounding error (Dekker 1971); below 2**996."""
    product = a * b
    a_high = _SPLIT * a - (_SPLIT * a - a)
    b_high = _SPLIT * b - (_SPLIT * b - b)
    a_low, b_low = a - a_high, b - b_high
    rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, rest


@part
def power_of_two(k):
    """Return 2**k, for k of -1022 to 1023."""
    return float_of((k + 1023) << 52)


@part
def scaled(x, k):
    """Return x * 2**k for k of -2044 to 2046, rounded once."""
    half = k >> 1
    return x * power_of_two(half) * power_of_two(k - half)


@part
def to_float(k):
    """Return an integer of less than 2**51 as a double."""
    return float_of(k + SHIFT_BITS) - SHIFT
