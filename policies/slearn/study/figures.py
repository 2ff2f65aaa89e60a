"""Speed-ups of jobs under sampling, and statistics of single jobs (SLearn, NSDI 2022).

A speed-up is the mean completion time under the other scheme over that under this one. Each seed
draws a workload for all schemes, and the interval is over the seeds' ratios. `COMPARISONS` has the
schemes that an experiment compares. Figures of single jobs (§4.3, §5.2: errors, queues, waiting,
bins, load) are of cells of the evaluator ``sized``. `BY_CELL` and `BY_PAIR` have the functions of
an experiment; each computes numbers of one cell, or of two cells of one workload, averaged over
seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sweep.questions.papers.figures import (
    Findings,
    column,
    grouped,
    jct_s,
    match_seeds,
    published,
    sort_by_figure,
)
from sweep.report.findings import Finding, FinishedSweep

PRESETS = {
    "slearn_2sigma": "2Sigma",
    "slearn_google2011": "Google 2011",
    "slearn_google2019": "Google 2019",
}
"""Synthesized traces, and the paper's traces that they stand for."""

CODE = "_code"
"""Ending of schemes as in the authors' simulator, which count; others are a second reading."""

PERCENT, LIMITS = (1, 2, 4, 5, 10), (2, 4, 5, 6)
RATIOS = {
    "code_variants/slearn_adaptive": "slearn",
    "slearn_code": "pilots/p3",
    **{f"code_pilots/p{percent}": f"pilots/p{percent}" for percent in PERCENT},
}
THIN = {"slearn_code": "slearn", **{f"code_thin/below{n}": f"thin/below{n}" for n in LIMITS}}
"""Schemes of Tables 6 and 9, and the scheme by the paper's reading that each is like."""

PRINTED = {
    "slearn/table6": RATIOS,
    "slearn/table9": THIN,
    "slearn/fig10": {
        "code_variants/slearn_dag": "slearn_dag",
        **{f"{name}_code": f"{name}_dag" for name in ("threesigma", "point", "las")},
    },
}
"""By experiment, the names of schemes in the paper's numbers, if not those without `CODE`."""

OTHERS = ("threesigma", "threesigma_tl", "point", "las", "fifo", "oracle")
OTHERS_CODE = tuple(name if name == "fifo" else f"{name}_code" for name in OTHERS)
COMPARISONS: dict[str, dict[str, tuple[str, ...]]] = {
    "slearn/fig6": {
        "slearn_code": OTHERS_CODE,
        "threesigma_code": ("point_code",),
        "las_code": ("fifo",),
        "slearn": OTHERS,
        "threesigma": ("point",),
    },
    "slearn/real": {"slearn_code": OTHERS_CODE, "slearn": OTHERS},
    "slearn/table6": {
        **dict.fromkeys(RATIOS, ("threesigma_code",)),
        **dict.fromkeys(RATIOS.values(), ("threesigma",)),
    },
    "slearn/table9": {
        **dict.fromkeys(THIN, ("threesigma_code",)),
        **dict.fromkeys(THIN.values(), ("threesigma",)),
    },
    "slearn/fig10": {
        "code_variants/slearn_dag": ("threesigma_code", "point_code", "las_code", "oracle_code"),
        "slearn_dag": ("threesigma_dag", "point_dag", "las_dag", "oracle"),
    },
}
"""By experiment, each scheme and the schemes that it is compared with."""

WITH_ERRORS = ("slearn/table6", "slearn/fig10")


