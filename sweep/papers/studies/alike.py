"""Whether policies rank and gain on synthesized jobs as on real ones that the fit has not seen.

The rules are those of docs/synthetic.md.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from sim.base.arrays import F8
from sweep.report.findings import Finding, Finished
from sweep.stats import interval

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
                [_pairs_kept(jct, where)],
                _errors(jct, names.index(baseline), where),
                _gains(jct, names, names.index(baseline), f"capacity {capacity:g}"),
            ),
            strict=True,
        ):
            part.extend(findings)
    return [finding for part in parts for finding in part]


def _taus(jct: dict[str, F8], where: str) -> list[Finding]:
    from scipy.stats import kendalltau  # half a second to import

    tau = {
        which: [float(kendalltau(*both).statistic) for both in zip(jct[HELD].T, of.T, strict=True)]
        for which, of in jct.items()
        if which != HELD
    }
    lost = [other - made for other, made in zip(tau[OTHER], tau[MADE], strict=True)]
    title = "Kendall's tau of mean JCT"
    return [
        Finding.of(title, f"synthesized and held, {where}", tau[MADE]),
        Finding.of(title, f"the two real halves, {where}", tau[OTHER]),
        Finding.of(title, f"lost by synthesizing, {where}", lost, at_most=LOSS),
    ]


def _pairs_kept(jct: dict[str, F8], where: str) -> Finding:
    kept = []
    for a, b in combinations(range(len(jct[HELD])), 2):
        difference = jct[HELD][a] - jct[HELD][b]
        _, low, high = interval(difference)
        if low > 0 or high < 0:
            made = float((jct[MADE][a] - jct[MADE][b]).mean())
            kept.append(float(made * difference.mean() > 0))
    share = float(np.mean(kept)) if kept else math.nan
    return Finding("clearly different pairs in order", f"{where}, {len(kept)} pairs", share)


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
        _exponential(title, f"synthesized and held, {where}", off[MADE], most),
        _exponential(title, f"the two real halves, {where}", off[OTHER]),
    ]


def _gains(jct: dict[str, F8], names: list[str], base: int, where: str) -> list[Finding]:
    title = f"gain on the synthesized over gain on the held, {where}"
    logs = _logs(jct, base)[MADE]
    return [_exponential(title, name, logs[at]) for at, name in enumerate(names) if at != base]


def _exponential(title: str, what: str, logs: F8, at_most: float = math.inf) -> Finding:
    one = Finding.of(title, what, logs.tolist())
    return Finding(
        title, what, math.exp(one.ours), math.exp(one.low), math.exp(one.high), at_most=at_most
    )
