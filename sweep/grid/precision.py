"""What ``seeds=auto`` is asked for: which metric, how narrow, at most how many seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sim.base.errors import InputError, unknown
from sweep.grid.overrides import Assignment
from sweep.stats import MIN_PAIRS

KEYS = ("seeds", "seeds_metric", "seeds_width", "seeds_max")


@dataclass(frozen=True)
class Precision:
    """How sure the numbers are to be."""

    metric: str  # whose intervals count
    # half the width of an interval, at most: relative, or as a fraction where the metric is one
    width: float
    most: int  # seeds, at most


def take(lines: dict[str, Assignment], defaults: Mapping[str, Any]) -> Precision | None:
    """Take the keys out of a command line's; None unless ``seeds=auto`` is among them."""
    given = {key: lines.pop(key).value for key in KEYS if key in lines}
    asked = {key: given.get(key, defaults[key]) for key in KEYS}
    if asked["seeds"] is None:
        if given.keys() - {"seeds"}:
            raise InputError(f"{min(given)} goes with seeds=auto", rule="wrong type")
        return None
    if asked["seeds"] != "auto":
        message = f"{unknown('seeds', str(asked['seeds']), ['auto'])}; seed=0,1,2 names them"
        raise InputError(message, rule="wrong type")
    metric, width, most = (asked[key] for key in KEYS[1:])
    if not isinstance(metric, str):
        raise InputError(f"seeds_metric must be a metric, not {metric!r}", rule="wrong type")
    is_number = isinstance(width, int | float) and not isinstance(width, bool)
    if not is_number or not math.isfinite(width) or width <= 0:
        raise InputError(
            f"seeds_width must be a number above 0, not {width!r}: half the width of an interval, "
            "0.05 for five per cent",
            rule="range",
        )
    if type(most) is not int or most < MIN_PAIRS:
        raise InputError(
            f"seeds_max must be a whole number >= {MIN_PAIRS}, not {most!r}: fewer seeds give no "
            "interval",
            rule="range",
        )
    return Precision(metric, float(width), most)
