"""How much sooner jobs end under sampling, and what becomes of single jobs (SLearn, NSDI 2022).

A speed-up is the mean completion time under the other scheme over that under this one; each seed
draws a workload that all schemes meet, and the interval is over the seeds' own ratios. Which
schemes an experiment compares is in `OF`. Figures of single jobs (§4.3, §5.2: errors, queues,
waiting, bins, load) are of cells of the evaluator ``sized``: an experiment's come from the function
of its name; each gives numbers of one cell, or of a pair of one workload, averaged over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sweep.papers.figures import Findings, column, grouped, jct_s, pairs, printed, together
from sweep.report.findings import Finding, FinishedSweep

PRESETS = {
    "slearn_2sigma": "2Sigma",
    "slearn_google2011": "Google 2011",
    "slearn_google2019": "Google 2019",
}
"""Synthesized traces, and the paper's that they stand for."""

RATIOS = ("slearn", *(f"pilots/p{percent}" for percent in (1, 2, 3, 4, 5, 10)))
LIMITS = ("thin/below2", "slearn", *(f"thin/below{limit}" for limit in (4, 5, 6)))
"""Schemes of Tables 6 and 9; SLearn's own ratio is adaptive, and its limit 3."""

OF: dict[str, dict[str, tuple[str, ...]]] = {
    "slearn/fig6": {
        "slearn": ("threesigma", "threesigma_tl", "point", "las", "fifo", "oracle"),
        "slearn_code": (
            "threesigma_code",
            "threesigma_tl_code",
            "point_code",
            "las_code",
            "fifo",
            "oracle_code",
        ),
        "threesigma": ("point",),
        "las": ("fifo",),
    },
    "slearn/real": {"slearn": (), "slearn_code": ("threesigma_code", "point_code")},
    "slearn/table6": dict.fromkeys(RATIOS, ("threesigma",)),
    "slearn/table9": dict.fromkeys(LIMITS, ("threesigma",)),
    "slearn/fig10": {"slearn_dag": ()},
}
"""By experiment, each scheme and what it is compared with; with all others where that is empty."""

WITH_ERRORS = ("slearn/table6", "slearn/fig10")
FIRST = {"slearn", "slearn_dag", "threesigma", "las"}
"""Schemes that are to be before what they are compared with, on presets."""


@together
def speedups(finished: FinishedSweep) -> Findings:
    """Compare each pair of schemes on each trace."""
    experiment = finished.config["experiment"]
    of = OF[experiment]
    of_trace = [key for key in finished.config["swept"] if key.startswith("trace.")]
    for (trace, *more), cells in finished.group_by("trace", *of_trace).items():
        where = ", ".join([PRESETS.get(trace, trace), *(f"load {value:g}" for value in more)])
        schemes = grouped(cells, "policy")
        for scheme, other in _pairs(of, list(schemes)):
            rows = pairs(schemes, (scheme, other))
            mean = [far["jct_mean_s"] / near["jct_mean_s"] for near, far in rows]
            tables = [(finished.table(near), finished.table(far)) for near, far in rows]
            half = [float(np.median(jct_s(far) / jct_s(near))) for near, far in tables]
            what = f"{other} over {scheme}"
            paper, paper_p50 = _printed_speedup(experiment, trace, scheme, other)
            wanted = _wanted(trace, scheme, other)
            yield Finding.from_seeds(f"{where}, mean JCT", what, mean, paper=paper, **wanted)
            yield Finding.from_seeds(f"{where}, P50 of jobs", what, half, paper=paper_p50)
        for scheme, runs in schemes.items():
            off = column(runs, "prediction_error_p50", 100.0)
            if not np.isnan(off).all() and experiment in WITH_ERRORS:
                paper = printed("slearn", experiment.partition("/")[2], trace, "error", scheme)
                yield Finding.from_seeds(f"{where}, P50 error %", scheme, off, paper=paper)


def _printed_speedup(experiment: str, trace: str, scheme: str, other: str) -> tuple[str, str]:
    """Return the paper's speed-up of the mean, and the median of the jobs' own."""
    if experiment == "slearn/fig6" and scheme in ("slearn", "slearn_code"):
        other = other.removesuffix("_code")
        return printed("slearn", "fig6", trace, other), printed("slearn", "fig6_p50", trace, other)
    keys = {
        "slearn/table6": ("table6", trace, "speed_up", scheme),
        "slearn/table9": ("table9", trace, scheme),
        "slearn/fig10": ("fig10", trace, "speed_up", other),
    }
    p50 = printed("slearn", "table6", trace, "p50", scheme) if experiment == "slearn/table6" else ""
    return printed("slearn", *keys.get(experiment, ())), p50


