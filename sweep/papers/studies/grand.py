"""All policies on all workloads: which is best where, by how much, and how far from the bound."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np

from sweep.papers.figures import Findings, Row
from sweep.papers.studies.ranks import geometric
from sweep.report.findings import Finding, FinishedSweep

Where = tuple[str, float]

BESTS: tuple[tuple[str, str, Callable[[Iterable[float]], float], float], ...] = (
    ("mean JCT, s", "jct_mean_s", min, 1.0),
    ("99th percentile of JCT, s", "jct_p99_s", min, 1.0),
    ("median gap to the lower bound, %", "gap_lb_p50", min, 100.0),
    ("value attained, %", "value_attained", max, 100.0),
    ("deadlines missed, %", "deadlines_missed", min, 100.0),
)
"""What is shown of each workload: title, metric, which is best, and its scale."""

MOST_NAMED = 4


def ranking(finished: FinishedSweep) -> Findings:
    """Give each policy's speed-up over the baseline on average, and the best of each workload.

    The average is the geometric mean over the workloads of mean JCT under the baseline over mean
    JCT under the policy, of those on which both have a mean; its interval is Student's, of the
    logarithms, over workloads. On each workload the figures are means over seeds, and policies that
    come out the same are named together.
    """
    baseline = finished.config["baseline"]
    means = _means(finished)
    capacities = sorted({capacity for (_, capacity) in means})
    for capacity in capacities:
        title = f"capacity {capacity:g}, speed-up of mean JCT over {baseline}"
        of = {trace: policies for (trace, at), policies in means.items() if at == capacity}
        for policy in dict.fromkeys(name for policies in of.values() for name in policies):
            logs = [
                math.log(policies[baseline]["jct_mean_s"] / policies[policy]["jct_mean_s"])
                for policies in of.values()
                if policy in policies and baseline in policies
            ]
            logs = [log for log in logs if math.isfinite(log)]
            yield geometric(title, policy, logs)
    for title, metric, best, scale in BESTS:
        for (trace, capacity), policies in means.items():
            known = {name: row for name, row in policies.items() if row[metric] == row[metric]}
            values = {name: row[metric] for name, row in known.items()}
            if len(set(values.values())) < 2:
                continue  # it does not apply, or says nothing
            top = best(values.values())
            names = _named([name for name, value in values.items() if value == top])
            yield Finding(f"best {title}", f"{trace}, {capacity:g}: {names}", scale * top)


def _named(policies: list[str]) -> str:
    shown = ", ".join(policies[:MOST_NAMED])
    more = len(policies) - MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _means(finished: FinishedSweep) -> dict[Where, dict[str, Row]]:
    """Average every metric shown over seeds, by workload and capacity, and by policy."""
    means: dict[Where, dict[str, Row]] = defaultdict(dict)
    for (trace, capacity, policy), rows in finished.group_by("trace", "capacity", "policy").items():
        values = {m: [row[m] for row in rows if row.get(m) is not None] for _, m, _, _ in BESTS}
        means[trace, capacity][policy] = {
            metric: float(np.mean(of)) if of else math.nan for metric, of in values.items()
        }
    return means
