"""History and pilots together, against each alone, and what no estimate can better.

The better of two schemes is the one whose mean completion time over all seeds is less. A speed-up
is the mean completion time under the other scheme over that under this one, by seed.
"""

from __future__ import annotations

from statistics import fmean

from sweep.papers.studies.slearn import PRESETS
from sweep.report.findings import Finding, Finished

OURS, ALONE = "bayes", ("slearn", "threesigma")
"""What is judged, and the two that it must not be behind."""

AT_LEAST = {"slearn/beyond": 0.98, "slearn/mixed": 1.0}
"""How far before the better of them it has to be."""

BOUNDS = (("slearn", "pilots/told"), ("slearn", "pilots/told_by_one"), ("slearn", "oracle"))
"""Pairs of which the second knows more: what better estimates could gain."""


def judged(finished: Finished) -> list[Finding]:
    """Compare `OURS` with every other scheme, and with the better of those of one source."""
    at_least = AT_LEAST.get(finished.config["experiment"])
    of_trace = [key for key in finished.config["swept"] if key.startswith("trace.")]
    findings = []
    for (trace, *more), cells in finished.by("trace", *of_trace).items():
        told = (
            f"{key.rpartition('.')[2]} {value:g}" for key, value in zip(of_trace, more, strict=True)
        )
        figure = ", ".join([PRESETS.get(trace, trace), *told, "mean JCT"])
        jct_s: dict[str, dict[int, float]] = {}
        for row in cells:
            jct_s.setdefault(row["policy"], {})[row["seed"]] = row["jct_mean_s"]

        def over(far: str, near: str, of: dict[str, dict[int, float]] = jct_s) -> list[float]:
            shared = sorted(of.get(far, {}).keys() & of.get(near, {}).keys())
            return [of[far][seed] / of[near][seed] for seed in shared]

        both = [name for name in ALONE if name in jct_s]
        if OURS in jct_s and both:
            better = min(both, key=lambda name: fmean(jct_s[name].values()))
            what = f"{better}, the better of both, over {OURS}"
            findings.append(Finding.of(figure, what, over(better, OURS), at_least=at_least))
        pairs = [(other, OURS) for other in jct_s if other != OURS]
        for far, near in [*pairs, *BOUNDS]:
            if values := over(far, near):
                findings.append(Finding.of(figure, f"{far} over {near}", values))
    return findings