def _pairs(of: dict[str, tuple[str, ...]], schemes: list[str]) -> Iterator[tuple[str, str]]:
    for scheme in of:
        for other in of[scheme] or schemes:
            if scheme != other and scheme in schemes and other in schemes:
                yield scheme, other


def _wanted(trace: str, scheme: str, other: str) -> dict[str, float]:
    if trace not in PRESETS or other == "oracle":
        return {}
    is_wanted = (
        scheme in ("threesigma", "slearn") and other in ("threesigma", "threesigma_tl", "point")
    ) or (trace == "slearn_2sigma" and scheme in FIRST and other in ("las", "fifo"))
    return {"at_least": 1.0} if is_wanted else {}


Jobs = Mapping[str, F8]
Numbers = dict[str, float]

WIDE, LARGE_S = 3, 1000.0
"""From how many tasks on a job is wide, and from which size on large (NSDI 2022, Table 8)."""

SLEARN = "slearn"
RIGHT = "right queue %"
TABLES = ("fig3", "table7", "table10", "table8", "fig7")
"""Where the paper has what is measured here; no name stands in two."""


def errors(jobs: Jobs) -> Numbers:
    """Return percentiles of the error of wide jobs' estimates, in percent (Fig. 3)."""
    wide = (jobs["n_tasks"] >= WIDE) & ~np.isnan(jobs["estimate_s"]) & (jobs["size_s"] > 0)
    size_s = jobs["size_s"][wide]
    off = 100.0 * np.abs(jobs["estimate_s"][wide] - size_s) / size_s
    return {f"error %, P{p}": float(np.percentile(off, p)) for p in (25, 50, 75, 90)}


def right_queue(jobs: Jobs) -> Numbers:
    """Return the percentages of wide jobs in their queue, and in others (Tables 7 and 10)."""
    wide = (jobs["n_tasks"] >= WIDE) & ~np.isnan(jobs["estimate_s"])
    step = (jobs["queue"] - jobs["right_queue"])[wide]
    return {
        RIGHT: 100.0 * float((step == 0).mean()),
        "overestimated into a lower queue %": 100.0 * float((step > 0).mean()),
        "underestimated into a higher queue %": 100.0 * float((step < 0).mean()),
    }


def by_work(jobs: Jobs) -> Numbers:
    """Return the error with its sign and who is in a wrong queue, weighted by work, in percent.

    Of all jobs with an estimate; what the stand-ins were chosen by (docs/slearn_workloads.md).
    """
    known = ~np.isnan(jobs["estimate_s"])
    size_s, estimate_s = jobs["size_s"][known], jobs["estimate_s"][known]
    step = (jobs["queue"] - jobs["right_queue"])[known]
    whole = size_s.sum()
    return {
        "signed error by work %": 100.0 * float(estimate_s.sum() / whole - 1.0),
        "work in too low a queue %": 100.0 * float(size_s[step > 0].sum() / whole),
        "work in too high a queue %": 100.0 * float(size_s[step < 0].sum() / whole),
    }


def bins(near: Jobs, far: Jobs) -> Numbers:
    """Return each bin's share, and its speed-up of `near` over `far` (Table 8, Fig. 9)."""
    thin, small = near["n_tasks"] < WIDE, near["size_s"] < LARGE_S
    numbers = {}
    for name, rows in {
        "bin-1, thin and small": thin & small,
        "bin-2, wide and small": ~thin & small,
        "bin-3, thin and large": thin & ~small,
        "bin-4, wide and large": ~thin & ~small,
    }.items():
        sooner = _jct_s(far)[rows] > _jct_s(near)[rows]
        numbers[f"{name}, jobs %"] = 100.0 * float(rows.mean())
        numbers[f"{name}, speed-up"] = float(_jct_s(far)[rows].mean() / _jct_s(near)[rows].mean())
        numbers[f"{name}, jobs sooner %"] = 100.0 * float(sooner.mean())
    return numbers


def waits(near: Jobs, far: Jobs) -> Numbers:
    """Return how many wide jobs wait how long, over their mean task duration (Fig. 7)."""
    wide = near["n_tasks"] >= WIDE
    a, b = near["waits"][wide], far["waits"][wide]
    numbers = {}
    for name, low, high in (
        ("below 0.04", 0.0, 0.04),
        ("0.04 to 1.90", 0.04, 1.9),
        ("above 1.90", 1.9, math.inf),
    ):
        both = (a >= low) & (a < high) & (b >= low) & (b < high)
        numbers[f"{name}, wide jobs % under {SLEARN}"] = 100.0 * float(
            ((a >= low) & (a < high)).mean()
        )
        numbers[f"{name}, wide jobs % under both"] = 100.0 * float(both.mean())
        if low and both.any():
            numbers[f"{name}, of these sooner under {SLEARN} %"] = 100.0 * float(
                (a < b)[both].mean()
            )
    return numbers


