"""Turnaround gained by elastic jobs, beside the range that Zojer et al. (2026) published."""

from __future__ import annotations

from sweep.questions.papers.figures import (
    Findings,
    compare_seeds,
    grouped,
    mean,
    percent_reduction,
    published,
)
from sweep.report.findings import FinishedSweep

SHARE = "trace.transforms.stretch.share"
TURNAROUND = "jct_mean_s"


def shares(finished: FinishedSweep) -> Findings:
    """Compute the reduction of mean turnaround by share of elastic jobs, policy by policy.

    Each seed is compared with itself without elastic jobs. With all jobs elastic the best policy
    stands beside the published least and greatest reduction.
    """
    best: list[float] = []
    for policy, cells in grouped(finished.cells, "policy").items():
        by_share = grouped(cells, SHARE)
        rigid = next(iter(by_share))
        for share in [*by_share][1:]:
            gains = compare_seeds(by_share, (share, rigid), TURNAROUND, percent_reduction)
            figure = f"reduction of mean turnaround, %, {policy}"
            yield from mean(figure, f"share {share}", gains)
        if gains and sum(gains) > sum(best or [-float("inf")]):
            best = gains
    for end in ("least", "greatest"):
        yield from mean(
            "reduction with all jobs elastic, %, best policy",
            f"beside the {end} of the published",
            best,
            paper=published("elastic", "turnaround", end),
        )
