"""Numbers of the papers that are shown and not counted, with the kind of reason for each.

Counted are predictions: numbers that a paper prints and that nothing here was set to. The
file `FIGURES` beside a system's studies lists the others, as

    not counted:
      - {pages: [wing/fig10], reason: calibrated, what: priority}

``figure`` and ``what`` are regular expressions of the whole text in those columns of a page; any
text if left out. Of two marks that match a row the first one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sim.base import entry_points
from sim.base.sources import modules
from sweep.questions.papers.studies import KIND

REASONS = {
    "input": "it was fed to a generator, or set by the experiment",
    "calibrated": "a parameter was calibrated by it",
    "theory": "it follows from a formula, whatever is simulated",
    "repeated": "the same number counts in another figure",
    "reading": "another reading counts, which a rule names or the paper's words are nearest to",
    "earlier": "the paper prints no such number; it was measured here before",
}
"""Kinds of reasons for which a number is not counted."""

FIGURES = "paper.yaml"
"""File beside a system's studies: its paper's figures; the page of each, or the reason for none."""


@dataclass(frozen=True)
class Mark:
    """A reason not to count rows of a page."""

    page: str
    reason: str
    figure: re.Pattern[str]
    quantity: re.Pattern[str]

    def matches(self, figure: str, quantity: str) -> bool:
        """Tell whether a row is one of those."""
        return bool(self.figure.fullmatch(figure) and self.quantity.fullmatch(quantity))


@dataclass(frozen=True)
class Marks:
    """The marks of one page."""

    marks: tuple[Mark, ...] = ()

    def find(self, figure: str, quantity: str) -> Mark | None:
        """Return the mark of a row; None if it is counted."""
        return next((mark for mark in self.marks if mark.matches(figure, quantity)), None)

    def reason(self, figure: str, quantity: str) -> str:
        """Return the reason not to count a row; empty if it is counted."""
        mark = self.find(figure, quantity)
        return mark.reason if mark else ""


def papers() -> list[dict[str, Any]]:
    """Read the figures of the papers: one mapping for each system, in order of names."""
    import yaml

    studies = (modules.find(entry.module) for entry in entry_points.installed(KIND).values())
    paths = {module.file.with_name(FIGURES) for module in studies if module is not None}
    files = sorted(path for path in paths if path.is_file())
    return [yaml.safe_load(path.read_text(encoding="utf-8")) for path in files]


def by_page(contents: Iterable[Mapping[str, Any]]) -> dict[str, Marks]:
    """Collect the marks of papers by the name of the page."""
    marks: dict[str, list[Mark]] = {}
    for content in contents:
        for entry in content.get("not counted", ()):
            patterns = (re.compile(entry.get(key, ".*")) for key in ("figure", "what"))
            figure, quantity = patterns
            for page in entry["pages"]:
                marks.setdefault(page, []).append(Mark(page, entry["reason"], figure, quantity))
    return {page: Marks(tuple(listed)) for page, listed in marks.items()}
