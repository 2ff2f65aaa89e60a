"""The exponential function: its argument less a multiple of ln 2, and a polynomial.

x = k ln 2 + r with abs(r) <= ln 2 / 2, so exp x = 2**k exp r (Tang 1989; Muller, *Elementary
Functions*, ch. 11; a longer polynomial replaces Tang's table, for which vector units would wait).
The rounding errors of r and of 1 + r are carried along.
"""

from __future__ import annotations

from math import inf

from sim.base.intrinsics import bits_of, float_of, widely
from sim.base.jit import jit, part
from sim.base.maths.kernels.bits import BLOCK, SHIFT, SHIFT_BITS, fast_two_sum, scaled, two_sum

PER_LN2 = float.fromhex("0x1.71547652b82fep+0")  # 1 / ln 2
LN2_HIGH = float.fromhex("0x1.62e42fefa3800p-1")  # the first 42 bits of ln 2
LN2_LOW = float.fromhex("0x1.ef35793c76730p-45")  # the next 53
PLAIN = 700.0
"""Up to this argument 2**k and 2**-k are normal doubles."""

C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12 = map(
    float.fromhex,
    (
        "0x1.0000000000000p-1", "0x1.5555555555557p-3", "0x1.5555555555556p-5",
        "0x1.11111111100dcp-7", "0x1.6c16c16c162d4p-10", "0x1.a01a01abe7fe1p-13",
        "0x1.a01a01a6d889cp-16", "0x1.71de0231960ebp-19", "0x1.27e4db646b17ep-22",
        "0x1.af4de97ca4194p-26", "0x1.1f730349868cep-29",
    ),
)  # fmt: skip
"""(exp r - 1 - r) / r**2 in powers of r: the Chebyshev fit, off by 2**-59."""


@part
def reduced(high, low):
    """Return k, r and c of high + low = k ln 2 + r + c: r is rounded, c its rounding error.

    k comes as the bits of SHIFT + k.
    """
    shifted = high * PER_LN2 + SHIFT
    k = shifted - SHIFT
    near, less = high - k * LN2_HIGH, k * LN2_LOW - low
    r = near - less
    return bits_of(shifted), r, (near - r) - less


@part
def beyond(r, c):
    """Return exp(r + c) - 1 - r."""
    high = C7 + r * (C8 + r * (C9 + r * (C10 + r * (C11 + r * C12))))
    return r * r * (C2 + r * (C3 + r * (C4 + r * (C5 + r * (C6 + r * high))))) + (c + c * r)


@part
def exp_parts(high, low):
    """Return k, m and the rest of m: exp(high + low) = 2**k (m + rest); low is below high's ulp.

    k comes as the bits of SHIFT + k.
    """
    k, r, c = reduced(high, low)
    m, rest = fast_two_sum(1.0, r)
    return k, m, rest + beyond(r, c)


@part
def _plain_exp(x):
    k, m, rest = exp_parts(x, 0.0)
    return float_of(bits_of(m + rest) + (k << 52))  # the bits above k are shifted out


@part
def exp(x):
    """Return e**x."""
    if x >= -PLAIN and x <= PLAIN:
        return _plain_exp(x)
    if x > -746.0 and x < 710.0:
        k, m, rest = exp_parts(x, 0.0)
        return scaled(m + rest, k - SHIFT_BITS)
    if x > 0.0:
        return inf
    return 0.0 if x < 0.0 else x


@part
def _plain_expm1(x):
    k, r, c = reduced(x, 0.0)
    p, p_rest = fast_two_sum(r, beyond(r, c))
    unit = float_of(((1023 + SHIFT_BITS) - k) << 52)  # 1 in units of 2**k
    m, rest = two_sum(1.0 - unit, p)
    result = (m + (rest + p_rest)) * float_of((k + (1023 - SHIFT_BITS)) << 52)
    return result if x != 0.0 else x  # keeps the sign of 0


@part
def expm1(x):
    """Return e**x - 1, exact for small x too."""
    if x >= -PLAIN and x <= PLAIN:
        return _plain_expm1(x)
    return -1.0 if x < 0.0 else exp(x)


@jit
def exp_all(x, out):
    """Write e**x."""
    widely()
    for begin in range(0, len(x), BLOCK):
        n = min(len(x) - begin, BLOCK)
        block, write = x[begin : begin + n], out[begin : begin + n]
        n_plain = 0
        for i in range(n):
            write[i] = _plain_exp(block[i])
            n_plain += (block[i] >= -PLAIN) & (block[i] <= PLAIN)
        if n_plain < n:
            for i in range(n):
                write[i] = exp(block[i])


@jit
def expm1_all(x, out):
    """Write e**x - 1."""
    widely()
    for begin in range(0, len(x), BLOCK):
        n = min(len(x) - begin, BLOCK)
        block, write = x[begin : begin + n], out[begin : begin + n]
        n_plain = 0
        for i in range(n):
            write[i] = _plain_expm1(block[i])
            n_plain += (block[i] >= -PLAIN) & (block[i] <= PLAIN)
        if n_plain < n:
            for i in range(n):
                write[i] = expm1(block[i])
