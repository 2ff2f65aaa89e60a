"""Pages of the parts of the policy that joins the five systems: which idea pays where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from policies.wserpt.study import joined
from policies.wserpt.study.fields import BETTER, MARKS, WORSE, split, table
from policies.wserpt.study.joined_pages import interval, one_line, signed
from policies.wserpt.study.objectives import OURS
from sweep.questions.papers.losses import Losses
from sweep.report.findings import Finding

PARTS: dict[str, tuple[str, str]] = {
    "history": ("past runs of a program", "SLearn"),
    "pilots": ("pilot tasks", "SLearn"),
    "value": ("value as worth", "Wing"),
    "urgency": ("urgency of deadlines", "Jockey"),
    "path": ("longest expected path first", "DAGPS"),
    "holding": ("machines held for the first that does not fit", "EASY"),
    "ageing": ("worth that grows with age", "the guard"),
    "with packing": ("packing by score, in place of holding", "DAGPS"),
    "with dagps order": ("offline order, in place of the path", "DAGPS"),
    "with strict order": ("strict order, in place of holding", "FIFO"),
    "with true sizes": ("true durations, in place of estimates", "an oracle"),
}
"""Parts that are taken away: the idea of each, and the system that it comes from."""
WORKLOADS = "in the workloads `alibaba_small_hour` and `everything`"
"""Place of the fifth system, whose jobs and DAGs are no part of a policy."""


MAX_NAMED = 3
"""Workloads named in a field of the table of ideas; the others are counted."""


@dataclass(frozen=True)
class Gain:
    """Gain of one part on one workload in one objective: percent or points, above 0 if it pays."""

    objective: str
    unit: str
    part: str
    workload: str
    mark: str
    finding: Finding

    @property
    def is_told(self) -> bool:
        """True if the gain or loss holds by Holm's correction over the page."""
        return self.mark in (BETTER, WORSE)

    def text(self) -> str:
        """Write the gain with its sign and unit."""
        value = self.finding.ours
        text = f"{value:+.0f}".replace("-", "−") if abs(round(value, 1)) >= 10 else signed(value)
        return one_line(f"{text} {self.unit}").removesuffix("\N{NO-BREAK SPACE}points")


def gains(findings: Iterable[Finding]) -> list[Gain]:
    """Read the gains of a page from its findings (`policies.wserpt.study.joined.removal`)."""
    rows = []
    for finding in findings:
        title, part = split(finding.figure)
        objective, _, unit = title.rpartition(", ")
        where, mark = split(finding.quantity)
        if mark in MARKS:
            rows.append(Gain(objective, unit, part, where.rpartition(", ")[0], mark, finding))
    return rows


def removal(findings: Sequence[Finding], losses: Losses) -> str:
    """Write the page of `joined.removal`: where parts pay, then each objective by workload."""
    listed = gains(findings)
    parts = [_summary(listed), front(findings), _LEGEND]
    for objective in dict.fromkeys(gain.objective for gain in listed):
        own = [gain for gain in listed if gain.objective == objective]
        columns = list(dict.fromkeys(gain.part for gain in own))
        rows: dict[str, dict[str, str]] = {}
        for gain in own:
            rows.setdefault(gain.workload, {})[gain.part] = _field(gain)
        body = [[name, *(texts.get(part, "") for part in columns)] for name, texts in rows.items()]
        heads = [f"{part}<br>({PARTS[part][1]})" if part in PARTS else part for part in columns]
        title = f"{objective[0].upper()}{objective[1:]}, {own[0].unit}"
        parts.append(f"## {title}\n\n{table(['workload', *heads], body)}")
    return "\n\n".join(parts)


_LEGEND = (
    f"Above 0 the part pays: without it, `{OURS}` has that much longer times (%), less value or "
    f"more missed deadlines (points). The table above has the gains and losses that hold by Holm's "
    f"correction over the page, {BETTER} and {WORSE} below. Below, an empty field is one in which "
    "nothing changes."
)


