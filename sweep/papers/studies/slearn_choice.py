"""What estimates of jobs unlike their history err by: what free parameters are chosen by.

Of the paper's figures these are only of errors: percentiles of 3Sigma's (Jajoo et al., NSDI 2022,
§4.3), and how many wide jobs are in a wrong queue (Table 7). How long jobs take is not looked at.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from sweep.papers.studies.slearn_jobs import HISTORY, PAPER, errors, right_queue
from sweep.papers.studies.slearn_speedups import PRESETS
from sweep.report.findings import Finding, Finished

NAMES = ("error %, P50", "error %, P90", "right queue %")


def find(finished: Finished) -> list[Finding]:
    """Average errors over seeds, choice by choice, and say how far they are from the paper's.

    The distance is the sum of the three logarithms of ours over the paper's, of the jobs in a wrong
    queue for the third.
    """
    found = []
    for (trace, recurring, stale), cells in _choices(finished).items():
        rows = [_numbers(finished.table(row)) for row in cells]
        figure = f"{PRESETS[trace]}: recurring {recurring:g}, stale {stale[0]:g} and {stale[1]:g}"
        values = {name: [row[name] for row in rows] for name in NAMES}
        paper = {name: PAPER[trace, HISTORY, name] for name in NAMES}
        found += [Finding.of(figure, name, values[name], paper=paper[name]) for name in NAMES]
        means = {name: float(np.mean(values[name])) for name in NAMES}
        wanted = {name: float(text) for name, text in paper.items()}
        found.append(Finding(figure, "distance", distance(means, wanted)))
    return found


def distance(ours: dict[str, float], paper: dict[str, float]) -> float:
    """Return how far three figures are from the paper's, 0 for not at all."""
    total = 0.0
    for name in NAMES:
        a, b = ours[name], paper[name]
        if name == "right queue %":
            a, b = 100.0 - a, 100.0 - b
        total += abs(math.log(a / b))
    return total


def _numbers(table: Any) -> dict[str, float]:
    jobs = {name: table[name].to_numpy() for name in table.column_names}
    return {**errors(jobs), **right_queue(jobs)}


def _choices(finished: Finished) -> dict[tuple[str, float, tuple[float, float]], list[Any]]:
    groups: dict[tuple[str, float, tuple[float, float]], list[Any]] = {}
    for row in finished.cells:
        share, mean = json.loads(row["trace.stale"])
        key = (row["trace"], float(row["trace.recurring"]), (float(share), float(mean)))
        groups.setdefault(key, []).append(row)
    return groups
