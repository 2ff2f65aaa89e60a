"""The policy that joins the five systems, beside the best that can be run, on all workloads.

`matrix` has both in each field of workload and objective, `judged` holds the first to the rule of
docs/decisions/0044-joined.md, and `removal` takes each of its parts away alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sweep.papers.figures import Findings, Groups, Row, column, grouped, mean, with_metric
from sweep.papers.matrix import BETTER, WORSE, field
from sweep.report.findings import Finding, FinishedSweep
from sweep.stats import ALPHA, Paired, difference, holm, interval, ratio

OURS = "wserpt"
"""The policy that is judged; its parts taken away are ``wserpt_without/PART``."""
WITHOUT = f"{OURS}_without/"
ARBITER, ALL_KNOWING, TAIL = "jockey_arbiter", "srpt", "bayes"
LEARNERS = ("slearn", "threesigma", "bayes")
SLEARN = ("slearn_2sigma", "slearn_google2011_real", "slearn_google2019", "slearn_gtrace19_dag")
EVERYTHING = "everything"
EVERYTHING_AT = (0.6, 0.8)
"""Capacities at which `everything` is judged: those for which it was made."""

MEAN, P99, VALUE, MISSED = "jct_mean_s", "jct_p99_s", "value_attained", "deadlines_missed"


@dataclass(frozen=True)
class Objective:
    """An objective: a metric, as a column of the tables."""

    title: str
    metric: str
    more: bool = False  # more is better
    scale: float = 1.0
    is_ratio: bool = True  # two policies compare by ratio, else by difference

    def values(self, cells: Sequence[Row]) -> list[float]:
        """Return the metric of each cell that has it, scaled."""
        return column(with_metric(cells, self.metric), self.metric, self.scale)

    def compare(self, a: Sequence[Row], b: Sequence[Row]) -> Paired:
        """Compare two policies, paired by seed: a over b, or a less b."""
        first, second = ({r["seed"]: r for r in with_metric(x, self.metric)} for x in (a, b))
        seeds = sorted(first.keys() & second.keys())
        pair = ([self.scale * x[s][self.metric] for s in seeds] for x in (first, second))
        return (ratio if self.is_ratio else difference)(*pair)

    def is_better(self, paired: Paired) -> bool:
        """Tell whether the first of the two is better in the mean."""
        level = 1.0 if self.is_ratio else 0.0
        return paired.estimate > level if self.more else paired.estimate < level


OBJECTIVES = (
    Objective("mean JCT, s", MEAN),
    Objective("p99 of JCT, s", P99),
    Objective("value, %", VALUE, True, 100.0, False),
    Objective("deadlines missed, %", MISSED, False, 100.0, False),
    Objective("utility", "utility", True, 1.0, False),
    Objective("gap to the bound, %", "gap_lb_p50", False, 100.0, False),
)
_BY_METRIC = {objective.metric: objective for objective in OBJECTIVES}


def matrix(finished: FinishedSweep) -> Findings:
    """Show the best runnable policy and ours on each workload, by capacity and objective.

    The third line of a field is ours over that best, or ours less it, paired by seed. Ours is
    marked where it differs from that best, by Holm's correction over all fields of the page. A
    field in which no two policies differ is left out.
    """
    groups: dict[float, list[tuple[str, Groups]]] = {}
    for capacity, trace, policies in _workloads(finished):
        groups.setdefault(capacity, []).append((trace, policies))
    fields = [
        (trace, capacity, objective, best, policies)
        for capacity, workloads in groups.items()
        for objective in OBJECTIVES
        for trace, policies in workloads
        if (best := _best(objective, policies)) is not None
    ]
    against = [
        objective.compare(policies.get(OURS, ()), policies[best])
        for _, _, objective, best, policies in fields
    ]
    marks = _marks(against, [objective for _, _, objective, _, _ in fields])
    is_ours = any(OURS in policies for *_, policies in fields)
    if is_ours:
        yield from _counts([objective for _, _, objective, _, _ in fields], marks)
    for (trace, capacity, objective, best, policies), paired, mark in zip(
        fields, against, marks, strict=True
    ):
        title = field(f"capacity {capacity:g}", objective.title)
        yield from mean(title, field(trace, best), objective.values(policies[best]))
        if ours := objective.values(policies.get(OURS, ())):
            yield from mean(title, field(trace, f"{OURS} {mark}".strip()), ours)
            label = field(trace, "ratio" if objective.is_ratio else "difference")
            yield Finding(title, label, paired.estimate, paired.low, paired.high)
    for (trace, capacity, objective, best, _), paired, mark in zip(
        fields, against, marks, strict=True
    ):
        if mark == WORSE:
            kind = "over" if objective.is_ratio else "less"
            title = f"where {OURS} is worse"
            quantity = f"{trace} at {capacity:g}, {objective.title} {kind} {best}'s"
            yield Finding(title, quantity, paired.estimate, paired.low, paired.high)


def _counts(objectives: Sequence[Objective], marks: Sequence[str]) -> Findings:
    """Count the fields of each objective in which ours is better, not told apart, and worse."""
    columns = {BETTER: "better than the best other", "": "not told apart", WORSE: "worse"}
    for objective in dict.fromkeys(objectives):
        own = [mark for o, mark in zip(objectives, marks, strict=True) if o is objective]
        for mark, text in columns.items():
            title = field(f"number of workloads and capacities in which {OURS} is", text)
            yield Finding(title, objective.title, own.count(mark), exact=True)


def removal(finished: FinishedSweep) -> Findings:
    """Divide each objective without a part by that of the whole, or subtract it, by workload.

    A part is marked where taking it away makes a difference, by Holm's correction over the page:
    worse without it means that it pays.
    """
    fields = [
        (objective, part, f"{trace}, {capacity:g}", policies)
        for capacity, trace, policies in _workloads(finished)
        for objective in OBJECTIVES[:4]
        for part in policies
        if part.startswith(WITHOUT) and objective.values(policies.get(OURS, ()))
    ]
    against = [
        objective.compare(policies[part], policies[OURS]) for objective, part, _, policies in fields
    ]
    marks = _marks(against, [objective for objective, *_ in fields])
    kinds = {True: "over that of the whole", False: "less that of the whole"}
    for (objective, part, row, _), paired, mark in zip(fields, against, marks, strict=True):
        title = field(
            f"{objective.title} without a part, {kinds[objective.is_ratio]}",
            part.removeprefix(WITHOUT).replace("_", " "),
        )
        yield Finding(title, field(row, mark), paired.estimate, paired.low, paired.high)


def judged(finished: FinishedSweep) -> Findings:
    """Hold ours to the rule: by workload, on `everything`, and on the way to the truth."""
    for capacity, trace, policies in _workloads(finished):
        if OURS not in policies:
            continue
        if trace.rpartition("/")[2] == EVERYTHING:
            yield from _everything(capacity, policies)
        else:
            yield from _workload(trace, capacity, policies)
        if trace.rpartition("/")[2] in SLEARN:
            yield from _way(trace, capacity, policies)


def _workload(trace: str, capacity: float, policies: Groups) -> Findings:
    """Hold ours to the thresholds of one workload."""
    where, ours = f"{trace}, {capacity:g}", policies[OURS]
    best = _best(_BY_METRIC[MEAN], policies, also_equal=True)
    if best is None:
        return
    paired = _BY_METRIC[MEAN].compare(ours, policies[best])
    title = f"mean JCT over {best}'s"
    yield Finding(where, title, paired.estimate, paired.low, paired.high, at_most=1.02)
    yield Finding(where, f"{title}, upper end", _upper(paired), at_most=1.05)
    tail = _BY_METRIC[P99]
    rivals = [name for name in dict.fromkeys((TAIL, best)) if tail.values(policies.get(name, ()))]
    if rivals:
        slowest = max(rivals, key=lambda name: float(np.mean(tail.values(policies[name]))))
        paired = tail.compare(ours, policies[slowest])
        title = f"p99 over {slowest}'s"
        yield Finding(where, title, paired.estimate, paired.low, paired.high, at_most=1.10)
    limits: tuple[tuple[str, dict[str, Any]], ...]
    limits = ((VALUE, {"at_least": -1.0}), (MISSED, {"at_most": 2.0}))
    for metric, limit in limits:
        objective = _BY_METRIC[metric]
        if (best := _best(objective, policies)) is not None:
            paired = objective.compare(ours, policies[best])
            title = f"{objective.title} less {best}'s"
            yield Finding(where, title, paired.estimate, paired.low, paired.high, **limit)
            if metric == MISSED and ARBITER in policies:
                paired = _BY_METRIC[MEAN].compare(ours, policies[ARBITER])
                title = f"mean JCT over {ARBITER}'s"
                yield Finding(where, title, paired.estimate, paired.low, paired.high, at_most=1.0)


def _upper(paired: Paired) -> float:
    return paired.estimate if math.isnan(paired.high) else paired.high


def _everything(capacity: float, policies: Groups) -> Findings:
    """Count the policies that ours does not beat in an objective, by Holm's correction over all."""
    rivals = [name for name in _rivals(policies) if name != OURS]
    objectives = [_BY_METRIC[metric] for metric in (MEAN, VALUE, MISSED)]
    pairs = [
        [objective.compare(policies[OURS], policies[name]) for name in rivals]
        for objective in objectives
    ]
    repeated = [objective for objective in objectives for _ in rivals]
    marks = iter(_marks([paired for row in pairs for paired in row], repeated))
    for objective, row in zip(objectives, pairs, strict=True):
        left = [name for name in rivals if next(marks) != BETTER]
        limit = 0.0 if capacity in EVERYTHING_AT else math.inf
        quantity = f"{objective.title}: policies not beaten" + (
            f" ({', '.join(left)})" if left else ""
        )
        title = f"{EVERYTHING}, {capacity:g}"
        yield Finding(title, quantity, len(left), exact=True, at_most=limit)
        best = _best(objective, policies, also_equal=True)
        if best is not None:
            paired = row[rivals.index(best)]
            kind = "over" if objective.is_ratio else "less"
            name = f"{objective.title} {kind} {best}'s"
            yield Finding(title, name, paired.estimate, paired.low, paired.high)


