"""A verdict in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sweep.stats.arrange import Settings
from sweep.stats.cell_columns import text
from sweep.stats.inference import EXACT, MIN_PAIRS, Paired
from sweep.stats.metric_format import format_contrast, format_value, style

MOST_NAMES = 4
AT_BOUND = 5e-6
"""A gap that is the rounding of times."""

FULL = 0.85
"""Share of the capacity in use at which jobs begin to wait."""


@dataclass(frozen=True)
class Facts:
    """What a sentence is made of; see `sweep.stats.verdict.Verdict`."""

    where: tuple[str, Settings, float, str]  # trace, settings, capacity, how large that is
    is_counted: bool  # whether it was asked for by that size
    metric: str
    best: tuple[str, ...]
    n_tied: int  # of the best, besides the first, that tie with it exactly
    n_policies: int
    others: tuple[tuple[str, str], ...]  # the rest but the baseline, best first, and how they do
    is_tested: bool
    next_distinguishable: (
        tuple[str, int] | None
    )  # with how many seeds the first would be told from which
    value: tuple[float, float, float]  # mean of the first, and its interval
    baseline: str | None
    against: Paired | None
    is_ratio: bool
    gap: float | None
    n_seeds: int
    is_fixed: bool  # whether no seed can change anything
    waits: bool | None  # whether any job waited
    use: float | None  # share of the capacity in use


def sentence(facts: Facts) -> str:
    """Say it: ``… at 0.7 (41 machines): srpt, 2.99× [2.38, 3.66] sooner than fifo in mean JCT``."""
    trace, settings, capacity, machines = facts.where
    settings = tuple(s for s in settings if not (facts.is_counted and s[0] == "cluster.count"))
    world = ", ".join([trace, *(f"{key}={value}" for key, value in settings)])
    size = f"at {text(capacity)}" + (f" ({machines})" if machines else "")
    if facts.is_counted and machines:
        size = f"on {machines}"
    said = f"{_who(facts)}, {_how_much(facts)}{_others(facts)}"
    parts = [_tie(facts) if _all_tie(facts) else said]
    if facts.gap is not None:
        bound = format_value("gap_lb_p50", facts.gap)[0].replace("%", " %")
        near = "at" if facts.gap < AT_BOUND else f"within {bound} of"
        parts.append(f"half of the jobs {near} the bound")
    parts += _how_sure(facts)
    if facts.waits is False and not _all_tie(facts):
        parts.append(f"no job waited: try capacity={_tighter(facts)}")
    return f"{world} {size}: {'; '.join(parts)}."


def _others(facts: Facts) -> str:
    """Say where the others stand, of many the next ones and the last."""
    words = [f"{label} {how}" for label, how in facts.others]
    if len(words) > MOST_NAMES:
        words[MOST_NAMES - 2 : -1] = [f"{len(words) - MOST_NAMES + 1} more"]
        words[-2:] = [f"{words[-2]} down to {words[-1]}"]
    return f" ({', '.join(words)})" if words else ""


def _all_tie(facts: Facts) -> bool:
    return facts.n_policies > 1 and facts.n_tied == facts.n_policies - 1


def _tie(facts: Facts) -> str:
    label, mean = style(facts.metric).label, _value(facts)
    what = f"no two policies differ in {label} ({mean})"
    said = f"no job waited, so {what}" if facts.waits is False else what
    return f"{said}; try capacity={_tighter(facts)}"


def _tighter(facts: Facts) -> str:
    """Give a capacity at which jobs would wait: where what is in use now would nearly fill it."""
    capacity = facts.where[2]
    is_idle = facts.use is not None and 0 < facts.use < FULL
    return f"{capacity * facts.use / FULL if is_idle and facts.use else capacity / 2:.2g}"


def _who(facts: Facts) -> str:
    names = _names(facts)
    n = len(facts.best)
    if facts.n_policies == 1:
        return f"{names} alone"
    if n == facts.n_tied + 1:
        return f"{names} (exactly tied)" if n > 1 else names
    if n < facts.n_policies and facts.baseline not in facts.best:
        return names
    everyone = f"the {n} policies" if n == facts.n_policies else names
    return f"no test tells {everyone} apart; best mean {facts.best[0]}"


def _names(facts: Facts) -> str:
    names = [f"{one} (the baseline)" if one == facts.baseline else one for one in facts.best]
    if len(names) > MOST_NAMES:
        names = [*names[: MOST_NAMES - 1], f"{len(names) - MOST_NAMES + 1} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _how_much(facts: Facts) -> str:
    """Say by how much the best is ahead of the baseline, or only how it does."""
    look, found = style(facts.metric), facts.against
    own = f"{look.label} {_value(facts)}"
    if found is None or math.isnan(found.estimate):
        return own
    ends = (found.estimate, found.low, found.high)
    if not facts.is_ratio:
        by, interval = format_contrast(facts.metric, "difference", *ends)
        return f"{own}, {_joined(by, interval, found)} against {facts.baseline}"
    is_ahead = found.estimate >= 1
    if not is_ahead:
        ends = (1 / found.estimate, 1 / found.high, 1 / found.low)
    by, interval = format_contrast(facts.metric, "ratio", *ends)
    if look.kind == "seconds":
        word = "sooner than" if is_ahead else "later than"
    else:
        word = "less than" if is_ahead == (look.better == "lower") else "more than"
    return f"{_joined(by, interval, found)} {word} {facts.baseline} in {look.label}"


def _joined(by: str, interval: str, found: Paired) -> str:
    return " ".join(filter(None, (by, "" if found.test == EXACT else interval)))


def _value(facts: Facts) -> str:
    mean, _, high = facts.value
    shown, half = format_value(facts.metric, mean, high - mean)
    unit = " s" if style(facts.metric).kind == "seconds" else ""
    shown += f" ±{half}" if half and float(half.replace(",", "")) else ""
    return shown.replace("%", " %") + unit


def _how_sure(facts: Facts) -> list[str]:
    """Say where nothing was tested, and what more seeds would do."""
    if facts.n_policies == 1 or _all_tie(facts) or (facts.is_fixed and facts.n_seeds == 1):
        return []
    if not facts.is_tested:
        n = facts.n_seeds
        return ["one seed: not tested" if n == 1 else f"{n} seeds: not tested, {MIN_PAIRS} are"]
    if facts.next_distinguishable is not None:
        other, n = facts.next_distinguishable
        return [f"about {n} seeds would tell {facts.best[0]} from {other}"]
    return []
