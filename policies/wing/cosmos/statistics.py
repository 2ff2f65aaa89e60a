"""Statistics of a synthesized month, and the published figures as targets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import yaml
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from policies.wing.cosmos.month import Month, aggregate_downloads
from policies.wing.cosmos.priorities import group_ranks
from policies.wing.cosmos.requests import TOKENS, peak_tokens
from policies.wing.cosmos.workflows import WEEK_S
from policies.wing.lineage.worth import BLIND
from sim.base import maths
from sim.base.arrays import F8, I8, Mask
from sim.published import numbers

SHIFT_H = (1, 3, 6, 12)

_IMPORTANT = numbers("wing")["important"]
_TOLERANCES = yaml.safe_load(Path(__file__).with_name("targets.yaml").read_text(encoding="utf-8"))
TARGETS: dict[str, tuple[float, float]] = {
    name: (numbers("wing")[section][key], tolerance)
    for name, (section, key, tolerance) in _TOLERANCES.items()
}
"""Published figures and absolute tolerances."""
BY_VALUE: dict[str, tuple[float, float]] = {
    "important templates whose priority ranks as their value": (
        _IMPORTANT["n_within"] / _IMPORTANT["templates"],
        0.1,
    ),
    "important templates whose priority ranks half a queue lower": (
        _IMPORTANT["n_below"] / _IMPORTANT["templates"],
        0.03,
    ),
}
"""The same of a month with ``priorities="by_value"``. One of six ranks up to 11 points higher by
priority, which is no target: by value most rank among the highest 5 %."""
AT_LEAST: dict[str, float] = {
    "jobs in the largest component": numbers("wing")["components"]["largest"],
    "jobs in components of 10 or more": numbers("wing")["components"]["ten"],
    "templates a day apart or less": numbers("wing")["cosmos"]["daily_templates"],
}
"""Figures that are published as lower bounds."""


def statistics(month: Month) -> dict[str, float]:
    """Return every figure of `TARGETS` and `AT_LEAST`, of the jobs of the third week.

    Jobs of the other weeks count only as upstream or downstream of these. Components are those of
    all four weeks.
    """
    m = month
    third = m.week(0, 1)
    recurring = m.recurring
    into = third[m.down]
    up, down = m.up[into], m.down[into]
    recurring_edges = recurring[m.up] & recurring[m.down]
    crosses = m.organisation[m.up] != m.organisation[m.down]
    crossing = _endpoints(m, crosses)
    n_rec = int((third & recurring).sum())
    figures = {
        "jobs a day / scale": float(third.sum()) / 7,
        "dependencies a job": len(up) / third.sum(),
        "recurring jobs": n_rec / third.sum(),
        "recurring dependencies": float(recurring_edges[into].mean()),
        "blind, of recurring jobs": float((third & recurring & (m.mode == BLIND)).sum()) / n_rec,
        "jobs that depend on lower priority": _share(
            _readers(m, m.priority[m.up] < m.priority[m.down]), third
        ),
        "ad hoc jobs above the average recurring": _share_above_mean(m, third),
        "cross-organisation dependencies": float(crosses[into].mean()),
        "jobs in cross-organisation dependencies": _share(crossing, third),
        "recurring jobs in cross-organisation dependencies": _share(crossing, third & recurring),
        "jobs that depend on another": _share(_readers(m, np.ones(len(m.up), dtype=bool)), third),
        "dependencies within a week": float((m.submit_s[down] - m.finish_s[up] < WEEK_S).mean()),
    }
    owners = np.unique(m.organisation)
    figures["organisations with cross-organisation dependencies"] = float(
        np.isin(owners, m.organisation[crossing]).mean()
    )
    return (
        figures
        | _templates(m, recurring_edges, crosses)
        | _components(m)
        | _shiftable(m)
        | _value(m)
    )


def important_templates(month: Month) -> dict[str, float]:
    """Return every figure of `BY_VALUE`, of the most valued programs of the third week (§4.3)."""
    m = month
    value = aggregate_downloads(m.downloads, m.up, m.down, len(m.submit_s))
    week = m.week(0, 1)
    runs = week & m.recurring

    def mean_rank(values: F8, group: I8) -> F8:
        rank = np.zeros(len(values))
        rank[week] = group_ranks(values[week], group[week])
        count = np.bincount(m.program[runs])
        mean = np.bincount(m.program[runs], rank[runs]) / np.maximum(count, 1)
        return np.where(count > 0, mean, 0.0)

    top = mean_rank(value, np.zeros(len(value), dtype=np.int64)) >= 1 - _IMPORTANT["top"]
    lower = (mean_rank(value, m.organisation) - mean_rank(m.priority, m.organisation))[top]
    is_below = np.abs(lower - _IMPORTANT["below"]) <= 2 * _IMPORTANT["within"]
    is_within = np.abs(lower) <= _IMPORTANT["within"]
    return dict(zip(BY_VALUE, (float(is_within.mean()), float(is_below.mean())), strict=True))


def target_pairs(month: Month, scale: float, *, by_value: bool = False) -> dict[str, list[float]]:
    """Return a pair of target and actual value for every figure."""
    actual = statistics(month)
    actual["jobs a day / scale"] /= scale
    target = {k: t[0] for k, t in TARGETS.items()} | AT_LEAST
    if by_value:
        actual |= important_templates(month)
        target |= {k: t[0] for k, t in BY_VALUE.items()}
    return {key: [float(target[key]), float(actual[key])] for key in target}


def _endpoints(m: Month, edges: Mask) -> Mask:
    jobs = _readers(m, edges)
    jobs[m.up[edges]] = True
    return jobs


def _readers(m: Month, edges: Mask) -> Mask:
    readers = np.zeros(len(m.submit_s), dtype=bool)
    readers[m.down[edges]] = True
    return readers


def _share(jobs: Mask, among: Mask) -> float:
    return float((jobs & among).sum() / max(among.sum(), 1))


def _share_above_mean(m: Month, third: Mask) -> float:
    n = len(m.shares)
    recurring, ad_hoc = third & m.recurring, third & ~m.recurring
    count = np.bincount(m.organisation[recurring], minlength=n)
    mean = np.bincount(m.organisation[recurring], m.priority[recurring], n) / np.maximum(count, 1)
    return float((m.priority[ad_hoc] > mean[m.organisation[ad_hoc]]).mean())


def _templates(m: Month, recurring_edges: Mask, crosses: Mask) -> dict[str, float]:
    n = int(m.program.max()) + 1
    up, down = m.program[m.up[recurring_edges]], m.program[m.down[recurring_edges]]
    pairs, row = np.unique(up * n + down, return_index=True)
    other = pairs // n != pairs % n
    above = m.priority[m.down[recurring_edges]][row] > m.priority[m.up[recurring_edges]][row]
    third = m.week(-2, 2) & m.recurring
    count = np.bincount(m.program[third], minlength=n)
    n_runs = count[count > 0]
    return {
        "inverted templates": len(np.unique(pairs[above] // n)) / (count > 0).sum(),
        "cross-organisation template dependencies": float(
            crosses[recurring_edges][row][other].mean()
        ),
        "templates less than a week apart": float((n_runs > 4).mean()),
        "templates a day apart or less": float((n_runs >= 27).mean()),
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
    """Return shares of jobs that are recurring, shorter than h hours, and unused for as long."""
    used = np.full(len(m.submit_s), np.inf)
    np.minimum.at(used, m.up, m.submit_s[m.down])
    np.minimum.at(used, m.downloads.job, m.downloads.time_s)
    gap = used - m.finish_s
    third = m.week(0, 1)
    is_used = third & m.recurring & np.isfinite(used)
    return {
        f"shiftable by {h} h": _share(
            is_used & (gap > h * 3600.0) & (m.duration_s < h * 3600.0), third
        )
        for h in SHIFT_H
    }


def _value(m: Month) -> dict[str, float]:
    third = m.week(0, 1)
    value = np.bincount(m.downloads.job, m.downloads.n, len(m.submit_s))
    ad_hoc_value = value[third & ~m.recurring].sum()
    ranked = np.sort(value[third])[::-1]
    rank = np.arange(len(ranked)) + 1.0
    high = ranked >= 10
    slope = maths.slope(maths.log(rank[high]), maths.log(ranked[high]))
    tokens = m.tokens.astype(np.float64)[third]
    return {
        "value of recurring over ad hoc": float(
            value[third & m.recurring].sum() / max(ad_hoc_value, 1)
        ),
        "Zipf exponent of local value": -slope,
        "peak of requests": peak_tokens(m.submit_s[third], m.duration_s[third], tokens) / TOKENS,
    }
