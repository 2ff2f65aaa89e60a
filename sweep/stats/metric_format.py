"""Display of metrics: labels, number formats and order.

`sim.metrics` defines what a metric means and which direction is better. A metric that is listed
nowhere is shown too: its label is its name, its unit follows from that (``_s`` is seconds,
``_per_s`` a rate) and no value of it is called the best.
"""

from __future__ import annotations

import contextlib
import math
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np

from sim.base.errors import InputError
from sim.metrics import metric as look_up
from sim.metrics.common import UNBOUNDED, Span
from sim.metrics.groups import split
from sweep.stats.inference import ends

Kind = Literal["seconds", "percent", "ratio", "index", "number"]
Better = Literal["lower", "higher"]


@dataclass(frozen=True)
class Style:
    """Display style of one metric, for tables and plots."""

    label: str  # in words, without the unit
    # ``seconds``; ``percent`` (a fraction, shown times 100); ``ratio`` (shown as 1.23×);
    # ``index`` (between 0 and 1, three decimals); ``number``
    kind: Kind
    better: Better | None  # None where it is not known
    meaning: str  # one line; empty where it is not known
    family: str  # heading of a group of metrics
    rank: int  # position among all metrics
    span: Span = UNBOUNDED  # smallest and largest value
    measure: str = ""  # unit of a number, such as kWh

    @property
    def unit(self) -> str:
        """Short unit for an axis: ``s``, ``%``, ``×``, that of a number, or empty."""
        return {"seconds": "s", "percent": "%", "ratio": "×"}.get(self.kind, self.measure)


_COMPLETION, _BASELINE, _BOUND = "Job completion", "Against the baseline", "Against the lower bound"
_CLUSTER, _OUTCOME, _ESTIMATE = "Cluster", "Outcomes", "Estimation"

_P = "p([1-9]?[0-9]|100)"  # a percentile

# name pattern, label (\1: the group that the pattern captured), kind, family; in the order shown
_STYLES: tuple[tuple[str, str, Kind, str], ...] = (
    (r"jct_mean_s", "mean JCT", "seconds", _COMPLETION),
    (rf"jct_{_P}_s", r"p\1 JCT", "seconds", _COMPLETION),
    (r"slowdown_mean", "mean slowdown", "ratio", _COMPLETION),
    (rf"slowdown_{_P}", r"p\1 slowdown", "ratio", _COMPLETION),
    (r"wait_mean_s", "mean wait", "seconds", _COMPLETION),
    (rf"wait_{_P}_s", r"p\1 wait", "seconds", _COMPLETION),
    (r"jct_speedup_mean", "speed-up of the mean JCT", "ratio", _BASELINE),
    (r"jct_speedup_p50", "median per-job speed-up", "ratio", _BASELINE),
    (rf"gap_lb_{_P}", r"p\1 gap to the lower bound", "percent", _BOUND),
    (r"jct_mean_lb_s", "lower bound of the mean JCT", "seconds", _BOUND),
    (r"gap_lb_mean", "gap of the mean JCT to its bound", "percent", _BOUND),
    (rf"gap_tight_lb_{_P}", r"p\1 gap to the tighter bound", "percent", _BOUND),
    (r"makespan_mean_s", "mean makespan", "seconds", _CLUSTER),
    (r"makespan_s", "makespan", "seconds", _CLUSTER),
    (r"utilization", "utilization", "percent", _CLUSTER),
    (r"utilization_used", "utilization, truly used", "percent", _CLUSTER),
    (r"utilization_makespan", "utilization of the makespan", "percent", _CLUSTER),
    (r"utilization_(\w+)", r"utilization of \1", "percent", _CLUSTER),
    (r"jain_([1-9][0-9]*)s", r"Jain's index, \1 s windows", "index", _CLUSTER),
    (r"energy_kwh", "energy", "number", _CLUSTER),
    (r"carbon_kg", "carbon emitted", "number", _CLUSTER),
    (r"cost", "cost", "number", _CLUSTER),
    (r"jobs_failed", "jobs failed", "percent", _OUTCOME),
    (r"work_lost_mean_s", "mean work lost of a job", "seconds", _OUTCOME),
    (r"work_lost", "work lost", "percent", _OUTCOME),
    (r"stops_mean", "mean stops of a job", "number", _OUTCOME),
    (r"value_attained", "value attained", "percent", _OUTCOME),
    (r"deadlines_missed", "deadlines missed", "percent", _OUTCOME),
    (r"utility", "mean utility", "number", _OUTCOME),
    (r"allocation_above_oracle", "allocation above oracle", "percent", _OUTCOME),
    (rf"prediction_error_{_P}", r"p\1 prediction error", "percent", _ESTIMATE),
)


@cache
def style(metric: str) -> Style:
    """Look up the style of a metric; any name has one."""
    if grouped := split(metric):
        name, key, group = grouped
        whole = style(name)
        return replace(
            whole,
            label=f"{whole.label}, {key} {group}",
            meaning=look_up(metric).meaning,
            span=look_up(metric).span,
            family=f"By {key}",
            rank=len(_STYLES) - 1,
        )
    better: Better | None = None
    meaning, span, measure = "", UNBOUNDED, ""
    with contextlib.suppress(InputError):
        definition = look_up(metric)
        better, meaning, span = definition.better, definition.meaning, definition.span
        measure = definition.unit if definition.unit not in ("s", "1") else ""
    for rank, (pattern, label, kind, family) in enumerate(_STYLES):
        match = re.fullmatch(pattern, metric)
        if match:
            text = match.expand(label).replace("p50 ", "median ")
            return Style(text, kind, better, meaning, family, rank, span, measure)
    is_time = metric.endswith("_s") and not metric.endswith("_per_s")
    fallback: Kind = "seconds" if is_time else "number"
    label = metric.replace("_", " ")
    return Style(label, fallback, better, meaning, "Other", len(_STYLES), span, measure)


