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
    """Tell whether a figure is the source's, near it, or another.

    Parameters
    ----------
    ours, low, high : float
        Our figure and its 95 % confidence interval, NaN where there is none.
    paper : str
        The source's as it is shown: ``9.8``, ``about 24``, ``1 of 94``, ``45 or more``,
        ``4 at most``, ``slightly below 55``. In other words there is no verdict.
    percent : bool
        Whether the figure is in percent, so that ``1 of 94`` is 1.06.

    Returns
    -------
    str
        ``same``: it lies in our interval or at most 5 % from our figure, or our figure keeps, or
        may keep, to the bound that it gives. ``close``: at most 25 % off. ``differs``: further.
        Empty where one of the two is not known.
    """
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
