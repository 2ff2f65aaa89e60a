"""GPU fragmentation and completion time of pods, by placement policy (ATC 2023)."""

from __future__ import annotations

from operator import truediv

from sweep.questions.papers.figures import (
    Findings,
    Groups,
    compare_seeds,
    grouped,
    mean,
    means,
    percent_reduction,
)
from sweep.report.findings import FinishedSweep

LABEL = "{}, {} of the machines"


def capacity(finished: FinishedSweep) -> Findings:
    """Compute the speed-up over best fit by machines, and the fragmentation of free GPUs."""
    figure = "mean completion time, times shorter than with best_fit"
    groups = grouped(finished.cells, "policy", "capacity", label=LABEL)
    for policy in ("fifo", "dot_product", "gpu_packing", "fgd"):
        for machines in sorted({row["capacity"] for row in finished.cells}):
            pair = (LABEL.format("best_fit", machines), LABEL.format(policy, machines))
            yield from mean(figure, pair[1], compare_seeds(groups, pair, "jct_mean_s", truediv))
    yield from _fragmentation(groups)


def fragmentation(finished: FinishedSweep) -> Findings:
    """Compute the GPUs left unallocated, their fragmentation, and the reduction with FGD."""
    policies, metric = grouped(finished.cells, "policy"), "devices_unallocated"
    yield from means("unallocated GPUs, %", policies, metric, 100.0)
    yield from _fragmentation(policies)
    figure = "unallocated GPUs, fewer with fgd, %"
    for policy in ("fifo", "best_fit", "dot_product", "gpu_packing"):
        fewer = compare_seeds(policies, ("fgd", policy), metric, percent_reduction)
        yield from mean(figure, f"than with {policy}", fewer, at_least=0.0)


def _fragmentation(groups: Groups) -> Findings:
    figure = "free GPUs of no use to the next pod, % (mean over arrivals)"
    return means(figure, groups, "fragmentation", 100.0)
