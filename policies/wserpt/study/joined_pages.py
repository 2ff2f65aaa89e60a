"""Pages of the policy that joins the five systems, from their stored findings.

Each takes the findings of a study of `policies.wserpt.study.joined`, and the reasons of its losses.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from policies.wserpt.study import joined
from policies.wserpt.study.fields import (
    BETTER,
    LEVEL,
    MAYBE_BETTER,
    MAYBE_WORSE,
    WORSE,
    split,
    table,
)
from policies.wserpt.study.objectives import OBJECTIVES, OURS, Objective
from sweep.questions.papers.losses import Losses
from sweep.report.findings import Finding

FIRST = "0.6"
"""Capacity that a page shows first."""
TITLES = {objective.title: objective for objective in OBJECTIVES}
CLASSES: Mapping[str, tuple[str, ...]] = {
    "better": (BETTER, MAYBE_BETTER),
    "level": (LEVEL,),
    "not told apart": ("",),
    "worse": (WORSE, MAYBE_WORSE),
}
"""Marks of each outcome of a comparison."""


@dataclass
class Field:
    """One workload under one objective at one capacity."""

    capacity: str
    objective: Objective
    workload: str
    other: str = ""  # the best policy that can be run, besides ours
    best: Finding | None = None
    ours: Finding | None = None
    compared: Finding | None = None  # ours over the best's, or less it
    mark: str = ""
    bound: Finding | None = None

    def text(self) -> str:
        """Write the field in three lines or four: comparison, best other, ours, bound."""
        lines = [self.comparison()] if self.compared else []
        for name, finding in ((self.other, self.best), (OURS, self.ours), ("bound", self.bound)):
            if finding is not None:
                lines.append(f"{name} {with_half_width(finding)}")
        return "<br>".join(map(one_line, lines))

    def comparison(self) -> str:
        """Write ours over the best's, or less it."""
        assert self.compared is not None
        return compared(self.compared, self.objective, self.mark)


def matrix(findings: Sequence[Finding], losses: Losses) -> str:
    """Write the page of `joined.matrix`: outcome, one table a capacity, losses and reasons."""
    fields = _fields(findings)
    by_capacity: dict[str, list[Field]] = {}
    for entry in fields:
        by_capacity.setdefault(entry.capacity, []).append(entry)
    order = sorted(by_capacity, key=lambda capacity: (capacity != FIRST, float(capacity)))
    tables = [f"## Capacity {capacity}\n\n{_capacity(by_capacity[capacity])}" for capacity in order]
    return "\n\n".join(
        [*_outcome(fields, losses), *tables[:1], *_lost(fields, losses), *tables[1:]]
    )


def _fields(findings: Sequence[Finding]) -> list[Field]:
    """Collect the findings of each field."""
    fields: dict[tuple[str, str, str], Field] = {}
    for finding in findings:
        capacity, title = split(finding.figure)
        workload, label = split(finding.quantity)
        capacity = capacity.removeprefix("capacity ")
        entry = fields.setdefault(
            (capacity, title, workload), Field(capacity, TITLES[title], workload)
        )
        name, mark = split(label)
        if name in (joined.RATIO, joined.DIFFERENCE):
            entry.compared, entry.mark = finding, mark
        elif name == joined.LEAST:
            entry.bound = finding
        elif name == OURS:
            entry.ours = finding
        else:
            entry.other, entry.best = name, finding
    return list(fields.values())


def _outcome(fields: Sequence[Field], losses: Losses) -> Iterator[str]:
    """Write in how many fields ours is better, level and worse: in a sentence, and by objective."""
    compared_fields = [entry for entry in fields if entry.compared]
    if not compared_fields:
        return
    counts = Counter(entry.mark for entry in compared_fields)
    words = {}
    for name, own in CLASSES.items():
        parts = ", ".join(f"{mark} {counts[mark]}" for mark in own if mark) if len(own) > 1 else ""
        words[name] = f"in {sum(counts[mark] for mark in own)}{f' ({parts})' if parts else ''}"
    lost = {(entry.workload, entry.objective.name) for entry in _worse(compared_fields)}
    unexplained = sum(not losses.why(*names) for names in lost)
    reasons = (
        f" Of its {len(lost)} losses by workload and objective, {unexplained} are not explained."
        if lost
        else ""
    )
    yield (
        f"**Of {len(compared_fields)} fields (a workload, a capacity, an objective), `{OURS}` is "
        f"better than the best other policy that can be run {words['better']}, level "
        f"{words['level']}, not told apart {words['not told apart']} and worse "
        f"{words['worse']}.**{reasons}"
    )
    rows = []
    for objective in OBJECTIVES:
        n_by_mark = Counter(entry.mark for entry in compared_fields if entry.objective is objective)
        if n_by_mark:
            numbers = (sum(n_by_mark[mark] for mark in marks) for marks in CLASSES.values())
            rows.append([objective.name, *map(str, numbers)])
    yield table(["number of fields", *CLASSES], rows)
    bound = (
        " *bound*: no schedule of the jobs that it ends has a lower mean, even one that knows all."
        if any(entry.bound for entry in fields)
        else ""
    )
    tolerances = ", ".join(
        f"{o.tolerance_text()} ({o.name})"
        for o in OBJECTIVES
        if any(entry.objective is o for entry in compared_fields)
    )
    yield (
        f"A field has `{OURS}`'s mean over that of the best other policy, or less it, and both "
        f"means, each with its 95 % interval over seeds. {BETTER} better and {WORSE} worse hold by "
        f"Holm's correction over the page, {MAYBE_BETTER} and {MAYBE_WORSE} by the field's own "
        f"interval; {LEVEL} is level: the interval lies within {tolerances}. A field in which no "
        f"two policies differ is empty.{bound}"
    )


