"""All policies on all workloads: speed-ups, the best of each workload, gaps to the lower bound."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np

from sweep.questions.papers.figures import Findings, Row
from sweep.questions.papers.studies.ranks import geometric
from sweep.report.findings import Finding, FinishedSweep

TraceAtCapacity = tuple[str, float]

BESTS: tuple[tuple[str, str, Callable[[Iterable[float]], float], float], ...] = (
    ("mean JCT, s", "jct_mean_s", min, 1.0),
    ("99th percentile of JCT, s", "jct_p99_s", min, 1.0),
    ("median gap to the lower bound, %", "gap_lb_p50", min, 100.0),
    ("value attained, %", "value_attained", max, 100.0),
    ("deadlines missed, %", "deadlines_missed", min, 100.0),
)
"""Figures of each workload: title, metric, function that selects the best value, scale."""

MAX_NAMES = 4


def ranking(finished: FinishedSweep) -> Findings:
    """Compute each policy's mean speed-up over the baseline, and the best of each workload.

    A speed-up is mean JCT under the baseline over mean JCT under the policy. The average is the
    geometric mean over the workloads on which both have a mean; its interval is Student's, of the
    logarithms, over workloads. On each workload the figures are means over seeds; policies with
    equal values are named together.
    """
    baseline = finished.config["baseline"]
    means = _means(finished)
    capacities = sorted({capacity for (_, capacity) in means})
    for capacity in capacities:
        title = f"capacity {capacity:g}, speed-up of mean JCT over {baseline}"
        traces = [policies for (_, other), policies in means.items() if other == capacity]
        for policy in dict.fromkeys(name for policies in traces for name in policies):
            logs = [
                math.log(policies[baseline]["jct_mean_s"] / policies[policy]["jct_mean_s"])
                for policies in traces
                if policy in policies and baseline in policies
            ]
            logs = [log for log in logs if math.isfinite(log)]
            yield geometric(title, policy, logs)
    for title, metric, best, scale in BESTS:
        for (trace, capacity), policies in means.items():
            values = {n: row[metric] for n, row in policies.items() if row[metric] == row[metric]}
            if len(set(values.values())) < 2:
                continue  # not applicable, or equal for all policies
            top = best(values.values())
            names = _join([name for name, value in values.items() if value == top])
            yield Finding(f"best {title}", f"{trace}, {capacity:g}: {names}", scale * top)


def _join(policies: list[str]) -> str:
    names = ", ".join(policies[:MAX_NAMES])
    n_more = len(policies) - MAX_NAMES
    return f"{names} and {n_more} more" if n_more > 0 else names


def _means(finished: FinishedSweep) -> dict[TraceAtCapacity, dict[str, Row]]:
    """Average every metric shown over seeds, by workload and capacity, and by policy."""
    means: dict[TraceAtCapacity, dict[str, Row]] = defaultdict(dict)
    for (trace, capacity, policy), rows in finished.group_by("trace", "capacity", "policy").items():
        values = {m: [row[m] for row in rows if row.get(m) is not None] for _, m, _, _ in BESTS}
        means[trace, capacity][policy] = {
            metric: float(np.mean(column)) if column else math.nan
            for metric, column in values.items()
        }
    return means
