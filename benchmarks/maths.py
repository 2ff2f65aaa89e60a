"""Speed of `sim.base.maths` relative to NumPy's functions, and its errors.

Run as ``python -m benchmarks.maths [--n N] [--checked K]``: vectors of N are timed in turn, K
random arguments are compared with mpmath, in units of the last place.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import mpmath
import numpy as np

from benchmarks.common import Row, interleave, parse_arguments, row, show, timed
from sim.base import maths
from sim.base.random import stream

ENDS = {
    "exp": (-20.0, 20.0), "expm1": (-2.0, 5.0), "log": (0.0, 100.0), "log1p": (-0.9, 10.0),
    "sin": (-10.0, 10.0), "normal_cdf": (-8.0, 8.0),
    "normal_quantile": (0.0, 1.0),
}  # fmt: skip
TRUE: dict[str, Callable[..., Any]] = {
    **{name: getattr(mpmath, name) for name in ("exp", "expm1", "log", "log1p", "sin")},
    "normal_cdf": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "normal_quantile": lambda p: -mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * p),
    "power": mpmath.power,
}
MIN_RATIO, MAX_ULPS = 0.5, 1.0


def main() -> int:
    args = parse_arguments(__doc__, n=1_000_000, checked=20_000)
    rng = stream(0, "benchmark", "maths")
    arguments_by_name = {name: (rng.uniform(*ends, args.n),) for name, ends in ENDS.items()}
    arguments_by_name["power"] = (rng.uniform(0.0, 100.0, args.n), rng.uniform(-3.0, 3.0, args.n))
    rows: list[Row] = []
    for name, arguments in arguments_by_name.items():
        function, numpy_function = getattr(maths, name), getattr(np, name, None)
        checked = tuple(x[: args.checked] for x in arguments)
        rows.append(row(f"{name}, off by", ulps(name, checked), "ulp", at_most=MAX_ULPS))
        runs = {"ours": partial(seconds, function, arguments)}
        if numpy_function is not None:
            runs["NumPy"] = partial(seconds, numpy_function, arguments)
        elapsed_s = interleave(runs, 15)
        rows.append(row(f"{name}, a number", [s / args.n * 1e9 for s in elapsed_s["ours"]], "ns"))
        if numpy_function is not None:
            ratio = [b / a for a, b in zip(elapsed_s["ours"], elapsed_s["NumPy"], strict=True)]
            rows.append(row(f"{name}, beside NumPy's", ratio, "x", at_least=MIN_RATIO))
    return show("maths", rows)


def seconds(function: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    return timed(lambda: function(*arguments))[0]


def ulps(name: str, arguments: tuple[Any, ...]) -> float:
    """Return the maximum error in units of the last place."""
    worst = 0.0
    with mpmath.workprec(160):
        for *x, y in zip(*arguments, getattr(maths, name)(*arguments), strict=True):
            true = TRUE[name](*(mpmath.mpf(float(v)) for v in x))
            worst = max(worst, float(abs(mpmath.mpf(float(y)) - true) / math.ulp(float(true))))
    return worst


if __name__ == "__main__":
    sys.exit(main())