def _capacity(fields: Sequence[Field]) -> str:
    """Write the fields of one capacity, a row a workload.

    Objectives that fewer than half of the workloads have are in a table of their own, so that the
    page need not be scrolled.
    """
    workloads = list(dict.fromkeys(entry.workload for entry in fields))
    texts = {(entry.workload, entry.objective.name): entry.text() for entry in fields}
    shared: dict[bool, list[Objective]] = {True: [], False: []}
    for objective in OBJECTIVES:
        n = sum(entry.objective is objective for entry in fields)
        if n:
            shared[2 * n >= len(workloads)].append(objective)
    tables = []
    for objectives in filter(None, shared.values()):
        names = [objective.name for objective in objectives]
        body = [
            [workload, *(texts.get((workload, name), "") for name in names)]
            for workload in workloads
            if any((workload, name) in texts for name in names)
        ]
        tables.append(table(["workload", *(objective.title for objective in objectives)], body))
    return "\n\n".join(tables)


def _worse(fields: Iterable[Field]) -> list[Field]:
    return [entry for entry in fields if entry.compared and entry.mark in CLASSES["worse"]]


def _lost(fields: Sequence[Field], losses: Losses) -> Iterator[str]:
    """List where ours is worse, by workload and objective, with the reason of each."""
    rows: dict[tuple[str, str], list[Field]] = {}
    for entry in sorted(_worse(fields), key=lambda entry: float(entry.capacity)):
        rows.setdefault((entry.workload, entry.objective.name), []).append(entry)
    body = [
        [
            *names,
            "<br>".join(
                one_line(f"{entry.comparison()} beside {entry.other} at {entry.capacity}")
                for entry in own
            ),
            losses.text(*names),
        ]
        for names, own in sorted(rows.items())
    ]
    if body:
        header = ["workload", "objective", "worse by", "why"]
        yield f"## Where {OURS} loses, and why\n\n{table(header, body)}"


class JudgedRow(NamedTuple):
    """One row of the rule."""

    workload: str
    capacity: str
    rule: str
    beside: str  # the policy or policies that ours is held against
    finding: Finding

    def text(self, separator: str) -> str:
        """Write the value with its interval, and the policy or policies beside it."""
        value = one_line(f"{_plain(self.finding.ours)}{interval(self.finding, _plain)}")
        return separator.join(filter(None, (value, self.beside)))


def judged(findings: Sequence[Finding], losses: Losses) -> str:
    """Write the page of `joined.judged`: count, misses with reasons, the way, every row."""
    rows = []
    for finding in findings:
        workload, _, capacity = finding.figure.rpartition(", ")
        rows.append(JudgedRow(workload, capacity, *split(finding.quantity), finding))
    by_rule: dict[str, list[JudgedRow]] = {rule: [] for rule in joined.RULES}
    for row in rows:
        by_rule.setdefault(row.rule, []).append(row)
    by_rule.pop(joined.ON_THE_WAY, None)
    ruled = [row for row in rows if row.finding.expected]
    n_met = sum(row.finding.is_met for row in ruled)
    counts = []
    for rule, own in by_rule.items():
        thresholds = [row for row in own if row.finding.expected]
        if thresholds:
            n = sum(row.finding.is_met for row in thresholds)
            counts.append([rule, thresholds[0].finding.expected, f"{n} of {len(thresholds)}"])
    parts = [
        f"**{n_met} of {len(ruled)} thresholds of the rule are met.**",
        table(["rule", "wanted", "met"], counts),
        *_missed(ruled, losses),
        *_ways(rows),
        *(_by_capacity(rule, own) for rule, own in by_rule.items() if own),
    ]
    return "\n\n".join(parts)


