"""History and pilots combined, against each alone and against bounds of better estimates.

The better of two schemes has the lower mean completion time over all seeds. A speed-up
is the mean completion time under the other scheme over that under this one, by seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean

from policies.slearn.study.figures import PRESETS
from sweep.questions.papers.figures import (
    Findings,
    Groups,
    column,
    grouped,
    match_seeds,
    mean,
    published,
)
from sweep.report.findings import Finding, FinishedSweep

AT_LEAST = {"slearn/beyond": 0.98, "slearn/mixed": 1.0}
"""Minimum speed-up over the better of both, by the reading that counts."""


@dataclass(frozen=True)
class Reading:
    """The scheme under test, the two that it must not be behind, the other ones, and bounds.

    Of each pair of bounds the second scheme knows more: it bounds the gain of better estimates.
    """

    combined: str
    alone: tuple[str, str]
    rivals: tuple[str, ...]
    bounds: tuple[tuple[str, str], ...]
    counts: bool


READINGS = (
    Reading(
        "code_variants/bayes",
        ("slearn_code", "threesigma_code"),
        (
            "oracle_code",
            "code_variants/bayes3",
            "code_variants/slearn_truth",
            "code_variants/slearn_truth_one_pilot",
            "code_variants/adaptive_thin",
        ),
        (
            ("slearn_code", "code_variants/slearn_truth"),
            ("slearn_code", "code_variants/slearn_truth_one_pilot"),
            ("slearn_code", "oracle_code"),
        ),
        counts=True,
    ),
    Reading("bayes", ("slearn", "threesigma"), ("oracle",), (("slearn", "oracle"),), counts=False),
)
"""The authors' configuration, which counts, and the paper's reading."""


def judged(finished: FinishedSweep) -> Findings:
    """Compare the combination with every other scheme, and with the better of the two alone."""
    at_least = AT_LEAST.get(finished.config["experiment"], -math.inf)
    trace_keys = [key for key in finished.config["swept"] if key.startswith("trace.")]
    for (trace, *options), cells in finished.group_by("trace", *trace_keys).items():
        texts = [
            f"{key.rpartition('.')[2]} {value:g}"
            for key, value in zip(trace_keys, options, strict=True)
        ]
        figure = ", ".join([PRESETS.get(trace, trace), *texts, "mean JCT"])
        schemes = grouped(cells, "policy")
        for reading in READINGS:
            expected = at_least if reading.counts else -math.inf
            yield from _compare(figure, schemes, reading, expected)


def _compare(figure: str, schemes: Groups, reading: Reading, at_least: float) -> Findings:
    combined = reading.combined
    single = [name for name in reading.alone if name in schemes]
    if combined in schemes and single:
        better = min(single, key=lambda name: fmean(column(schemes[name], "jct_mean_s")))
        label = f"{better}, the better of both, over {combined}"
        ratios = _over(schemes, better, combined)
        yield Finding.from_seeds(figure, label, ratios, at_least=at_least)
    pairs = [(scheme, combined) for scheme in (*reading.alone, *reading.rivals)]
    for slow, fast in [*pairs, *reading.bounds]:
        yield from mean(figure, f"{slow} over {fast}", _over(schemes, slow, fast))


def _over(schemes: Groups, slow: str, fast: str) -> list[float]:
    return [a["jct_mean_s"] / b["jct_mean_s"] for a, b in match_seeds(schemes, (slow, fast))]


THREESIGMA = {"task": "threesigma_code", "total": "code_variants/threesigma_totals"}
SLEARN = {"own": "slearn_code", "second": "code_variants/slearn_second_queue"}
"""Schemes by reading: `policy.learns`, and `policy.sampling_queue` (decision 54)."""


def readings(finished: FinishedSweep) -> Findings:
    """Compare 3Sigma with SLearn by both readings of each, and each reading with the other."""
    distances: dict[str, list[float]] = {}
    for (trace,), cells in finished.group_by("trace").items():
        schemes, title = grouped(cells, "policy"), PRESETS.get(trace, trace)
        for unit, slow in THREESIGMA.items():
            for queue, fast in SLEARN.items():
                ratios = _over(schemes, slow, fast)
                paper = published("slearn", "fig6", trace, "threesigma")
                figure, label = f"{title}, 3Sigma over SLearn, mean JCT", _label(unit, queue)
                yield Finding.from_seeds(figure, label, ratios, paper=paper)
                error = abs(math.log(fmean(ratios) / float(paper)))
                distances.setdefault(label, []).append(error)
        for label, by_reading in (("total over task", THREESIGMA), ("second over own", SLEARN)):
            first, second = by_reading.values()
            ratios = _over(schemes, second, first)
            yield Finding.from_seeds(f"{title}, mean JCT", label, ratios)
    for label, errors in distances.items():
        yield Finding("mean |ln(ours / paper)|", label, fmean(errors))


def _label(unit: str, queue: str) -> str:
    return f"distributions by {unit}, queue of pilots: {queue}"
