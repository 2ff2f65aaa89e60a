"""How one of our figures compares with the one that its source printed."""

from __future__ import annotations

import math
import re

SAME, CLOSE, DIFFERS = "same", "close", "differs"

WITHIN_SAME, WITHIN_CLOSE = 0.05, 0.25
"""How far from the source's figure, as a part of it."""

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_EXACT = re.compile(rf"(?:about |slightly below )?{_NUMBER}")
_PART = re.compile(rf"{_NUMBER} of {_NUMBER}")
_LEAST = re.compile(rf"(?:more than |≥ ){_NUMBER}|{_NUMBER} or more")
_MOST = re.compile(rf"(?:less than |≤ ){_NUMBER}|{_NUMBER} at most")


def verdict(ours: float, low: float, high: float, paper: str, *, percent: bool = False) -> str:
    """Tell whether a figure is the source's, near it, or another."""
    if not math.isfinite(ours):
        return ""
    if found := _LEAST.fullmatch(paper):
        least = float(found[1] or found[2])
        return SAME if max(ours, high) >= least else _by_distance(ours, least)
    if found := _MOST.fullmatch(paper):
        most = float(found[1] or found[2])
        return SAME if min(ours, low) <= most else _by_distance(ours, most)
    if found := _PART.fullmatch(paper):
        theirs = float(found[1]) / float(found[2]) * (100.0 if percent else 1.0)
    elif found := _EXACT.fullmatch(paper):
        theirs = float(found[1])
    else:
        return ""
    return SAME if low <= theirs <= high else _by_distance(ours, theirs)


def _by_distance(ours: float, theirs: float) -> str:
    off = abs(ours - theirs)
    # a sum of decimals may miss its bound by a rounding
    for name, part in ((SAME, WITHIN_SAME), (CLOSE, WITHIN_CLOSE)):
        if off <= part * abs(theirs) * (1 + 1e-9):
            return name
    return DIFFERS
