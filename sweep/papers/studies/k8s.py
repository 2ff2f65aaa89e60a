"""GPUs that nobody can use, and how soon pods end, by how they are placed (ATC 2023)."""

from __future__ import annotations

from operator import truediv

from sweep.papers.figures import Findings, Groups, grouped, mean, means, paired, percent_less
from sweep.report.findings import FinishedSweep

PLACED = "{}, {} of the machines"


def capacity(finished: FinishedSweep) -> Findings:
    """Give how many times sooner pods end than with best fit, and what is of no use to them."""
    figure = "mean completion time, times shorter than with best_fit"
    groups = grouped(finished.cells, "policy", "capacity", label=PLACED)
    for policy in ("fifo", "dot_product", "gpu_packing", "fgd"):
        for machines in sorted({row["capacity"] for row in finished.cells}):
            pair = (PLACED.format("best_fit", machines), PLACED.format(policy, machines))
            yield from mean(figure, pair[1], paired(groups, pair, "jct_mean_s", truediv))
    yield from _fragmentation(groups)


def fragmentation(finished: FinishedSweep) -> Findings:
    """Give how many GPUs are left over and of no use, and how many fewer with FGD."""
    policies, metric = grouped(finished.cells, "policy"), "devices_unallocated"
    yield from means("unallocated GPUs, %", policies, metric, 100.0)
    yield from _fragmentation(policies)
    figure = "unallocated GPUs, fewer with fgd, %"
    for policy in ("fifo", "best_fit", "dot_product", "gpu_packing"):
        fewer = paired(policies, ("fgd", policy), metric, percent_less)
        yield from mean(figure, f"than with {policy}", fewer, at_least=0.0)


def _fragmentation(groups: Groups) -> Findings:
    figure = "free GPUs of no use to the next pod, % (mean over arrivals)"
    return means(figure, groups, "fragmentation", 100.0)
