"""Objectives by which two policies are compared on a workload, and marks of the comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from policies.wserpt.study.fields import BETTER, LEVEL, MAYBE_BETTER, MAYBE_WORSE, WORSE
from sweep.questions.papers.figures import Groups, Row, column, with_metric
from sweep.stats import ALPHA, Paired, difference, holm, ratio

OURS = "wserpt"
"""The policy that joins the five systems; ``wserpt_without/PART`` takes a part away,
``wserpt_with/PART`` puts one in the place of another."""
WITHOUT, WITH = f"{OURS}_without/", f"{OURS}_with/"
TUNED = "tuned/"
"""Prefix of the options of policies whose settings were chosen on development seeds."""
MEAN, P99, VALUE, MISSED = "jct_mean_s", "jct_p99_s", "value_attained", "deadlines_missed"


@dataclass(frozen=True)
class Objective:
    """An objective: a metric, as a column of the tables."""

    name: str
    unit: str
    metric: str
    tolerance: float  # two policies are level up to this fraction, or else difference
    more: bool = False  # more is better
    scale: float = 1.0
    is_ratio: bool = False  # two policies compare by ratio, else by difference

    @property
    def title(self) -> str:
        """Name and unit."""
        return f"{self.name}, {self.unit}" if self.unit else self.name

    @property
    def level(self) -> float:
        """Value of a comparison of equals."""
        return 1.0 if self.is_ratio else 0.0

    def tolerance_text(self) -> str:
        """Write the tolerance with its unit."""
        if self.is_ratio:
            return f"{100 * self.tolerance:g} %"
        points = f" point{'s' * (self.tolerance != 1)}" if self.unit == "%" else ""
        return f"{self.tolerance:g}{points}"

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
        return paired.estimate > self.level if self.more else paired.estimate < self.level

    def mark(self, paired: Paired, adjusted: float, tolerance: float) -> str:
        """Mark a comparison: level, told apart from that, or neither (an empty text).

        Level takes precedence: both ends of the interval are within the tolerance. Better or worse
        holds after Holm's correction (`adjusted` is that p), or *maybe*, if the interval alone
        leaves out the level.
        """
        ends = (paired.low, paired.high)
        if self.is_ratio:
            is_level = all(1 / (1 + tolerance) <= end <= 1 + tolerance for end in ends)
        else:
            is_level = all(abs(end) <= tolerance for end in ends)
        if is_level:
            return LEVEL
        is_better = self.is_better(paired)
        if adjusted <= ALPHA or paired.test == "exact":
            return BETTER if is_better else WORSE
        if paired.low > self.level or paired.high < self.level:
            return MAYBE_BETTER if is_better else MAYBE_WORSE
        return ""


OBJECTIVES = (
    Objective("mean JCT", "s", MEAN, 0.05, is_ratio=True),
    Objective("p99 of JCT", "s", P99, 0.1, is_ratio=True),
    Objective("value", "%", VALUE, 1.0, more=True, scale=100.0),
    Objective("deadlines missed", "%", MISSED, 2.0, scale=100.0),
    Objective("utility", "", "utility", 0.02, more=True),
    Objective("gap to the bound", "%", "gap_lb_p50", 5.0, scale=100.0),
)
BY_METRIC = {objective.metric: objective for objective in OBJECTIVES}


def marks(
    pairs: Sequence[Paired], objectives: Sequence[Objective], *, tolerant: bool = True
) -> list[str]:
    """Mark comparisons (`Objective.mark`), with Holm's correction over all of them."""
    adjusted = holm(np.array([paired.p for paired in pairs], dtype=np.float64)).tolist()
    return [
        objective.mark(paired, p, objective.tolerance if tolerant else 0.0)
        for paired, p, objective in zip(pairs, adjusted, objectives, strict=True)
    ]


def rivals(policies: Groups) -> list[str]:
    """Return the policies that can be run, without our own parts."""
    return [
        name
        for name, cells in policies.items()
        if not name.startswith((WITHOUT, WITH)) and not any(row.get("is_oracle") for row in cells)
    ]


def best(objective: Objective, policies: Groups, also_equal: bool = False) -> str | None:
    """Return the best runnable policy besides ours by its mean; None if all are equal."""
    means = {
        name: float(np.mean(values))
        for name in rivals(policies)
        if (values := objective.values(policies[name]))
    }
    if len(set(means.values())) < 2 and not also_equal:
        return None
    means.pop(OURS, None)
    choose: Callable[..., str] = max if objective.more else min
    return choose(means, key=means.__getitem__) if means else None
