"""The list of what is reproduced."""

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
KEPT = ROOT / "results" / "reproductions"
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
        {"at": "Fig. 1", "what": "a", "pages": ["wing/a", "wing/none"], "why": "so"},
        {"at": "Fig. 2", "what": "b", "pages": ["wing/a"], "of": ["Fig. 2"], "why": "so"},
        {"at": "Fig. 3", "what": "c", "pages": ["wing/a"], "show": "Fig. 1, y|z"},
        {"at": "Fig. 4", "what": "d", "none": "a sketch"},
        {"at": "Fig. 5", "what": "e", "test": "tests/x.py"},
    ],
}


def test_each_figure_has_a_row_and_says_how_it_came_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wing-a.md").write_text(PAGE)
    monkeypatch.setattr(gallery, "papers", lambda: [PAPER])
    studies = {
        "wing/b": gallery.Study("B | b (Fig. 3).", "Two", ("seed=0", "capacity=1")),
        "wing/a": gallery.Study("A.", "One"),
    }
    text = gallery.index(tmp_path, studies)
    page, in_all = "[wing/a](wing-a.md)", "1 same, 1 different, 1 of 2 as wanted"
    kinds = ("| Fig", "| B", "## ", "- ")
    assert [line for line in text.splitlines() if line.startswith(kinds)] == [
        "## Wing",
        f"| Fig. 1 | a | Fig. 1, x: 1 | 1.0 (0.5 to 1.5) | {in_all} | so "
        f"| {page}, wing/none (no page yet) |",
        f"| Fig. 2 | b |  |  |  |  | {page} |",
        f"| Fig. 3 | c | Fig. 1, y\\|z: 2 | 1.0 | {in_all} |  | {page} |",
        "| Fig. 4 | d |  |  | not made | a sketch |  |",
        "| Fig. 5 | e |  |  | held by a test |  | `python -m pytest tests/x.py` |",
        "## Beyond the papers' figures",
        "| B \\| b. | Two |  | wing/b (no page yet) |",
        "## Smaller at `scale=gallery`",
        "- wing/b (no page yet): `seed=0`, `capacity=1`",
    ]


def test_what_the_papers_have_points_to_what_there_is() -> None:
    studies = reproduce.studies(Options.from_folders([]))
    papers = gallery.papers()
    assert len(papers) == 5
    for paper in papers:
        for entry in paper["figures"]:
            about = {"pages", "none", "test"} & entry.keys()
            assert len(about) == 1, entry
            more = {"of", "show", "why"} if "pages" in about else set()
            assert entry.keys() <= {"at", "what", *about, *more}, entry
            assert set(gallery.pages_of(entry)) <= studies.keys()
            assert "test" not in entry or (ROOT / entry["test"]).exists(), entry
            rows = gallery.rows_of(KEPT, entry)
            differs = any(row.verdict == DIFFERS for row in rows)
            assert not differs or entry["why"], f"{entry['at']} differs: say why"
            assert {row.figure for row in rows} >= set(entry.get("of", ())), entry
            assert "show" not in entry or entry["show"] in {row.name for row in rows}, entry


SMALLER = {
    n: s.gallery for n, s in reproduce.studies(Options.from_folders([])).items() if s.gallery
}


@pytest.mark.parametrize("name", SMALLER)
def test_what_a_gallery_takes_less_of_is_still_swept(name: str, shared_traces: Path) -> None:
    where = [f"experiment={name}", f"paths.traces={shared_traces}"]
    whole, smaller = make_request(where, []), make_request([*where, *SMALLER[name]], [])
    assert list(smaller.axes) == list(whole.axes)  # a study looks for the columns
    for key, values in smaller.axes.items():
        assert all(value in whole.axes[key] for value in values)
    assert math.prod(map(len, smaller.axes.values())) < math.prod(map(len, whole.axes.values()))


def test_the_kept_list_is_of_the_kept_pages() -> None:
    studies = reproduce.studies(Options.from_folders([]))
    assert (KEPT / gallery.NAME).read_text() == gallery.index(KEPT, studies), (
        "the list of published experiments is not that of the pages: make it again with "
        "`python -m sweep reproduce --list`"
    )
    pages = {page.stem for page in KEPT.glob("*.md")} - {"README"}
    assert pages <= {name.replace("/", "-") for name in studies}