def over_time(near: Jobs, far: Jobs) -> Numbers:
    """Return how what jobs find ahead, and their speed-up, go with the load (appendix)."""
    load = _load(near)
    sooner = np.log(_jct_s(far) / _jct_s(near))
    busy = load >= 1.0
    return {
        "resistance, mean, task s": float(near["resistance_s"].mean()),
        f"resistance over that under {SLEARN}": float(
            far["resistance_s"].mean() / near["resistance_s"].mean()
        ),
        "rank correlation of load and resistance": _rank(load, far["resistance_s"]),
        "speed-up, load of 1 and more": float(_jct_s(far)[busy].sum() / _jct_s(near)[busy].sum()),
        "speed-up, load below 1": float(_jct_s(far)[~busy].sum() / _jct_s(near)[~busy].sum()),
        "rank correlation of load and speed-up": _rank(load, sooner),
    }


def table10(jobs: Jobs) -> Numbers:
    """Return how jobs are overestimated and underestimated, in percent (Table 10)."""
    wide = (jobs["n_tasks"] >= WIDE) & ~np.isnan(jobs["estimate_s"]) & (jobs["size_s"] > 0)
    off = 100.0 * (jobs["estimate_s"][wide] / jobs["size_s"][wide] - 1.0)
    over, under = off[off > 0], off[off < 0]
    return {
        "overestimated %": 100.0 * len(over) / len(off),
        "positive error %, mean": float(over.mean()) if len(over) else math.nan,
        "positive error %, P50": float(np.median(over)) if len(over) else math.nan,
        "underestimated %": 100.0 * len(under) / len(off),
        "negative error %, mean": float(under.mean()) if len(under) else math.nan,
        "negative error %, P50": float(np.median(under)) if len(under) else math.nan,
        **{key: value for key, value in right_queue(jobs).items() if key != RIGHT},
    }


ONE: dict[str, tuple[Callable[[Jobs], Numbers], ...]] = {
    "slearn/fig3": (errors,),
    "slearn/table7": (right_queue, by_work),
    "slearn/load": (table10,),
}
TWO: dict[str, Callable[[Jobs, Jobs], Numbers]] = {
    "slearn/fig7": waits,
    "slearn/fig9": bins,
    "slearn/load": over_time,
}


def jobs(finished: FinishedSweep) -> Findings:
    """Average what each cell, and each pair of cells, says over seeds."""
    experiment = finished.config["experiment"]
    for (trace,), cells in finished.group_by("trace").items():
        where = PRESETS.get(trace, trace)
        numbers: dict[tuple[str, str, str], list[float]] = {}

        def note(figure: str, policy: str, values: Numbers, into: Any = numbers) -> None:
            for name, value in values.items():
                into.setdefault((figure, policy, name), []).append(value)

        for row in cells:
            for of in ONE.get(experiment, ()):
                note(f"{where}, {row['policy']}", row["policy"], of(_jobs(finished, row)))
        ours = {row["seed"]: row for row in cells if row["policy"] == SLEARN}
        for row in cells:
            if row["policy"] != SLEARN and row["seed"] in ours and experiment in TWO:
                near, far = _jobs(finished, ours[row["seed"]]), _jobs(finished, row)
                figure = f"{where}, {SLEARN} against {row['policy']}"
                note(figure, row["policy"], TWO[experiment](near, far))
        for (figure, policy, name), values in numbers.items():
            paper = _paper(trace, policy.removesuffix("_code"), name)
            yield Finding.from_seeds(figure, name, values, paper=paper)


def _paper(trace: str, policy: str, name: str) -> str:
    """Return what the paper has of a policy on a trace; of a pair, of the other policy."""
    tables = (printed("slearn", table, trace, policy, name) for table in TABLES)
    return next(filter(None, tables), "")


def _jobs(finished: FinishedSweep, row: Mapping[str, Any]) -> Jobs:
    table = finished.table(row)
    return {name: table[name].to_numpy() for name in table.column_names}


def _jct_s(jobs: Jobs) -> F8:
    return jobs["finish_s"] - jobs["submit_s"]


def _load(jobs: Jobs, window_s: float = 1000.0, n_slots: float = 150.0) -> F8:
    """Return the work that came in the window before each job, over what all slots could do."""
    total = np.concatenate([[0.0], np.cumsum(jobs["size_s"])])
    begin = np.searchsorted(jobs["submit_s"], jobs["submit_s"] - window_s)
    load: F8 = (total[1:] - total[begin]) / (window_s * n_slots)
    return load


def _rank(a: F8, b: F8) -> float:
    from scipy.stats import spearmanr  # half a second to import

    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    return float(spearmanr(a, b).statistic)
