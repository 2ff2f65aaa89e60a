"""Agreement of a value with the number that a source prints."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

SAME, CLOSE, DIFFERENT, UNCLEAR = "same", "close", "different", "unclear"
VERDICTS = (SAME, CLOSE, DIFFERENT, UNCLEAR)

WITHIN = {SAME: 0.05, CLOSE: 0.25}
"""Tolerance of a verdict, as a fraction of the source's number."""

MIN_DRAWS = 10
"""Draws without which one draw's interval excuses no difference: of few it is wide whatever is."""

_Z = 1.959963984540054
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_EXACT = re.compile(rf"(?:about |almost |slightly below )?{_NUMBER}")
_RATIO = re.compile(r"(\d+) of (\d+)")
_AT_LEAST = re.compile(rf"(?:more than |≥ ){_NUMBER}|{_NUMBER} or more")
_AT_MOST = re.compile(rf"(?:less than |≤ ){_NUMBER}|{_NUMBER} at most")


def verdict(
    ours: float,
    low: float,
    high: float,
    paper: str,
    *,
    percent: bool = False,
    exact: bool = False,
    n: int | None = None,
) -> str:
    """Judge a value against the number that the source prints.

    same
        The value is within 5 % of the printed number, or within half a unit of its last digit if
        that is more.
    close
        The value is within 25 % of it.
    different
        All else. A wide interval does not change that.
    unclear
        The value would be the same or close, but its 95 % confidence interval is wider than the
        tolerance (5 or 25 %, or that half unit): more than the tolerance from the value to the
        farther end, so that the whole interval may be twice as wide as the tolerance, as the band
        around the printed number is. More seeds can settle it. A value without an interval is
        unclear too, as a statistic of random runs has an error even if it was not measured.

    A computation on recorded data that no seed changes is exact: it needs no interval. A bound,
    such as "4 at most", is at distance 0 from all values that meet it; what counts of the
    interval is how much farther from the bound its worse end is than the value.

    A count, such as "1 of 94", is a sample too. Half a unit is half a run of the 94. A verdict of
    same or close requires Wilson's 95 % interval of the count to be within the tolerance as well;
    a value inside that interval is otherwise unclear, not different.

    The source may have one draw of what our n seeds draw n times, such as one month of a cluster.
    Then the interval is that of one further draw of ours (`one_draw`), in the place of the mean's.
    With `MIN_DRAWS` seeds and more, a number inside it is otherwise unclear, not different.

    Parameters
    ----------
    ours, low, high : float
        The value, and its 95 % confidence interval; NaN where there is none.
    paper : str
        The number as printed.
    percent : bool
        True if values are in percent; a count then is, too.
    exact : bool
        True if no seed changes the value.
    n : int or None
        Seeds behind the interval, of a number that is one draw (0 if unknown); None of all others.

    Returns
    -------
    str
        `SAME`, `CLOSE`, `DIFFERENT`, `UNCLEAR`; empty if one of both is no number.
    """
    printed = _parse(paper, percent)
    if printed is None or not math.isfinite(ours):
        return ""
    if n is not None:
        low, high = one_draw(ours, low, high, n)
    distance = printed.distance(ours)
    error = 0.0 if exact else printed.error(ours, low, high)
    for name, share in WITHIN.items():
        # a sum of decimals may miss its bound by a rounding
        tolerance = max(share * abs(printed.number), printed.half_unit) * (1 + 1e-9)
        if distance <= tolerance:
            return name if max(error, printed.half_width) <= tolerance else UNCLEAR
    is_drawn = n is not None and n >= MIN_DRAWS and low <= printed.number <= high
    return UNCLEAR if is_drawn or printed.low <= ours <= printed.high else DIFFERENT


def distance(ours: float, paper: str, *, percent: bool = False) -> float:
    """Return the distance to the number that the source prints: 0 to a bound that is met.

    NaN if one of both is no number.
    """
    printed = _parse(paper, percent)
    return math.nan if printed is None or not math.isfinite(ours) else printed.distance(ours)


def one_draw(ours: float, low: float, high: float, n: int) -> tuple[float, float]:
    """Return the interval of one further draw, from the mean of n draws and its interval.

    Student's interval of the mean has t s / √n on each side, of one draw t s √(1 + 1/n): √(n + 1)
    times as much. NaN without draws.
    """
    scale = math.sqrt(n + 1.0) if n > 0 else math.nan
    return ours - scale * (ours - low), ours + scale * (high - ours)


@dataclass(frozen=True)
class _Printed:
    """A printed number, and what is known of its error."""

    number: float
    half_unit: float  # of its last digit; 0 of a bound, which is not rounded
    side: int = 0  # of a bound: 1 if larger values miss it, -1 if smaller ones do
    low: float = math.nan  # confidence interval, of a count
    high: float = math.nan

    @property
    def half_width(self) -> float:
        """Distance to the farther end of its interval; 0 without one."""
        return 0.0 if math.isnan(self.low) else max(self.high - self.number, self.number - self.low)

    def distance(self, value: float) -> float:
        """Return the distance of a value; 0 if it meets a bound."""
        beyond = value - self.number
        return abs(beyond) if not self.side else max(self.side * beyond, 0.0)

    def error(self, value: float, low: float, high: float) -> float:
        """Return the distance from a value to the end of its interval; infinite without one."""
        if math.isnan(low) or math.isnan(high):
            return math.inf
        if not self.side:
            return max(high - value, value - low)
        return max(self.distance(low), self.distance(high)) - self.distance(value)


def _parse(paper: str, percent: bool) -> _Printed | None:
    if match := _RATIO.fullmatch(paper):
        k, n, scale = int(match[1]), int(match[2]), 100.0 if percent else 1.0
        low, high = wilson(k, n)
        return _Printed(k / n * scale, 0.5 / n * scale, 0, low * scale, high * scale)
    for form, side in ((_EXACT, 0), (_AT_LEAST, -1), (_AT_MOST, 1)):
        if match := form.fullmatch(paper):
            text = next(filter(None, match.groups()))
            half_unit = 0.0 if side else 0.5 * 10.0 ** -len(text.partition(".")[2])
            return _Printed(float(text), half_unit, side)
    return None


def wilson(k: float, n: float) -> tuple[float, float]:
    """Compute Wilson's 95 % confidence interval of a share: k of n independent runs."""
    share, z2 = k / n, _Z**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n**2))
    return max(centre - half, 0.0), min(centre + half, 1.0)
