"""Greedy widths: the next place goes to the job that gains most by it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.elastic.shares import SLACK, Jobs, Widths
from policies.registry import register
from sim.base.arrays import F8, I8


@register("greedy_widths")
@dataclass(frozen=True)
class GreedyWidths(Widths):
    """Places go one by one to the job whose speed-up over its least width grows most by one more.

    The allocation of Pollux (Qiao et al., OSDI 2021) and Sia (Jayaram Subramanya et al., SOSP
    2023), which maximise the sum of normalised goodputs, without their models of goodput: the
    curves here are known. Of a curve that is not concave a later gain counts as no more than those
    before it.
    """

    def widths(self, jobs: Jobs, rows: I8, left: float) -> I8:
        """Return widths by the greatest gains for which there is room."""
        width = jobs.low[rows].copy()
        gains = [_gains(jobs, j) if jobs.is_elastic[j] else np.zeros(0) for j in rows.tolist()]
        owner = np.repeat(np.arange(len(rows)), [len(gain) for gain in gains])
        if len(owner) == 0:
            return width
        cost = jobs.cost[rows][owner]
        order = np.argsort(-np.concatenate(gains) / np.maximum(cost, SLACK), kind="stable")
        n = int(np.searchsorted(np.cumsum(cost[order]), left + SLACK, side="right"))
        width += np.bincount(owner[order[:n]], minlength=len(rows))
        return width


def _gains(jobs: Jobs, j: int) -> F8:
    """Return the gain of each further place of job `j` over its least width."""
    pace = jobs.pace(j)[int(jobs.low[j]) :]
    gains: F8 = np.minimum.accumulate(np.diff(pace) / pace[0])
    return gains
