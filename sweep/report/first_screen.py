"""First screen of a report: question, answer, certainty, cost and assumptions, in sentences.

The page, the Markdown report and the terminal show these sentences (``answer.json``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from sweep.report.assumptions import assumptions
from sweep.report.section import Section
from sweep.report.wording import MAX_NAMES, joined, names
from sweep.stats import MIN_PAIRS
from sweep.stats.cell_columns import text
from sweep.stats.metric_format import format_value, style, value_text
from sweep.stats.reading import Reading, with_caveats
from sweep.stats.sentence import AT_BOUND
from sweep.stats.summary import Summary
from sweep.stats.verdict import Verdict

QUESTION, ANSWER, SURE, COST, ASSUMED = (
    *("Question", "Answer", "How sure", "What it costs", "What was assumed"),
)
MAX_NOTES = 3
MAX_SENTENCES = 5
"""Largest number of sentences of a part; the report below has the others."""


@dataclass(frozen=True)
class Sweep:
    """Finished sweep, as far as its first screen tells of it."""

    summary: Summary
    verdicts: Sequence[Verdict]  # of all traces, settings and capacities
    config: Mapping[str, Any]
    provenance: Mapping[str, Any]
    sections: Sequence[Section] = ()
    remarks: Mapping[str, str] = field(default_factory=dict)  # by trace: errors found on its log
    logs: Sequence[Reading] = ()
    unmet: Sequence[str] = ()  # sentences of `sweep.stats.troubles`
    lead: Sequence[str] = ()  # before any answer
    n_cells: int = 0  # of the whole sweep: the summary may be of some


Parts = dict[str, list[str]]
"""Sentences of each part, by its title, in the order shown."""


def build(sweep: Sweep) -> Parts:
    """Write the sentences of the first screen; a part without any is left out."""
    answer = _answer(sweep)
    parts = {
        QUESTION: _question(sweep),
        ANSWER: [
            *sweep.lead,
            *(answer if _has_answer(sweep) else with_caveats(answer, sweep.logs)),
        ],
        SURE: [*(line for log in sweep.logs for line in log.lines), *_certainty(sweep)],
        COST: _cost(sweep),
        ASSUMED: assumptions(sweep.summary, sweep.verdicts, sweep.config, sweep.provenance),
    }
    return {title: list(lines) for title, lines in parts.items() if lines}


# ---- question


def _question(sweep: Sweep) -> list[str]:
    """Return the question in the asker's words, if there is one, and that of the axes."""
    (derived,) = _derived_question(sweep)
    own = sweep.config.get("question")
    if not own:
        return [derived]
    return [str(own), f"Asked of the simulator: {derived[:1].lower()}{derived[1:]}"]


def own_question(answer: Mapping[str, Sequence[str]]) -> str:
    """Return the question in the asker's words; empty if it is that of the axes."""
    lines = answer.get(QUESTION, ())
    return lines[0] if len(lines) > 1 else ""


def _derived_question(sweep: Sweep) -> list[str]:
    summary = sweep.summary
    policies = list(dict.fromkeys(column.policy for column in summary.columns))
    traces = list(dict.fromkeys(block.trace for block in summary.blocks))
    jobs = f"the jobs of {names(traces)}"
    if question := next((s.question for s in sweep.sections if s.question), ""):
        words = {"jobs": jobs, "policies": names(policies)}
        return [re.sub(r"\{(jobs|policies)\}", lambda match: words[match[1]], question)]
    metrics = list(dict.fromkeys(verdict.metric for verdict in sweep.verdicts))
    if not metrics:
        return [f"What do {names(policies)} do with {jobs}?"]
    metric_style = style(metrics[0])
    label = f"the {'lowest' if metric_style.better == 'lower' else 'highest'} {metric_style.label}"
    if metric_style.meaning:
        label += f" ({metric_style.meaning.partition(' (')[0]})"
    if len(metrics) > 1:
        label = f"the best {names([style(metric).label for metric in metrics])}"
    swept = _swept(sweep)
    also = f", for each {names(swept)}" if swept else ""
    if len(summary.columns) == 1:
        value = label.removeprefix("the lowest ").removeprefix("the highest ")
        return [f"What {value} does {policies[0]} give {jobs} {_sizes(sweep)}{also}?"]
    policy = f"scheduling policy, {names(policies, 'or')},"
    return [f"Which {policy} gives {jobs} {label} {_sizes(sweep)}{also}?"]


def _swept(sweep: Sweep) -> list[str]:
    """Return the names of further axes that distinguish the blocks."""
    keys = dict.fromkeys(key for block in sweep.summary.blocks for key, _ in block.settings)
    return [key for key in keys if key != "cluster.count"]


