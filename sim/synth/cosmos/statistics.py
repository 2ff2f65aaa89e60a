"""What a synthesized month is like, by the figures that are published of the real one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import yaml
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from sim.base import maths
from sim.base.arrays import Mask
from sim.lineage.worth import BLIND
from sim.published import numbers
from sim.synth.cosmos.month import Month
from sim.synth.cosmos.requests import TOKENS, peak
from sim.synth.cosmos.workflows import WEEK_S

SHIFT_H = (1, 3, 6, 12)

_WITHIN = yaml.safe_load(Path(__file__).with_name("targets.yaml").read_text(encoding="utf-8"))
TARGETS: dict[str, tuple[float, float]] = {
    what: (numbers("wing")[section][key], within)
    for what, (section, key, within) in _WITHIN.items()
}
"""What is published, and how far off it may be."""
AT_LEAST: dict[str, float] = {
    "jobs in the largest component": numbers("wing")["components"]["largest"],
    "jobs in components of 10 or more": numbers("wing")["components"]["ten"],
    "templates a day apart or less": numbers("wing")["cosmos"]["daily_templates"],
}
"""Figures that are published as lower bounds."""


def statistics(month: Month) -> dict[str, float]:
    """Return every figure of `TARGETS` and `AT_LEAST`, of the jobs of the third week.

    Jobs of the other weeks count as what those depend on, or as what depends on them. Components
    are those of all four weeks.
    """
    m = month
    third = m.week(0, 1)
    recurring = m.recurring
    into = third[m.down]
    up, down = m.up[into], m.down[into]
    both = recurring[m.up] & recurring[m.down]
    crosses = m.organisation[m.up] != m.organisation[m.down]
    crossing = _marked(m, crosses)
    n_rec = int((third & recurring).sum())
    got = {
        "jobs a day / scale": float(third.sum()) / 7,
        "dependencies a job": len(up) / third.sum(),
        "recurring jobs": n_rec / third.sum(),
        "recurring dependencies": float(both[into].mean()),
        "blind, of recurring jobs": float((third & recurring & (m.mode == BLIND)).sum()) / n_rec,
        "jobs that depend on lower priority": _share(
            _reading(m, m.priority[m.up] < m.priority[m.down]), third
        ),
        "ad hoc jobs above the average recurring": _above(m, third),
        "cross-organisation dependencies": float(crosses[into].mean()),
        "jobs in cross-organisation dependencies": _share(crossing, third),
        "recurring jobs in cross-organisation dependencies": _share(crossing, third & recurring),
        "jobs that depend on another": _share(_reading(m, np.ones(len(m.up), dtype=bool)), third),
        "dependencies within a week": float((m.submit_s[down] - m.finish_s[up] < WEEK_S).mean()),
    }
    owners = np.unique(m.organisation)
    got["organisations with cross-organisation dependencies"] = float(
        np.isin(owners, m.organisation[crossing]).mean()
    )
    return got | _templates(m, both, crosses) | _components(m) | _shiftable(m) | _value(m)


def wanted_got(month: Month, scale: float) -> dict[str, list[float]]:
    """Return pairs of what is wanted and what came out, for every figure."""
    got = statistics(month)
    got["jobs a day / scale"] /= scale
    wanted = {k: t[0] for k, t in TARGETS.items()} | AT_LEAST
    return {key: [float(wanted[key]), float(got[key])] for key in wanted}


def _marked(m: Month, edges: Mask) -> Mask:
    marked = _reading(m, edges)
    marked[m.up[edges]] = True
    return marked


def _reading(m: Month, edges: Mask) -> Mask:
    reading = np.zeros(len(m.submit_s), dtype=bool)
    reading[m.down[edges]] = True
    return reading


def _share(of: Mask, among: Mask) -> float:
    return float((of & among).sum() / max(among.sum(), 1))


def _above(m: Month, third: Mask) -> float:
    n = len(m.shares)
    rec, single = third & m.recurring, third & ~m.recurring
    count = np.bincount(m.organisation[rec], minlength=n)
    mean = np.bincount(m.organisation[rec], m.priority[rec], n) / np.maximum(count, 1)
    return float((m.priority[single] > mean[m.organisation[single]]).mean())


def _templates(m: Month, both: Mask, crosses: Mask) -> dict[str, float]:
    n = int(m.program.max()) + 1
    up, down = m.program[m.up[both]], m.program[m.down[both]]
    pairs, at = np.unique(up * n + down, return_index=True)
    other = pairs // n != pairs % n
    above = m.priority[m.down[both]][at] > m.priority[m.up[both]][at]
    third = m.week(-2, 2) & m.recurring
    count = np.bincount(m.program[third], minlength=n)
    often = count[count > 0]
    return {
        "inverted templates": len(np.unique(pairs[above] // n)) / (count > 0).sum(),
        "cross-organisation template dependencies": float(crosses[both][at][other].mean()),
        "templates less than a week apart": float((often > 4).mean()),
        "templates a day apart or less": float((often >= 27).mean()),
    }


def _components(m: Month) -> dict[str, float]:
    n = len(m.submit_s)
    graph = coo_matrix((np.ones(len(m.up), dtype=np.int8), (m.up, m.down)), (n, n))
    label = connected_components(graph, directed=False)[1]
    size = np.bincount(label)
    return {
        "jobs in the largest component": float(size.max()) / n,
        "jobs in components of 10 or more": float(size[size >= 10].sum()) / n,
    }


def _shiftable(m: Month) -> dict[str, float]:
    """Return the jobs that are recurring, shorter than a time, and used no earlier than it."""
    used = np.full(len(m.submit_s), np.inf)
    np.minimum.at(used, m.up, m.submit_s[m.down])
    np.minimum.at(used, m.downloads.job, m.downloads.time_s)
    gap = used - m.finish_s
    third = m.week(0, 1)
    ok = third & m.recurring & np.isfinite(used)
    return {
        f"shiftable by {h} h": _share(ok & (gap > h * 3600.0) & (m.duration_s < h * 3600.0), third)
        for h in SHIFT_H
    }


def _value(m: Month) -> dict[str, float]:
    third = m.week(0, 1)
    value = np.bincount(m.downloads.job, m.downloads.n, len(m.submit_s))
    single = value[third & ~m.recurring].sum()
    ranked = np.sort(value[third])[::-1]
    rank = np.arange(len(ranked)) + 1.0
    high = ranked >= 10
    slope = maths.slope(maths.log(rank[high]), maths.log(ranked[high]))
    tokens = m.tokens.astype(np.float64)[third]
    return {
        "value of recurring over ad hoc": float(value[third & m.recurring].sum() / max(single, 1)),
        "Zipf exponent of local value": -slope,
        "peak of requests": peak(m.submit_s[third], m.duration_s[third], tokens) / TOKENS,
    }
