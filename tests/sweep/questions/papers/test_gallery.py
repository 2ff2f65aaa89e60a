"""List of reproductions."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from sweep.driver import make_request
from sweep.grid.options import Options
from sweep.questions.papers import excluded, gallery, pages
from sweep.questions.papers import verb as reproduce
from sweep.questions.papers.gallery import Gallery
from sweep.questions.papers.pages import PageTable, Study
from sweep.report.agreement import DIFFERENT
from sweep.report.findings import Finding

ROOT = Path(__file__).parents[4]
PAGES = ROOT / "results" / "reproductions"
OUTDATED = "it is outdated; render it anew with `python -m sweep reproduce --list`"
TABLE = PageTable(
    ("seed=0",),
    (
        Finding("Fig. 1", "x", 1.0, 0.98, 1.02, paper="1.0", at_least=1.0),
        Finding("Fig. 1", "y|z", 1.0, paper="2.0", at_least=2.0),
        Finding("Fig. 1", "z", 1.0),
        Finding("Fig. 1, %", "set", 5.0, paper="5.0", exact=True),
        Finding("Fig. 1, %", "set, too", 5.0, 2.0, 8.0, paper="5.0"),
        Finding("Fig. 1, %", "lost", math.nan, paper="5.0"),
    ),
)
MARKS = [{"pages": ["wing/a"], "reason": "input", "figure": "Fig. 1, %", "what": "set.*"}]
PAPER = {
    "title": "Wing",
    "source": "Chung",
    "not counted": MARKS,
    "figures": [
        {"figure": "Fig. 1", "content": "a", "pages": ["wing/a", "wing/none"], "reason": "so"},
        {
            "figure": "Fig. 2",
            "content": "b",
            "pages": ["wing/a"],
            "titles": ["Fig. 2"],
            "reason": "so",
        },
        {
            "figure": "Fig. 3",
            "content": "c",
            "pages": ["wing/a"],
            "titles": ["Fig. 1"],
            "show": "Fig. 1, y|z",
        },
        {"figure": "Fig. 4", "content": "d", "omitted": "a sketch"},
        {"figure": "Fig. 5", "content": "e", "test": "tests/x.py"},
    ],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "wing-a.json").write_text(TABLE.to_json())
    (tmp_path / "wing-a.md").touch()
    monkeypatch.setattr(gallery, "papers", lambda: [PAPER])
    monkeypatch.setattr(gallery.definitions, "uncompared_text", lambda: "| wing: 1 |")
    return tmp_path


def test_each_figure_has_a_row_with_its_agreement(folder: Path) -> None:
    studies = {
        "wing/b": Study("B | b (Fig. 3).", "Two", ("seed=0", "capacity=1")),
        "wing/a": Study("A.", "One"),
    }
    text = Gallery(folder, studies).index()
    page, agreement = "[wing/a](wing-a.md)", "1 same, 1 different, 1 of 2 as expected"
    whole = "1 same, 1 different, 2 not counted (input), 1 of 2 as expected"
    kinds = ("**Of", "| Fig", "| B", "| wing", "## ", "- wing")
    assert [line for line in text.splitlines() if line.startswith(kinds)] == [
        "**Of 2 predictions of the papers: 1 same, 0 close, 1 different, 0 unclear.** 2 more "
        "numbers are shown and not counted: 2 input.",
        "| wing | 1 | 0 | 1 | 0 | 2 |",
        "## Wing",
        f"| Fig. 1 | a | Fig. 1, x: 1.0 | 1.000 (0.980 to 1.020) | {whole} | so "
        f"| {page}, wing/none (no page yet) |",
        f"| Fig. 2 | b |  |  |  |  | {page} |",
        f"| Fig. 3 | c | Fig. 1, y\\|z: 2.0 | 1.000 | {agreement} |  | {page} |",
        "| Fig. 4 | d |  |  | not reproduced | a sketch |  |",
        "| Fig. 5 | e |  |  | checked by a test |  | `python -m pytest tests/x.py` |",
        "## Beyond the papers' figures",
        "| B \\| b. | Two |  | wing/b (no page yet) |",
        "## Numbers that no page compares",
        "| wing: 1 |",
        "## Smaller at `scale=gallery`",
        "- wing/b (no page yet): `seed=0`, `capacity=1`",
    ]


def test_a_stored_table_is_read_as_it_was_written(folder: Path) -> None:
    stored = PageTable.read(folder, "wing/a")
    assert stored is not None
    assert stored.to_json() == TABLE.to_json()
    assert repr(stored) == repr(TABLE)  # NaN is not equal to itself
    assert PageTable.read(folder, "wing/b") is None
    lines = TABLE.to_json().splitlines()
    assert len(lines) == 6 + len(TABLE.findings)  # a row a line
    assert '["Fig. 1", "z", 1.0],' in lines


def test_a_page_is_rendered_from_its_table(folder: Path) -> None:
    studies = {
        "wing/a": Study("A.", "One", notes="So it is. ", table="All"),
        "wing/b": Study("", ""),
    }
    lines = Gallery(folder, studies).page("wing/a").splitlines()
    assert lines[:5] == [
        *("# wing/a", "", "A.", ""),
        "Beside One. Made by `python -m sweep reproduce wing/a seed=0`, which gives the same "
        "numbers on every machine.",
    ]
    assert lines[6:] == [
        "| figure | what | ours | 95 % interval | paper | verdict | not counted | wanted | met |",
        "| --- | --- | ---: | --- | ---: | --- | --- | --- | --- |",
        "| Fig. 1 | x | 1.000 | 0.980 to 1.020 | 1.0 | same |  | ≥ 1 | yes |",
        "|  | y\\|z | 1.000 |  | 2.0 | different |  | ≥ 2 | no |",
        "|  | z | 1.000 |  |  |  |  |  |  |",
        "| Fig. 1, % | set | 5.000 | exact | 5.0 | same | input |  |  |",
        "|  | set, too | 5.000 | 2.000 to 8.000 | 5.0 | unclear | input |  |  |",
        "|  | lost | nan |  | 5.0 |  |  |  |  |",
        *(
            "",
            "So it is.",
            "",
            "The numbers of this page are not judged by a rule (results/judged.yaml).",
        ),
        "",
        "All: [tables/wing-a.md](tables/wing-a.md).",
    ]
    assert Gallery(folder, studies).page("wing/b") == ""


def test_entries_name_existing_pages_tests_and_rows() -> None:
    studies = reproduce.studies(Options.from_folders([]))
    stored, papers = Gallery(PAGES, studies), gallery.papers()
    assert len(papers) == 7
    for paper in papers:
        for entry in paper["figures"]:
            about = {"pages", "omitted", "test"} & entry.keys()
            assert len(about) == 1, entry
            optional = {"titles", "show", "reason"} if "pages" in about else set()
            assert entry.keys() <= {"figure", "content", *about, *optional}, entry
            assert set(entry.get("pages", ())) <= studies.keys()
            assert "test" not in entry or (ROOT / entry["test"]).exists(), entry
            rows = stored.figure_rows(entry)
            differs = any(row.verdict == DIFFERENT for row in rows)
            assert not differs or entry["reason"], f"{entry['figure']} differs: add the reason"
            assert {row.figure for row in rows} >= set(entry.get("titles", ())), entry
            assert "show" not in entry or entry["show"] in {row.name for row in rows}, entry


STUDIES = reproduce.studies(Options.from_folders([]))
REDUCED = {name: study.gallery for name, study in STUDIES.items() if study.gallery}


@pytest.mark.parametrize("name", REDUCED)
def test_a_reduced_experiment_sweeps_the_same_axes(name: str, shared_traces: Path) -> None:
    words = [f"experiment={name}", f"paths.traces={shared_traces}"]
    full, reduced = make_request(words, []), make_request([*words, *REDUCED[name]], [])
    assert list(reduced.axes) == list(full.axes)  # a study reads the columns
    for key, values in reduced.axes.items():
        assert all(value in full.axes[key] for value in values)
    assert math.prod(map(len, reduced.axes.values())) < math.prod(map(len, full.axes.values()))


def test_each_mark_matches_a_judged_row_that_no_mark_before_it_does() -> None:
    studies = reproduce.studies(Options.from_folders([]))
    stored = Gallery(PAGES, studies)
    for page, marks in excluded.by_page(gallery.papers()).items():
        rows = [row for row in stored.rows(page) if row.verdict]
        used = [marks.find(row.figure, row.quantity) for row in rows]
        for mark in marks.marks:
            assert mark.reason in excluded.REASONS, mark
            assert mark in used, f"{page}: no row with a verdict matches {mark}"


def test_a_mark_needs_known_keys() -> None:
    for paper in gallery.papers():
        for entry in paper.get("not counted", ()):
            assert {"pages", "reason"} <= entry.keys() <= {"pages", "reason", "figure", "what"}


@pytest.mark.parametrize("name", STUDIES)
def test_a_stored_page_is_what_reproduce_writes_from_its_table(name: str) -> None:
    page = PAGES / pages.file_name(name)
    table = PAGES / pages.table_name(name, "json")
    assert page.exists() == table.exists(), f"{name}: a page without a table, or the reverse"
    if page.exists():
        assert page.read_text() == Gallery(PAGES, STUDIES).page(name), OUTDATED
        stored = PageTable.read(PAGES, name)
        assert stored is not None
        assert table.read_text() == stored.to_json()


def test_the_stored_list_matches_the_stored_pages() -> None:
    assert (PAGES / gallery.NAME).read_text() == Gallery(PAGES, STUDIES).index(), OUTDATED
    names = {page.stem for page in PAGES.glob("*.md")} - {"README"}
    studies = {name.replace("/", "-") for name in STUDIES}
    assert names - {"real", "whole_trace"} <= studies  # pages of benchmarks
    assert {table.stem for table in (PAGES / "tables").glob("*")} <= names
