"""How much sooner jobs end under one scheme than under another, seed by seed (SLearn, NSDI 2022).

Which schemes an experiment compares is in `OF`, what the paper has in `PAPER`. A speed-up is the
mean completion time under the other scheme over that under this one; each seed draws a workload
that all schemes meet, and the interval is over the seeds' own ratios.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sweep.report.findings import Finding, Finished

Row = dict[str, Any]

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
    "slearn/fig6": {"slearn": (), "threesigma": ("point",), "las": ("fifo",)},
    "slearn/real": {"slearn": ()},
    "slearn/table6": dict.fromkeys(RATIOS, ("threesigma",)),
    "slearn/table9": dict.fromkeys(LIMITS, ("threesigma",)),
    "slearn/fig10": {"slearn_dag": ()},
    "slearn/beyond": {
        "bayes": ("slearn", "threesigma"),
        "adaptive_thin": ("slearn", "threesigma"),
    },
}
"""By experiment, each scheme and what it is compared with; with all others where that is empty."""

PAPER: dict[tuple[str, str, str, str], str] = {
    **{
        ("slearn/fig6", trace, "slearn", other): f"{value:.2f}"
        for other, values in {
            "threesigma": (1.28, 1.56, 1.32),
            "threesigma_tl": (1.26, 1.55, 1.32),
            "point": (1.42, 2.17, 1.54),
            "las": (1.91, 1.65, 1.72),
        }.items()
        for trace, value in zip(PRESETS, values, strict=True)
    },
    ("slearn/fig6", "slearn_2sigma", "slearn", "fifo"): "3.29",
    ("slearn/fig6", "slearn_2sigma", "slearn", "oracle"): "0.79",
    **{
        ("slearn/table6", trace, scheme, "threesigma"): f"{value}"
        for trace, values in zip(
            PRESETS,
            (
                (1.28, 1.24, 1.23, 1.27, 1.26, 1.27, 1.28),
                (1.56, 1.52, 1.55, 1.54, 1.56, 1.58, 1.51),
                (1.32, 1.31, 1.31, 1.31, 1.32, 1.28, 1.24),
            ),
            strict=True,
        )
        for scheme, value in zip(RATIOS, values, strict=True)
    },
    **{
        ("slearn/table9", trace, scheme, "threesigma"): f"{value}"
        for trace, values in zip(
            PRESETS,
            (
                (1.23, 1.28, 1.14, 0.97, 0.84),
                (1.54, 1.56, 1.55, 1.54, 1.53),
                (1.33, 1.32, 1.32, 1.30, 1.29),
            ),
            strict=True,
        )
        for scheme, value in zip(LIMITS, values, strict=True)
    },
    ("slearn/fig10", "slearn_gtrace19_dag", "slearn_dag", "threesigma_dag"): "1.26",
    ("slearn/fig10", "slearn_gtrace19_dag", "slearn_dag", "las_dag"): "2.15",
    ("slearn/fig10", "slearn_gtrace19_dag", "slearn_dag", "point_dag"): "1.74",
}

PAPER_P50 = {
    ("slearn/fig6", "slearn_2sigma", "slearn", "oracle"): "0.73",
    ("slearn/fig6", "slearn_2sigma", "slearn", "threesigma"): "0.92",
    ("slearn/fig6", "slearn_2sigma", "slearn", "las"): "1.29",
    ("slearn/fig6", "slearn_2sigma", "slearn", "fifo"): "8.45",
    ("slearn/fig6", "slearn_google2011", "slearn", "threesigma"): "1.00",
    ("slearn/fig6", "slearn_google2019", "slearn", "threesigma"): "1.07",
}
"""The median over jobs of their own speed-ups."""

ERRORS = {
    ("slearn_gtrace19_dag", "slearn_dag"): "33.90",
    ("slearn_gtrace19_dag", "threesigma_dag"): "47.21",
    **{
        (trace, scheme): f"{value}"
        for trace, values in zip(
            PRESETS,
            (
                (19.0, 19.4, 19.0, 19.0, 18.7, 18.4, 16.9),
                (13.7, 14.4, 14.0, 13.6, 13.1, 12.7, 9.09),
                (51.8, 55.7, 53.8, 47.1, 46.5, 42.1, 36.1),
            ),
            strict=True,
        )
        for scheme, value in zip(RATIOS, values, strict=True)
    },
}
"""Median error of prediction in percent."""

FIRST = {"slearn", "slearn_dag", "threesigma", "las"}
"""Schemes that are to be before what they are compared with, on presets."""


def find(finished: Finished) -> list[Finding]:
    """Compare each pair of schemes on each trace."""
    experiment, found = finished.config["experiment"], []
    of = OF[experiment]
    of_trace = [key for key in finished.config["swept"] if key.startswith("trace.")]
    for (trace, *more), cells in finished.by("trace", *of_trace).items():
        where = ", ".join([PRESETS.get(trace, trace), *(f"load {value:g}" for value in more)])
        schemes: dict[str, dict[int, Row]] = {}
        for row in cells:
            schemes.setdefault(row["policy"], {})[row["seed"]] = row
        for one, other in _pairs(of, list(schemes)):
            shared = sorted(schemes[one].keys() & schemes[other].keys())
            rows = [(schemes[one][seed], schemes[other][seed]) for seed in shared]
            key = (experiment, trace, one, other)
            mean = [far["jct_mean_s"] / near["jct_mean_s"] for near, far in rows]
            found.append(
                Finding.of(
                    f"{where}, mean JCT",
                    f"{other} over {one}",
                    mean,
                    paper=PAPER.get(key, ""),
                    **_wanted(trace, one, other),
                )
            )
            half = [p50(finished, near, far) for near, far in rows]
            text = PAPER_P50.get(key, "")
            found.append(
                Finding.of(f"{where}, P50 of jobs", f"{other} over {one}", half, paper=text)
            )
        for scheme, of_seed in schemes.items():
            off = [100.0 * row["prediction_error_p50"] for row in of_seed.values()]
            if not np.isnan(off).all() and experiment in ("slearn/table6", "slearn/fig10"):
                text = ERRORS.get((trace, scheme), "")
                found.append(Finding.of(f"{where}, P50 error %", scheme, off, paper=text))
    figures = [one.figure for one in found]
    return sorted(found, key=lambda one: figures.index(one.figure))


def p50(finished: Finished, near: Row, far: Row) -> float:
    """Return the median over jobs of the completion time under one scheme over another's."""
    jct = [
        table["finish_s"].to_numpy() - table["submit_s"].to_numpy()
        for table in (finished.table(far), finished.table(near))
    ]
    return float(np.median(jct[0] / jct[1]))


def _pairs(of: dict[str, tuple[str, ...]], schemes: list[str]) -> Iterator[tuple[str, str]]:
    for one in of:
        for other in of[one] or schemes:
            if one != other and one in schemes and other in schemes:
                yield one, other


def _wanted(trace: str, one: str, other: str) -> dict[str, float]:
    if trace not in PRESETS or other == "oracle":
        return {}
    if one in ("threesigma", "slearn") and other in ("threesigma", "threesigma_tl", "point"):
        return {"at_least": 1.0}
    if trace == "slearn_2sigma" and one in FIRST and other in ("las", "fifo"):
        return {"at_least": 1.0}
    if one == "bayes":
        return {"at_least": 1.0}
    return {}
