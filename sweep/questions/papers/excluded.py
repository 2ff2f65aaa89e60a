"""Rows of pages by page, figure and quantity: our definitions, and rows that are not counted.

Counted are predictions: numbers that a paper prints, that nothing here was set to, and whose
metric and population are ours. The file `FIGURES` beside a system's studies lists the others, and
what our numbers are of, as

    not counted:
      - {pages: [wing/fig10], reason: calibrated, what: priority}
    ours:
      - {pages: [wing/fig10], metric: value attained, population: jobs of a week}

``figure`` and ``what`` are regular expressions of the whole text in those columns of a page; any
text if left out. Of two entries of a list that match a row the first one counts. Where the name of
our metric or population is another than the paper's (`sim.published.Definition`), the row is not
counted. The key ``words`` has the names, with their meanings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sim.base import entry_points
from sim.base.sources import modules
from sim.published import Definition
from sweep.questions.papers import printed
from sweep.questions.papers.printed import KIND

DEFINITION = "definition"
REASONS = {
    "input": "it was fed to a generator, or set by the experiment",
    "calibrated": "a parameter was calibrated by it",
    "theory": "it follows from a formula, whatever is simulated",
    "repeated": "the same number counts in another figure",
    "reading": "another reading counts, which a rule names or the paper's words are nearest to",
    "earlier": "the paper prints no such number; it was measured here before",
    DEFINITION: "the paper's metric or population is another than ours, as the page says",
}
"""Kinds of reasons for which a number is not counted."""

FIGURES = "paper.yaml"
"""File beside a system's studies: its paper's figures; the page of each, or the reason for none."""


@dataclass(frozen=True)
class Rows:
    """Rows of a page, by patterns."""

    page: str
    figure: re.Pattern[str]
    quantity: re.Pattern[str]

    def matches(self, figure: str, quantity: str) -> bool:
        """Tell whether a row is one of those."""
        return bool(self.figure.fullmatch(figure) and self.quantity.fullmatch(quantity))


@dataclass(frozen=True)
class Mark(Rows):
    """A reason not to count rows of a page."""

    reason: str


@dataclass(frozen=True)
class Ours(Rows):
    """Definition of our numbers in rows of a page."""

    metric: str
    population: str
    note: str = ""

    def differs(self, paper: Definition) -> bool:
        """Tell whether the paper's metric or population has another name."""
        return (self.metric, self.population) != (paper.metric, paper.population)


@dataclass(frozen=True)
class Marks:
    """The marks and definitions of one page."""

    marks: tuple[Mark, ...] = ()
    definitions: tuple[Ours, ...] = ()

    def find(self, figure: str, quantity: str) -> Mark | None:
        """Return the mark of a row; None if it has none."""
        return next((mark for mark in self.marks if mark.matches(figure, quantity)), None)

    def ours(self, figure: str, quantity: str) -> Ours | None:
        """Return the definition of a row's number; None if nobody gave it."""
        return next((ours for ours in self.definitions if ours.matches(figure, quantity)), None)

    def reason(self, row: Mapping[str, Any]) -> str:
        """Return the reason not to count a row; empty if it is counted."""
        mark = self.find(row["figure"], row["what"])
        if mark is not None:
            return mark.reason
        ours, path = self.ours(row["figure"], row["what"]), printed.parse(row.get("number"))
        return DEFINITION if ours and path and ours.differs(printed.definition(path)) else ""


def papers() -> list[dict[str, Any]]:
    """Read the figures of the papers: one mapping for each system, in order of names."""
    import yaml

    studies = (modules.find(entry.module) for entry in entry_points.installed(KIND).values())
    paths = {module.file.with_name(FIGURES) for module in studies if module is not None}
    files = sorted(path for path in paths if path.is_file())
    return [yaml.safe_load(path.read_text(encoding="utf-8")) for path in files]


def by_page(contents: Iterable[Mapping[str, Any]]) -> dict[str, Marks]:
    """Collect the marks and definitions of papers by the name of the page."""
    marks: dict[str, list[Mark]] = {}
    definitions: dict[str, list[Ours]] = {}
    for content in contents:
        for rows, fields in _entries(content.get("not counted", ())):
            marks.setdefault(rows.page, []).append(Mark(**vars(rows), **fields))
        for rows, fields in _entries(content.get("ours", ())):
            definitions.setdefault(rows.page, []).append(Ours(**vars(rows), **fields))
    return {
        page: Marks(tuple(marks.get(page, ())), tuple(definitions.get(page, ())))
        for page in {**marks, **definitions}
    }


def _entries(listed: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Rows, dict[str, Any]]]:
    """Yield the rows of each page of entries, and the entry's other fields."""
    for entry in listed:
        fields = {key: x for key, x in entry.items() if key not in ("pages", "figure", "what")}
        figure, quantity = (re.compile(entry.get(key, ".*")) for key in ("figure", "what"))
        for page in entry["pages"]:
            yield Rows(page, figure, quantity), fields
