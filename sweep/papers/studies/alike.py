"""Whether policies rank and gain on synthesized jobs as on real ones that the fit has not seen.

The rules are those of docs/synthetic.md.
"""

from __future__ import annotations

import math

import numpy as np

from sim.base.arrays import F8
from sweep.papers.studies.ranks import geometric, pairs_kept, taus
from sweep.report.findings import Finding, Finished

WHICH = "trace.knobs.half.which"
HELD, OTHER, MADE = "second", "first", "made"
METRIC = "jct_mean_s"
LOSS, TIMES = 0.1, 1.5
"""By how much tau may be less than between real halves, and how many times as far gains be off."""


def ranking(finished: Finished) -> list[Finding]:
    """Compare ranks, the order of clear pairs, and gains over the baseline, by capacity."""
    baseline = finished.config["baseline"]
    parts: tuple[list[Finding], ...] = ([], [], [], [])
    for (capacity,), cells in finished.by("capacity").items():
        names = list(dict.fromkeys(row["policy"] for row in cells))
        seeds = sorted({row["seed"] for row in cells})
        jct = {which: np.full((len(names), len(seeds)), np.nan) for which in (HELD, OTHER, MADE)}
        for row in cells:
            jct[row[WHICH]][names.index(row["policy"]), seeds.index(row["seed"])] = row[METRIC]
        where = f"{len(names)} policies, capacity {capacity:g}"
        for part, findings in zip(
            parts,
            (
                _taus(jct, where),
                [pairs_kept(jct[HELD], jct[MADE], where)],
                _errors(jct, names.index(baseline), where),
                _gains(jct, names, names.index(baseline), f"capacity {capacity:g}"),
            ),
            strict=True,
        ):
            part.extend(findings)
    return [finding for part in parts for finding in part]


def _taus(jct: dict[str, F8], where: str) -> list[Finding]:
    tau = {which: taus(jct[HELD], jct[which]) for which in (OTHER, MADE)}
    lost = [other - made for other, made in zip(tau[OTHER], tau[MADE], strict=True)]
    title = "Kendall's tau of mean JCT"
    return [
        Finding.of(title, f"synthesized and held, {where}", tau[MADE]),
        Finding.of(title, f"the two real halves, {where}", tau[OTHER]),
        Finding.of(title, f"lost by synthesizing, {where}", lost, at_most=LOSS),
    ]


def _logs(jct: dict[str, F8], base: int) -> dict[str, F8]:
    """Return the logarithm of each gain over that on the held half, by policy and seed."""
    gain = {which: np.log(of[base] / of) for which, of in jct.items()}
    return {which: gain[which] - gain[HELD] for which in (OTHER, MADE)}


def _errors(jct: dict[str, F8], base: int, where: str) -> list[Finding]:
    """Give by what factor gains are off on average over policies (geometric mean)."""
    off = {which: np.abs(np.delete(of, base, 0)).mean(0) for which, of in _logs(jct, base).items()}
    title = "gains over the baseline are off by a factor of"
    most = round(math.exp(TIMES * float(off[OTHER].mean())), 3)
    return [
        geometric(title, f"synthesized and held, {where}", off[MADE].tolist(), at_most=most),
        geometric(title, f"the two real halves, {where}", off[OTHER].tolist()),
    ]


def _gains(jct: dict[str, F8], names: list[str], base: int, where: str) -> list[Finding]:
    title = f"gain on the synthesized over gain on the held, {where}"
    logs = _logs(jct, base)[MADE]
    return [
        geometric(title, name, logs[at].tolist()) for at, name in enumerate(names) if at != base
    ]