def _way(trace: str, capacity: float, policies: Groups) -> Findings:
    """Yield how far ours is on the way from the best learner's mean JCT to that of the truth."""
    seeds = [{row["seed"]: row[MEAN] for row in policies[p]} for p in LEARNERS if p in policies]
    if not seeds or ALL_KNOWING not in policies:
        return
    learner = min(seeds, key=lambda values: float(np.mean([*values.values()])))
    truth, ours = ({r["seed"]: r[MEAN] for r in policies[p]} for p in (ALL_KNOWING, OURS))
    common = sorted(learner.keys() & truth.keys() & ours.keys())
    gained = np.array([learner[s] - ours[s] for s in common])
    possible = np.array([learner[s] - truth[s] for s in common])
    if not len(common) or possible.mean() <= 0:
        return
    way = float(gained.mean() / possible.mean())
    error, low, high = interval((gained - way * possible) / possible.mean())
    title = "way from the best learner to the truth, of the mean JCT"
    quantity = f"{trace}, {capacity:g}"
    yield Finding(title, quantity, way, way + low - error, way + high - error, at_least=0.5)


def _workloads(finished: FinishedSweep) -> Iterator[tuple[float, str, Groups]]:
    """Yield capacity, workload and cells by policy, by capacity."""
    groups = finished.group_by("capacity", "trace")
    for (capacity, trace), cells in sorted(groups.items(), key=lambda item: item[0][0]):
        yield capacity, trace, grouped(cells, "policy")


