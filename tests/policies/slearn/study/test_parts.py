"""Effects of parts, computed by hand."""

from __future__ import annotations

import pytest

from policies.slearn.study.parts import SLEARN
from sweep.grid.options import Options
from tests.sweep.questions.papers.study_runs import study_results


def test_completion_times_are_divided_by_seed() -> None:
    rows = [
        {"policy": policy, "trace": "slearn_2sigma", "seed": seed, "jct_mean_s": jct_s}
        for policy, jcts_s in (
            ("slearn_code", (1.0, 2.0)),
            ("las_code", (3.0, 2.0)),
            ("code_variants/slearn_truth", (0.5, 1.0)),
        )
        for seed, jct_s in enumerate(jcts_s)
    ]
    results = study_results("slearn/parts", rows)
    without = "2Sigma, mean JCT without, over that of the whole"
    assert results[without, "pilots, with attained service instead"].ours == pytest.approx(2.0)
    truth = results["2Sigma, mean JCT with, over that of the whole", "the truth once pilots end"]
    assert truth.ours == pytest.approx(0.5)
    assert len(results) == 2


def test_each_scheme_of_the_page_is_part_of_a_comparison() -> None:
    swept = Options.from_folders([]).plain("experiment", "slearn/parts")["axes"]["policy"]
    assert set(swept) == {
        policy for parts in SLEARN.values() for _, *pair in parts for policy in pair
    }
