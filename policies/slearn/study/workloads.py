"""SLearn's workloads and formulas, and results of its authors' simulator (NSDI 2022)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from sweep.questions.papers.figures import (
    Findings,
    column,
    grouped,
    mean,
    published,
    ratio,
    with_metric,
    within,
)
from sweep.report.findings import FinishedSweep

DAYS_3, DAYS_7, DAYS_14, SPACE = (
    (f"{name}_p50", f"{name}_p90")
    for name in ("over_time_3d", "over_time_7d", "over_time_14d", "over_space")
)
LOAD = ("load_average", "load_p50", "load_p90")
SHORT = (*DAYS_3, *SPACE, *LOAD, "thin")
LONG = (*DAYS_3, *SPACE, *LOAD, *DAYS_7, *DAYS_14, "thin")
TWO_SIGMA = (*DAYS_14, *SPACE, *LOAD, *DAYS_3, *DAYS_7, "thin")
WALLS = (*DAYS_3, *SPACE, *DAYS_7, *DAYS_14)

GOOGLE = "slearn_google2011"
REAL, AUTHORS = "Google 2011, own trace", "the authors' workload, made of Google 2011"
WORKLOADS: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    "slearn_2sigma": ("2Sigma", "slearn_2sigma", TWO_SIGMA, LOAD),
    GOOGLE: ("Google 2011", GOOGLE, LONG, ()),
    "slearn_google2019": ("Google 2019", "slearn_google2019", LONG, (*SPACE, *LOAD)),
    f"{GOOGLE}_real": (f"{REAL}, 9.8 hours of tasks", GOOGLE, SHORT, ()),
    f"{GOOGLE}_walls": (f"{REAL}, wall times of jobs over 29 days", GOOGLE, WALLS, ()),
    "slearn_authors": (AUTHORS, GOOGLE, SHORT, ()),
}
"""Of each trace: its title, the paper's trace that it stands for, the metrics, and those that are
fitted to the paper's number."""

AS_CODE = ("fifo", "oracle_code", "slearn_code", "las_code", "threesigma_code", "point_code")
AS_PAPER = ("oracle", "slearn", "las", "threesigma", "point")
"""Policies of the authors' simulator by its own rules, and by the paper's."""

TOLERANCE = 0.01
"""Of the authors' rules, as a fraction: they are meant to be the same (decision 31)."""

BEST_TO_WORST = ("oracle_code", "slearn_code", "las_code", "threesigma_code", "point_code", "fifo")
VARIANTS = "code_variants/"
"""Presets of the authors' code with one rule changed: its policy and the rule follow."""


def table4(finished: FinishedSweep) -> Findings:
    """Compute the variation of jobs over time and space, and the load (Tables 4 and 5)."""
    traces = grouped(finished.cells, "trace")
    for trace, (figure, like, names, fitted) in WORKLOADS.items():
        for name in names:
            values = column(with_metric(traces.get(trace, []), name), name)
            paper = published("slearn", "table5" if name in LOAD else "table4", like, name)
            expected = within(float(paper), 0.1) if name in fitted else {}
            yield from mean(figure, name.replace("_", " "), values, paper=paper, **expected)


def analysis(finished: FinishedSweep) -> Findings:
    """Compute errors of estimates beside the variances by formula, and wrong orders (§4.1)."""
    estimators, keys = (
        ("history", "samples", "posterior"),
        ("evaluator.sd_tasks", "evaluator.samples"),
    )
    for figure, cells in grouped(finished.cells, *keys, label="σ₁ {:g}, {} samples").items():
        for name in estimators:
            variance = float(cells[0][f"variance_{name}"])
            label, values = f"{name}, mean squared error, s²", column(cells, f"mse_{name}")
            expected = within(variance, 0.01)
            yield from mean(figure, label, values, paper=f"{variance:.4g}", **expected)
        for name in estimators:
            wrong = column(cells, f"wrong_{name}", 100.0)
            yield from mean(figure, f"{name}, wrong order %", wrong)


def authors(finished: FinishedSweep) -> Findings:
    """Compare mean completion times, and ratios of them, with those of the authors' simulator."""
    policies, metric = grouped(finished.cells, "policy"), "jct_mean_s"
    for rules, presets in (("authors' code", AS_CODE), ("paper", AS_PAPER)):
        figure = f"mean completion time, s, by the rules of the {rules}"
        for policy in presets:
            jct_s = column(policies.get(policy, []), metric)
            paper = published("slearn", "authors", policy.removesuffix("_code"))
            expected = within(float(paper), TOLERANCE) if presets is AS_CODE else {}
            yield from mean(figure, policy, jct_s, paper=paper, **expected)
    paper = published("slearn", "fig6", GOOGLE, "threesigma")
    ratios: list[tuple[str, str, dict[str, Any]]] = [
        ("threesigma_code", "slearn_code", {"paper": paper, **within(float(paper), TOLERANCE)}),
        ("threesigma", "slearn", {"paper": paper}),
        *((worse, better, {"at_least": 1.0}) for better, worse in pairwise(BEST_TO_WORST)),
    ]
    for slow, fast, fields in ratios:
        values = ratio(policies, (slow, fast), metric)
        yield from mean("mean completion times, ratio", f"{slow} over {fast}", values, **fields)
    figure = "one rule changed, mean completion time over that of the code's preset"
    for policy in policies:
        if policy.startswith(VARIANTS):
            base, _, rule = policy.removeprefix(VARIANTS).partition("_")
            values = ratio(policies, (policy, f"{base}_code"), metric)
            yield from mean(figure, f"{base}_code, {rule.replace('_', ' ')}", values)
