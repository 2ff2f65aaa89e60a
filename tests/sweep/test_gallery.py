"""The list of what is reproduced."""

from __future__ import annotations

from pathlib import Path

from sweep import gallery
from sweep.options import Options
from sweep.verbs import reproduce

KEPT = Path(__file__).parents[2] / "results" / "reproductions"
PAGE = """# wing/a

| figure | what | ours | wanted | met |
| --- | --- | ---: | --- | --- |
| Fig. 1 | x | 1.0 | ≥ 1 | yes |
|  | y | 1.0 | ≥ 2 | no |
|  | z | 1.0 |  |  |
"""


def test_each_experiment_has_a_row_and_says_how_it_came_out(tmp_path: Path) -> None:
    (tmp_path / "wing-a.md").write_text(PAGE)
    (tmp_path / "wing-b.md").write_text("# wing/b\n\n| figure | ours |\n| --- | ---: |\n")
    names = {
        "wing/b": ("B | b.", "Two"),
        "dagps/c": ("C (Fig. 3).", "Three"),
        "wing/a": ("A.", "One"),
    }
    text = gallery.index(tmp_path, names)
    assert [line for line in text.splitlines() if line.startswith(("| [", "| d", "## "))] == [
        "## DAGPS: troublesome tasks first",
        "| dagps/c | C. | Three | no page yet |",
        "## Wing: hidden dependencies and aggregate value",
        "| [wing/a](wing-a.md) | A. | One | 1 of 2 |",
        "| [wing/b](wing-b.md) | B \\| b. | Two |  |",
    ]


def test_the_kept_list_is_of_the_kept_pages() -> None:
    studies = reproduce.studies(Options.of([]))
    assert (KEPT / gallery.NAME).read_text() == gallery.index(KEPT, studies), (
        "the list of published experiments is not that of the pages: make it again with "
        "`python -m sweep reproduce --list`"
    )
    pages = {page.stem for page in KEPT.glob("*.md")} - {"README"}
    assert pages <= {name.replace("/", "-") for name in studies}