def is_fraction(metric: str) -> bool:
    """Tell whether two values of a metric compare by difference rather than by ratio."""
    return style(metric).kind in ("percent", "index")


def sort_metrics(metrics: list[str]) -> list[str]:
    """Sort metrics in display order: families together, matches of one pattern in given order."""
    return sorted(metrics, key=lambda name: style(name).rank)


_NOISE = 1e-9  # per cent


def format_value(metric: str, mean: float, half: float = math.nan) -> tuple[str, str]:
    """Write a mean and the half-width of its interval.

    Seconds keep four significant digits (whole numbers above 1,000 s), fractions become per
    cent, ratios end in ``×``. The half-width has the decimals of the mean, or one significant
    digit where these would round it to zero; a half-width that is only rounding is left out.
    """
    if math.isnan(mean):
        return "", ""
    kind = style(metric).kind
    scale = 100.0 if kind == "percent" else 1.0
    suffix = {"percent": "%", "ratio": "×"}.get(kind, "")
    if math.isinf(mean):
        return ("∞" if mean > 0 else "-∞") + suffix, ""
    decimals = _decimals(kind, mean * scale)
    text = _number(mean * scale, decimals) + suffix
    spread = half * scale
    if not spread > (_NOISE if kind == "percent" else 0.0):
        return text, ""
    if decimals is not None and kind != "percent" and spread < 0.5 * 10.0**-decimals:
        decimals = -math.floor(math.log10(spread))
        decimals = decimals if decimals <= 6 else None
    return text, _number(spread, decimals)


EVEN = 2.0
"""Ratio of the two sides of an interval up to which it is written as ± Student's half-width."""


def interval_of(metric: str, mean: float, half: float) -> tuple[float, float]:
    """Return the interval of a metric's mean with this half-width (`inference.ends`)."""
    low, high = ends(np.array([mean]), np.array([half]), style(metric).span)
    return float(low[0]), float(high[0])


def format_mean(metric: str, mean: float, half: float) -> tuple[str, str]:
    """Write a mean, and its interval as ``±990``, or ``[132, 3,512]`` where that is not even."""
    return _with_interval(metric, mean, half, *interval_of(metric, mean, half))


def format_ends(metric: str, mean: float, low: float, high: float) -> tuple[str, str]:
    """Write a mean and its interval as `format_mean` does, from the ends of the interval."""
    return _with_interval(metric, mean, (high - low) / 2, low, high)


def _with_interval(
    metric: str, mean: float, half: float, low: float, high: float
) -> tuple[str, str]:
    shown, spread = format_value(metric, mean, half)
    above, below = high - mean, mean - low
    if not spread or max(above, below) <= EVEN * min(above, below):
        return shown, f"±{spread}" if spread else ""
    texts = (format_value(metric, end)[0].rstrip("%×") for end in (low, high))
    return shown, f"[{', '.join(texts)}]"


def value_text(metric: str, mean: float, half: float = math.nan) -> str:
    """Write a mean with its unit for a sentence, such as ``2,358 ±990 s`` or ``32.0 %``."""
    return _with_unit(metric, *format_mean(metric, mean, half))


def ends_text(metric: str, mean: float, low: float, high: float) -> str:
    """Write a mean with its unit as `value_text` does, from the ends of its interval."""
    return _with_unit(metric, *format_ends(metric, mean, low, high))


def _with_unit(metric: str, shown: str, spread: str) -> str:
    shown += f" {spread}" if spread.strip("±[]0., ") else ""
    unit = style(metric).unit if style(metric).kind in ("seconds", "number") else ""
    return shown.replace("%", " %") + (f" {unit}" if unit else "")


def p_text(p: float) -> str:
    """Write the p of a test, such as ``p = 0.034``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def format_contrast(
    metric: str, statistic: str, estimate: float, low: float, high: float
) -> tuple[str, str]:
    """Write the ratio or difference of two policies, and its interval."""
    if math.isnan(estimate):
        return "", ""
    kind: Kind = "ratio" if statistic == "ratio" else style(metric).kind
    scale, unit, sign = 1.0, "×", ""
    if statistic != "ratio":
        scale = 100.0 if kind == "percent" else 1.0
        unit, sign = {"percent": " pp", "seconds": " s", "ratio": "×"}.get(kind, ""), "+"
    ends = [scale * end for end in (estimate, low, high) if not math.isnan(end)]
    decimals = _decimals(kind, ends[0] if statistic == "ratio" else max(ends, key=abs))
    texts = [_number(end, decimals, sign) for end in ends]
    return texts[0] + unit, f"[{texts[1]}, {texts[2]}]" if len(texts) == 3 else ""


def _decimals(kind: Kind, value: float) -> int | None:
    """Choose the number of decimals; None for scientific notation."""
    size = abs(value)
    if size == 0:
        return 0
    exponent = math.floor(math.log10(size))
    if kind == "percent" and exponent < 9:
        return min(1 - exponent, 3) if exponent < 0 else (1 if exponent < 3 else 0)
    if exponent >= 9 or exponent < -5:
        return None
    if kind == "ratio":
        return max(0, 2 - max(exponent, 0)) if exponent >= -2 else 1 - exponent
    if kind == "index":
        return 3 if exponent >= -3 else 1 - exponent
    return max(0, 3 - exponent) if exponent < 3 else 0


def _number(value: float, decimals: int | None, sign: str = "") -> str:
    if decimals is None:
        return f"{value:{sign}.2e}"
    return f"{value + 0.0 if round(value, decimals) else 0.0:{sign},.{decimals}f}"
