"""Judgement of values against a paper's: same, close or different."""

from __future__ import annotations

import math

import pytest

from sweep.report.findings import verdict

NAN = math.nan


@pytest.mark.parametrize(
    ("ours", "low", "high", "paper", "expected"),
    [
        (10.0, 8.0, 12.0, "11.9", "same"),
        (10.0, 8.0, 12.0, "12.1", "close"),
        (10.0, 9.9, 10.1, "13.4", "differs"),
        (10.5, NAN, NAN, "10", "same"),
        (12.5, NAN, NAN, "10", "close"),
        (12.6, NAN, NAN, "10", "differs"),
        (7.4, NAN, NAN, "10", "differs"),
        (-15.5, NAN, NAN, "-16", "same"),
        (15.5, NAN, NAN, "-16", "differs"),
        (0.3, -0.1, 0.7, "0", "same"),
        (0.3, 0.1, 0.5, "0", "differs"),
        (0.3, 0.1, 0.5, "0, rounded", "same"),
        (0.8, 0.6, 1.0, "0, rounded", "differs"),
        (-0.7, -1.8, 0.3, "-2, rounded", "same"),
        (1.4, NAN, NAN, "1, rounded", "same"),
        (1.6, NAN, NAN, "1, rounded", "differs"),
        (23.0, NAN, NAN, "about 24", "same"),
        (50.0, NAN, NAN, "45 or more", "same"),
        (40.0, NAN, NAN, "45 or more", "close"),
        (280.0, NAN, NAN, "more than 80", "same"),
        (3.0, NAN, NAN, "4 at most", "same"),
        (6.0, NAN, NAN, "4 at most", "differs"),
        (6.0, 3.0, 9.0, "4 at most", "same"),
        (40.0, 38.0, 46.0, "more than 45", "same"),
        (36.0, 28.0, 45.0, "slightly below 55", "differs"),
        (1.0, NAN, NAN, "3 times Jockey's", ""),
        (1.0, NAN, NAN, "", ""),
        (NAN, NAN, NAN, "3", ""),
    ],
)
def test_verdicts_of_findings(
    ours: float, low: float, high: float, paper: str, expected: str
) -> None:
    assert verdict(ours, low, high, paper) == expected


def test_a_ratio_has_the_unit_of_the_figure() -> None:
    assert verdict(1.06, NAN, NAN, "1 of 94", percent=True) == "same"
    assert verdict(1.06, NAN, NAN, "1 of 94") == "differs"
