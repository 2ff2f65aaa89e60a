"""Ranks and gains of policies on synthesized jobs, compared with real jobs held out of the fit.

The rules are those of docs/synthetic.md.
"""

from __future__ import annotations

import math

import numpy as np

from sim.base.arrays import F8
from sweep.questions.papers.figures import Findings, sort_by_figure
from sweep.questions.papers.studies.ranks import geometric, order_kept, taus
from sweep.report.findings import Finding, FinishedSweep

HALF = "trace.transforms.half.part"
HELD_OUT, FITTED, SYNTHETIC = "second", "first", "made"
METRIC = "jct_mean_s"
MAX_TAU_LOSS, MAX_ERROR_RATIO = 0.1, 1.5
"""Accepted loss of tau, and ratio of (log) errors of gains, against those between real halves."""


@sort_by_figure
def ranking(finished: FinishedSweep) -> Findings:
    """Compare ranks, the order of clear pairs, and gains over the baseline, by capacity."""
    baseline = finished.config["baseline"]
    for (capacity,), cells in finished.group_by("capacity").items():
        names = list(dict.fromkeys(row["policy"] for row in cells))
        seeds = sorted({row["seed"] for row in cells})
        jct = {
            half: np.full((len(names), len(seeds)), np.nan)
            for half in (HELD_OUT, FITTED, SYNTHETIC)
        }
        for row in cells:
            jct[row[HALF]][names.index(row["policy"]), seeds.index(row["seed"])] = row[METRIC]
        group = f"{len(names)} policies, capacity {capacity:g}"
        yield from _taus(jct, group)
        yield order_kept(jct[HELD_OUT], jct[SYNTHETIC], group)
        yield from _errors(jct, names.index(baseline), group)
        yield from _gains(jct, names, names.index(baseline), f"capacity {capacity:g}")


def _taus(jct: dict[str, F8], group: str) -> Findings:
    tau = {half: taus(jct[HELD_OUT], jct[half]) for half in (FITTED, SYNTHETIC)}
    losses = [a - b for a, b in zip(tau[FITTED], tau[SYNTHETIC], strict=True)]
    title = "Kendall's tau of mean JCT"
    yield Finding.from_seeds(title, f"synthesized against held-out half, {group}", tau[SYNTHETIC])
    yield Finding.from_seeds(title, f"two real halves, {group}", tau[FITTED])
    yield Finding.from_seeds(title, f"loss by synthesis, {group}", losses, at_most=MAX_TAU_LOSS)


def _log_errors(jct: dict[str, F8], base: int) -> dict[str, F8]:
    """Return the logarithm of each gain over that on the held-out half, by policy and seed."""
    gain = {half: np.log(values[base] / values) for half, values in jct.items()}
    return {half: gain[half] - gain[HELD_OUT] for half in (FITTED, SYNTHETIC)}


def _errors(jct: dict[str, F8], base: int, group: str) -> Findings:
    """Compute the error factor of gains, averaged over policies (geometric mean)."""
    log_errors = _log_errors(jct, base).items()
    off = {half: np.abs(np.delete(errors, base, 0)).mean(0) for half, errors in log_errors}
    title = "error factor of gains over the baseline"
    limit = round(math.exp(MAX_ERROR_RATIO * float(off[FITTED].mean())), 3)
    yield geometric(
        title, f"synthesized against held-out half, {group}", off[SYNTHETIC].tolist(), at_most=limit
    )
    yield geometric(title, f"two real halves, {group}", off[FITTED].tolist())


def _gains(jct: dict[str, F8], names: list[str], base: int, group: str) -> Findings:
    title = f"gain on synthesized over gain on held-out jobs, {group}"
    for name, logs in zip(names, _log_errors(jct, base)[SYNTHETIC], strict=True):
        if name != names[base]:
            yield geometric(title, name, logs.tolist())
