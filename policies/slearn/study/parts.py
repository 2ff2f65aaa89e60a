"""Parts of SLearn, each taken away alone and paired by seed."""

from __future__ import annotations

import operator

from policies.slearn.study.figures import PRESETS
from sweep.questions.papers.figures import Findings, compare_seeds, grouped, mean
from sweep.report.findings import FinishedSweep

WHOLE = "slearn_code"
SLEARN: dict[str, tuple[tuple[str, str, str], ...]] = {
    "without": (
        ("pilots, with history instead", "threesigma_tl_code", WHOLE),
        ("pilots, with history that leaks nothing", "code_variants/threesigma_tl_no_leak", WHOLE),
        ("pilots, with attained service instead", "las_code", WHOLE),
        ("priority of thin jobs", "code_variants/slearn_all_sampled", WHOLE),
        ("more pilots than one", "code_variants/slearn_one_pilot", WHOLE),
    ),
    "with": (
        ("the adaptive ratio", "code_variants/slearn_adaptive", WHOLE),
        ("the truth once pilots end", "code_variants/slearn_truth", WHOLE),
        ("the truth at once", "code_variants/oracle_thin", WHOLE),
    ),
    "second reading, by the paper, without": (("adaptive ratio", "pilots/p3", "slearn"),),
}
"""Parts of SLearn, with the schemes whose mean completion times are divided (decision 31)."""


def slearn(finished: FinishedSweep) -> Findings:
    """Divide the mean completion time with a change by that without, by seed."""
    for (trace,), cells in finished.group_by("trace").items():
        schemes = grouped(cells, "policy")
        for kind, parts in SLEARN.items():
            figure = f"{PRESETS.get(trace, trace)}, mean JCT {kind}, over that of the whole"
            for label, *pair in parts:
                ratios = compare_seeds(schemes, pair, "jct_mean_s", operator.truediv)
                yield from mean(figure, label, ratios)