@sort_by_figure
def speedups(finished: FinishedSweep) -> Findings:
    """Compare each pair of schemes on each trace."""
    experiment = finished.config["experiment"]
    trace_keys = [key for key in finished.config["swept"] if key.startswith("trace.")]
    for (trace, *loads), cells in finished.group_by("trace", *trace_keys).items():
        workload = ", ".join([PRESETS.get(trace, trace), *(f"load {value:g}" for value in loads)])
        schemes = grouped(cells, "policy")
        for scheme, other in _pairs(COMPARISONS[experiment], list(schemes)):
            rows = match_seeds(schemes, (scheme, other))
            means = [base["jct_mean_s"] / row["jct_mean_s"] for row, base in rows]
            tables = [(finished.table(row), finished.table(base)) for row, base in rows]
            medians = [float(np.median(jct_s(base) / jct_s(jobs))) for jobs, base in tables]
            label = f"{other} over {scheme}"
            paper, paper_p50 = _printed_speedup(experiment, trace, scheme, other)
            expected = _expected(trace, scheme, other)
            yield Finding.from_seeds(f"{workload}, mean JCT", label, means, paper=paper, **expected)
            yield Finding.from_seeds(f"{workload}, P50 of jobs", label, medians, paper=paper_p50)
        for scheme, runs in schemes.items():
            errors = column(runs, "prediction_error_p50", 100.0)
            if not np.isnan(errors).all() and experiment in WITH_ERRORS:
                table, name = experiment.partition("/")[2], _printed_name(experiment, scheme)
                paper = published("slearn", table, trace, "error", name)
                yield Finding.from_seeds(f"{workload}, P50 error %", scheme, errors, paper=paper)


def _printed_name(experiment: str, scheme: str) -> str:
    """Return the name of a scheme in the paper's numbers."""
    return PRINTED.get(experiment, {}).get(scheme, scheme.removesuffix(CODE))


def _printed_speedup(experiment: str, trace: str, scheme: str, other: str) -> tuple[str, str]:
    """Return the paper's speed-up of the mean, and the median over jobs."""
    is_fixed = (scheme, other) == ("slearn_code", "threesigma_code")
    scheme, other = (_printed_name(experiment, name) for name in (scheme, other))
    if experiment == "slearn/fig6" and is_fixed:  # the code's ratio is 3 %; the figure's, adaptive
        return (
            published("slearn", "table6", trace, "speed_up", "pilots/p3"),
            published("slearn", "table6", trace, "p50", "pilots/p3"),
        )
    if experiment == "slearn/fig6" and scheme == "slearn":
        return published("slearn", "fig6", trace, other), published(
            "slearn", "fig6_p50", trace, other
        )
    keys = {
        "slearn/table6": ("table6", trace, "speed_up", scheme),
        "slearn/table9": ("table9", trace, scheme),
        "slearn/fig10": ("fig10", trace, "speed_up", other),
    }
    p50 = (
        published("slearn", "table6", trace, "p50", scheme) if experiment == "slearn/table6" else ""
    )
    return published("slearn", *keys.get(experiment, ())), p50


def _pairs(
    comparisons: dict[str, tuple[str, ...]], schemes: list[str]
) -> Iterator[tuple[str, str]]:
    for scheme, baselines in comparisons.items():
        for other in baselines:
            if scheme in schemes and other in schemes:
                yield scheme, other


def _expected(trace: str, scheme: str, other: str) -> dict[str, float]:
    """Return the expected range, of schemes that count (decision 31)."""
    is_faster = trace in PRESETS and (
        (
            scheme in ("slearn_code", "threesigma_code")
            and other in ("threesigma_code", "threesigma_tl_code", "point_code")
        )
        or (
            trace == "slearn_2sigma"
            and scheme in ("slearn_code", "las_code")
            and other in ("las_code", "fifo")
        )
    )
    return {"at_least": 1.0} if is_faster else {}


Jobs = Mapping[str, F8]
Numbers = dict[str, float]

WIDE, LARGE_S = 3, 1000.0
"""Minimum tasks of a wide job, and minimum size of a large one (NSDI 2022, Table 8)."""

SLEARN = "slearn"
RIGHT = "right queue %"
TABLES = ("fig3", "table7", "table10", "table8", "fig7")
"""Tables of the paper with these numbers; no name is in two of them."""


def errors(jobs: Jobs) -> Numbers:
    """Compute percentiles of the error of wide jobs' estimates, in percent (Fig. 3)."""
    wide = (jobs["n_tasks"] >= WIDE) & ~np.isnan(jobs["estimate_s"]) & (jobs["size_s"] > 0)
    size_s = jobs["size_s"][wide]
    error = 100.0 * np.abs(jobs["estimate_s"][wide] - size_s) / size_s
    return {f"error %, P{p}": float(np.percentile(error, p)) for p in (25, 50, 75, 90)}


