"""Verdicts as sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sweep.stats.arrange import Settings
from sweep.stats.cell_columns import UNDECLARED, text
from sweep.stats.inference import EXACT, MIN_PAIRS, Paired
from sweep.stats.metric_format import format_contrast, format_value, p_text, style, value_text
from sweep.stats.scope import Scope

MAX_NAMES = 4
AS_PERCENT = 1.05
"""Ratio below which a lead is written in per cent."""
ROUNDING = 1e-9
"""Relative difference of results that is only rounding."""
AT_BOUND = 5e-6
"""Relative gap to the lower bound that is only the rounding of times."""

SHARE_WITHIN = 0.9
"""Share of the draws of a bootstrap that keep the bound of a sentence."""

FULL = 0.85
"""Utilization at which jobs begin to wait."""

_KNOWS = {"true": "knows all durations", UNDECLARED: "reads a truth that it does not declare"}
_SHARES = frozenset(("deadlines_missed", "jobs_failed", "value_attained"))
"""Metrics whose label needs "share of" before it."""

Location = tuple[str, Settings, float, str]
"""Trace, settings, capacity, and its size in words."""


@dataclass(frozen=True)
class Oracle:
    """Result of a policy that nobody can run, beside the best that can be run."""

    policy: str
    knows: str  # of durations, see `policies.knows.Knows`
    value: float  # the mean over seeds
    against_best: Paired
    is_ratio: bool  # `against_best` is a ratio (times better), not a difference
    is_distinct: bool  # differs significantly from the best, or exactly, or is not tested


@dataclass(frozen=True)
class Draws:
    """Quantile of a metric over the draws of a bootstrap."""

    bound: float  # the worst value of all but the worst draws
    n_within: int  # draws that are as good or better
    n: int


def quantile(values: Sequence[float], *, is_lower_better: bool) -> Draws:
    """Return the bound that nine of ten draws keep; of few draws, all but the worst."""
    n = len(values)
    n_within = max(1, min(math.floor(SHARE_WITHIN * n), n - 1))
    best_first = sorted(values, reverse=not is_lower_better)
    return Draws(best_first[n_within - 1], n_within, n)


@dataclass(frozen=True)
class Facts:
    """Data of a verdict's sentence; see `sweep.stats.verdict.Verdict`."""

    location: Location
    is_counted: bool  # the cluster is configured by that size
    metric: str
    best: tuple[str, ...]
    best_mean: str  # policy with the best arithmetic mean; another than the first, if so
    n_tied: int  # of the best, besides the first: exactly equal to it
    n_policies: int  # that are ranked: those that can be run, or all if none can
    runners_up: tuple[tuple[str, str], ...]  # without the baseline, best first: name, result
    is_tested: bool
    # the policy that the fewest seeds would distinguish from the first, and their number
    next_distinguishable: tuple[str, int] | None
    value: tuple[float, float]  # mean of the first, and half of Student's interval
    draws: Draws | None  # instead of that interval, where seeds are draws of a bootstrap
    baseline: str | None
    against: Paired | None
    is_ratio: bool
    gap: float | None  # median over jobs of JCT / lower bound - 1
    n_seeds: int
    is_fixed: bool  # no seed can change anything
    waits: bool | None  # some job waited
    utilization: float | None
    scope: Scope
    # of the first against the baseline, where only Holm's correction leaves the two untold: p after
    # it, and the number of comparisons
    corrected: tuple[float, int] | None = None
    oracles: tuple[Oracle, ...] = ()  # best first
    is_oracle: bool = False  # all policies are oracles


@dataclass(frozen=True)
class Words:
    """Parts of a verdict's sentence, without full stops."""

    where: str = ""  # such as ``at capacity 0.7 (41 machines)``
    claim: str = ""  # such as ``srpt has the lowest mean JCT, 2.99 times shorter than fifo's``
    behind: str = ""  # the results of the others, in parentheses
    lead: str = ""  # the end of that, which begins with the number
    oracle: str = ""  # what it would be worth to know what the best oracle knows
    scope: str = ""  # the seeds and jobs of the numbers, where these are not all
    doubt: str = ""  # too few seeds for a test, or how many would show a difference