def guard(findings: Sequence[Finding], losses: Losses) -> str:
    """Write the page of `joined.guard`: what each weight of age costs in the mean and gains."""
    rows: dict[str, dict[str, list[Finding]]] = {}
    for finding in findings:
        _, weight = split(finding.figure)
        rows.setdefault(finding.quantity, {}).setdefault(weight, []).append(finding)
    average = rows.pop(joined.ALL)
    weight, (mean, p99) = min(average.items(), key=lambda item: item[1][1].ours)
    ends = [f"{signed(f.ours)} %{interval(f, signed)}" for f in (mean, p99)]
    summary = (
        f"**Over {len(rows)} workloads the p99 of JCT is least with `ageing` {weight}: {ends[1]} "
        f"beside none, and the mean JCT {ends[0]}.**"
    )
    body = [
        [name, *("<br>".join(_change(f) for f in pair) for pair in by_weight.values())]
        for name, by_weight in [(joined.ALL, average), *rows.items()]
    ]
    legend = "Each field: change of the mean JCT, and below of the p99, in percent, with intervals."
    return "\n\n".join([summary, legend, table(["`ageing`", *average], body)])


def _change(finding: Finding) -> str:
    name, _ = split(finding.figure)
    label = name.removesuffix(" of JCT").removesuffix(" JCT")
    return one_line(f"{label} {_short(finding.ours)}{interval(finding, _short)}")


def _short(value: float) -> str:
    text = f"{value:+.1f}".replace("-", "−")
    return "0" if text in ("+0.0", "−0.0") else text


def front(findings: Iterable[Finding]) -> str:
    """Write the table of ideas: by objective, the workloads on which each pays or costs.

    Those that do neither, as far as can be told, share a row.
    """
    listed = gains(findings)
    titles = {gain.objective: gain.unit for gain in listed}
    body, without_effect = [], []
    for part in dict.fromkeys([*PARTS, *(gain.part for gain in listed)]):
        own = [gain for gain in listed if gain.part == part]
        if own:
            significant = sorted((g for g in own if g.is_told), key=lambda g: -g.finding.ours)
            texts = [_named([g for g in significant if g.objective == o]) for o in titles]
            idea, system = PARTS.get(part, (part, ""))
            if any(texts):
                body.append([idea, system, *(text or "–" for text in texts)])
            else:
                without_effect.append(f"{idea} ({system})" if system else idea)
    if without_effect:
        body.append(
            [
                "no difference that can be told",
                "",
                ", ".join(without_effect),
                *[""] * (len(titles) - 1),
            ]
        )
    body.append(["jobs and DAGs", "Alibaba", WORKLOADS, *[""] * (len(titles) - 1)])
    heads = (f"{name}, {unit}" for name, unit in titles.items())
    return table(["idea", "from", *heads], body)


def _named(gains: Sequence[Gain]) -> str:
    """Name the workloads with the largest gains, count the rest, and name all losses."""
    pay = [gain for gain in gains if gain.mark == BETTER]
    named = pay if len(pay) <= MAX_NAMED + 1 else pay[:MAX_NAMED]
    texts = [f"{gain.workload} {gain.text()}" for gain in named]
    if rest := pay[len(named) :]:
        texts.append(f"{len(rest)} more at least {rest[-1].text()}")
    return ", ".join([*texts, *(f"{g.workload} {g.text()}" for g in gains if g.mark == WORSE)])


def _summary(listed: Sequence[Gain]) -> str:
    """Write in one sentence which parts pay somewhere, nowhere, and cost somewhere."""
    significant = [gain for gain in listed if gain.is_told]
    everywhere = list(dict.fromkeys(gain.part for gain in listed))
    pay = [
        part for part in everywhere if any(g.part == part and g.mark == BETTER for g in significant)
    ]
    cost = [
        part for part in everywhere if any(g.part == part and g.mark == WORSE for g in significant)
    ]
    rest = [part for part in everywhere if part not in pay and part not in cost]
    words = [f"pay on some workload: {', '.join(pay) or 'none'}"]
    words += [f"cost on some: {', '.join(cost)}"] if cost else []
    words += [f"make no difference that can be told: {', '.join(rest)}"] if rest else []
    return f"**Of {len(everywhere)} parts these {'; these '.join(words)}.**"


def _field(gain: Gain) -> str:
    """Write a gain with its interval; empty where the part changes nothing."""
    f = gain.finding
    if f.ours == f.low == f.high == 0:
        return ""
    value = f"**{signed(f.ours)}** {gain.mark}" if gain.is_told else signed(f.ours)
    return "<br>".join(map(one_line, (value, interval(f, signed).strip())))