def right_queue(jobs: Jobs) -> Numbers:
    """Compute the shares of wide jobs in their queue and in others, % (Tables 7 and 10)."""
    wide = (jobs["n_tasks"] >= WIDE) & ~np.isnan(jobs["estimate_s"])
    step = (jobs["queue"] - jobs["right_queue"])[wide]
    return {
        RIGHT: 100.0 * float((step == 0).mean()),
        "overestimated into a lower queue %": 100.0 * float((step > 0).mean()),
        "underestimated into a higher queue %": 100.0 * float((step < 0).mean()),
    }


def by_work(jobs: Jobs) -> Numbers:
    """Compute the signed error and the share of jobs in a wrong queue, weighted by work, %.

    Of all jobs with an estimate. The stand-ins were chosen by these (docs/slearn_workloads.md).
    """
    has_estimate = ~np.isnan(jobs["estimate_s"])
    size_s, estimate_s = jobs["size_s"][has_estimate], jobs["estimate_s"][has_estimate]
    step = (jobs["queue"] - jobs["right_queue"])[has_estimate]
    total = size_s.sum()
    return {
        "signed error by work %": 100.0 * float(estimate_s.sum() / total - 1.0),
        "work in too low a queue %": 100.0 * float(size_s[step > 0].sum() / total),
        "work in too high a queue %": 100.0 * float(size_s[step < 0].sum() / total),
    }


def bins(run: Jobs, base: Jobs) -> Numbers:
    """Compute each bin's share, and its speed-up over a baseline (Table 8, Fig. 9)."""
    thin, small = run["n_tasks"] < WIDE, run["size_s"] < LARGE_S
    numbers = {}
    for name, rows in {
        "bin-1, thin and small": thin & small,
        "bin-2, wide and small": ~thin & small,
        "bin-3, thin and large": thin & ~small,
        "bin-4, wide and large": ~thin & ~small,
    }.items():
        sooner = _jct_s(base)[rows] > _jct_s(run)[rows]
        numbers[f"{name}, jobs %"] = 100.0 * float(rows.mean())
        numbers[f"{name}, speed-up"] = float(_jct_s(base)[rows].mean() / _jct_s(run)[rows].mean())
        numbers[f"{name}, jobs sooner %"] = 100.0 * float(sooner.mean())
    return numbers


def waits(run: Jobs, base: Jobs) -> Numbers:
    """Compute the distribution of wide jobs' waits over their mean task duration (Fig. 7)."""
    wide = run["n_tasks"] >= WIDE
    waits_run, waits_base = run["waits"][wide], base["waits"][wide]
    numbers = {}
    for name, low, high in (
        ("below 0.04", 0.0, 0.04),
        ("0.04 to 1.90", 0.04, 1.9),
        ("above 1.90", 1.9, math.inf),
    ):
        in_range = (waits_run >= low) & (waits_run < high)
        in_both = in_range & (waits_base >= low) & (waits_base < high)
        numbers[f"{name}, wide jobs % under {SLEARN}"] = 100.0 * float(in_range.mean())
        numbers[f"{name}, wide jobs % under both"] = 100.0 * float(in_both.mean())
        if low and in_both.any():
            sooner = (waits_run < waits_base)[in_both]
            numbers[f"{name}, of these sooner under {SLEARN} %"] = 100.0 * float(sooner.mean())
    return numbers


def over_time(run: Jobs, base: Jobs) -> Numbers:
    """Compute the correlation of queued work and of speed-up with the load (appendix)."""
    load = _load(run)
    log_speed_up = np.log(_jct_s(base) / _jct_s(run))
    busy = load >= 1.0
    return {
        "resistance, mean, task s": float(run["resistance_s"].mean()),
        f"resistance over that under {SLEARN}": float(
            base["resistance_s"].mean() / run["resistance_s"].mean()
        ),
        "rank correlation of load and resistance": _rank_correlation(load, base["resistance_s"]),
        "speed-up, load of 1 and more": float(_jct_s(base)[busy].sum() / _jct_s(run)[busy].sum()),
        "speed-up, load below 1": float(_jct_s(base)[~busy].sum() / _jct_s(run)[~busy].sum()),
        "rank correlation of load and speed-up": _rank_correlation(load, log_speed_up),
    }