def _rivals(policies: Groups) -> list[str]:
    """Return the policies that can be run, without our own parts."""
    return [
        name
        for name, cells in policies.items()
        if not name.startswith(WITHOUT) and not any(row.get("is_oracle") for row in cells)
    ]


def _best(objective: Objective, policies: Groups, also_equal: bool = False) -> str | None:
    """Return the best runnable policy besides ours by its mean; None if all are equal."""
    means = {
        name: float(np.mean(values))
        for name in _rivals(policies)
        if (values := objective.values(policies[name]))
    }
    if len(set(means.values())) < 2 and not also_equal:
        return None
    means.pop(OURS, None)
    choose: Callable[..., str] = max if objective.more else min
    return choose(means, key=means.__getitem__) if means else None


def _marks(pairs: Sequence[Paired], objectives: Sequence[Objective]) -> list[str]:
    """Mark the comparisons in which the first is better or worse, by Holm's correction."""
    adjusted = holm(np.array([paired.p for paired in pairs], dtype=np.float64))
    marks = []
    for paired, p, objective in zip(pairs, adjusted.tolist(), objectives, strict=True):
        is_same = paired.estimate == (1.0 if objective.is_ratio else 0.0)
        is_told = p <= ALPHA or (paired.test == "exact" and not is_same)
        marks.append((BETTER if objective.is_better(paired) else WORSE) if is_told else "")
    return marks