def words(facts: Facts) -> Words:
    """Write the parts of a verdict's sentence."""
    return Words(
        where=_size(facts.location, facts.is_counted),
        claim=_claim(facts),
        behind="" if _all_tie(facts) else _runners_up(facts),
        lead="" if _all_tie(facts) else _lead(facts),
        oracle="; ".join(_oracle(facts)),
        scope="; ".join(facts.scope.words()),
        doubt="; ".join(_confidence(facts)),
    )


def _claim(facts: Facts) -> str:
    claim = _tie(facts) if _all_tie(facts) else _best(facts)
    return "; ".join([*_most_fail(facts), claim])


def _most_fail(facts: Facts) -> list[str]:
    """Say first that most jobs fail, and whether anything is said of their times."""
    if not facts.scope.mostly_fails:
        return []
    silent = "" if facts.scope.is_of_done else ", so nothing is said of times"
    return [f"most jobs fail{silent}"]


def sentence(facts: Facts) -> str:
    """Write a verdict as a sentence.

    It begins like this: ``t at capacity 0.7 (41 machines): srpt has the lowest mean JCT, 2.99 times
    shorter than fifo's [2.38, 3.66] (next: las 1.71×)``.
    """
    parts = [_tie(facts) if _all_tie(facts) else _best(facts) + _runners_up(facts)]
    parts = [*_most_fail(facts), *parts, *facts.scope.words()]
    if facts.gap is not None:
        parts.append(f"the median job {_bound(facts.gap)} its lower bound")
    parts += _oracle(facts)
    parts += _confidence(facts)
    if facts.waits is False and not _all_tie(facts):
        parts.append(f"no job waited: try capacity={_smaller_capacity(facts)}")
    return f"{place_words(facts.location, facts.is_counted)}: {'; '.join(parts)}."


def place_words(location: Location, is_counted: bool) -> str:
    """Name trace, settings and size of a place, such as ``t at capacity 0.7 (41 machines)``."""
    trace, settings, *_ = location
    settings = tuple(s for s in settings if not (is_counted and s[0] == "cluster.count"))
    world = ", ".join([trace, *(f"{key}={value}" for key, value in settings)])
    return f"{world} {_size(location, is_counted)}"


def _size(location: Location, is_counted: bool) -> str:
    *_, capacity, machines = location
    if is_counted and machines:
        return f"on {machines}"
    return f"at capacity {text(capacity)}" + (f" ({machines})" if machines else "")


def _bound(gap: float) -> str:
    """Write JCT / lower bound - 1 in words, such as ``takes 4.2 times``."""
    if gap < AT_BOUND:
        return "takes no longer than"
    if gap >= 1:
        return f"takes {1 + gap:,.1f} times"
    return f"takes {format_value('gap_lb_p50', gap)[0].replace('%', ' %')} longer than"


def _runners_up(facts: Facts) -> str:
    """Write the results of the other policies; of many, the next ones and the last."""
    words = [f"{label} {result}" for label, result in facts.runners_up]
    if len(words) > MAX_NAMES:
        words[MAX_NAMES - 2 : -1] = [f"{len(words) - MAX_NAMES + 1} more"]
        words[-2:] = [f"{words[-2]} down to {words[-1]}"]
    return f" (next: {', '.join(words)})" if words else ""


def _all_tie(facts: Facts) -> bool:
    return facts.n_policies > 1 and facts.n_tied == facts.n_policies - 1


def _tie(facts: Facts) -> str:
    ranked = "ranked " if facts.scope.unranked else ""
    policies = f"all {ranked}policies" + (" that can be run" if facts.oracles else "")
    result = f"{policies} have the same {label_of(facts.metric)} ({_value(facts)})"
    result = f"no job waited, so {result}" if facts.waits is False else result
    if facts.oracles or facts.scope.mostly_fails:
        return result
    return f"{result}; try capacity={_smaller_capacity(facts)}"


