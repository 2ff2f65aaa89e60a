"""Effects of parts, computed by hand."""

from __future__ import annotations

import pytest

from policies.wing.study.parts import WING
from sweep.grid.options import Options
from tests.sweep.questions.papers.study_runs import study_results


def test_points_of_value_are_those_with_the_part_less_those_without() -> None:
    rows = [
        {"policy": policy, "capacity": 0.2, "seed": seed, "value_attained": value}
        for policy, attained in (("wing_agg", (0.6, 0.5)), ("wing_without/value", (0.5, 0.2)))
        for seed, value in enumerate(attained)
    ]
    results = study_results("wing/parts", rows, "capacity")
    assert results["capacity 0.2, points of value", "value"].ours == pytest.approx(20.0)
    assert results["capacity 0.2, value attained %", "wing_agg"].ours == pytest.approx(55.0)


def test_each_scheme_of_the_page_is_part_of_a_comparison() -> None:
    swept = Options.from_folders([]).plain("experiment", "wing/parts")["axes"]["policy"]
    assert set(swept) == {policy for _, *pair in WING for policy in pair}
