"""Jockey's control loop: deadlines met, and tokens allocated (EuroSys 2012)."""

from __future__ import annotations

import math

import numpy as np

from sweep.questions.papers.figures import (
    Findings,
    Groups,
    Row,
    column,
    grouped,
    mean,
    means,
    published,
    ratio,
    share,
    sort_by_figure,
    with_metric,
    within,
)
from sweep.report.findings import Finding, FinishedSweep

MISSED = ("missed deadlines, %", "deadlines_missed", 100.0)
IMPACT = ("allocation above the oracle's, %", "allocation_above_oracle", 100.0)
INITIALISED = (
    "allocation above the oracle's, initialisation counted, %",
    "tokens_above_held",
    100.0,
)
OVER_MINIMUM = ("tokens over the minimum, %", "tokens_over_minimum", 100.0)
ABOVE = ("tokens above the oracle's, late runs included, %", "tokens_above_oracle", 100.0)
COMPLETION = ("completion, % of the deadline", "relative_finish", 100.0)
FIRST = ("first allocation", "tokens_first", 1.0)
"""Figures: title, metric and scale."""

ORDERS = (
    ("misses", MISSED, ("jockey", "max_allocation"), 1.0),
    ("misses", MISSED, ("jockey_static", "jockey"), 3.0),
    ("misses", MISSED, ("jockey_amdahl", "jockey"), 3.0),
    ("impact", IMPACT, ("jockey", "jockey_amdahl"), 1.0),
    ("impact", IMPACT, ("jockey_static", "jockey"), 1.0),
    ("impact", IMPACT, ("max_allocation", "jockey_static"), 1.0),
    ("impact", IMPACT, ("max_allocation", "jockey"), 1.0),
)
"""Expected order of policies: title, figure, pair, minimum ratio; 3 stands for "much more"."""


JOCKEY = "jockey"
PARTS = (
    ("simulator, Amdahl's law in its place", "jockey_amdahl", JOCKEY),
    ("simulator and control, all tokens in their place", "max_allocation", JOCKEY),
    ("control, the first allocation in its place", "jockey_with/static_dead_zone", JOCKEY),
    ("control and dead zone, as in Fig. 4", "jockey_static", JOCKEY),
    ("smoothing", "jockey_with/no_hysteresis", JOCKEY),
    ("smoothing and dead zone", "jockey_with/no_hysteresis_no_dead_zone", JOCKEY),
    ("slack", "jockey_with/no_slack", JOCKEY),
    ("dead zone", "jockey_with/no_dead_zone", JOCKEY),
    ("gate", "jockey_with/no_gate", JOCKEY),
    ("indicator, minstage in its place", "jockey_with/minstage", JOCKEY),
    ("indicator, CP in its place", "jockey_with/cp", JOCKEY),
    ("period of a minute, five in its place", "jockey_with/period_5_min", JOCKEY),
    ("spare tokens", "jockey_with/no_spare", JOCKEY),
    (
        "control and dead zone, both without spare tokens",
        "jockey_with/static_no_spare",
        "jockey_with/no_spare",
    ),
)
"""Parts of Jockey: name, the policy without it, and the policy with it."""


@sort_by_figure
def parts(finished: FinishedSweep) -> Findings:
    """Compute the effect of taking each part away, run by run, and each variant's own figures."""
    policies = grouped(finished.cells, "policy")
    for part, without, whole in PARTS:
        pairs = _match_runs(policies, without, whole)
        for title, metric in (
            ("missed deadlines without the part, less with it, points", MISSED[1]),
            ("tokens above the oracle's without the part, less with it, points", ABOVE[1]),
            ("completion without the part, less with it, % of the deadline", COMPLETION[1]),
        ):
            values = [100.0 * (a[metric] - b[metric]) for a, b in pairs]
            yield from mean(title, part, values)
    yield from _means(policies, MISSED, ABOVE)


def _match_runs(groups: Groups, *pair: str) -> list[tuple[Row, Row]]:
    """Match the cells of two groups by job and seed."""
    a, b = ({(row["trace.job"], row["seed"]): row for row in groups.get(n, ())} for n in pair)
    return [(a[run], b[run]) for run in sorted(a.keys() & b.keys())]


def fig4(finished: FinishedSweep) -> Findings:
    """Compute missed deadlines and impact by policy, and their order."""
    policies, runs = grouped(finished.cells, "policy"), published("jockey", "fig4", "runs")
    for policy, cells in policies.items():
        yield Finding("runs", policy, float(len(cells)), paper=runs, exact=True)
    yield from _means(policies, MISSED, IMPACT, paper="fig4")
    for figure in (INITIALISED, OVER_MINIMUM):
        groups = {policy: with_metric(cells, figure[1]) for policy, cells in policies.items()}
        yield from _means(groups, figure, paper="fig4")
    for title, (_, metric, scale), pair, at_least in ORDERS:
        label, ratios = " over ".join(pair), ratio(policies, pair, metric, scale)
        paper = published("jockey", "fig4", label)
        yield from mean("orders", f"{title}, {label}", ratios, paper=paper, at_least=at_least)


def fig5(finished: FinishedSweep) -> Findings:
    """Compute percentiles of completion by policy, and the lateness of the median late job."""
    for policy, cells in grouped(finished.cells, "policy").items():
        figure, ends = f"{policy}, {COMPLETION[0]}", column(cells, "relative_finish", 100.0)
        for p in (5, 25, 50, 75, 95):
            paper = published("jockey", "fig5", f"p{p}", policy)
            value = float(np.nanpercentile(ends, p))
            yield Finding(figure, f"{p}th percentile", value, paper=paper)
        late = [end - 100.0 for end in ends if end > 100.0]
        value = float(np.median(late)) if late else math.nan
        paper = published("jockey", "fig5", "late", policy)
        yield Finding(figure, "median late job, % late", value, paper=paper)