def _smaller_capacity(facts: Facts) -> str:
    """Suggest a capacity at which jobs would wait: the resources in use now nearly fill it."""
    capacity, used = facts.location[2], facts.utilization
    is_idle = used is not None and 0 < used < FULL
    return f"{capacity * used / FULL if is_idle and used else capacity / 2:.2g}"


def _best(facts: Facts) -> str:
    """Name the best policies and their lead."""
    n, first, label = len(facts.best), facts.best[0], label_of(facts.metric)
    if facts.baseline in [oracle.policy for oracle in facts.oracles]:
        label += " of the policies that can be run"
    if facts.best_mean != first:
        label += f" by the geometric mean over seeds ({facts.best_mean} by the arithmetic)"
    if facts.n_policies == 1:
        ranked = "ranked " if facts.scope.unranked else ""
        only = f"the only {ranked}policy" + (" that can be run" if facts.oracles else "")
        return f"{_names(facts)} is {only}, with {_article(label)} {label} of {_value(facts)}"
    best = "lowest" if style(facts.metric).better == "lower" else "highest"
    if n == 1:
        return f"{_names(facts)} has the {best} {label}, {_lead(facts)}"
    if n == facts.n_tied + 1:
        return f"{_names(facts)} have the {best} {label} (exactly equal), {_lead(facts)}"
    if n < facts.n_policies and facts.baseline not in facts.best:
        doubt = "not told apart" if n == 2 else f"none told from {first}"
        return f"{_names(facts)} have the {best} {label} ({doubt}), {first}'s is {_lead(facts)}"
    if n == 2:
        policies = "the 2 policies" if n == facts.n_policies else _names(facts)
        equal = f"no significant difference in {label} between {policies}"
        return f"{equal}; {first} has the {best}, {_lead(facts)}"
    # of several, some may differ from one another
    untold = "any other policy" if n == facts.n_policies else _names(facts, facts.best[1:], "or")
    return f"{first} has the {best} {label}, {_lead(facts)}, but is not told from {untold}"


def label_of(metric: str) -> str:
    """Name a metric within a sentence."""
    return f"share of {style(metric).label}" if metric in _SHARES else style(metric).label


def _article(label: str) -> str:
    return "an" if label[:1] in "aeio" else "a"


def _names(facts: Facts, policies: Sequence[str] | None = None, word: str = "and") -> str:
    """List policies, the best by default."""
    named = facts.best if policies is None else policies
    names = [f"{name} (the baseline)" if name == facts.baseline else name for name in named]
    if len(names) > MAX_NAMES:
        names = [*names[: MAX_NAMES - 1], f"{len(names) - MAX_NAMES + 1} more"]
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _lead(facts: Facts) -> str:
    """Write the lead of the best over the baseline, or only its mean if nothing is compared."""
    comparison, baseline = facts.against, f"{facts.baseline}'s"
    if comparison is None or math.isnan(comparison.estimate):
        return _value(facts)
    if math.isclose(comparison.estimate, float(facts.is_ratio), rel_tol=ROUNDING):
        return f"{_value(facts)}, the same as {baseline}"
    amount, interval = gain_words(facts.metric, comparison, facts.is_ratio)
    value = "" if facts.is_ratio else f"{_value(facts)}, "
    return f"{value}{amount} than {baseline}{interval}{_corrected(facts)}"


def _corrected(facts: Facts) -> str:
    """Say why an interval leaves out 1 (or 0) and the two are not told apart all the same."""
    if facts.corrected is None:
        return ""
    p, n_tests = facts.corrected
    return f" ({p_text(p)} after Holm's correction over {n_tests} comparisons)"


def gain_words(metric: str, comparison: Paired, is_ratio: bool) -> tuple[str, str]:
    """Write a comparison, such as ``2.99 times shorter``, and its interval (empty if exact)."""
    ends = (comparison.estimate, comparison.low, comparison.high)
    if is_ratio:
        amount, interval = ratio_words(metric, *ends)
    else:
        is_lower = comparison.estimate < 0
        if is_lower:
            ends = (-comparison.estimate, -comparison.high, -comparison.low)
        amount, interval = format_contrast(metric, "difference", *ends)
        amount, interval = amount.replace("+", ""), interval.replace("+", "")
        amount = amount.replace(" pp", " percentage points")
        amount = f"{amount} {_direction(metric, is_lower=is_lower)}"
    is_exact = comparison.test == EXACT or not interval
    return amount, "" if is_exact else f" {interval}"


