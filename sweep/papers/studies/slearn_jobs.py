"""What becomes of single jobs: errors, queues, waiting, bins, load (SLearn, NSDI 2022, §4.3, §5.2).

Cells are of the measure ``sized``. An experiment's figures come from the function of its name; each
gives numbers of one cell, or of a pair of cells of one workload, and they are averaged over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sweep.papers.studies.slearn_speedups import PRESETS
from sweep.report.findings import Finding, Finished

Jobs = Mapping[str, F8]
Numbers = dict[str, float]

WIDE, LARGE_S = 3, 1000.0
"""From how many tasks on a job is wide, and from which size on large (NSDI 2022, Table 8)."""

SLEARN, HISTORY = "slearn", "threesigma"


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
        "right queue %": 100.0 * float((step == 0).mean()),
        "overestimated into a lower queue %": 100.0 * float((step > 0).mean()),
        "underestimated into a higher queue %": 100.0 * float((step < 0).mean()),
    }


def bins(near: Jobs, far: Jobs) -> Numbers:
    """Return each bin's share, and its speed-up of `near` over `far` (Table 8, Fig. 9)."""
    thin, small = near["n_tasks"] < WIDE, near["size_s"] < LARGE_S
    found = {}
    for name, rows in {
        "bin-1, thin and small": thin & small,
        "bin-2, wide and small": ~thin & small,
        "bin-3, thin and large": thin & ~small,
        "bin-4, wide and large": ~thin & ~small,
    }.items():
        sooner = _jct_s(far)[rows] > _jct_s(near)[rows]
        found[f"{name}, jobs %"] = 100.0 * float(rows.mean())
        found[f"{name}, speed-up"] = float(_jct_s(far)[rows].mean() / _jct_s(near)[rows].mean())
        found[f"{name}, jobs sooner %"] = 100.0 * float(sooner.mean())
    return found


def waits(near: Jobs, far: Jobs) -> Numbers:
    """Return how many wide jobs wait how long, over their mean task duration (Fig. 7)."""
    wide = near["n_tasks"] >= WIDE
    a, b = near["waits"][wide], far["waits"][wide]
    found = {}
    for name, low, high in (
        ("below 0.04", 0.0, 0.04),
        ("0.04 to 1.90", 0.04, 1.9),
        ("above 1.90", 1.9, math.inf),
    ):
        both = (a >= low) & (a < high) & (b >= low) & (b < high)
        found[f"{name}, wide jobs % under {SLEARN}"] = 100.0 * float(
            ((a >= low) & (a < high)).mean()
        )
        found[f"{name}, wide jobs % under both"] = 100.0 * float(both.mean())
        if low and both.any():
            found[f"{name}, of these sooner under {SLEARN} %"] = 100.0 * float((a < b)[both].mean())
    return found


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
        **{key: value for key, value in right_queue(jobs).items() if key != "right queue %"},
    }


ONE: dict[str, tuple[Callable[[Jobs], Numbers], ...]] = {
    "slearn/fig3": (errors,),
    "slearn/table7": (right_queue,),
    "slearn/load": (table10,),
}
TWO: dict[str, Callable[[Jobs, Jobs], Numbers]] = {
    "slearn/fig7": waits,
    "slearn/fig9": bins,
    "slearn/load": over_time,
}

_P = ("P50", "P90")
PAPER: dict[tuple[str, str, str], str] = {
    **{
        (trace, policy, f"error %, {p}"): f"{value}"
        for policy, table in {
            SLEARN: ((18.30, 58.66), (9.15, 49.95), (21.39, 92.25)),
            HISTORY: ((36.57, 475.78), (21.39, 294.52), (71.56, 1927.51)),
        }.items()
        for trace, values in zip(PRESETS, table, strict=True)
        for p, value in zip(_P, values, strict=True)
    },
    **{
        (trace, policy, "right queue %"): f"{value}"
        for policy, values in {
            SLEARN: (89.09, 86.45, 73.96),
            HISTORY: (73.84, 76.20, 58.07),
        }.items()
        for trace, value in zip(PRESETS, values, strict=True)
    },
    **{
        ("slearn_2sigma", policy, name): f"{value}"
        for policy, values in {
            HISTORY: (59.78, 898.5, 48.00, 40.22, -37.0, -28.57, 17.50, 8.65),
            SLEARN: (43.75, 30.65, 18.19, 55.45, -26.79, -20.69, 3.54, 7.37),
        }.items()
        for name, value in zip(
            (
                "overestimated %",
                "positive error %, mean",
                "positive error %, P50",
                "underestimated %",
                "negative error %, mean",
                "negative error %, P50",
                "overestimated into a lower queue %",
                "underestimated into a higher queue %",
            ),
            values,
            strict=True,
        )
    },
    **{
        ("slearn_2sigma", HISTORY, f"{name}, {what}"): value
        for what, values in {
            "jobs %": ("4.55", "28.73", "14.29", "52.43"),
            "speed-up": ("10.54", "1.86", "0.80", "1.38"),
            "jobs sooner %": ("82.46", "", "", ""),
        }.items()
        for name, value in zip(
            (
                "bin-1, thin and small",
                "bin-2, wide and small",
                "bin-3, thin and large",
                "bin-4, wide and large",
            ),
            values,
            strict=True,
        )
    },
    **{
        ("slearn_google2011", HISTORY, name): value
        for name, value in {
            f"below 0.04, wide jobs % under {SLEARN}": "36.58",
            "below 0.04, wide jobs % under both": "35.57",
            f"0.04 to 1.90, wide jobs % under {SLEARN}": "30.51",
            "0.04 to 1.90, wide jobs % under both": "20.38",
            f"0.04 to 1.90, of these sooner under {SLEARN} %": "29.81",
            f"above 1.90, wide jobs % under {SLEARN}": "32.91",
            "above 1.90, wide jobs % under both": "24.68",
            f"above 1.90, of these sooner under {SLEARN} %": "83.08",
        }.items()
    },
}
"""By trace, policy and name; of a pair the other policy's."""


def find(finished: Finished) -> list[Finding]:
    """Average what each cell, and each pair of cells, says over seeds."""
    experiment, found = finished.config["experiment"], []
    for (trace,), cells in finished.by("trace").items():
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
            text = PAPER.get((trace, policy, name), "")
            found.append(Finding.of(figure, name, values, paper=text))
    return found


def _jobs(finished: Finished, row: Mapping[str, Any]) -> Jobs:
    table = finished.table(row)
    return {name: table[name].to_numpy() for name in table.column_names}


def _jct_s(jobs: Jobs) -> F8:
    found: F8 = jobs["finish_s"] - jobs["submit_s"]
    return found


def _load(jobs: Jobs, window_s: float = 1000.0, n_slots: float = 150.0) -> F8:
    """Return the work that came in the window before each job, over what all slots could do."""
    total = np.concatenate([[0.0], np.cumsum(jobs["size_s"])])
    begin = np.searchsorted(jobs["submit_s"], jobs["submit_s"] - window_s)
    found: F8 = (total[1:] - total[begin]) / (window_s * n_slots)
    return found


def _rank(a: F8, b: F8) -> float:
    from scipy.stats import spearmanr

    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    return float(spearmanr(a, b).statistic)