@sort_by_figure
def fig7(finished: FinishedSweep) -> Findings:
    """Compute the change of tokens with the deadline, its sign, and missed new deadlines."""
    for change, cells in grouped(finished.cells, "trace.change").items():
        tokens, missed = column(cells, "tokens_changed", 100.0), column(cells, MISSED[1])
        expected = {"at_least": 0.0} if change == "halve" else {"at_most": 0.0}
        paper = published("jockey", "fig7", "tokens_changed", change)
        yield from mean("change of the allocation, %", change, tokens, paper=paper, **expected)
        paper = published("jockey", "fig7", "deadlines_missed")
        yield from share(MISSED[0], change, missed, paper=paper, at_most=0.0)


def fig11(finished: FinishedSweep) -> Findings:
    """Compute deadlines met and tokens by policy, or by the swept constant (Figs. 11 to 13)."""
    groups, figure = grouped(finished.cells, "policy"), finished.config["experiment"].split("/")[1]
    for key in finished.config["swept"]:
        if key.startswith("policy."):
            groups = grouped(finished.cells, key, label=key.removeprefix("policy.") + " {}")
    for label, cells in groups.items():
        met, paper = column(cells, MISSED[1], -1.0), published("jockey", figure, MISSED[1], label)
        yield from share("deadlines met, %", label, [1.0 + value for value in met], paper=paper)
    for title, metric, scale, offset in (
        ("completion against the deadline, %", "relative_finish", 100.0, -100.0),
        (*IMPACT, 0.0),
        ("median allocation", "tokens_p50", 1.0, 0.0),
        (*FIRST, 0.0),
        ("largest allocation", "tokens_max", 1.0, 0.0),
        ("last allocation", "tokens_last", 1.0, 0.0),
        ("allocated, token hours", "token_hours", 1.0, 0.0),
    ):
        for label, cells in groups.items():
            values = [value + offset for value in column(cells, metric, scale)]
            paper = published("jockey", figure, metric, label)
            yield from mean(title, label, values, paper=paper)


def readings(finished: FinishedSweep) -> Findings:
    """Compute missed deadlines and impact for both readings of each open rule."""
    label = "{}, initialise={}"
    groups = grouped(finished.cells, "policy", "trace.initialise", label=label)
    yield from _means(groups, MISSED, IMPACT, INITIALISED, OVER_MINIMUM, COMPLETION)
    for initialise, cells in grouped(finished.cells, "trace.initialise").items():
        for reading, metric in (
            ("T is CPU time", IMPACT[1]),
            ("initialisation counted", INITIALISED[1]),
        ):
            order = "max_allocation over jockey"
            ratios = ratio(grouped(cells, "policy"), order.split(" over "), metric)
            paper = published("jockey", "fig4", order)
            yield from mean(
                f"impact, {order}", f"initialise={initialise}, {reading}", ratios, paper=paper
            )


WITHOUT_TOKEN = "without_token"
QUEUEING = {
    "jockey": {"at_most": 5.8},
    "jockey_static": {"at_least": 13.5, "at_most": 22.5},
}
"""Expected missed deadlines, %, where queueing holds no token (decision 56)."""


@sort_by_figure
def queueing(finished: FinishedSweep) -> Findings:
    """Compute missed deadlines and impact by reading of initialisation, and their expectations."""
    readings = grouped(finished.cells, "trace.initialise")
    for initialise, cells in readings.items():
        policies, is_judged = grouped(cells, "policy"), initialise == WITHOUT_TOKEN
        for policy, rows in policies.items():
            label = f"{policy}, initialise={initialise}"
            paper = published("jockey", "fig4", MISSED[1], policy)
            expected = QUEUEING.get(policy, {}) if is_judged else {}
            yield from share(MISSED[0], label, column(rows, MISSED[1]), paper=paper, **expected)
        for policy, rows in policies.items():
            label, is_jockey = f"{policy}, initialise={initialise}", policy == JOCKEY and is_judged
            for title, metric, scale in (IMPACT, INITIALISED, OVER_MINIMUM, COMPLETION):
                expected = within(35.0, 0.25) if is_jockey and metric == IMPACT[1] else {}
                values = column(with_metric(rows, metric), metric, scale)
                yield from mean(title, label, values, **expected)
        pair = ("jockey_static", JOCKEY)
        ratios = ratio(policies, pair, MISSED[1])
        label = f"misses, {' over '.join(pair)}, initialise={initialise}"
        yield from mean("orders", label, ratios, **({"at_least": 3.0} if is_judged else {}))


def runs(finished: FinishedSweep) -> Findings:
    """Compute missed deadlines and impact by the number of runs behind C(p, a)."""
    groups = grouped(finished.cells, "policy.runs", label="{} runs")
    return _means(groups, MISSED, IMPACT, COMPLETION, FIRST)


def trained(finished: FinishedSweep) -> Findings:
    """Compute missed deadlines and impact by training input, with a fallback and without."""
    keys = ("policy", "trace.like_inputs", "trace.largest_input")
    groups = grouped(finished.cells, *keys, label="{}, like_inputs={}, largest_input={}")
    return _means(groups, MISSED, IMPACT, COMPLETION)


def _means(groups: Groups, *figures: tuple[str, str, float], paper: str = "") -> Findings:
    for title, metric, scale in figures:
        if (title, metric, scale) == MISSED:
            for label, cells in groups.items():
                printed = published("jockey", paper, metric, label)
                yield from share(title, label, column(cells, metric), paper=printed)
        else:
            yield from means(title, groups, metric, scale, ("jockey", paper, metric))