def _sizes(sweep: Sweep) -> str:
    """Write the sizes of the clusters, such as ``on 7 or 10 machines``."""
    wheres = list(dict.fromkeys(verdict.words.where for verdict in sweep.verdicts))
    counted = [where.removeprefix("on ") for where in wheres if where.startswith("on ")]
    if len(counted) == len(wheres) <= MAX_NAMES:
        nouns = {where.rpartition(" ")[2] for where in counted}
        if len(nouns) == 1:
            noun = nouns.pop()
            return f"on {joined([w.rpartition(' ')[0] for w in counted], 'or')} {noun}"
        return f"on {joined(counted, 'or')}"
    if len(wheres) <= 3:
        return joined([wheres[0], *(w.removeprefix("at capacity ") for w in wheres[1:])], "or")
    capacities = sorted({verdict.capacity for verdict in sweep.verdicts})
    if len(capacities) == 1:
        return f"at capacity {text(capacities[0])}"
    return f"at {len(capacities)} capacities from {text(capacities[0])} to {text(capacities[-1])}"


# ---- answer


def _answer(sweep: Sweep) -> list[str]:
    answers = [section for section in sweep.sections if section.is_answer]
    if answers:
        lines = [line for section in answers for line in section.sentences]
        more = len(lines) - MAX_SENTENCES
        below = [f"{more} more {'is' if more == 1 else 'are'} below."] if more > 0 else []
        return [*lines[:MAX_SENTENCES], *below]
    if not sweep.verdicts:
        return ["No cell has a result that could be judged."]
    if len(sweep.verdicts) == 1:
        words = sweep.verdicts[0].words
        scope = f"; {words.scope}" if words.scope else ""
        return [f"{words.claim}{words.behind}{scope}.", *_bounds(sweep)]
    return [*_aggregate(sweep), *_scopes(sweep), *_bounds(sweep)]


def _aggregate(sweep: Sweep) -> list[str]:
    """Write one sentence for several verdicts: the policy that is best most often, its lead."""
    verdicts = sweep.verdicts
    where = _where(sweep)
    labels = list(dict.fromkeys(style(verdict.metric).label for verdict in verdicts))
    decided = [verdict for verdict in verdicts if verdict.is_decided]
    label = labels[0] if len(labels) == 1 else f"results ({names(labels)})"
    n_ranked = {len(verdict.runnable) for verdict in verdicts}
    n_policies = f"{n_ranked.pop()} policies" if len(n_ranked) == 1 else "ranked policies"
    if len({standing.policy for v in verdicts for standing in v.runnable}) == 1:
        lines = [f"{v.words.lead} {where(v)}" for v in _ends(verdicts)]
        return [f"{verdicts[0].best[0]} has a {label} of {joined(lines)}."]
    if not decided and all(standing.is_tied for v in verdicts for standing in v.runnable):
        return [f"The {n_policies} have the same {label} {_everywhere(verdicts)}."]
    if not decided:
        first = _ends(verdicts)[0]
        scope = _everywhere(verdicts).replace("both", "either of 2").replace("all", "any of")
        doubt = f"No significant difference in {label} between the {n_policies}"
        if n_policies != "2 policies":  # some may differ from one another
            doubt = f"In {label} none of the {n_policies} is told from the best"
        return [f"{doubt} {scope}; {first.best[0]} is ahead {where(first)}: {first.words.lead}."]
    best = _best(decided)
    won = [verdict for verdict in decided if best in verdict.best]
    direction = "lowest" if style(decided[0].metric).better == "lower" else "highest"
    claim = f"the {direction} {label}" if len(labels) == 1 else f"the best {label}"
    alone = all(verdict.best == (best,) for verdict in won)
    shared = "" if alone else ", or none that differs significantly from it,"
    scope = _everywhere(verdicts)
    if len(won) < len(verdicts):
        places = f": {joined(_together(won, where))}" if len(won) <= 3 else ""
        scope = f"in {len(won)} of {len(verdicts)} comparisons{places}"
    sentence = f"{best} has {claim}{shared} {scope}"
    is_named = len(won) < len(verdicts) and len(won) <= 3 and _counts(won)[1] == 1
    near = [(v, v.words.where.partition(" (")[0] if is_named else where(v)) for v in _ends(won)]
    leads = [f"{v.words.lead} {place}" for v, place in near if v.best[0] == best]
    lines = [f"{sentence}: {', '.join(leads)}." if leads else f"{sentence}."]
    elsewhere = Counter(v.best[0] for v in decided if best not in v.best)
    if elsewhere:
        counts = [f"{name} ({n})" for name, n in elsewhere.most_common(3)]
        lines.append(f"Elsewhere the best is {joined(counts)}.")
    undecided = [where(v) for v in verdicts if not v.is_decided and len(v.runnable) > 1]
    if undecided:
        places = joined(undecided) if len(undecided) <= 3 else f"in {len(undecided)} others"
        lines.append(f"No policy differs significantly from the best {places}.")
    return lines


