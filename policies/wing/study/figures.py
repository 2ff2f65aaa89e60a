"""Value attained by jobs, its prediction, and its distribution (Wing, OSDI 2020)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from policies.wing.evaluators.readers import METRIC_THRESHOLDS
from sweep.questions.papers.figures import (
    Findings,
    Groups,
    column,
    compare_seeds,
    grouped,
    match_seeds,
    mean,
    mean_ratio,
    means,
    published,
)
from sweep.report.agreement import distance
from sweep.report.findings import Finding, FinishedSweep

EXPONENTS = {
    "zipf_value": "exponent of local value",
    "zipf_agg_value": "exponent of aggregate value",
}
VALUES = {"value": "local value", "agg_value": "aggregate value"}
RANKS = (1, 10, 100, 1000, 10_000)
"""Ranks at which value is compared with Zipf's law."""

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
"""Schemes, and the schemes that they are compared with."""

ORACLES = ("wing_oracle/agg", "wing_oracle/direct")
"""Schemes that know the truth, of which the paper compares points (§7.2)."""

GAINS_FROM_LOGS = tuple(GAINS[i] for i in (1, 2, 4, 5))

SCARCE = 0.4
"""Largest capacity at which a scheme is expected to be at least as good as the other one."""


def fig2(finished: FinishedSweep) -> Findings:
    """Compute precision and recall of predicted readers by threshold, and the best threshold."""
    yield from _by_threshold(finished, "fig2", "precision %", "precision", 100.0)
    yield from _by_threshold(finished, "fig2", "recall %", "recall", 100.0)
    best, paper = column(finished.cells, "best_tr"), published("wing", "fig2", "best_tr")
    yield from mean("best threshold", "tr %", best, paper=paper)


def fig3(finished: FinishedSweep) -> Findings:
    """Compute the error of the predicted arrival of a job's first reader."""
    for figure, metric, scale in (
        ("error of time, root of mean square, h", "rmse_h", 1.0),
        ("error of time, median, min", "mae_min", 1.0),
        ("time within 20 %, jobs %", "within_20", 100.0),
        ("time over-estimated twofold or more, jobs %", "over_2x", 100.0),
    ):
        yield from _by_threshold(finished, "fig3", figure, metric, scale)


def _by_threshold(
    finished: FinishedSweep, source: str, figure: str, metric: str, scale: float
) -> Findings:
    for tr in METRIC_THRESHOLDS:
        paper = published("wing", source, metric, tr)
        values = column(finished.cells, f"{metric}_{tr}", scale)
        yield from mean(figure, f"tr = {tr} %", values, paper=paper)


def fig6(finished: FinishedSweep) -> Findings:
    """Compute the aggregate value by rounds, in percent of that of the most rounds.

    The figure's caption reads as the mean over jobs by rounds over the mean of all, and the text of
    §4.5.3 as the mean over jobs of each job's share: both are given.
    """
    rounds = grouped(finished.cells, "trace.rounds")
    papers = {n: published("wing", "fig6", n) for n in rounds}
    for n in rounds:
        shares = compare_seeds(rounds, (n, "9"), "agg_value_mean", lambda a, b: 100.0 * a / b)
        yield from mean("mean aggregate value found, %", f"{n} rounds", shares, paper=papers[n])
    for n in rounds:
        shares = [
            100.0 * _mean_share(finished.table(few), finished.table(all_rounds))
            for few, all_rounds in match_seeds(rounds, (n, "9"))
        ]
        figure = "share of a job's aggregate value found, mean over jobs, %"
        yield from mean(figure, f"{n} rounds", shares, paper=papers[n])


def _mean_share(few: pa.Table, all_rounds: pa.Table) -> float:
    """Return the mean of the shares of the jobs that have any value."""
    partial, value = (table["agg_value"].to_numpy() for table in (few, all_rounds))
    return float((partial[value > 0.0] / value[value > 0.0]).mean())


