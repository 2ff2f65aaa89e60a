"""The policy that joins the five systems, beside the best that can be run, on all workloads.

`matrix` has both in each field of workload and objective, `judged` holds the first to the rule of
policies/wserpt/decisions/0044-joined.md, `removal` takes each of its parts away alone, and `guard`
is the cost of its guard for the tail.
`policies.wserpt.study.joined_pages` writes their pages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from policies.wserpt.study.fields import BETTER, field
from policies.wserpt.study.objectives import (
    BY_METRIC,
    MEAN,
    MISSED,
    OBJECTIVES,
    OURS,
    P99,
    TUNED,
    VALUE,
    WITH,
    WITHOUT,
    best,
    marks,
    rivals,
)
from sweep.questions.papers.figures import Findings, Groups, column, grouped, mean, with_metric
from sweep.report.findings import Finding, FinishedSweep
from sweep.stats import Paired, interval

ARBITER, ALL_KNOWING, TAIL = "jockey_arbiter", "srpt", "bayes"
LEARNERS = ("slearn", "threesigma", "bayes")
SLEARN = ("slearn_2sigma", "slearn_google2011_real", "slearn_google2019", "slearn_gtrace19_dag")
EVERYTHING = "everything"
EVERYTHING_AT = (0.6, 0.8)
"""Capacities at which `everything` is judged: those for which it was made."""
BOUND = "jct_mean_lb_s"
AGEING, ALL = "policy.ageing", "all workloads"
RATIO, DIFFERENCE, LEAST = "ratio", "difference", "bound"
"""Labels of the fields of `matrix`, beside the names of the two policies."""

TO_MEAN = "mean JCT over the best's"
TO_MEAN_HIGH = f"{TO_MEAN}, upper end"
TO_TAIL = "p99 over the slower of bayes's and the best's"
TO_VALUE, TO_MISSED = "value less the best's, points", "deadlines missed less the best's, points"
TO_ARBITER = f"mean JCT over {ARBITER}'s"
WAY = "share of the way from the best learner to srpt"
UNBEATEN = "policies not beaten in {}"
ON_THE_WAY = "mean JCT, s"
RULES: Mapping[str, str] = {
    TO_MEAN: "mean JCT",
    TO_MEAN_HIGH: "mean JCT",
    TO_TAIL: "p99 of JCT",
    TO_VALUE: "value",
    TO_MISSED: "deadlines missed",
    TO_ARBITER: "mean JCT",
    **{UNBEATEN.format(BY_METRIC[m].name): BY_METRIC[m].name for m in (MEAN, VALUE, MISSED)},
    WAY: "mean JCT",
}
"""Rows of the rule, in their order, with the objective of each."""


def matrix(finished: FinishedSweep) -> Findings:
    """Show the best runnable policy and ours on each workload, by capacity and objective.

    A field has the mean of both, and ours over that best, or ours less it, paired by seed, with a
    mark (`policies.wserpt.study.objectives`); of the mean JCT also the bound on it for any
    schedule. A field in which no two policies differ is left out.
    """
    fields = [
        (capacity, objective, trace, other, policies)
        for capacity, trace, policies in _workloads(finished)
        for objective in OBJECTIVES
        if (other := best(objective, policies)) is not None
    ]
    fields.sort(key=lambda parts: (parts[0], OBJECTIVES.index(parts[1])))
    pairs = [
        objective.compare(policies.get(OURS, ()), policies[other])
        for _, objective, _, other, policies in fields
    ]
    marked = marks(pairs, [objective for _, objective, *_ in fields])
    for parts, paired, mark in zip(fields, pairs, marked, strict=True):
        capacity, objective, trace, other, policies = parts
        title = field(f"capacity {capacity:g}", objective.title)
        yield from mean(title, field(trace, other), objective.values(policies[other]))
        if ours := objective.values(policies.get(OURS, ())):
            yield from mean(title, field(trace, OURS), ours)
            label = field(trace, RATIO if objective.is_ratio else DIFFERENCE, mark)
            yield Finding(title, label, paired.estimate, paired.low, paired.high)
        if objective.metric == MEAN:
            yield from _bound(title, trace, policies)


def _bound(title: str, where: str, policies: Groups) -> Findings:
    """Yield the bound on the mean completion time of any schedule, where the sweep has it.

    It is of the jobs that ours ends.
    """
    cells = policies.get(OURS) or next(iter(policies.values()))
    yield from mean(title, field(where, LEAST), column(with_metric(cells, BOUND), BOUND))


def removal(finished: FinishedSweep) -> Findings:
    """Compute what each part brings, by workload: what is worse without it, paired by seed.

    Of a part in the place of another: what is better with it.

    Percent of a time, or points; above 0 the part pays. ▲ marks that it does, ▼ that it costs, by
    Holm's correction over the page.
    """
    fields = [
        (objective, part, f"{trace}, {capacity:g}", policies)
        for capacity, trace, policies in _workloads(finished)
        for objective in OBJECTIVES[:4]
        if objective.values(policies.get(OURS, ()))
        for part in policies
        if part.startswith((WITHOUT, WITH))
    ]
    pairs = []
    for objective, part, _, policies in fields:
        without, whole = policies[part], policies[OURS]
        if part.startswith(WITH):
            without, whole = whole, without
        pairs.append(objective.compare(without, whole))
    marked = marks(pairs, [objective for objective, *_ in fields], tolerant=False)
    for (objective, part, where, _), paired, mark in zip(fields, pairs, marked, strict=True):
        gain, low, high = paired.estimate, paired.low, paired.high
        if objective.is_ratio:
            gain, low, high = map(_percent, (gain, low, high))
        elif objective.more:
            gain, low, high = -gain, -high, -low
        kind = "%" if objective.is_ratio else "points"
        name = part.removeprefix(WITHOUT).removeprefix(f"{OURS}_").replace("/", " ")
        name = name.replace("_", " ")
        title = field(f"{objective.name}, {kind}", name)
        # the mark is of the policy without the part: worse means that the part pays
        yield Finding(title, field(where, mark.translate(_OPPOSITE)), gain, low, high)


_OPPOSITE = str.maketrans("▲▼△▽", "▼▲▽△")


def guard(finished: FinishedSweep) -> Findings:
    """Compare mean and 99th percentile with each weight of age to those without it, by workload.

    Percent, paired by seed; then over all workloads, with an interval over workloads. In the report
    a curve: the percentile against the mean.
    """
    changes: dict[str, dict[str, list[float]]] = {}
    for _, trace, _ in _workloads(finished):
        rows = [row for row in finished.cells if row["trace"] == trace]
        weights = grouped(rows, AGEING)
        without = weights.pop("0.0", [])
        points = [(0.0, 0.0)]
        for weight, cells in weights.items():
            pairs = {m: BY_METRIC[m].compare(cells, without) for m in (MEAN, P99)}
            for metric, paired in pairs.items():
                change, low, high = map(_percent, (paired.estimate, paired.low, paired.high))
                yield Finding(field(BY_METRIC[metric].name, weight), trace, change, low, high)
                logs = changes.setdefault(metric, {}).setdefault(weight, [])
                logs.append(math.log(paired.estimate))
            points.append((_percent(pairs[MEAN].estimate), _percent(pairs[P99].estimate)))
        along = "change of mean JCT, %"
        for x, y in points:  # by weight
            yield Finding("change of p99 of JCT, %", "", y, curve=trace, along=along, x=x)
    for metric, by_weight in changes.items():
        for weight, logs in by_weight.items():
            change, low, high = (_percent(math.exp(x)) for x in interval(logs))
            yield Finding(field(BY_METRIC[metric].name, weight), ALL, change, low, high)


def _percent(factor: float) -> float:
    return 100.0 * (factor - 1.0)


def judged(finished: FinishedSweep) -> Findings:
    """Hold ours to the rule: by workload, on `everything`, and on the way to the truth."""
    for capacity, trace, policies in _workloads(finished):
        if OURS not in policies:
            continue
        where, name = f"{trace}, {capacity:g}", trace.rpartition("/")[2]
        if name == EVERYTHING:
            yield from _everything(where, capacity in EVERYTHING_AT, policies)
        else:
            yield from _workload(where, policies)
        if name in SLEARN:
            yield from _way(where, policies)


def _workload(where: str, policies: Groups) -> Findings:
    """Hold ours to the thresholds of one workload."""
    ours, mean_jct = policies[OURS], BY_METRIC[MEAN]
    other = best(mean_jct, policies, also_equal=True)
    if other is None:
        return
    paired = mean_jct.compare(ours, policies[other])
    yield _row(where, TO_MEAN, other, paired, at_most=1.02)
    yield Finding(where, field(TO_MEAN_HIGH, other), _upper(paired), at_most=1.05)
    tail = BY_METRIC[P99]
    tails = [name for name in dict.fromkeys((TAIL, other)) if tail.values(policies.get(name, ()))]
    if tails:
        slower = max(tails, key=lambda name: float(np.mean(tail.values(policies[name]))))
        yield _row(where, TO_TAIL, slower, tail.compare(ours, policies[slower]), at_most=1.10)
    limits: tuple[tuple[str, str, dict[str, Any]], ...]
    limits = ((VALUE, TO_VALUE, {"at_least": -1.0}), (MISSED, TO_MISSED, {"at_most": 2.0}))
    for metric, rule, limit in limits:
        objective = BY_METRIC[metric]
        if (other := best(objective, policies)) is not None:
            yield _row(where, rule, other, objective.compare(ours, policies[other]), **limit)
            if metric == MISSED and ARBITER in policies:
                paired = mean_jct.compare(ours, policies[ARBITER])
                yield _row(where, TO_ARBITER, ARBITER, paired, at_most=1.0)


def _row(where: str, rule: str, other: str, paired: Paired, **limit: Any) -> Finding:
    return Finding(where, field(rule, other), paired.estimate, paired.low, paired.high, **limit)


def _upper(paired: Paired) -> float:
    return paired.estimate if math.isnan(paired.high) else paired.high


def _everything(where: str, is_judged: bool, policies: Groups) -> Findings:
    """Count the policies that ours does not beat in an objective, by Holm's correction over all."""
    opponents = [name for name in rivals(policies) if name != OURS]
    objectives = [BY_METRIC[metric] for metric in (MEAN, VALUE, MISSED)]
    pairs = [
        [objective.compare(policies[OURS], policies[name]) for name in opponents]
        for objective in objectives
    ]
    repeated = [objective for objective in objectives for _ in opponents]
    flat = [paired for row in pairs for paired in row]
    marked = iter(marks(flat, repeated, tolerant=False))
    for objective, row in zip(objectives, pairs, strict=True):
        left = [name for name in opponents if next(marked) != BETTER]
        limit = 0.0 if is_judged else math.inf
        quantity = field(UNBEATEN.format(objective.name), ", ".join(left))
        yield Finding(where, quantity, len(left), exact=True, at_most=limit)
        other = best(objective, policies, also_equal=True)
        if other is not None:
            kind = "over" if objective.is_ratio else "less"
            yield _row(
                where, f"{objective.title} {kind} the best's", other, row[opponents.index(other)]
            )


