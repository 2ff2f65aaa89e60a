"""How much sooner jobs end under one scheme than under another, seed by seed (SLearn, NSDI 2022).

Which schemes an experiment compares is in `OF`. A speed-up is the mean completion time under the
other scheme over that under this one; each seed draws a workload that all schemes meet, and the
interval is over the seeds' own ratios.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sweep.papers.declared import printed
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

WITH_ERRORS = ("slearn/table6", "slearn/fig10")
FIRST = {"slearn", "slearn_dag", "threesigma", "las"}
"""Schemes that are to be before what they are compared with, on presets."""


def speedups(finished: Finished) -> list[Finding]:
    """Compare each pair of schemes on each trace."""
    experiment, findings = finished.config["experiment"], []
    of = OF[experiment]
    of_trace = [key for key in finished.config["swept"] if key.startswith("trace.")]
    for (trace, *more), cells in finished.by("trace", *of_trace).items():
        where = ", ".join([PRESETS.get(trace, trace), *(f"load {value:g}" for value in more)])
        schemes: dict[str, dict[int, Row]] = {}
        for row in cells:
            schemes.setdefault(row["policy"], {})[row["seed"]] = row
        for scheme, other in _pairs(of, list(schemes)):
            shared = sorted(schemes[scheme].keys() & schemes[other].keys())
            rows = [(schemes[scheme][seed], schemes[other][seed]) for seed in shared]
            mean = [far["jct_mean_s"] / near["jct_mean_s"] for near, far in rows]
            half = [_p50(finished, near, far) for near, far in rows]
            what = f"{other} over {scheme}"
            paper, paper_p50 = _paper(experiment, trace, scheme, other)
            wanted = _wanted(trace, scheme, other)
            findings.append(Finding.of(f"{where}, mean JCT", what, mean, paper=paper, **wanted))
            findings.append(Finding.of(f"{where}, P50 of jobs", what, half, paper=paper_p50))
        for scheme, of_seed in schemes.items():
            off = [100.0 * row["prediction_error_p50"] for row in of_seed.values()]
            if not np.isnan(off).all() and experiment in WITH_ERRORS:
                paper = printed("slearn", experiment.partition("/")[2], trace, "error", scheme)
                findings.append(Finding.of(f"{where}, P50 error %", scheme, off, paper=paper))
    figures = [finding.figure for finding in findings]
    return sorted(findings, key=lambda finding: figures.index(finding.figure))


def _p50(finished: Finished, near: Row, far: Row) -> float:
    """Return the median over jobs of the completion time under one scheme over another's."""
    jct = [
        table["finish_s"].to_numpy() - table["submit_s"].to_numpy()
        for table in (finished.table(far), finished.table(near))
    ]
    return float(np.median(jct[0] / jct[1]))


def _paper(experiment: str, trace: str, scheme: str, other: str) -> tuple[str, str]:
    """Return the paper's speed-up of the mean, and the median of the jobs' own."""
    if experiment == "slearn/fig6" and scheme == "slearn":
        return printed("slearn", "fig6", trace, other), printed("slearn", "fig6_p50", trace, other)
    keys = {
        "slearn/table6": ("table6", trace, "speed_up", scheme),
        "slearn/table9": ("table9", trace, scheme),
        "slearn/fig10": ("fig10", trace, "speed_up", other),
    }
    return printed("slearn", *keys.get(experiment, ())), ""


def _pairs(of: dict[str, tuple[str, ...]], schemes: list[str]) -> Iterator[tuple[str, str]]:
    for scheme in of:
        for other in of[scheme] or schemes:
            if scheme != other and scheme in schemes and other in schemes:
                yield scheme, other


def _wanted(trace: str, scheme: str, other: str) -> dict[str, float]:
    if trace not in PRESETS or other == "oracle":
        return {}
    is_wanted = (
        (scheme in ("threesigma", "slearn") and other in ("threesigma", "threesigma_tl", "point"))
        or (trace == "slearn_2sigma" and scheme in FIRST and other in ("las", "fifo"))
        or scheme == "bayes"
    )
    return {"at_least": 1.0} if is_wanted else {}
