"""History and pilots together, against each alone, and what no estimate can better.

The better of two schemes is the one whose mean completion time over all seeds is less. A speed-up
is the mean completion time under the other scheme over that under this one, by seed.
"""

from __future__ import annotations

from statistics import fmean

from sweep.papers.figures import Findings, Groups, column, grouped, mean, pairs
from sweep.papers.studies.slearn import PRESETS
from sweep.report.findings import Finding, FinishedSweep

OURS, ALONE = "bayes", ("slearn", "threesigma")
"""What is judged, and the two that it must not be behind."""

AT_LEAST = {"slearn/beyond": 0.98, "slearn/mixed": 1.0}
"""How far before the better of them it has to be."""

BOUNDS = (("slearn", "pilots/truth"), ("slearn", "pilots/truth_one_pilot"), ("slearn", "oracle"))
"""Pairs of which the second knows more: what better estimates could gain."""


def judged(finished: FinishedSweep) -> Findings:
    """Compare `OURS` with every other scheme, and with the better of those of one source."""
    at_least = AT_LEAST.get(finished.config["experiment"])
    of_trace = [key for key in finished.config["swept"] if key.startswith("trace.")]
    for (trace, *more), cells in finished.group_by("trace", *of_trace).items():
        told = (
            f"{key.rpartition('.')[2]} {value:g}" for key, value in zip(of_trace, more, strict=True)
        )
        figure = ", ".join([PRESETS.get(trace, trace), *told, "mean JCT"])
        schemes = grouped(cells, "policy")
        both = [name for name in ALONE if name in schemes]
        if OURS in schemes and both:
            better = min(both, key=lambda name: fmean(column(schemes[name], "jct_mean_s")))
            what, sooner = (
                f"{better}, the better of both, over {OURS}",
                _over(schemes, better, OURS),
            )
            yield Finding.from_seeds(figure, what, sooner, at_least=at_least)
        others = [(other, OURS) for other in schemes if other != OURS]
        for far, near in [*others, *BOUNDS]:
            yield from mean(figure, f"{far} over {near}", _over(schemes, far, near))


def _over(schemes: Groups, far: str, near: str) -> list[float]:
    return [a["jct_mean_s"] / b["jct_mean_s"] for a, b in pairs(schemes, (far, near))]
