"""Pages of the policy that joins the five systems, from their stored findings.

Each takes the findings of a study of `sweep.papers.studies.joined`, and the reasons of its losses.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sweep.papers.fields import (
    BETTER,
    LEVEL,
    MAYBE_BETTER,
    MAYBE_WORSE,
    WORSE,
    split,
    table,
)
from sweep.papers.losses import Losses
from sweep.papers.objectives import OBJECTIVES, OURS, Objective
from sweep.papers.studies import joined
from sweep.report.findings import Finding, number

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

    def texts(self) -> list[str]:
        """Write the row as texts, one for each of `_JUDGED`."""
        f = self.finding
        ends = "" if math.isnan(f.low) else f"{number(f.low)} to {number(f.high)}"
        return [*self[:4], f.expected, number(f.ours), ends]


_JUDGED = ("workload", "capacity", "rule", "beside", "wanted", "is", "95 % interval")


def judged(findings: Sequence[Finding], losses: Losses) -> str:
    """Write the page of `joined.judged`: count, misses with reasons, the way, every row."""
    rows = []
    for finding in findings:
        workload, _, capacity = finding.figure.rpartition(", ")
        rows.append(JudgedRow(workload, capacity, *split(finding.quantity), finding))
    ruled = [row for row in rows if row.finding.expected]
    missed = [row for row in ruled if not row.finding.is_met]
    counts = [
        [rule, f"{sum(row.finding.is_met for row in own)} of {len(own)}"]
        for rule in joined.RULES
        if (own := [row for row in ruled if row.rule == rule])
    ]
    parts = [
        f"**{len(ruled) - len(missed)} of {len(ruled)} thresholds of the rule are met.**",
        table(["rule", "met"], counts),
    ]
    if missed:
        body = [
            [*row.texts(), losses.text(row.workload, joined.RULES[row.rule], row.rule)]
            for row in missed
        ]
        parts.append(f"## Not met, and why\n\n{table([*_JUDGED, 'why'], body)}")
    parts += _ways(rows)
    met = {True: "yes", False: "**no**"}
    body = [
        [*row.texts(), met[row.finding.is_met] if row.finding.expected else ""]
        for row in rows
        if row.rule != joined.ON_THE_WAY
    ]
    parts.append(f"## All rows of the rule\n\n{table([*_JUDGED, 'met'], body)}")
    return "\n\n".join(parts)


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
        share = number(way.ours) + interval(way, number)
        body.append([*where, f"{learner} {with_half_width(by_name[learner])}", *texts, share])
    if body:
        header = [
            *("workload", "capacity", "best learner", OURS),
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
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 1 else 2
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
