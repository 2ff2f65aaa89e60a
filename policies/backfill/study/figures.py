"""Backfilling, compared with the results that its authors published (Gaussier et al., SC 2015)."""

from __future__ import annotations

from itertools import pairwise

from sweep.questions.papers.figures import Findings, grouped, mean, means, ratio
from sweep.report.findings import FinishedSweep

WORST_TO_BEST = ("fifo", "conservative", "easy", "backfill/easy_sjf")
SLOWDOWN = "bounded_slowdown_mean"


def kth(finished: FinishedSweep) -> Findings:
    """Compute mean bounded slowdown and completion time by policy, and ratios of neighbours.

    No policy and no seed draws anything: all are exact.
    """
    policies, paper = grouped(finished.cells, "policy"), ("backfill", "kth")
    figure = "mean bounded slowdown"
    yield from means(figure, policies, SLOWDOWN, paper=(*paper, "bounded_slowdown"), exact=True)
    yield from means(
        "mean completion time, s", policies, "jct_mean_s", paper=(*paper, "jct_s"), exact=True
    )
    for pair in pairwise(WORST_TO_BEST):
        ratios = ratio(policies, pair, SLOWDOWN)
        yield from mean(f"{figure}, ratio", " over ".join(pair), ratios, at_least=1.0, exact=True)