def _scopes(sweep: Sweep) -> list[str]:
    """Say where numbers are not of all seeds, policies or jobs."""
    limited = [verdict for verdict in sweep.verdicts if verdict.words.scope]
    scopes = Counter(verdict.words.scope for verdict in limited)
    lines = []
    for scope, n in scopes.most_common(2):
        (first, *_) = [verdict for verdict in limited if verdict.words.scope == scope]
        place = _where(sweep)(first) + (f" and in {n - 1} more" if n > 1 else "")
        place = _everywhere(limited) if n == len(sweep.verdicts) else place
        text = f"{scope[:1].upper()}{scope[1:]}"
        lines.append(f"{text} ({place})." if len(sweep.verdicts) > 1 else f"{text}.")
    return lines


def _best(verdicts: Sequence[Verdict]) -> str:
    """Return the policy that is among the best most often, then first most often."""
    among = Counter(name for verdict in verdicts for name in verdict.best)
    first = Counter(verdict.best[0] for verdict in verdicts)
    return max(among, key=lambda name: (among[name], first[name]))


def _ends(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts with the largest and smallest lead, in order; without, first and last."""
    if len(verdicts) < 3:
        return list(verdicts)
    if any(verdict.against_baseline is None for verdict in verdicts):
        return [verdicts[0], verdicts[-1]]
    ranked = sorted(range(len(verdicts)), key=lambda i: abs(verdicts[i].against_baseline or 0.0))
    return [verdicts[i] for i in sorted((ranked[0], ranked[-1]))]


def _everywhere(verdicts: Sequence[Verdict]) -> str:
    capacities, worlds = _counts(verdicts)
    if worlds == 1:
        return f"at {'both' if capacities == 2 else f'all {capacities}'} capacities"
    return f"in all {len(verdicts)} comparisons"


def _counts(verdicts: Sequence[Verdict]) -> tuple[int, int]:
    worlds = {(verdict.trace, verdict.settings) for verdict in verdicts}
    return len({verdict.capacity for verdict in verdicts}), len(worlds)


def _together(verdicts: Sequence[Verdict], where: Callable[[Verdict], str]) -> list[str]:
    """Name the places of verdicts, those of one trace together: ``for a at capacity 0.7 and 1``."""
    words, groups = " at capacity ", dict[str, list[str]]()
    for verdict in verdicts:
        world, _, capacity = where(verdict).partition(words)
        groups.setdefault(world, []).append(capacity)
    return [
        world + (words + joined(capacities)) * any(capacities)
        for world, capacities in groups.items()
    ]


def _where(sweep: Sweep) -> Callable[[Verdict], str]:
    """Return a function that names a verdict's place: its capacity, and its trace if several.

    With its trace a capacity stands without the number of machines, which is long.
    """
    worlds = {(verdict.trace, verdict.settings) for verdict in sweep.verdicts}

    def where(verdict: Verdict) -> str:
        settings = [f"{k}={v}" for k, v in verdict.settings if k != "cluster.count"]
        world = ", ".join([verdict.trace, *settings])
        place = verdict.words.where
        return f"for {world} {place.partition(' (')[0]}" if len(worlds) > 1 else place

    return where


def _bounds(sweep: Sweep) -> list[str]:
    """Say how far the best is from the lower bound."""
    gaps = [v.gap_lb_p50 for v in sweep.verdicts if v.gap_lb_p50 is not None]
    if not gaps:
        return []
    if max(gaps) < AT_BOUND:
        return ["With the best, the median job takes no longer than any schedule must take."]
    low, high = (
        format_value("gap_lb_p50", gap)[0].replace("%", " %") for gap in (min(gaps), max(gaps))
    )
    by = high if low == high else f"{low.removesuffix(' %')} to {high}"
    return [f"With the best, the median job takes {by} longer than any schedule must take."]


# ---- certainty


def _certainty(sweep: Sweep) -> list[str]:
    summary = sweep.summary
    n = len(summary.seeds)
    lines = []
    if summary.n_failed:
        lines.append(f"{summary.n_failed} of {summary.n_cells} cells failed and are left out.")
    if summary.is_fixed or summary.is_same:
        lines.append("No seed changes anything: the numbers are exact, for these jobs alone.")
    elif n == 1:
        lines.append(f"One seed: no interval and no test ({MIN_PAIRS} seeds are needed).")
    else:
        paired = ", paired by seed" if summary.baseline else ""
        noun = "draws of the log" if summary.is_bootstrap else "seeds"
        lines.append(f"{n} {noun}: brackets and ± are 95 % intervals over them{paired}.")
        if n < MIN_PAIRS:
            lines.append(f"Too few for a test of significance: {MIN_PAIRS} are needed.")
        elif not _has_answer(sweep) and any(
            v.is_decided and len(v.best) == 1 for v in sweep.verdicts
        ):
            lines.append(
                "Where one policy is named as the best, every other is significantly worse "
                "(Student's test at 5 %, Holm's correction)."
            )
    lines += _notes(sweep)
    lines += _not_told_apart(sweep)
    if not _has_answer(sweep):
        lines += [*_scopes(sweep), *_oracle(sweep)]
    return [*sweep.unmet, *lines, *sweep.remarks.values()]


def _notes(sweep: Sweep) -> list[str]:
    """Quote how an answer was found, without the notes that explain its columns."""
    answers = [section for section in sweep.sections if section.is_answer]
    notes = [section.notes[section.n_column_notes :] for section in answers]
    return [
        f"{note[:1].upper()}{note[1:].removesuffix('.')}."
        for lines in notes
        for note in lines[:MAX_NOTES]
    ]


def _not_told_apart(sweep: Sweep) -> list[str]:
    shared = [v for v in sweep.verdicts if len(v.best) > 1]
    if not shared or _has_answer(sweep):
        return []
    where = _where(sweep)
    ties = [f"{names(v.best)} {where(v)}" for v in shared[:2]]
    more = f", and in {len(shared) - 2} others" if len(shared) > 2 else ""
    doubts = list(dict.fromkeys(v.words.doubt for v in shared if "needed to tell" in v.words.doubt))
    seeds = f" ({doubts[0]})" if len(doubts) == 1 else ""
    return [f"Not told apart: {'; '.join(ties)}{more}{seeds}."]


def _oracle(sweep: Sweep) -> list[str]:
    """Quote of each trace the first verdict that says what knowing the truth would be worth."""
    first = {verdict.trace: verdict for verdict in reversed(sweep.verdicts) if verdict.words.oracle}
    shown = [verdict for verdict in sweep.verdicts if first.get(verdict.trace) is verdict]
    where, is_one = _where(sweep), len(sweep.verdicts) == 1
    quotes = [("" if is_one else f"{where(v)}, ") + v.words.oracle for v in shown[:2]]
    if not quotes:
        return []
    n_more = len(shown) - 2
    more = f"; and in {n_more} more trace{'s' * (n_more != 1)}" if n_more > 0 else ""
    return [f"Not counted, as nobody can run it: {'; '.join(quotes)}{more}."]


# ---- cost


def _cost(sweep: Sweep) -> list[str]:
    lines: list[str] = []
    sizes = [size for block in sweep.summary.blocks[:1] for size in block.machines if size]
    if not _has_answer(sweep) and any("a month" in size for size in sizes):
        priced = [
            size.replace(", ", " cost up to " if " to " in size else " cost ", 1) for size in sizes
        ]
        lines.append(f"{joined(priced[:MAX_NAMES])}.")
    lines += [] if _has_answer(sweep) else [*_more_capacity(sweep), *_saved(sweep)]
    if sizes and not any("a month" in size for size in sizes):
        lines.append("No price is given (cluster.price_per_machine_h=1.5 adds costs a month).")
    n = max(sweep.n_cells, sweep.summary.n_cells)
    lines.append(f"This report is of {n:,} simulated run{'s' * (n != 1)}.")
    return lines


def _more_capacity(sweep: Sweep) -> list[str]:
    """Say what the largest cluster gives over the smallest, with the best policy."""
    lines = []
    for _, group in groupby(sweep.verdicts, key=lambda v: (v.trace, v.settings)):
        verdicts = sorted(group, key=lambda v: v.capacity)
        if len(verdicts) < 2:
            continue
        best = _best(verdicts)
        first, last = (v.standing(best) for v in (verdicts[0], verdicts[-1]))
        if first is None or last is None or verdicts[0].scope.failing or verdicts[-1].scope.failing:
            continue
        metric, seeds = verdicts[0].metric, first.by_seed.keys() & last.by_seed.keys()
        if not seeds or metric != verdicts[-1].metric:
            continue
        low, high = (value_text(metric, standing.mean(seeds)) for standing in (first, last))
        world = f", {verdicts[0].trace}" if _counts(sweep.verdicts)[1] > 1 else ""
        lines.append(
            f"More capacity: {best}'s {style(metric).label} is {low} {verdicts[0].words.where} "
            f"and {high} {verdicts[-1].words.where}{world}."
        )
    return lines[:2]


def _saved(sweep: Sweep) -> list[str]:
    """Quote with how little of the cluster the best policy matches the baseline."""
    if not sweep.verdicts:
        return []
    start = f"{_best(sweep.verdicts)} matches "
    matches = [s for section in sweep.sections for s in section.sentences if s.startswith(start)]
    return matches[:1]


def _has_answer(sweep: Sweep) -> bool:
    """Tell whether a section answers, not the verdicts."""
    return any(section.is_answer for section in sweep.sections)
