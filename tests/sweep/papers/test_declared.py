"""Studies that are data: each verb on a few cells, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sim.base.errors import InputError
from sweep.papers import declared
from sweep.papers.declared import printed
from sweep.report.findings import Finding, Finished

CELLS = [
    {"policy": policy, "capacity": capacity, "seed": seed, "m": 10.0 * at + capacity + seed}
    for capacity in (1.0, 0.5)
    for at, policy in enumerate(("a", "b"))
    for seed in (0, 1)
]
BASE: dict[str, Any] = {"figure": "f", "what": "w", "metric": "m"}


def found(*figures: dict[str, Any], cells: list[Any] | None = None) -> list[Finding]:
    config = {"experiment": "wing/fig10"}
    finished = Finished(CELLS if cells is None else cells, config, None)  # type: ignore[arg-type]
    declared.check(list(figures))
    return declared.find(list(figures), finished)


def shown(*figures: dict[str, Any], **more: Any) -> list[tuple[str, str, float]]:
    return [(f.figure, f.what, f.ours) for f in found(*figures, **more)]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, [("f", "w", 6.25)]),
        ({"by": ["policy"], "what": "{policy}"}, [("f", "a", 1.25), ("f", "b", 11.25)]),
        (
            {"by": ["capacity"], "where": {"policy": "a"}, "what": "at {capacity:g}"},
            [("f", "at 1", 1.5), ("f", "at 0.5", 1.0)],
        ),
        ({"where": {"policy": ["b", "c"], "capacity": {"above": 0.5}}}, [("f", "w", 11.5)]),
        ({"where": {"capacity": {"at_most": 0.5}}}, [("f", "w", 6.0)]),
        ({"where": {"policy": "c"}}, []),
        ({"scale": -2.0, "plus": 1.0}, [("f", "w", -11.5)]),
        ({"statistic": "count"}, [("f", "w", 8.0)]),
        ({"statistic": "median", "above": 10.0}, [("f", "w", 11.25)]),
        ({"each": {"p": [0, 100]}, "statistic": "p{p}"}, [("f", "w", 0.5), ("f", "w", 12.0)]),
        (
            {"each": [{"x": "a_b", "y": 1}], "what": "{x:words} {y} {experiment}"},
            [("f", "a b 1 fig10", 6.25)],
        ),
        (
            {"where": {"policy": "b"}, "against": {"policy": "a"}, "compare": "less",
             "by": ["capacity"], "what": "{capacity}"},
            [("f", "1.0", 10.0), ("f", "0.5", 10.0)],
        ),
        (
            {"where": {"policy": "b", "capacity": 1.0}, "against": {"policy": "a", "capacity": 1.0},
             "compare": "ratio"},
            [("f", "w", (11 / 1 + 12 / 2) / 2)],
        ),
        (
            {"where": {"policy": "b", "capacity": 1.0}, "against": {"policy": "a", "capacity": 1.0},
             "compare": "gain", "scale": 100.0},
            [("f", "w", 100 * (1 - 11 / 1 + 1 - 12 / 2) / 2)],
        ),
        (
            {"where": {"policy": "b"}, "against": {"policy": "a"}, "compare": "means"},
            [("f", "w", 9.0)],
        ),
        ({"where": {"policy": "b"}, "against": {"policy": "c"}, "compare": "means"}, []),
        ({"metric": "n", "optional": True}, []),
    ],
)  # fmt: skip
def test_what_is_said_is_done(more: dict[str, Any], expected: list[tuple[str, str, float]]) -> None:
    if more.get("by") == ["capacity"] and "compare" in more:
        outer = {"for": ["capacity"], "figures": [{k: v for k, v in more.items() if k != "by"}]}
        assert shown({**BASE, **outer}) == expected
    else:
        assert shown({**BASE, **more}) == expected


def test_parts_are_made_for_each_group_and_say_what_their_figures_do_not() -> None:
    inner = [{"figure": "f {capacity:g}"}, {"figure": "g", "scale": 2.0, "by": ["policy"]}]
    part = {"for": ["capacity"], "what": "w", "metric": "m", "figures": inner}
    names = [(figure, ours) for figure, _, ours in shown(part)]
    assert names == [("f 1", 6.5), ("g", 3.0), ("g", 23.0), ("f 0.5", 6.0), ("g", 2.0), ("g", 22.0)]


def test_means_have_intervals_and_other_statistics_none() -> None:
    mean, median = found(BASE, {**BASE, "statistic": "median"})
    assert mean.low < mean.ours < mean.high
    assert math.isnan(median.low)


def test_two_zeros_are_as_much_as_each_other() -> None:
    def ratio(more: float, less: float) -> float:
        cells = [{"policy": "a", "m": more}, {"policy": "b", "m": less}]
        compare = {"where": {"policy": "a"}, "against": {"policy": "b"}, "compare": "means"}
        (one,) = found({**BASE, **compare}, cells=cells)
        return one.ours

    assert (ratio(0.0, 0.0), ratio(2.0, 0.0), ratio(2.0, 4.0)) == (1.0, math.inf, 0.5)


def test_the_papers_number_stands_beside_and_may_be_wanted() -> None:
    paper = ["wing", "{experiment}", "value_attained", "{capacity}", "wing_agg"]
    (text, none) = found({**BASE, "by": ["capacity"], "paper": paper})
    assert (text.paper, none.paper, text.wanted) == ("about 100", "", "")
    (near,) = found({**BASE, "paper": ["wing", "fig8", "zipf_value"], "within": 0.5})
    assert (near.paper, near.at_least, near.at_most) == ("1", 0.5, 1.5)
    (formula,) = found({**BASE, "formula": "capacity", "within": 0.1, "at_least": 0.0})
    assert (formula.paper, formula.at_least) == ("1", 0.9)
    assert (printed("jockey", "fig10", "delta_t", "cp"), printed("jockey", "no")) == ("3.0", "")


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ([{**BASE, "metrc": "m"}], "did you mean 'metric'"),
        ([{"figure": "f", "what": "w"}], "has no metric"),
        ([{**BASE, "compare": "less"}], "has no against"),
        ([{**BASE, "compare": "lesss"}], "did you mean 'less'"),
        ([{**BASE, "statistic": "mode"}], "statistic of figures 'mode'"),
        ([{**BASE, "by": "policy"}], "by='policy' is not a list"),
        ([{**BASE, "scale": "2"}], "scale='2' is not a number"),
        ([{**BASE, "figure": 3}], "figure=3 is not a text"),
        ([{**BASE, "where": []}], "where=\\[\\] is not a mapping"),
        ([{**BASE, "what": "{polcy}", "by": ["policy"]}], "did you mean 'policy'"),
        ([{**BASE, "paper": ["wing", "fig1", "{x}"], "each": {"x": [1]}}], "did you mean 'fig1"),
        ([{**BASE, "paper": ["wong"]}], "did you mean 'wing'"),
        ([3], "3 is not {key: value}"),
        (3, "figures=3 is not a list"),
    ],
)
def test_what_says_no_figures_is_refused(figures: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        declared.check(figures)