def fig8(finished: FinishedSweep) -> Findings:
    """Compare value at some ranks with Zipf's law, s = 1, from the most valued job on."""
    for metric, label in EXPONENTS.items():
        values = [row[metric] for row in finished.cells]
        paper = published("wing", "fig8", metric)
        yield Finding.from_seeds("all jobs of the week", label, values, paper=paper)
    tables = [finished.table(row) for row in finished.cells]
    for key, label in VALUES.items():
        ranked = [np.sort(table[key].to_numpy())[::-1] for table in tables]
        last = min(map(len, ranked))
        for rank in [r for r in RANKS if r < last] + [last]:
            ratios = [values[rank - 1] * rank / values[0] for values in ranked]
            yield Finding.from_seeds(f"{label} over Zipf's", f"rank {rank:,}", ratios)
        top = [100.0 * values[: len(values) // 100].sum() / values.sum() for values in ranked]
        yield Finding.from_seeds("value of the first 1 % of jobs, %", label, top)


def fig9(finished: FinishedSweep) -> Findings:
    """Compute the share of jobs with a good prediction of value over resource-time."""
    for metric, value in (("near_agg", "aggregate value"), ("near_own", "own value")):
        label = f"{value} over resource-time within 20 %, jobs %"
        shares, paper = column(finished.cells, metric, 100.0), published("wing", "fig9", metric)
        yield from mean("all jobs of the week", label, shares, paper=paper)


def fig10(finished: FinishedSweep) -> Findings:
    """Compute value attained and jobs failed, by capacity and scheme (Figs. 10 to 12)."""
    yield from _by_scheme(finished, scarce=SCARCE)


def adhoc(finished: FinishedSweep) -> Findings:
    """Compute the same as `fig10`, with recurring and ad hoc jobs apart (§7.1)."""
    yield from _by_scheme(finished, KINDS, SCARCE)


def hard(finished: FinishedSweep) -> Findings:
    """Compute the same for workloads without figures in the paper: nothing is expected."""
    yield from _by_scheme(finished)


def _by_scheme(
    finished: FinishedSweep, kinds: Sequence[str] = (), scarce: float = -math.inf
) -> Findings:
    """Compute value attained, jobs failed and points gained: none lost at `scarce` and below."""
    figure = finished.config["experiment"].rpartition("/")[2]
    for (capacity,), cells in finished.group_by("capacity").items():
        title, schemes = f"capacity {capacity:g}", grouped(cells, "policy")
        yield from _outcomes(title, schemes, figure, capacity)
        for kind in kinds:
            yield from means(f"{title}, {kind} %", schemes, kind, 100.0, ("wing", "kinds", kind))
        yield from _gains(title, schemes, GAINS, 0.0 if capacity <= scarce else -math.inf, figure)
        yield from _ratios(title, schemes, figure, capacity)
        yield from _claims(title, schemes, figure, capacity)


QUEUES = {"hard": "queues", "global": "one queue"}
FIGURES = {"hard": ("fig11", "fig10"), "global": ("fig12",)}
"""Figures of the paper with numbers for these queues; the first that has one is taken."""
SET = (("hard", 0.2, "value_attained", "wing_oracle/agg"),)
"""Numbers by which the workload was set, beside PRIO's (decision 20)."""


def passing(finished: FinishedSweep) -> Findings:
    """Compute Figs. 10 to 12 in strict order and with jobs that pass the head (decision 53)."""
    return _both_readings(finished, "policy.fit")


def important(finished: FinishedSweep) -> Findings:
    """Compute Figs. 10 to 12 with priorities that rank beside value or not (decision 60)."""
    return _both_readings(finished, "trace.priorities", with_prio=True)


def _both_readings(finished: FinishedSweep, option: str, *, with_prio: bool = False) -> Findings:
    """Compute Figs. 10 to 12 under each reading, a value of `option`, and how near each comes.

    PRIO's numbers, which set the workload, count in the distance `with_prio` alone.
    """
    keys = (option, "cluster.queues.mode", "capacity")
    distances: dict[str, list[float]] = {}
    for (reading, mode, capacity), cells in finished.group_by(*keys).items():
        title = f"{reading}, {QUEUES[mode]}, capacity {capacity:g}"
        schemes = grouped(cells, "policy")
        for outcome, metric in OUTCOMES.items():
            for scheme, rows in schemes.items():
                papers = [published("wing", f, metric, capacity, scheme) for f in FIGURES[mode]]
                paper = next(filter(None, papers), "")
                (row,) = mean(
                    f"{title}, {outcome}", scheme, column(rows, metric, 100.0), paper=paper
                )
                yield row
                is_set = (scheme == "priority" and not with_prio) or (
                    (mode, capacity, metric, scheme) in SET
                )
                if paper and not is_set and (mode, capacity) != ("global", 0.6):
                    distances.setdefault(reading, []).append(distance(row.ours, paper))
        yield from _gains(title, schemes, GAINS, source="")
        for pair in (("wing_agg", "priority"), ("wing_agg", "wing_direct")):
            yield from mean_ratio(
                f"{title}, value attained, ratio", schemes, pair, "value_attained"
            )
    for reading, values in distances.items():
        figure = f"mean distance to the paper, {len(values)} numbers, points"
        yield Finding(figure, reading, sum(values) / len(values))


def history(finished: FinishedSweep) -> Findings:
    """Compute the same by the policies' knowledge, and the cost of knowing only the logs."""
    for (history, capacity), cells in finished.group_by("trace.history", "capacity").items():
        title, schemes = f"{history}, capacity {capacity:g}", grouped(cells, "policy")
        yield from _outcomes(title, schemes)
        yield from _gains(title, schemes, GAINS_FROM_LOGS)
    for (capacity, policy), cells in finished.group_by("capacity", "policy").items():
        figure = f"capacity {capacity:g}, points of value, logs over truth"
        histories, pair = grouped(cells, "trace.history"), ("logs", "truth")
        yield from mean(figure, policy, compare_seeds(histories, pair, "value_attained", _points))


def rounds(finished: FinishedSweep) -> Findings:
    """Compute value attained and jobs failed by the reach of downstream value (§7.2)."""
    for (capacity,), cells in finished.group_by("capacity").items():
        title, groups = f"trace.rounds, capacity {capacity:g}", grouped(cells, "trace.rounds")
        attained, failed = (f"{title}, {outcome}" for outcome in OUTCOMES)
        yield from means(attained, groups, "value_attained", 100.0, ("wing", "rounds"))
        yield from means(failed, groups, "jobs_failed", 100.0)


def sensitivity(finished: FinishedSweep) -> Findings:
    """Compute value attained and jobs failed by errors in the values, and their cost (§7.2)."""
    for (capacity,), cells in finished.group_by("capacity").items():
        title, groups = f"policy.noise, capacity {capacity:g}", grouped(cells, "policy.noise")
        yield from _outcomes(title, groups)
        for noise in groups:
            if float(noise) > 1.0:
                gained = compare_seeds(groups, (noise, "1.0"), "value_attained", _points)
                figure, lost = f"{title}, points of value gained", [-points for points in gained]
                paper = published("wing", "noise", noise)
                yield from mean(figure, f"lost by noise {noise}", lost, paper=paper)


def _outcomes(title: str, groups: Groups, figure: str = "", *keys: object) -> Findings:
    """Compute value attained and jobs failed, beside the numbers of a figure of the paper."""
    for outcome, metric in OUTCOMES.items():
        paper = ("wing", figure, metric, *keys)
        yield from means(f"{title}, {outcome}", groups, metric, 100.0, paper)


def _ratios(title: str, schemes: Groups, source: str, capacity: float) -> Findings:
    """Compute the value that schemes attain over that of others, where the paper claims a gain."""
    for pair in GAINS:
        label = " over ".join(pair)
        if printed := published("wing", source, "value_ratio", capacity, label):
            figure = f"{title}, value attained, ratio"
            yield from mean_ratio(figure, schemes, pair, "value_attained", paper=printed)


def _claims(title: str, schemes: Groups, source: str, capacity: float) -> Findings:
    """Compute the points by which oracles differ, where the paper claims it."""
    for outcome, metric in OUTCOMES.items():
        if claim := published("wing", source, "claims", metric, capacity, " over ".join(ORACLES)):
            figure, label = f"{title}, {outcome}, points", " over ".join(ORACLES)
            points = compare_seeds(schemes, ORACLES, metric, _points)
            yield from mean(figure, label, points, paper=claim)


def _gains(
    title: str,
    schemes: Groups,
    pairs: Sequence[tuple[str, str]],
    at_least: float = -math.inf,
    source: str = "",
) -> Findings:
    """Compute the points of value that schemes gain on others."""
    for pair in pairs:
        figure, label = f"{title}, points of value gained", " over ".join(pair)
        points = compare_seeds(schemes, pair, "value_attained", _points)
        paper = published("wing", source, "points", title.removeprefix("capacity "), label)
        yield from mean(figure, label, points, paper=paper, at_least=at_least)


def _points(a: float, b: float) -> float:
    return 100.0 * (a - b)
