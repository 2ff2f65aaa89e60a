"""Transcendental functions against mpmath, to the last bit but one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from sim.base import maths
from sim.base.jit import JIT
from sim.base.random import stream

N = 400 if JIT else 50
TRUE: dict[str, Callable[..., Any]] = {
    "exp": mpmath.exp,
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log1p": mpmath.log1p,
    "sin": mpmath.sin,
    "normal_cdf": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "normal_quantile": lambda p: -mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * p),
}
"""Reference functions."""
WITHIN = {
    "exp": [(-746, 710), (-1, 1), (-1e-8, 1e-8), (-745.2, -707)],
    "expm1": [(-60, 710), (-1, 1), (-1e-8, 1e-8), (0.3, 1.1), (-1.1, -0.3)],
    "log": [(0, 10), (0.5, 1.5), (0.99, 1.01), (0, 1e300), (0, 1e-305)],
    "log1p": [(-1, 10), (-0.5, 0.5), (-1e-8, 1e-8), (0, 1e300), (-1, -0.999999)],
    "sin": [(-4, 4), (-1000, 1000), (-1e-8, 1e-8), (-(2.0**20) + 1e-9, 2.0**20)],
    "normal_cdf": [(-38.5, 8.5), (-1, 1), (-1e-8, 1e-8), (-8, 0), (-38.6, -37)],
    "normal_quantile": [(0, 1), (0.4, 0.6), (0, 1e-6), (1 - 1e-6, 1), (0.06, 0.09), (0, 1e-300)],
}
"""Between which ends arguments are drawn."""
WIDE = ("exp", "log", "log1p")
"""Functions defined for arguments of any size, tested on doubles of every exponent."""


def ulps(name: str, x: np.ndarray, got: np.ndarray, *extra: np.ndarray) -> float:
    """Return the maximum error of `got` in units in the last place."""
    with mpmath.workprec(160):
        worst = 0.0
        reference = TRUE.get(name, mpmath.power)
        for *arguments, y in zip(x, *extra, got, strict=True):
            true = reference(*(mpmath.mpf(float(v)) for v in arguments))
            unit = math.ulp(float(true))
            worst = max(worst, float(abs(mpmath.mpf(float(y)) - true) / unit))
        return worst


def any_doubles(n: int, purpose: str) -> np.ndarray:
    """Return doubles of every exponent."""
    bits = stream(0, "maths", purpose).integers(0, 2**63 - 1, n)
    x = bits.view(np.float64)
    return x[np.isfinite(x)]


@pytest.mark.parametrize(
    ("name", "place"), [(name, i) for name, ends in WITHIN.items() for i in range(len(ends))]
)
def test_within_one_unit_of_the_last_place(name: str, place: int) -> None:
    low, high = WITHIN[name][place]
    rng = stream(0, "maths", name, place)
    near = np.nextafter(low, np.inf) + np.arange(N // 10) * math.ulp(max(abs(low), 1e-300))
    x = np.concatenate([np.linspace(low, high, N)[1:-1], rng.uniform(low, high, N), near])
    assert ulps(name, x, getattr(maths, name)(x)) <= 1.0


@pytest.mark.parametrize("name", WIDE)
def test_of_any_size(name: str) -> None:
    x = any_doubles(N, name)
    if name == "exp":
        x = x[x < 700]
    assert ulps(name, x, getattr(maths, name)(x)) <= 1.0


def test_powers() -> None:
    rng = stream(0, "maths", "power")
    x = np.concatenate([rng.uniform(0, 10, N), maths.exp(rng.uniform(-700, 700, N))])
    y = np.concatenate([rng.uniform(-20, 20, N), rng.uniform(-1, 1, N)])
    near_one = 1.0 + rng.uniform(-1e-6, 1e-6, N)
    x, y = np.concatenate([x, near_one]), np.concatenate([y, rng.uniform(-1e8, 1e8, N)])
    assert ulps("power", x, maths.power(x, y), y) <= 1.0


INF, NAN = math.inf, math.nan
SPECIAL = {
    "exp": [
        (0.0, 1.0),
        (-0.0, 1.0),
        (INF, INF),
        (-INF, 0.0),
        (710.0, INF),
        (-746.0, 0.0),
        (5e-324, 1.0),
    ],
    "expm1": [
        (0.0, 0.0),
        (-0.0, -0.0),
        (INF, INF),
        (-INF, -1.0),
        (5e-324, 5e-324),
        (710.0, INF),
        (-99.0, -1.0),
    ],
    "log": [
        (0.0, -INF),
        (-0.0, -INF),
        (1.0, 0.0),
        (INF, INF),
        (-INF, NAN),
        (-1.0, NAN),
        (5e-324, math.log(5e-324)),
    ],
    "log1p": [
        (0.0, 0.0),
        (-0.0, -0.0),
        (-1.0, -INF),
        (INF, INF),
        (-INF, NAN),
        (-2.0, NAN),
        (5e-324, 5e-324),
    ],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (2.0**20, NAN), (5e-324, 5e-324)],
    "normal_cdf": [(0.0, 0.5), (INF, 1.0), (-INF, 0.0), (5e-324, 0.5), (-39.0, 0.0), (39.0, 1.0)],
    "normal_quantile": [(0.5, 0.0), (0.0, -INF), (1.0, INF), (-0.1, NAN), (1.1, NAN)],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_arguments(name: str) -> None:
    reference = getattr(maths, name)
    for x, want in SPECIAL[name]:
        assert (math.isnan(reference(x)) and math.isnan(want)) or (
            reference(x) == want and math.copysign(1, reference(x)) == math.copysign(1, want)
        ), (x, reference(x), want)
    assert math.isnan(reference(NAN))


def test_powers_of_special_arguments_are_those_of_the_standard() -> None:
    some = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        2.5,
        1e300,
        -1e300,
        INF,
        -INF,
        NAN,
    ]
    for x in some:
        for y in some:
            try:
                want = math.pow(x, y)
            except ValueError:  # math raises where the standard has NaN, or infinity of zero
                want = NAN if x else math.copysign(INF, x if y % 2 == 1 else 1.0)
            except OverflowError:
                want = math.copysign(INF, x if y % 2 == 1 else 1.0)
            got = maths.power(x, y)
            off = 0.0 if got == want else abs(got - want) / math.ulp(want)
            same = off <= 1.0 and math.copysign(1, got) == math.copysign(1, want)
            assert same or (math.isnan(got) and math.isnan(want)), (x, y, got, want)


def test_shapes_are_kept_and_the_read_only_is_read() -> None:
    x = np.linspace(0.1, 0.9, 6).reshape(2, 3)
    x.flags.writeable = False
    assert maths.exp(x).shape == (2, 3)
    assert maths.power(x, 2.0).shape == (2, 3)
    assert (maths.log(x.T) == maths.log(x).T).all()
    assert isinstance(maths.exp(1), float)


def test_numbers_in_geometric_progression() -> None:
    got = maths.geomspace(0.15, 8.0, 32)
    assert got[[0, -1]].tolist() == [0.15, 8.0]
    assert np.allclose(got[1:] / got[:-1], (8 / 0.15) ** (1 / 31), rtol=1e-14)
    assert maths.geomspace(3.0, 5.0, 1).tolist() == [3.0]


def test_products_are_those_of_matrices_and_shapes_must_meet() -> None:
    a, b = stream(0, "maths", "dot").random((2, 3, 3))
    for left, right in ((a, b), (a, b[0]), (a[0], b), (a[0], b[0])):
        assert np.allclose(maths.dot(left, right), left @ right, rtol=1e-15)
    with pytest.raises(ValueError, match=r"shapes \(3, 3\) and \(1,\)"):
        maths.dot(a, [1.0])