def _oracle(facts: Facts) -> list[str]:
    """Say what it would be worth to know what the best oracle knows."""
    if facts.is_oracle:
        return ["no policy here can be run: each knows a truth that nobody knows beforehand"]
    if not facts.oracles:
        return []
    best = facts.oracles[0]
    comparison, is_ratio = best.against_best, best.is_ratio
    knows = _KNOWS.get(best.knows, "knows a truth that nobody knows beforehand")
    gain = comparison.estimate - is_ratio
    if style(facts.metric).better == "lower" and not is_ratio:
        gain = -gain
    false = [o.policy for o in facts.oracles[1:] if o.knows == UNDECLARED]
    more = [f"{name} reads a truth that it does not declare, and does not count" for name in false]
    if math.isnan(gain):
        return more
    if gain > 0 and best.is_distinct:
        result = "{} still{}".format(*gain_words(facts.metric, comparison, is_ratio))
    elif gain < 0 and best.is_distinct:
        result = "{}{}".format(*gain_words(facts.metric, comparison, is_ratio))
    else:
        result = "no better"
    return [f"{best.policy}, which {knows}, would be {result}", *more[:MAX_NAMES]]


def ratio_words(
    metric: str, ratio: float, low: float = math.nan, high: float = math.nan
) -> tuple[str, str]:
    """Write an improvement ratio as ``2.99 times shorter``, and its interval.

    Ratios nearer to 1 than `AS_PERCENT` are percentages: ``0.4 % shorter``.
    """
    is_better = ratio >= 1
    is_lower = is_better == (style(metric).better == "lower")
    ends = (ratio, low, high) if is_better else (1 / ratio, 1 / high, 1 / low)
    direction = _direction(metric, is_lower=is_lower)
    if ends[0] >= AS_PERCENT:
        amount, interval = format_contrast(metric, "ratio", *ends)
        return f"{amount.replace('×', ' times')} {direction}", interval
    percent = [100 * (1 - 1 / end if is_lower else end - 1) for end in ends]
    if percent[0] < 100 * ROUNDING:
        return "equal", ""
    decimals = 1 if percent[0] >= 0.05 else 1 - math.floor(math.log10(percent[0]))
    texts = [f"{value:.{decimals}f}" for value in percent]
    interval = "" if math.isnan(low) else f"[{texts[1]}, {texts[2]}]"
    return f"{texts[0]} % {direction}", interval


def _direction(metric: str, *, is_lower: bool) -> str:
    words = ("shorter", "longer") if style(metric).kind == "seconds" else ("lower", "higher")
    return words[0] if is_lower else words[1]


def _value(facts: Facts) -> str:
    mean, half = facts.value
    if facts.draws is None or facts.draws.n < MIN_PAIRS:
        return value_text(facts.metric, mean, half)
    side = "at most" if style(facts.metric).better == "lower" else "at least"
    bound = value_text(facts.metric, facts.draws.bound)
    within = f"{side} {bound} in {facts.draws.n_within} of {facts.draws.n} draws"
    return f"{value_text(facts.metric, mean)} ({within})"


def _confidence(facts: Facts) -> list[str]:
    """Say that there were too few seeds for a test, or how many would show a difference."""
    if facts.n_policies == 1 or _all_tie(facts) or (facts.is_fixed and facts.n_seeds == 1):
        return []
    if not facts.is_tested:
        seeds = "one seed is" if facts.n_seeds == 1 else f"{facts.n_seeds} seeds are"
        return [f"{seeds} too few for a significance test ({MIN_PAIRS} are needed)"]
    if facts.next_distinguishable is not None:
        other, n = facts.next_distinguishable
        return [f"about {n} seeds would be needed to tell {facts.best[0]} from {other}"]
    return []
