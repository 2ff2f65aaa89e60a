"""History and pilots combined, against each alone and against bounds of better estimates.

The better of two schemes has the lower mean completion time over all seeds. A speed-up
is the mean completion time under the other scheme over that under this one, by seed.
"""

from __future__ import annotations

from statistics import fmean

from sweep.papers.figures import Findings, Groups, column, grouped, match_seeds, mean
from sweep.papers.studies.slearn import PRESETS
from sweep.report.findings import Finding, FinishedSweep

COMBINED, ALONE = "bayes", ("slearn", "threesigma")
"""The scheme under test, and the two that it must not be behind."""

AT_LEAST = {"slearn/beyond": 0.98, "slearn/mixed": 1.0}
"""Minimum speed-up over the better of them."""

BOUNDS = (("slearn", "pilots/truth"), ("slearn", "pilots/truth_one_pilot"), ("slearn", "oracle"))
"""Pairs of which the second knows more: bounds on the gain of better estimates."""


def judged(finished: FinishedSweep) -> Findings:
    """Compare `COMBINED` with every other scheme, and with the better of the two in `ALONE`."""
    at_least = AT_LEAST.get(finished.config["experiment"])
    trace_keys = [key for key in finished.config["swept"] if key.startswith("trace.")]
    for (trace, *options), cells in finished.group_by("trace", *trace_keys).items():
        texts = [
            f"{key.rpartition('.')[2]} {value:g}"
            for key, value in zip(trace_keys, options, strict=True)
        ]
        figure = ", ".join([PRESETS.get(trace, trace), *texts, "mean JCT"])
        schemes = grouped(cells, "policy")
        single = [name for name in ALONE if name in schemes]
        if COMBINED in schemes and single:
            better = min(single, key=lambda name: fmean(column(schemes[name], "jct_mean_s")))
            label = f"{better}, the better of both, over {COMBINED}"
            ratios = _over(schemes, better, COMBINED)
            yield Finding.from_seeds(figure, label, ratios, at_least=at_least)
        pairs = [(scheme, COMBINED) for scheme in schemes if scheme != COMBINED]
        for slow, fast in [*pairs, *BOUNDS]:
            yield from mean(figure, f"{slow} over {fast}", _over(schemes, slow, fast))


def _over(schemes: Groups, slow: str, fast: str) -> list[float]:
    return [a["jct_mean_s"] / b["jct_mean_s"] for a, b in match_seeds(schemes, (slow, fast))]