def _way(where: str, policies: Groups) -> Findings:
    """Yield how far ours is on the way from the best learner's mean JCT to that of the truth.

    Beside it the mean JCT of each, and the bound on that of any schedule.
    """
    seeds = {p: {r["seed"]: r[MEAN] for r in policies[p]} for p in LEARNERS if p in policies}
    if not seeds or ALL_KNOWING not in policies:
        return
    name = min(seeds, key=lambda p: float(np.mean([*seeds[p].values()])))
    learner = seeds[name]
    truth, ours = ({r["seed"]: r[MEAN] for r in policies[p]} for p in (ALL_KNOWING, OURS))
    common = sorted(learner.keys() & truth.keys() & ours.keys())
    gained = np.array([learner[s] - ours[s] for s in common])
    possible = np.array([learner[s] - truth[s] for s in common])
    if not len(common) or possible.mean() <= 0:
        return
    way = float(gained.mean() / possible.mean())
    error, low, high = interval((gained - way * possible) / possible.mean())
    low, high = way + low - error, way + high - error
    yield Finding(where, field(WAY, name), way, low, high, at_least=0.5)
    for policy in (name, OURS, ALL_KNOWING):
        values = column(policies[policy], MEAN)
        yield from mean(where, field(ON_THE_WAY, policy), values)
    yield from _bound(where, ON_THE_WAY, policies)


def _workloads(finished: FinishedSweep) -> Iterator[tuple[float, str, Groups]]:
    """Yield capacity, workload and cells by policy, by capacity."""
    groups = finished.group_by("capacity", "trace")
    for (capacity, trace), cells in sorted(groups.items(), key=lambda item: item[0][0]):
        yield capacity, trace, _by_name(grouped(cells, "policy"))


def _by_name(policies: Groups) -> Groups:
    """Name tuned policies as without their settings, and those beside them by their defaults."""
    tuned = {name.removeprefix(TUNED) for name in policies if name.startswith(TUNED)}
    return {
        f"{name} by default" if name in tuned else name.removeprefix(TUNED): cells
        for name, cells in policies.items()
    }
