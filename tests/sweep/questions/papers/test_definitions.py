"""Definitions of the papers' numbers and of ours: stated, by the same names, and on each page."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from sim import published as inputs
from sim.published import Numbers, Printed
from sweep.grid.options import Options
from sweep.questions.papers import definitions, excluded, printed, verb
from sweep.questions.papers.excluded import DEFINITION, Marks
from sweep.questions.papers.pages import PageTable
from sweep.report import findings
from sweep.report.findings import Finding
from tests.sweep.questions.papers.test_gallery import PAGES

PAPERS = {paper["title"].split(":")[0]: paper for paper in excluded.papers()}
NAMES = {"Alibaba DAGs": "alibaba", "Backfilling": "backfill", "Elastic jobs": "elastic"}
BY_GENERATORS = ("dagps", "jockey", "wing")
"""Papers of which `sim.published` has what generators read, and is compared as an input."""


def content(paper: str) -> dict[str, Any]:
    return next(c for title, c in PAPERS.items() if NAMES.get(title, title.lower()) == paper)


@pytest.fixture(scope="module")
def rows() -> dict[str, list[Finding]]:
    """Rows of each kept page."""
    studies = verb.studies(Options.from_folders([]))
    tables = {name: PageTable.read(PAGES, name) for name in studies}
    return {name: list(table.findings) for name, table in tables.items() if table is not None}


def path(finding: Finding) -> tuple[str, ...]:
    return getattr(finding.paper, "path", ())


@pytest.mark.parametrize("paper", inputs.papers())
def test_each_number_says_metric_population_conditions_and_place(paper: str) -> None:
    numbers = printed.read(paper)
    for keys in numbers.paths():
        assert numbers.definition(*keys).missing() == [], keys


@pytest.mark.parametrize("paper", inputs.papers())
def test_names_of_metrics_and_populations_are_of_one_list(paper: str) -> None:
    numbers, file = printed.read(paper), content(paper)
    stated = [numbers.definition(*keys) for keys in numbers.paths()]
    for field, listed in (("metric", "metrics"), ("population", "populations")):
        used = {getattr(definition, field) for definition in stated}
        used |= {entry[field] for entry in file["ours"]}
        assert used == set(file["words"][listed])
        assert Counter(file["words"][listed]).most_common(1)[0][1] == 1


def test_each_number_that_counts_has_both_definitions(rows: dict[str, list[Finding]]) -> None:
    marks = excluded.by_page(excluded.papers())
    for page, listed in rows.items():
        page_marks = marks.get(page, Marks())
        for row in findings.to_table(listed).to_pylist():
            if findings.verdict(row) and not page_marks.reason(row):
                assert row["number"], (page, row["figure"], row["what"])
            if row["number"]:
                assert page_marks.ours(row["figure"], row["what"]), (page, row["what"])


def test_each_definition_of_ours_is_used(rows: dict[str, list[Finding]]) -> None:
    for page, marks in excluded.by_page(excluded.papers()).items():
        used = {id(marks.ours(row.figure, row.quantity)) for row in rows.get(page, ()) if path(row)}
        for ours in marks.definitions:
            assert id(ours) in used, f"{page}: no row with a paper's number matches {ours}"


@pytest.mark.parametrize("paper", inputs.papers())
def test_a_number_is_on_a_page_or_the_reason_is_stated(
    paper: str, rows: dict[str, list[Finding]]
) -> None:
    shown = {
        path(row)[1:] for listed in rows.values() for row in listed if path(row)[:1] == (paper,)
    }
    numbers = printed.read(paper)
    fed = set(inputs.numbers(paper)) if paper in BY_GENERATORS else set[str]()
    for keys in numbers.paths():
        is_shown = keys in shown
        if keys[0] not in fed or is_shown:
            assert is_shown != bool(numbers.definition(*keys).uncompared), keys
    assert shown <= {*numbers.paths()}


def test_a_page_shows_both_definitions_and_does_not_count_where_they_differ() -> None:
    marks = excluded.by_page(
        [
            {
                "not counted": [{"pages": ["p"], "reason": "input", "what": "fed"}],
                "ours": [
                    {
                        "pages": ["p"], "figure": "f", "metric": "value attained",
                        "population": "jobs of the third week", "note": "so",
                    },
                    {"pages": ["p"], "metric": "another", "population": "jobs"},
                ],
            }
        ]
    )["p"]  # fmt: skip
    number = printed.text("wing", "fig10", "value_attained", 0.2, "wing_agg")
    rows = [
        Finding("f", "a", 55.0, 54.0, 56.0, paper=number),
        Finding("g", "b", 55.0, 54.0, 56.0, paper=number),
        Finding("g", "fed", 55.0, 54.0, 56.0, paper=number),
        Finding("f", "none", 1.0),
    ]
    reasons = [marks.reason(row) for row in findings.to_table(rows).to_pylist()]
    assert reasons == ["", DEFINITION, "input", ""]
    lines = definitions.page_text(rows, marks).splitlines()[4:]
    paper = (
        "value attained, of jobs of the third week; each organisation with a hard queue; one draw"
        " | §7.1, Fig. 10"
    )
    assert lines == [
        f"| f | {paper} | same; so |",
        f"| g | {paper} | **differs**: another, of jobs |",
    ]


def test_a_number_of_one_draw_has_the_seeds_behind_its_interval(
    rows: dict[str, list[Finding]],
) -> None:
    drawn = [f for listed in rows.values() for f in listed if getattr(f.paper, "is_one_draw", 0)]
    assert len(drawn) > 300
    for finding in drawn:
        assert (finding.n > 0) == math.isfinite(finding.low), (finding.figure, finding.quantity)


def test_a_table_keeps_the_seeds_and_so_the_verdict() -> None:
    number = printed.text("wing", "fig10", "value_attained", 0.2, "wing_agg")  # 55, one draw
    drawn = Finding.from_seeds("f", "a", [53.0, 57.0] * 6, paper=number)
    steady = Finding.from_seeds("f", "b", [54.0, 56.0] * 6, paper=number)
    rows = PageTable((), (drawn, replace(drawn, paper="55"), steady, replace(steady, n=0))).rows()
    assert [row["verdict"] for row in rows] == ["unclear", "same", "same", "unclear"]
    assert json.loads(PageTable((), (drawn,)).to_json())["rows"][0][-1] == drawn.n == 12


def test_a_number_without_a_definition_is_shown_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stranger's package goes on working: its page names what is missing."""
    monkeypatch.setattr(printed, "read", lambda paper: Numbers(paper, {"longest": {"fifo": 60}}))
    (row,) = (Finding("longest", "fifo", 61.0, paper=Printed("60", ("x", "longest", "fifo"))),)
    line = definitions.page_text([row], Marks()).splitlines()[-1]
    assert line == f"| longest | {definitions.UNSTATED} |  | {definitions.UNSTATED} |"


def test_the_list_names_what_no_page_compares() -> None:
    text = definitions.uncompared_text()
    for paper in inputs.papers():
        numbers = printed.read(paper)
        for keys in numbers.paths():
            reason = numbers.definition(*keys).uncompared
            assert not reason or reason in text, keys
