"""Whether policies rank and gain on synthesized jobs as on real ones that the fit has not seen.

The rules are those of docs/synthetic.md.
"""

from __future__ import annotations

import math

import numpy as np

from sim.base.arrays import F8
from sweep.papers.figures import Findings, together
from sweep.papers.studies.ranks import geometric, pairs_kept, taus
from sweep.report.findings import Finding, FinishedSweep

WHICH = "trace.transforms.half.part"
HELD, OTHER, MADE = "second", "first", "made"
METRIC = "jct_mean_s"
LOSS, TIMES = 0.1, 1.5
"""By how much tau may be less than between real halves, and how many times as far gains be off."""


@together
def ranking(finished: FinishedSweep) -> Findings:
    """Compare ranks, the order of clear pairs, and gains over the baseline, by capacity."""
    baseline = finished.config["baseline"]
    for (capacity,), cells in finished.group_by("capacity").items():
        names = list(dict.fromkeys(row["policy"] for row in cells))
        seeds = sorted({row["seed"] for row in cells})
        jct = {which: np.full((len(names), len(seeds)), np.nan) for which in (HELD, OTHER, MADE)}
        for row in cells:
            jct[row[WHICH]][names.index(row["policy"]), seeds.index(row["seed"])] = row[METRIC]
        where = f"{len(names)} policies, capacity {capacity:g}"
        yield from _taus(jct, where)
        yield pairs_kept(jct[HELD], jct[MADE], where)
        yield from _errors(jct, names.index(baseline), where)
        yield from _gains(jct, names, names.index(baseline), f"capacity {capacity:g}")


def _taus(jct: dict[str, F8], where: str) -> Findings:
    tau = {which: taus(jct[HELD], jct[which]) for which in (OTHER, MADE)}
    lost = [other - made for other, made in zip(tau[OTHER], tau[MADE], strict=True)]
    title = "Kendall's tau of mean JCT"
    yield Finding.from_seeds(title, f"synthesized and held, {where}", tau[MADE])
    yield Finding.from_seeds(title, f"the two real halves, {where}", tau[OTHER])
    yield Finding.from_seeds(title, f"lost by synthesizing, {where}", lost, at_most=LOSS)


def _logs(jct: dict[str, F8], base: int) -> dict[str, F8]:
    """Return the logarithm of each gain over that on the held half, by policy and seed."""
    gain = {which: np.log(of[base] / of) for which, of in jct.items()}
    return {which: gain[which] - gain[HELD] for which in (OTHER, MADE)}


def _errors(jct: dict[str, F8], base: int, where: str) -> Findings:
    """Give by what factor gains are off on average over policies (geometric mean)."""
    off = {which: np.abs(np.delete(of, base, 0)).mean(0) for which, of in _logs(jct, base).items()}
    title = "gains over the baseline are off by a factor of"
    most = round(math.exp(TIMES * float(off[OTHER].mean())), 3)
    yield geometric(title, f"synthesized and held, {where}", off[MADE].tolist(), at_most=most)
    yield geometric(title, f"the two real halves, {where}", off[OTHER].tolist())


def _gains(jct: dict[str, F8], names: list[str], base: int, where: str) -> Findings:
    title = f"gain on the synthesized over gain on the held, {where}"
    for name, logs in zip(names, _logs(jct, base)[MADE], strict=True):
        if name != names[base]:
            yield geometric(title, name, logs.tolist())
