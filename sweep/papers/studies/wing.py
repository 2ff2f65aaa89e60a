"""Value that jobs attain, what it is foretold from, and how it is spread (Wing, OSDI 2020)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sim.evaluators.readers import METRIC_THRESHOLDS
from sweep.papers.figures import (
    Findings,
    Groups,
    column,
    grouped,
    mean,
    means,
    paired,
    printed,
)
from sweep.report.findings import Finding, FinishedSweep

EXPONENTS = {
    "zipf_value": "exponent of local value",
    "zipf_agg_value": "exponent of aggregate value",
}
VALUES = {"value": "local value", "agg_value": "aggregate value"}
RANKS = (1, 10, 100, 1000, 10_000)
"""Ranks at which value is shown beside Zipf's."""

OUTCOMES = {"value attained %": "value_attained", "jobs failed %": "jobs_failed"}
KINDS = [
    f"{metric}_{kind}"
    for metric in ("jobs_failed", "value_attained", "value_of")
    for kind in ("ad_hoc", "recurring")
]
GAINS = (
    ("wing_agg", "wing_mil"),
    ("wing_agg", "wing_direct"),
    ("wing_agg", "priority"),
    ("wing_direct", "priority"),
    ("wing_dep", "wing_agg"),
    ("wing_oracle/agg", "wing_agg"),
)
"""Schemes, and those that they are compared with."""

GAINS_FROM_LOGS = tuple(GAINS[at] for at in (1, 2, 4, 5))

SCARCE = 0.4
"""The capacity from which on down a scheme is not to be behind what it is compared with."""


def fig2(finished: FinishedSweep) -> Findings:
    """Give how many of the jobs that are foretold to have readers have, and the reverse."""
    yield from _by_threshold(finished, "fig2", "precision %", "precision", 100.0)
    yield from _by_threshold(finished, "fig2", "recall %", "recall", 100.0)
    best, paper = column(finished.cells, "best_tr"), printed("wing", "fig2", "best_tr")
    yield from mean("best threshold", "tr %", best, paper=paper)


def fig3(finished: FinishedSweep) -> Findings:
    """Give how far off it is foretold when a job's first reader comes."""
    for figure, metric, scale in (
        ("error of time, root of mean square, h", "rmse_h", 1.0),
        ("error of time, median, min", "mae_min", 1.0),
        ("time within 20 %, jobs %", "within_20", 100.0),
        ("time over-estimated twofold or more, jobs %", "over_2x", 100.0),
    ):
        yield from _by_threshold(finished, "fig3", figure, metric, scale)


def _by_threshold(
    finished: FinishedSweep, of: str, figure: str, metric: str, scale: float
) -> Findings:
    for tr in METRIC_THRESHOLDS:
        paper = printed("wing", of, metric, tr)
        foretold = column(finished.cells, f"{metric}_{tr}", scale)
        yield from mean(figure, f"tr = {tr} %", foretold, paper=paper)


def fig6(finished: FinishedSweep) -> Findings:
    """Give the mean aggregate value that so many rounds find, of what the most find."""
    rounds = grouped(finished.cells, "trace.rounds")
    for n in rounds:
        part = paired(rounds, (n, "9"), "agg_value_mean", lambda a, b: 100.0 * a / b)
        figure, paper = "mean aggregate value found, %", printed("wing", "fig6", n)
        yield from mean(figure, f"{n} rounds", part, paper=paper)


