"""Jockey's control loop: deadlines met, and the tokens that it takes (EuroSys 2012)."""

from __future__ import annotations

import math

import numpy as np

from sweep.papers.figures import (
    Findings,
    Groups,
    column,
    grouped,
    known,
    mean,
    means,
    printed,
    ratio,
    together,
)
from sweep.report.findings import Finding, FinishedSweep

MISSED = ("missed deadlines, %", "deadlines_missed", 100.0)
IMPACT = ("allocation above the oracle's, %", "allocation_above_oracle", 100.0)
HELD = ("the same, initialisation counted, %", "tokens_above_held", 100.0)
LEAST = ("tokens over the minimum, %", "tokens_over_minimum", 100.0)
COMPLETION = ("completion, % of the deadline", "relative_finish", 100.0)
FIRST = ("first allocation", "tokens_first", 1.0)
"""Figures: their title, their metric and what that is multiplied by."""

ORDERS = (
    ("misses", MISSED, ("jockey", "max_allocation"), 1.0),
    ("misses", MISSED, ("jockey_static", "jockey"), 3.0),
    ("misses", MISSED, ("jockey_amdahl", "jockey"), 3.0),
    ("impact", IMPACT, ("jockey", "jockey_amdahl"), 1.0),
    ("impact", IMPACT, ("jockey_static", "jockey"), 1.0),
    ("impact", IMPACT, ("max_allocation", "jockey_static"), 1.0),
    ("impact", IMPACT, ("max_allocation", "jockey"), 1.0),
)
"""Least ratio of one policy to another; three times is much more."""


def fig4(finished: FinishedSweep) -> Findings:
    """Give missed deadlines and impact by policy, and their order."""
    policies, runs = grouped(finished.cells, "policy"), printed("jockey", "fig4", "runs")
    for policy, cells in policies.items():
        yield Finding("runs", policy, float(len(cells)), paper=runs)
    yield from _means(policies, MISSED, IMPACT, paper="fig4")
    for figure in (HELD, LEAST):
        groups = {policy: known(cells, figure[1]) for policy, cells in policies.items()}
        yield from _means(groups, figure, paper="fig4")
    for title, (_, metric, scale), pair, at_least in ORDERS:
        what, times = " over ".join(pair), ratio(policies, pair, metric, scale)
        paper = printed("jockey", "fig4", what)
        yield from mean("orders", f"{title}, {what}", times, paper=paper, at_least=at_least)


def fig5(finished: FinishedSweep) -> Findings:
    """Give percentiles of completion by policy, and how late the median late job is."""
    for policy, cells in grouped(finished.cells, "policy").items():
        figure, ends = f"{policy}, {COMPLETION[0]}", column(cells, "relative_finish", 100.0)
        for p in (5, 25, 50, 75, 95):
            paper = printed("jockey", "fig5", f"p{p}", policy)
            value = float(np.nanpercentile(ends, p))
            yield Finding(figure, f"{p}th percentile", value, paper=paper)
        late = [end - 100.0 for end in ends if end > 100.0]
        value = float(np.median(late)) if late else math.nan
        paper = printed("jockey", "fig5", "late", policy)
        yield Finding(figure, "median late job, % late", value, paper=paper)


@together
def fig7(finished: FinishedSweep) -> Findings:
    """Give how tokens change with the deadline, the right way, and whether new ones are met."""
    for change, cells in grouped(finished.cells, "trace.change").items():
        tokens, missed = (column(cells, of, 100.0) for of in ("tokens_changed", "deadlines_missed"))
        wanted = {"at_least": 0.0} if change == "halve" else {"at_most": 0.0}
        paper = printed("jockey", "fig7", "tokens_changed", change)
        yield from mean("change of the allocation, %", change, tokens, paper=paper, **wanted)
        paper = printed("jockey", "fig7", "deadlines_missed")
        yield from mean(MISSED[0], change, missed, paper=paper, at_most=0.0)


def fig11(finished: FinishedSweep) -> Findings:
    """Give deadlines met and tokens by policy, or the constant that is swept (Figs. 11 to 13)."""
    groups = grouped(finished.cells, "policy")
    for key in finished.config["swept"]:
        if key.startswith("policy."):
            groups = grouped(finished.cells, key, label=key.removeprefix("policy.") + " {}")
    for title, metric, scale, plus in (
        ("deadlines met, %", "deadlines_missed", -100.0, 100.0),
        ("completion against the deadline, %", "relative_finish", 100.0, -100.0),
        (*IMPACT, 0.0),
        ("median allocation", "tokens_p50", 1.0, 0.0),
        (*FIRST, 0.0),
        ("largest allocation", "tokens_max", 1.0, 0.0),
        ("last allocation", "tokens_last", 1.0, 0.0),
        ("allocated, token hours", "token_hours", 1.0, 0.0),
    ):
        for what, cells in groups.items():
            of = [value + plus for value in column(cells, metric, scale)]
            yield from mean(title, what, of, paper=printed("jockey", "fig11", what, metric))


def readings(finished: FinishedSweep) -> Findings:
    """Give missed deadlines and impact where the paper is read one way and the other."""
    label = "{}, initialise={}"
    groups = grouped(finished.cells, "policy", "trace.initialise", label=label)
    yield from _means(groups, MISSED, IMPACT, HELD, LEAST, COMPLETION)
    for initialise, cells in grouped(finished.cells, "trace.initialise").items():
        for how, metric in (("T is CPU time", IMPACT[1]), ("initialisation counted", HELD[1])):
            order = "max_allocation over jockey"
            times = ratio(grouped(cells, "policy"), order.split(" over "), metric)
            paper = printed("jockey", "fig4", order)
            yield from mean(
                f"impact, {order}", f"initialise={initialise}, {how}", times, paper=paper
            )


def runs(finished: FinishedSweep) -> Findings:
    """Give missed deadlines and impact by how many runs C(p, a) is made of."""
    groups = grouped(finished.cells, "policy.runs", label="{} runs")
    return _means(groups, MISSED, IMPACT, COMPLETION, FIRST)


def trained(finished: FinishedSweep) -> Findings:
    """Give missed deadlines and impact by what Jockey is trained on, with a fallback or without."""
    keys = ("policy", "trace.like_inputs", "trace.largest_input")
    groups = grouped(finished.cells, *keys, label="{}, like_inputs={}, largest_input={}")
    return _means(groups, MISSED, IMPACT, COMPLETION)


def _means(groups: Groups, *figures: tuple[str, str, float], paper: str = "") -> Findings:
    for title, metric, scale in figures:
        yield from means(title, groups, metric, scale, ("jockey", paper, metric))
