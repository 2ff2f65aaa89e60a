"""Distribution of value over jobs, compared with Zipf's law."""

from __future__ import annotations

import pytest

from sweep.questions.papers import printed
from tests.sweep.questions.papers.study_runs import study_results


def test_value_by_rank_is_compared_with_zipfs() -> None:
    jobs = {"value": [1.0, 8.0, 3.0, 1.0], "agg_value": [2.0, 20.0, 5.0, 1.0]}
    row = {"zipf_value": 1.5, "zipf_agg_value": 0.9, "table": jobs}
    results = study_results("wing/fig8", [row])
    local = results["all jobs of the week", "exponent of local value"]
    assert (local.ours, local.paper) == (1.5, "1")
    assert results["all jobs of the week", "exponent of aggregate value"].ours == 0.9
    assert results["local value over Zipf's", "rank 1"].ours == 1.0
    assert results["local value over Zipf's", "rank 4"].ours == pytest.approx(4 / 8)
    assert results["aggregate value over Zipf's", "rank 4"].ours == pytest.approx(4 / 20)


def test_failures_of_predicted_wing_agg_are_those_of_both_kinds_of_jobs():
    paper = printed.read("wing")
    failed = paper["fig10"]["jobs_failed"][0.2]
    kinds, recurring = paper["kinds"], paper["recurring"]["jobs"]
    mean = recurring * kinds["jobs_failed_recurring"]["wing_agg"]
    mean += (1 - recurring) * kinds["jobs_failed_ad_hoc"]["wing_agg"]
    assert failed["wing_agg"] == f"about {mean:.0f}"
    assert failed["wing_oracle/agg"] == 26  # §7.3, for the oracle
