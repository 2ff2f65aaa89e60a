"""List of reproductions."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from sweep.cli import reproduce
from sweep.driver import make_request
from sweep.grid.options import Options
from sweep.papers import gallery
from sweep.report.findings import DIFFERS

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "results" / "reproductions"
PAGE = """# wing/a

| figure | what | ours | 95 % interval | paper | verdict | wanted | met |
| --- | --- | ---: | --- | --- | --- | --- | --- |
| Fig. 1 | x | 1.0 | 0.5 to 1.5 | 1 | same | ≥ 1 | yes |
|  | y\\|z | 1.0 |  | 2 | differs | ≥ 2 | no |
|  | z | 1.0 |  |  |  |  |  |
"""
PAPER = {
    "title": "Wing",
    "source": "Chung",
    "figures": [
        {"figure": "Fig. 1", "content": "a", "pages": ["wing/a", "wing/none"], "reason": "so"},
        {
            "figure": "Fig. 2",
            "content": "b",
            "pages": ["wing/a"],
            "titles": ["Fig. 2"],
            "reason": "so",
        },
        {"figure": "Fig. 3", "content": "c", "pages": ["wing/a"], "show": "Fig. 1, y|z"},
        {"figure": "Fig. 4", "content": "d", "omitted": "a sketch"},
        {"figure": "Fig. 5", "content": "e", "test": "tests/x.py"},
    ],
}


def test_each_figure_has_a_row_with_its_agreement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wing-a.md").write_text(PAGE)
    monkeypatch.setattr(gallery, "papers", lambda: [PAPER])
    studies = {
        "wing/b": gallery.Study("B | b (Fig. 3).", "Two", ("seed=0", "capacity=1")),
        "wing/a": gallery.Study("A.", "One"),
    }
    text = gallery.index(tmp_path, studies)
    page, agreement = "[wing/a](wing-a.md)", "1 same, 1 different, 1 of 2 as expected"
    kinds = ("| Fig", "| B", "## ", "- ")
    assert [line for line in text.splitlines() if line.startswith(kinds)] == [
        "## Wing",
        f"| Fig. 1 | a | Fig. 1, x: 1 | 1.0 (0.5 to 1.5) | {agreement} | so "
        f"| {page}, wing/none (no page yet) |",
        f"| Fig. 2 | b |  |  |  |  | {page} |",
        f"| Fig. 3 | c | Fig. 1, y\\|z: 2 | 1.0 | {agreement} |  | {page} |",
        "| Fig. 4 | d |  |  | not reproduced | a sketch |  |",
        "| Fig. 5 | e |  |  | checked by a test |  | `python -m pytest tests/x.py` |",
        "## Beyond the papers' figures",
        "| B \\| b. | Two |  | wing/b (no page yet) |",
        "## Smaller at `scale=gallery`",
        "- wing/b (no page yet): `seed=0`, `capacity=1`",
    ]


def test_entries_name_existing_pages_tests_and_rows() -> None:
    studies = reproduce.studies(Options.from_folders([]))
    papers = gallery.papers()
    assert len(papers) == 5
    for paper in papers:
        for entry in paper["figures"]:
            about = {"pages", "omitted", "test"} & entry.keys()
            assert len(about) == 1, entry
            optional = {"titles", "show", "reason"} if "pages" in about else set()
            assert entry.keys() <= {"figure", "content", *about, *optional}, entry
            assert set(gallery.pages(entry)) <= studies.keys()
            assert "test" not in entry or (ROOT / entry["test"]).exists(), entry
            rows = gallery.figure_rows(PAGES, entry)
            differs = any(row.verdict == DIFFERS for row in rows)
            assert not differs or entry["reason"], f"{entry['figure']} differs: add the reason"
            assert {row.figure for row in rows} >= set(entry.get("titles", ())), entry
            assert "show" not in entry or entry["show"] in {row.name for row in rows}, entry


REDUCED = {
    n: s.gallery for n, s in reproduce.studies(Options.from_folders([])).items() if s.gallery
}


@pytest.mark.parametrize("name", REDUCED)
def test_a_reduced_experiment_sweeps_the_same_axes(name: str, shared_traces: Path) -> None:
    words = [f"experiment={name}", f"paths.traces={shared_traces}"]
    full, reduced = make_request(words, []), make_request([*words, *REDUCED[name]], [])
    assert list(reduced.axes) == list(full.axes)  # a study reads the columns
    for key, values in reduced.axes.items():
        assert all(value in full.axes[key] for value in values)
    assert math.prod(map(len, reduced.axes.values())) < math.prod(map(len, full.axes.values()))


def test_the_stored_list_matches_the_stored_pages() -> None:
    studies = reproduce.studies(Options.from_folders([]))
    assert (PAGES / gallery.NAME).read_text() == gallery.index(PAGES, studies), (
        "the list of reproductions is outdated; regenerate it with "
        "`python -m sweep reproduce --list`"
    )
    pages = {page.stem for page in PAGES.glob("*.md")} - {"README"}
    assert pages <= {name.replace("/", "-") for name in studies}
