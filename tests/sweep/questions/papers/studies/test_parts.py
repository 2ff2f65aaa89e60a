"""Effects of parts, computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from sweep.grid.options import Options
from sweep.questions.papers.studies.parts import SLEARN, WING
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


def test_points_of_value_are_those_with_the_part_less_those_without() -> None:
    rows = [
        {"policy": policy, "capacity": 0.2, "seed": seed, "value_attained": value}
        for policy, attained in (("wing_agg", (0.6, 0.5)), ("wing_without/value", (0.5, 0.2)))
        for seed, value in enumerate(attained)
    ]
    results = study_results("wing/parts", rows, "capacity")
    assert results["capacity 0.2, points of value", "value"].ours == pytest.approx(20.0)
    assert results["capacity 0.2, value attained %", "wing_agg"].ours == pytest.approx(55.0)


@pytest.mark.parametrize(
    ("experiment", "pairs"),
    [
        ("slearn/parts", [pair for parts in SLEARN.values() for _, *pair in parts]),
        ("wing/parts", [pair for _, *pair in WING]),
    ],
)
def test_each_scheme_of_a_page_is_part_of_a_comparison(experiment: str, pairs: Any) -> None:
    swept = Options.from_folders([]).plain("experiment", experiment)["axes"]["policy"]
    assert set(swept) == {policy for pair in pairs for policy in pair}
