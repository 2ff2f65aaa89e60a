"""Building blocks of studies, on a few cells computed by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from operator import sub, truediv

import pytest

from sweep.questions.papers.figures import (
    column,
    compare_seeds,
    grouped,
    mean,
    mean_ratio,
    means,
    percent_reduction,
    published,
    ratio,
    share,
    sort_by_figure,
    with_metric,
    within,
)
from sweep.report.findings import Finding, FinishedSweep

CELLS = [
    {"policy": policy, "capacity": capacity, "seed": seed, "m": 10.0 * i + capacity + seed}
    for capacity in (1.0, 0.5)
    for i, policy in enumerate(("a", "b"))
    for seed in (0, 1)
]
SCARCE = grouped([row for row in CELLS if row["capacity"] == 0.5], "policy")


def test_cells_are_grouped_in_order_of_appearance() -> None:
    groups = grouped(CELLS, "policy", "capacity", label="{} at {:g}")
    assert list(groups) == ["a at 1", "b at 1", "a at 0.5", "b at 0.5"]
    assert column(groups["b at 0.5"], "m", 2.0) == [21.0, 23.0]


def test_means_have_intervals_and_the_papers_number_of_their_label() -> None:
    a, b = means("f", SCARCE, "m", 2.0, ("wing", "fig10"))
    assert [(f.figure, f.quantity, f.ours, f.paper) for f in (a, b)] == [
        ("f", "a", 2.0, ""),
        ("f", "b", 22.0, ""),
    ]
    assert a.low < a.ours < a.high
    groups = {"wing_agg": SCARCE["a"], "none": []}
    (finding,) = means("f", groups, "m", paper=("wing", "fig10", "jobs_failed", 0.2))
    assert finding.paper == "about 30"
    assert json.loads(finding.number) == ["wing", "fig10", "jobs_failed", "0.2", "wing_agg"]
    assert list(mean("f", "w", [])) == []


def test_groups_are_compared_seed_by_seed() -> None:
    assert compare_seeds(SCARCE, ("b", "a"), "m", sub) == [10.0, 10.0]
    assert compare_seeds(SCARCE, ("b", "a"), "m", truediv) == [10.5 / 0.5, 11.5 / 1.5]
    assert compare_seeds(SCARCE, ("a", "b"), "m", percent_reduction)[0] == 100.0 * (
        1.0 - 0.5 / 10.5
    )
    assert compare_seeds(SCARCE, ("a", "c"), "m", sub) == []
    (value,) = compare_seeds({"a": SCARCE["a"][:1], "b": SCARCE["b"][1:]}, ("a", "b"), "m", sub)
    assert math.isnan(value)  # no common seed


@pytest.mark.parametrize(
    ("numerator", "denominator", "expected"),
    [(0.0, 0.0, 1.0), (2.0, 0.0, math.inf), (2.0, 4.0, 0.5)],
)
def test_the_ratio_of_two_zeros_is_one(
    numerator: float, denominator: float, expected: float
) -> None:
    groups = {"a": [{"m": numerator}], "b": [{"m": denominator}], "none": []}
    assert ratio(groups, ("a", "b"), "m", 100.0) == [expected]
    assert ratio(groups, ("a", "none"), "m") == []


def test_cells_without_a_number_are_left_out() -> None:
    cells = [{"m": 1.0}, {"m": math.nan}, {"m": None}, {}]
    assert with_metric(cells, "m") == [{"m": 1.0}]


def test_numbers_of_the_paper_keep_their_digits() -> None:
    assert published("jockey", "fig10", "delta_t", "cp") == "3.0"
    assert published("jockey", "fig7", "deadlines_missed") == "0"
    assert published("wing", "fig10", "value_attained", 0.2, "wing_agg") == "55"
    assert published("jockey", "no") == published("jockey") == published() == ""
    assert within(2.0, 0.25) == {"at_least": 1.5, "at_most": 2.5}


def test_findings_of_a_figure_are_adjacent() -> None:
    @sort_by_figure
    def study(finished: FinishedSweep) -> Iterator[Finding]:
        for row in finished.cells:
            yield Finding(row["policy"], "w", row["m"])

    findings = list(study(FinishedSweep(CELLS, {}, None)))  # type: ignore[arg-type]
    assert [f.figure for f in findings] == list("aaaabbbb")
    assert [f.ours for f in findings[:4]] == [1.0, 2.0, 0.5, 1.5]


def test_a_share_of_like_runs_has_an_interval_too() -> None:
    (finding,) = share("missed, %", "a", [0.0, 1.0, 0.0, 0.0, math.nan], paper="25")
    assert (finding.ours, finding.paper) == (25.0, "25")
    assert 0.0 < finding.low < 25.0 < finding.high < 100.0
    (none,) = share("missed, %", "a", [0.0] * 21)
    assert (none.ours, none.low) == (0.0, pytest.approx(0.0, abs=1e-12))
    assert none.high == pytest.approx(15.46, abs=0.01)
    assert list(share("missed, %", "a", [])) == []


def test_a_ratio_of_means_has_the_interval_of_its_seeds() -> None:
    groups = {
        name: [{"seed": seed, "m": value} for seed, value in enumerate(values)]
        for name, values in {"a": (4.0, 6.0), "b": (2.0, 3.0), "c": (2.0, 2.0)}.items()
    }
    (steady,) = mean_ratio("f", groups, ("a", "b"), "m", paper="2.1")
    assert (steady.quantity, steady.ours, steady.paper) == ("a over b", 2.0, "2.1")
    assert (steady.low, steady.high) == (2.0, 2.0)  # twice as much on each seed
    (varied,) = mean_ratio("f", groups, ("a", "c"), "m")
    assert varied.ours == 2.5
    assert varied.high - varied.ours == pytest.approx(12.706205 * 0.5, rel=1e-6)
    assert list(mean_ratio("f", groups, ("a", "d"), "m")) == []