def table10(jobs: Jobs) -> Numbers:
    """Compute over- and underestimation of jobs, in percent (Table 10)."""
    wide = (jobs["n_tasks"] >= WIDE) & ~np.isnan(jobs["estimate_s"]) & (jobs["size_s"] > 0)
    error = 100.0 * (jobs["estimate_s"][wide] / jobs["size_s"][wide] - 1.0)
    over, under = error[error > 0], error[error < 0]
    return {
        "overestimated %": 100.0 * len(over) / len(error),
        "positive error %, mean": float(over.mean()) if len(over) else math.nan,
        "positive error %, P50": float(np.median(over)) if len(over) else math.nan,
        "underestimated %": 100.0 * len(under) / len(error),
        "negative error %, mean": float(under.mean()) if len(under) else math.nan,
        "negative error %, P50": float(np.median(under)) if len(under) else math.nan,
        **{key: value for key, value in right_queue(jobs).items() if key != RIGHT},
    }


BY_CELL: dict[str, tuple[Callable[[Jobs], Numbers], ...]] = {
    "slearn/fig3": (errors,),
    "slearn/table7": (right_queue, by_work),
    "slearn/load": (table10,),
}
BY_PAIR: dict[str, Callable[[Jobs, Jobs], Numbers]] = {
    "slearn/fig7": waits,
    "slearn/fig9": bins,
    "slearn/load": over_time,
}


def jobs(finished: FinishedSweep) -> Findings:
    """Average the statistics of each cell, and of each pair of cells, over seeds."""
    experiment = finished.config["experiment"]
    for (trace,), cells in finished.group_by("trace").items():
        workload = PRESETS.get(trace, trace)
        numbers: dict[tuple[str, str, str], list[float]] = {}

        def append(figure: str, policy: str, values: Numbers, into: Any = numbers) -> None:
            for name, value in values.items():
                into.setdefault((figure, policy, name), []).append(value)

        for row in cells:
            for statistics in BY_CELL.get(experiment, ()):
                append(
                    f"{workload}, {row['policy']}", row["policy"], statistics(_jobs(finished, row))
                )
        ours = {(row["policy"], row["seed"]): row for row in cells}
        for row in cells if experiment in BY_PAIR else ():
            name = SLEARN + CODE * row["policy"].endswith(CODE)
            if row["policy"] != name and (name, row["seed"]) in ours:
                run, base = _jobs(finished, ours[name, row["seed"]]), _jobs(finished, row)
                figure = f"{workload}, {name} against {row['policy']}"
                append(figure, row["policy"], BY_PAIR[experiment](run, base))
        for (figure, policy, name), values in numbers.items():
            paper = _paper(trace, policy.removesuffix(CODE), name)
            yield Finding.from_seeds(figure, name, values, paper=paper)


def _paper(trace: str, policy: str, name: str) -> str:
    """Return the paper's number for a policy on a trace; for a pair, the other policy's."""
    tables = (published("slearn", table, trace, policy, name) for table in TABLES)
    return next(filter(None, tables), "")


def _jobs(finished: FinishedSweep, row: Mapping[str, Any]) -> Jobs:
    table = finished.table(row)
    return {name: table[name].to_numpy() for name in table.column_names}


def _jct_s(jobs: Jobs) -> F8:
    return jobs["finish_s"] - jobs["submit_s"]


def _load(jobs: Jobs, window_s: float = 1000.0, n_slots: float = 150.0) -> F8:
    """Compute the work that arrived in the window before each job, over the slots' capacity."""
    total = np.concatenate([[0.0], np.cumsum(jobs["size_s"])])
    begin = np.searchsorted(jobs["submit_s"], jobs["submit_s"] - window_s)
    load: F8 = (total[1:] - total[begin]) / (window_s * n_slots)
    return load


def _rank_correlation(a: F8, b: F8) -> float:
    from scipy.stats import spearmanr  # half a second to import

    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    return float(spearmanr(a, b).statistic)