def fig8(finished: FinishedSweep) -> Findings:
    """Show value at some ranks, beside what the most valued job's falls to by Zipf's law, s = 1."""
    for metric, what in EXPONENTS.items():
        values = [row[metric] for row in finished.cells]
        paper = printed("wing", "fig8", metric)
        yield Finding.from_seeds("all jobs of the week", what, values, paper=paper)
    tables = [finished.table(row) for row in finished.cells]
    for key, what in VALUES.items():
        ranked = [np.sort(table[key].to_numpy())[::-1] for table in tables]
        least = min(map(len, ranked))
        for rank in [r for r in RANKS if r < least] + [least]:
            part = [of[rank - 1] * rank / of[0] for of in ranked]
            yield Finding.from_seeds(f"{what} over Zipf's", f"rank {rank:,}", part)
        top = [100.0 * of[: len(of) // 100].sum() / of.sum() for of in ranked]
        yield Finding.from_seeds("value of the first 1 % of jobs, %", what, top)


def fig9(finished: FinishedSweep) -> Findings:
    """Give how many jobs' value over resource-time is foretold well."""
    for metric, value in (("near_agg", "aggregate value"), ("near_own", "own value")):
        what = f"{value} over resource-time within 20 %, jobs %"
        near, paper = column(finished.cells, metric, 100.0), printed("wing", "fig9", metric)
        yield from mean("all jobs of the week", what, near, paper=paper)


def fig10(finished: FinishedSweep) -> Findings:
    """Give what becomes of value and jobs, by capacity and scheme (Figs. 10 to 12)."""
    yield from _by_scheme(finished, scarce=SCARCE)


def adhoc(finished: FinishedSweep) -> Findings:
    """Do the same, with recurring and ad hoc jobs apart (§7.1)."""
    yield from _by_scheme(finished, KINDS, SCARCE)


def hard(finished: FinishedSweep) -> Findings:
    """Do the same of workloads of which the paper has no figures, so that nothing is wanted."""
    yield from _by_scheme(finished)


def _by_scheme(
    finished: FinishedSweep, kinds: Sequence[str] = (), scarce: float = -math.inf
) -> Findings:
    """Give value attained and jobs failed, and points gained: none lost from `scarce` on down."""
    figure = finished.config["experiment"].rpartition("/")[2]
    for (capacity,), cells in finished.group_by("capacity").items():
        where, schemes = f"capacity {capacity:g}", grouped(cells, "policy")
        yield from _outcomes(where, schemes, figure, capacity)
        for kind in kinds:
            yield from means(f"{where}, {kind} %", schemes, kind, 100.0, ("wing", "kinds", kind))
        yield from _gains(where, schemes, GAINS, 0.0 if capacity <= scarce else -math.inf)


def history(finished: FinishedSweep) -> Findings:
    """Do the same by what policies know, and give what it costs to know what logs tell alone."""
    for (known, capacity), cells in finished.group_by("trace.history", "capacity").items():
        where, schemes = f"{known}, capacity {capacity:g}", grouped(cells, "policy")
        yield from _outcomes(where, schemes)
        yield from _gains(where, schemes, GAINS_FROM_LOGS)
    for (capacity, policy), cells in finished.group_by("capacity", "policy").items():
        figure = f"capacity {capacity:g}, points of value, logs over truth"
        both, pair = grouped(cells, "trace.history"), ("logs", "truth")
        yield from mean(figure, policy, paired(both, pair, "value_attained", _points))


def rounds(finished: FinishedSweep) -> Findings:
    """Give what becomes of value and jobs by how far downstream value is counted (§7.2)."""
    for (capacity,), cells in finished.group_by("capacity").items():
        where, groups = f"trace.rounds, capacity {capacity:g}", grouped(cells, "trace.rounds")
        attained, failed = (f"{where}, {title}" for title in OUTCOMES)
        yield from means(attained, groups, "value_attained", 100.0, ("wing", "rounds"))
        yield from means(failed, groups, "jobs_failed", 100.0)


def sensitivity(finished: FinishedSweep) -> Findings:
    """Give what becomes of value and jobs by errors in the values, and what they cost (§7.2)."""
    for (capacity,), cells in finished.group_by("capacity").items():
        where, groups = f"policy.noise, capacity {capacity:g}", grouped(cells, "policy.noise")
        yield from _outcomes(where, groups)
        for noise in groups:
            if float(noise) > 1.0:
                gained = paired(groups, (noise, "1.0"), "value_attained", _points)
                figure, lost = f"{where}, points of value gained", [-points for points in gained]
                paper = printed("wing", "noise", noise)
                yield from mean(figure, f"lost by noise {noise}", lost, paper=paper)


def _outcomes(where: str, groups: Groups, figure: str = "", *at: object) -> Findings:
    """Give value attained and jobs failed, beside what stands there in a figure of the paper."""
    for title, metric in OUTCOMES.items():
        paper = ("wing", figure, metric, *at)
        yield from means(f"{where}, {title}", groups, metric, 100.0, paper)


def _gains(
    where: str, schemes: Groups, pairs: Sequence[tuple[str, str]], at_least: float = -math.inf
) -> Findings:
    """Give the points of value that schemes gain on others."""
    for pair in pairs:
        figure, what = f"{where}, points of value gained", " over ".join(pair)
        points = paired(schemes, pair, "value_attained", _points)
        yield from mean(figure, what, points, at_least=at_least)


def _points(a: float, b: float) -> float:
    return 100.0 * (a - b)
