"""Twelve policies on GPU workloads by five objectives, each over first come, first served.

`matrix` has them, and the claims of papers that it can check; `PAGES` writes its page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sweep.questions.papers.figures import Findings, Groups, grouped, match_seeds, with_metric
from sweep.report.findings import Finding, FinishedSweep
from sweep.stats import Paired, ratio

BASELINE = "fifo"
CLAIMED = "claim"
SEPARATOR = " · "
BEST, LEVEL = "▲", "△"
"""Marks of the best mean of a field, and of those whose interval beside it holds 1."""


class Objective(NamedTuple):
    """A metric by which policies are compared."""

    name: str
    metric: str
    more: bool = False  # more is better


OBJECTIVES = (
    Objective("mean JCT", "jct_mean_s"),
    Objective("p99 of JCT", "jct_p99_s"),
    Objective("finish-time fairness, p95", "finish_time_fairness_p95"),
    Objective("goodput", "goodput", more=True),
    Objective("energy", "energy_kwh"),
)
BY_NAME = {objective.name: objective for objective in OBJECTIVES}


class Claim(NamedTuple):
    """A published order of two policies on a kind of workload."""

    better: str
    than: str
    trace: str
    objective: str
    source: str


CLAIMS = (
    Claim("tiresias", "fifo", "training_metered", "mean JCT", "Tiresias, NSDI 2019"),
    Claim("gittins", "tiresias", "training_metered", "mean JCT", "Tiresias, NSDI 2019"),
    Claim("max_min_kinds", "las", "training_metered", "mean JCT", "Gavel, OSDI 2020"),
    Claim("allox", "drf", "training_metered", "mean JCT", "AlloX, EuroSys 2020"),
    Claim("hadar", "max_min_kinds", "training_metered", "mean JCT", "Hadar, IPDPS 2024"),
    Claim("greedy_widths", "tiresias", "elastic_metered", "mean JCT", "Pollux, OSDI 2021"),
    Claim("fgd", "fifo", "shared_gpus", "goodput", "FGD, ATC 2023"),
)


def matrix(finished: FinishedSweep) -> Findings:
    """Compute each policy's objectives over the baseline's, and each claim's ratio, by field.

    A field is a workload and a capacity; ratios are geometric means over seeds, paired. A claim is
    the better policy over the other one, at most 1 or, of goodput, at least 1.
    """
    fields = {
        key: grouped(cells, "policy")
        for key, cells in finished.group_by("trace", "capacity").items()
    }
    for claim in CLAIMS:
        objective = BY_NAME[claim.objective]
        bound = {"at_least": 1.0} if objective.more else {"at_most": 1.0}
        for (trace, capacity), policies in fields.items():
            paired = compare(policies, claim.better, claim.than, objective)
            if trace == claim.trace and paired.n:
                title = SEPARATOR.join((CLAIMED, *claim[:4], claim.source))
                yield _finding(title, f"{capacity:g}", paired, **bound)
    for objective in OBJECTIVES:
        for (trace, capacity), policies in fields.items():
            best = best_of(policies, objective)
            for policy in policies:
                paired = compare(policies, policy, BASELINE, objective)
                if paired.n:
                    mark = _mark(policies, policy, best, objective)
                    parts = (trace, f"{capacity:g}", policy, *mark)
                    yield _finding(objective.name, SEPARATOR.join(parts), paired)


def compare(policies: Groups, a: str, b: str, objective: Objective) -> Paired:
    """Divide one policy's metric by another's, seed by seed."""
    with_it = {name: with_metric(policies.get(name, ()), objective.metric) for name in (a, b)}
    pairs = match_seeds(with_it, (a, b))
    return ratio(*([pair[i][objective.metric] for pair in pairs] for i in range(2)))


def best_of(policies: Groups, objective: Objective) -> str:
    """Return the policy whose metric is best beside the baseline's; empty if none has it."""
    ratios = {name: compare(policies, name, BASELINE, objective) for name in policies}
    present = {name: paired.estimate for name, paired in ratios.items() if paired.n}
    choose: Any = max if objective.more else min
    return choose(present, key=present.__getitem__) if present else ""


def _mark(policies: Groups, policy: str, best: str, objective: Objective) -> list[str]:
    if policy == best:
        return [BEST]
    paired = compare(policies, policy, best, objective)
    return [LEVEL] if paired.low <= 1.0 <= paired.high else []


def _finding(figure: str, quantity: str, paired: Paired, **expected: Any) -> Finding:
    return Finding(figure, quantity, paired.estimate, paired.low, paired.high, **expected)


def page(findings: Sequence[Finding], losses: Mapping[str, Any]) -> str:
    """Write the page of `matrix`: claims, then a table of each objective, a row a policy."""
    claims = [f for f in findings if f.figure.startswith(CLAIMED + SEPARATOR)]
    capacities = list(dict.fromkeys(f.quantity for f in claims))
    holding = sum(_outcome(f) == "holds" for f in claims)
    against = sum(_outcome(f) == "does not hold" for f in claims)
    neither = len(claims) - holding - against
    parts = [
        f"**Of {len(claims)} published orders, each at a capacity, {holding} hold, {against} do "
        f"not, and {neither} are not told apart.** A ratio has the first policy's metric over the "
        "second's, with its 95 % interval over seeds; an order holds if the interval leaves out 1 "
        "on the published side.",
        _table(
            ["published order", "source", *(f"capacity {c}" for c in capacities)], _orders(claims)
        ),
    ]
    for objective in OBJECTIVES:
        own = [f for f in findings if f.figure == objective.name]
        fields = list(dict.fromkeys(SEPARATOR.join(f.quantity.split(SEPARATOR)[:2]) for f in own))
        if own:
            rows = _rows(own, fields)
            parts += [
                f"## {objective.name[0].upper()}{objective.name[1:]} over `{BASELINE}`'s",
                _table(["", *fields], rows),
            ]
    return "\n\n".join(parts)


def _outcome(finding: Finding) -> str:
    """Tell whether a claim holds, by the interval of its ratio."""
    if finding.low <= 1.0 <= finding.high or finding.low != finding.low:
        return "not told apart"
    is_above = finding.low > 1.0
    return "holds" if is_above == (finding.at_least == 1.0) else "does not hold"


def _orders(claims: Sequence[Finding]) -> list[list[str]]:
    """Return a row for each claim."""
    rows: dict[str, list[str]] = {}
    for finding in claims:
        _, better, than, trace, objective, source = finding.figure.split(SEPARATOR)
        order = f"`{better}` before `{than}`, {objective}, {trace}"
        row = rows.setdefault(finding.figure, [order, source])
        row.append(f"{_interval(finding)}, {_outcome(finding)}")
    return [*rows.values()]


def _rows(findings: Sequence[Finding], fields: Sequence[str]) -> list[list[str]]:
    """Return a row for each policy, with its ratio and mark in each field."""
    texts: dict[str, dict[str, str]] = {}
    for finding in findings:
        trace, capacity, policy, *mark = finding.quantity.split(SEPARATOR)
        text = " ".join((f"{finding.ours:.3g}", *mark))
        texts.setdefault(policy, {})[SEPARATOR.join((trace, capacity))] = text
    return [[f"`{policy}`", *(row.get(f, "") for f in fields)] for policy, row in texts.items()]


def _interval(finding: Finding) -> str:
    return f"{finding.ours:.3g} ({finding.low:.3g} to {finding.high:.3g})"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


PAGES = {"matrix": page}
