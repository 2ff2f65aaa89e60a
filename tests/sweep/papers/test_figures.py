"""Parts of studies: each on a few cells, worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import sub, truediv

import pytest

from sweep.papers.figures import (
    column,
    grouped,
    known,
    mean,
    means,
    near,
    paired,
    percent_less,
    printed,
    ratio,
    together,
)
from sweep.report.findings import Finding, FinishedSweep

CELLS = [
    {"policy": policy, "capacity": capacity, "seed": seed, "m": 10.0 * at + capacity + seed}
    for capacity in (1.0, 0.5)
    for at, policy in enumerate(("a", "b"))
    for seed in (0, 1)
]
SCARCE = grouped([row for row in CELLS if row["capacity"] == 0.5], "policy")


def test_cells_are_grouped_in_order_of_appearance() -> None:
    groups = grouped(CELLS, "policy", "capacity", label="{} at {:g}")
    assert list(groups) == ["a at 1", "b at 1", "a at 0.5", "b at 0.5"]
    assert column(groups["b at 0.5"], "m", 2.0) == [21.0, 23.0]


def test_means_have_intervals_and_stand_beside_the_paper_s_number_of_their_label() -> None:
    a, b = means("f", SCARCE, "m", 2.0, ("wing", "fig10"))
    assert [(f.figure, f.quantity, f.ours, f.paper) for f in (a, b)] == [
        ("f", "a", 2.0, ""),
        ("f", "b", 22.0, ""),
    ]
    assert a.low < a.ours < a.high
    groups = {"wing_agg": SCARCE["a"], "none": []}
    (one,) = means("f", groups, "m", paper=("wing", "fig10", "value_attained", 1.0))
    assert one.paper == "about 100"
    assert list(mean("f", "w", [])) == []


def test_groups_are_compared_seed_by_seed() -> None:
    assert paired(SCARCE, ("b", "a"), "m", sub) == [10.0, 10.0]
    assert paired(SCARCE, ("b", "a"), "m", truediv) == [10.5 / 0.5, 11.5 / 1.5]
    assert paired(SCARCE, ("a", "b"), "m", percent_less)[0] == 100.0 * (1.0 - 0.5 / 10.5)
    assert paired(SCARCE, ("a", "c"), "m", sub) == []
    (other,) = paired({"a": SCARCE["a"][:1], "b": SCARCE["b"][1:]}, ("a", "b"), "m", sub)
    assert math.isnan(other)  # no seed is of both


@pytest.mark.parametrize(
    ("more", "less", "expected"), [(0.0, 0.0, 1.0), (2.0, 0.0, math.inf), (2.0, 4.0, 0.5)]
)
def test_two_zeros_are_as_much_as_each_other(more: float, less: float, expected: float) -> None:
    groups = {"a": [{"m": more}], "b": [{"m": less}], "none": []}
    assert ratio(groups, ("a", "b"), "m", 100.0) == [expected]
    assert ratio(groups, ("a", "none"), "m") == []


def test_cells_without_a_number_are_left_out() -> None:
    cells = [{"m": 1.0}, {"m": math.nan}, {"m": None}, {}]
    assert known(cells, "m") == [{"m": 1.0}]


def test_numbers_are_shown_as_they_are_printed() -> None:
    assert printed("jockey", "fig10", "delta_t", "cp") == "3.0"
    assert printed("jockey", "fig7", "deadlines_missed") == "0"
    assert printed("wing", "fig10", "value_attained", 0.2, "wing_agg") == "55"
    assert printed("jockey", "no") == printed("jockey") == printed() == ""
    assert near(2.0, 0.25) == {"at_least": 1.5, "at_most": 2.5}


def test_findings_of_a_figure_are_kept_together() -> None:
    @together
    def study(finished: FinishedSweep) -> Iterator[Finding]:
        for row in finished.cells:
            yield Finding(row["policy"], "w", row["m"])

    found = list(study(FinishedSweep(CELLS, {}, None)))  # type: ignore[arg-type]
    assert [f.figure for f in found] == list("aaaabbbb")
    assert [f.ours for f in found[:4]] == [1.0, 2.0, 0.5, 1.5]
