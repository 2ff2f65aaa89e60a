"""SLearn's workloads and formulas, and what its authors' simulator gives (NSDI 2022)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from sweep.papers.figures import Findings, column, grouped, known, mean, near, printed, ratio
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
OWN, MADE = "Google 2011, own trace", "the authors' workload, made of Google 2011"
WORKLOADS: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    "slearn_2sigma": ("2Sigma", "slearn_2sigma", TWO_SIGMA, LOAD),
    GOOGLE: ("Google 2011", GOOGLE, LONG, ()),
    "slearn_google2019": ("Google 2019", "slearn_google2019", LONG, (*SPACE, *LOAD)),
    f"{GOOGLE}_real": (f"{OWN}, 9.8 hours of tasks", GOOGLE, SHORT, ()),
    f"{GOOGLE}_walls": (f"{OWN}, wall times of jobs over 29 days", GOOGLE, WALLS, ()),
    "slearn_authors": (MADE, GOOGLE, SHORT, ()),
}
"""Of each trace its title, the paper's trace that it is like, what is shown, and what of that is
fitted to the paper's own number."""

AS_CODE = {"fifo": 0.01, "oracle_code": 0.01, "slearn_code": 0.04, "las_code": 0.03}
AS_CODE |= {"threesigma_code": 0.05, "point_code": 0.05}
AS_PAPER = {"oracle": 0.01, "slearn": 0.04, "las": 0.03, "threesigma": None, "point": None}
"""Tolerance beside a policy of the authors' simulator, as a fraction of it."""

BEST_TO_WORST = ("oracle_code", "slearn_code", "las_code", "threesigma_code", "point_code", "fifo")
VARIANTS = "code_variants/"
"""Presets of the authors' code with one rule changed: its policy and the rule follow."""


def table4(finished: FinishedSweep) -> Findings:
    """Give how much jobs vary over time and space, and the load (Tables 4 and 5)."""
    traces = grouped(finished.cells, "trace")
    for trace, (figure, like, names, fitted) in WORKLOADS.items():
        for name in names:
            of = column(known(traces.get(trace, []), name), name)
            paper = printed("slearn", "table5" if name in LOAD else "table4", like, name)
            wanted = near(float(paper), 0.1) if name in fitted else {}
            yield from mean(figure, name.replace("_", " "), of, paper=paper, **wanted)


def analysis(finished: FinishedSweep) -> Findings:
    """Give errors of estimates beside the variances by formula, and wrong orders (§4.1)."""
    estimators, keys = (
        ("history", "samples", "posterior"),
        ("evaluator.sd_tasks", "evaluator.samples"),
    )
    for figure, cells in grouped(finished.cells, *keys, label="σ₁ {:g}, {} samples").items():
        for name in estimators:
            variance = float(cells[0][f"variance_{name}"])
            what, of = f"{name}, mean squared error, s²", column(cells, f"mse_{name}")
            yield from mean(figure, what, of, paper=f"{variance:.4g}", **near(variance, 0.01))
        for name in estimators:
            wrong = column(cells, f"wrong_{name}", 100.0)
            yield from mean(figure, f"{name}, wrong order %", wrong)


def authors(finished: FinishedSweep) -> Findings:
    """Give mean completion times beside those of the authors' simulator, and ratios of them."""
    policies, metric = grouped(finished.cells, "policy"), "jct_mean_s"
    for whose, presets in (("code", AS_CODE), ("paper", AS_PAPER)):
        figure = f"mean completion time, s, as the {whose} has it"
        for policy, part in presets.items():
            jct_s = column(policies.get(policy, []), metric)
            paper = printed("slearn", "authors", policy.removesuffix("_code"))
            wanted = near(float(paper), part) if part else {}
            yield from mean(figure, policy, jct_s, paper=paper, **wanted)
    paper = printed("slearn", "fig6", GOOGLE, "threesigma")
    ratios: list[tuple[str, str, dict[str, Any]]] = [
        ("threesigma_code", "slearn_code", {"paper": paper, **near(float(paper), 0.05)}),
        ("threesigma", "slearn", {"paper": paper}),
        *((worse, better, {"at_least": 1.0}) for better, worse in pairwise(BEST_TO_WORST)),
    ]
    for more, less, others in ratios:
        times = ratio(policies, (more, less), metric)
        yield from mean("mean completion times, ratio", f"{more} over {less}", times, **others)
    figure = "one rule otherwise, mean completion time over that of the code's preset"
    for policy in policies:
        if policy.startswith(VARIANTS):
            of, _, rule = policy.removeprefix(VARIANTS).partition("_")
            times = ratio(policies, (policy, f"{of}_code"), metric)
            yield from mean(figure, f"{of}_code, {rule.replace('_', ' ')}", times)