def _missed(rows: Iterable[JudgedRow], losses: Losses) -> Iterator[str]:
    """List the rows that miss their threshold, by workload and rule, with the reason of each."""
    missed: dict[tuple[str, str], list[JudgedRow]] = {}
    for row in rows:
        if not row.finding.is_met:
            missed.setdefault((row.workload, row.rule), []).append(row)
    body = [
        [
            workload,
            rule,
            "<br>".join(f"at {row.capacity}: {row.text(', ')}" for row in own),
            losses.text(workload, joined.RULES[rule], rule),
        ]
        for (workload, rule), own in sorted(missed.items())
    ]
    if body:
        yield f"## Not met, and why\n\n{table(['workload', 'rule', 'result, beside', 'why'], body)}"


def _by_capacity(rule: str, rows: Sequence[JudgedRow]) -> str:
    """Write all rows of one rule, a column a capacity; those that miss it are bold."""
    capacities = sorted({row.capacity for row in rows}, key=float)
    fields = {
        (row.workload, row.capacity): row.text("<br>")
        if row.finding.is_met
        else f"**not met:** {row.text('<br>')}"
        for row in rows
    }
    body = [
        [name, *(fields.get((name, capacity), "") for capacity in capacities)]
        for name in dict.fromkeys(row.workload for row in rows)
    ]
    threshold = next((f", {row.finding.expected}" for row in rows if row.finding.expected), "")
    title = f"{rule[0].upper()}{rule[1:]}{threshold}"
    return f"## {title}\n\n{table(['workload', *(f'at {c}' for c in capacities)], body)}"


def _plain(value: float) -> str:
    """Write a number with three digits or four; a count without a fraction."""
    text = (
        f"{value:.0f}"
        if value == int(value)
        else f"{value:.3f}"
        if abs(value) < 10
        else f"{value:.1f}"
    )
    return text.replace("-", "−")


def _ways(rows: Sequence[JudgedRow]) -> Iterator[str]:
    """Write the mean completion times between the best learner and the bound of any schedule."""
    by_place: dict[tuple[str, str], dict[str, Finding]] = {}
    for row in rows:
        if row.rule in (joined.WAY, joined.ON_THE_WAY):
            key = joined.WAY if row.rule == joined.WAY else row.beside
            by_place.setdefault((row.workload, row.capacity), {})[key] = row.finding
    body = []
    for where, by_name in by_place.items():
        way = by_name.pop(joined.WAY)
        learner = next(iter(by_name))
        findings = [by_name.get(name) for name in (OURS, joined.ALL_KNOWING, joined.LEAST)]
        texts = ["" if f is None else with_half_width(f) for f in findings]
        share = _ratio(way.ours) + interval(way, _ratio)
        best = f"{learner} {with_half_width(by_name[learner])}"
        body.append([", ".join(where), *map(one_line, (best, *texts, share))])
    if body:
        header = [
            *("workload", "best learner", OURS),
            *(f"{joined.ALL_KNOWING}, knows all", "no schedule below", "share of the way"),
        ]
        yield f"## The way to the truth: mean JCT, s\n\n{table(header, body)}"


def compared(finding: Finding, objective: Objective, mark: str) -> str:
    """Write a ratio, or a difference with its sign, bold, with its mark and interval."""
    text = _ratio if objective.is_ratio else signed
    ends = interval(finding, text)
    return f"**{text(finding.ours)}**{f' {mark}' if mark else ''}{ends}"


def interval(finding: Finding, text: Callable[[float], str]) -> str:
    """Write an interval in brackets after its value; empty if there is none."""
    low, high = finding.low, finding.high
    return "" if math.isnan(low) else f" ({text(low)} to {text(high)})"


def one_line(text: str) -> str:
    """Keep a text on one line of its cell."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _ratio(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def signed(value: float) -> str:
    """Write a number with its sign, without needless digits."""
    size = abs(round(value, 2))
    digits = 0 if size >= 100 else 1 if size >= 1 else 2
    text = f"{value:+,.{digits}f}".replace("-", "−")
    return text if text.strip("+−0.,") else "0"


def with_half_width(finding: Finding) -> str:
    """Write a mean with half its interval, to the same digit; thousands as k from 10,000 on."""
    value, half = finding.ours, finding.high - finding.ours
    unit = "k" if abs(value) >= 10_000 else ""
    if unit:
        value, half = value / 1000, half / 1000
    size = abs(value)
    digits = 0 if size >= 100 or size == half == 0 else 1 if size >= 10 else 2 if size >= 1 else 3
    text = f"{value:,.{digits}f}".replace("-", "−") + unit
    return text if math.isnan(half) or half == 0 else f"{text} ±{half:,.{digits}f}{unit}"
