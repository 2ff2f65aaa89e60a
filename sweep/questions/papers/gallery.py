"""List of reproductions: every figure of the papers, and the agreement of our numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweep.questions.papers import definitions, excluded, ledger, pages
from sweep.questions.papers.excluded import REASONS, Marks, papers
from sweep.questions.papers.pages import PageTable, Study
from sweep.report import findings
from sweep.report.agreement import CLOSE, DIFFERENT, SAME, UNCLEAR, VERDICTS

NAME = "README.md"

_ASIDE = re.compile(r" \([^()]*\)(?=\.$)")
_INTRO = f"""Counted are *predictions*: numbers that a paper prints and to which nothing was set.

- **{SAME}**: within 5 % of the printed number, or within half a unit of its last digit if that is
  more.
- **{CLOSE}**: within 25 % of it.
- **{DIFFERENT}**: all else.
- **{UNCLEAR}**: our value would be the same or close, but its 95 % confidence interval reaches
  farther than that tolerance from it, or nobody measured one. More seeds can settle it.

A computation on recorded data that no seed changes is *exact*: it needs no interval. A bound such
as "4 at most" is the same if the value meets it, and the interval does, give or take 5 %. A count
such as "1 of 94" has an interval of its own, Wilson's: same or close requires that to be narrow
enough too, and a value inside it is unclear, not different. Where the paper has *one draw*, such as
one month of a cluster, the interval is that of one more draw of ours, not of our mean's: same or
close requires it to be narrow enough, and a number inside it is unclear, not different. More seeds
can't settle that. `sweep/report/agreement.py` has the rule in full.

Numbers that are not counted have the reason in their row:

{{reasons}}

Every figure and table of the papers follows. A reproduced figure has one number of the paper,
and ours with its 95 % confidence interval. The column *agreement* counts the figure's numbers as
above. If a range is expected, it counts the numbers in that range. The column *reason* explains
differences. The page has all numbers, and says of each number of the paper what it is of (metric,
population, conditions and place of the sentence), beside what ours is of.

Since 22 November 2026 the same command gives the same numbers, to the last bit, on every machine
(`docs/decisions/0010-same-bits.md`). Pages made since then say so. The others, made again, differ
as with another seed.

The command `python -m sweep reproduce PAGE paths.traces=DIR` makes a page again, for instance
`python -m sweep reproduce wing/fig10`; `make reproduce TRACES=DIR` makes all of them. Each page is
rendered from the table of the same name in `tables/`; `python -m sweep reproduce --list` renders
all of them, without a simulation."""
_SMALLER = """`make reproduce` runs these at a smaller scale, to finish within two hours on two
cores; with `SCALE=paper` it runs them in full. Each page here names the command that made it."""


@dataclass(frozen=True)
class Row:
    """One row of a page's table, as texts."""

    figure: str
    quantity: str
    ours: str
    interval: str
    paper: str
    verdict: str
    excluded: str  # reason why it is not counted
    met: str

    @property
    def name(self) -> str:
        """Figure and quantity, in one line."""
        return ", ".join(filter(None, (self.figure, self.quantity)))


class Gallery:
    """The pages in a folder, and the marks of their rows."""

    def __init__(self, folder: Path, studies: Mapping[str, Study]) -> None:
        self.folder = folder
        self.studies = studies
        self.papers = papers()
        self._marks = excluded.by_page(self.papers)
        self._judgements = ledger.read(folder.parent / ledger.NAME)

    def marks(self, name: str) -> Marks:
        """Return the marks of an experiment's page."""
        return self._marks.get(name, Marks())

    def page(self, name: str) -> str:
        """Render the page of an experiment from its stored table; empty if there is none."""
        stored = PageTable.read(self.folder, name)
        if stored is None:
            return ""
        return pages.render(name, stored, self.studies[name], self.marks(name), self._judgements)

    def rows(self, name: str) -> list[Row]:
        """Read the rows of an experiment's stored table; empty if there is none."""
        stored = PageTable.read(self.folder, name)
        if stored is None:
            return []
        header, rows = findings.to_text(findings.to_table(stored.findings), self.marks(name).reason)
        parsed, figure = [], ""
        for texts in rows:
            cells = dict(zip(header, texts, strict=True))
            figure = cells["figure"] or figure
            columns = ("what", "ours", "95 % interval", "paper", "verdict", "not counted", "met")
            parsed.append(Row(figure, *(cells.get(key, "") for key in columns)))
        return parsed

    def figure_rows(self, entry: Mapping[str, Any]) -> list[Row]:
        """Read the rows of a figure from its pages."""
        page_rows = [row for name in entry.get("pages", ()) for row in self.rows(name)]
        return [row for row in page_rows if row.figure in entry.get("titles", [row.figure])]

    def index(self) -> str:
        """Write the list of the pages in Markdown."""
        by_page = {name: self.rows(name) for name in self.studies}
        reasons = "\n".join(f"- *{reason}*: {meaning}." for reason, meaning in REASONS.items())
        intro = _INTRO.format(reasons=reasons)
        parts = ["# Published experiments", _totals(by_page), _by_system(by_page), intro]
        for paper in self.papers:
            rows = ["| figure | content | paper | ours | agreement | reason | page |"]
            rows += ["| --- | --- | --- | --- | --- | --- | --- |"]
            rows += [self._row(entry) for entry in paper["figures"]]
            parts += [f"## {paper['title']}", f"{paper['source']}.", "\n".join(rows)]
        entries = [entry for paper in self.papers for entry in paper["figures"]]
        listed = {page for entry in entries for page in entry.get("pages", ())}
        beyond = sorted(set(self.studies) - listed)
        if beyond:
            rows = ["| content | source | agreement | page |", "| --- | --- | --- | --- |"]
            for name in beyond:
                study = self.studies[name]
                content, agreement = _ASIDE.sub("", study.summary), _agreement(by_page[name])
                rows.append(_line(content, study.source, agreement, self._link(name)))
            parts += ["## Beyond the papers' figures", "\n".join(rows)]
        parts += ["## Numbers that no page compares", definitions.uncompared_text()]
        smaller = [
            f"- {self._link(name)}: {', '.join(f'`{word}`' for word in study.gallery)}"
            for name, study in sorted(self.studies.items())
            if study.gallery
        ]
        if smaller:
            parts += ["## Smaller at `scale=gallery`", _SMALLER, "\n".join(smaller)]
        return "\n\n".join(parts) + "\n"

    def _row(self, entry: Mapping[str, Any]) -> str:
        label = entry["figure"], entry["content"]
        if "omitted" in entry:
            return _line(*label, "", "", "not reproduced", entry["omitted"], "")
        if "test" in entry:
            test = f"`python -m pytest {entry['test']}`"
            return _line(*label, "", "", "checked by a test", "", test)
        page_rows = self.figure_rows(entry)
        paper, ours = _example(page_rows, entry.get("show"))
        links = ", ".join(map(self._link, entry["pages"]))
        differs = any(row.verdict == DIFFERENT or row.met == "no" for row in page_rows)
        reason = entry.get("reason", "") if differs else ""
        return _line(*label, paper, ours, _agreement(page_rows), reason, links)

    def _link(self, name: str) -> str:
        page = pages.file_name(name)
        is_there = (self.folder / page).is_file()
        return f"[{name}]({page})" if is_there else f"{name} (no page yet)"


def _totals(by_page: Mapping[str, list[Row]]) -> str:
    """Count the predictions of all pages by verdict, and the other numbers by reason."""
    verdicts, reasons = _counts(row for rows in by_page.values() for row in rows)
    judged = ", ".join(f"{verdicts[name]} {name}" for name in VERDICTS)
    excluded_by = ", ".join(f"{reasons[name]} {name}" for name in REASONS if reasons[name])
    return (
        f"**Of {verdicts.total()} predictions of the papers: {judged}.**"
        f" {reasons.total()} more numbers are shown and not counted: {excluded_by or 'none'}."
    )


def _by_system(by_page: Mapping[str, list[Row]]) -> str:
    """Write the same by system: the first part of the pages' names."""
    systems: dict[str, list[Row]] = {}
    for name, rows in sorted(by_page.items()):
        systems.setdefault(name.partition("/")[0], []).extend(row for row in rows if row.verdict)
    lines = [_line("", *VERDICTS, "not counted"), "| --- |" + " ---: |" * (len(VERDICTS) + 1)]
    for system, rows in systems.items():
        if rows:
            verdicts, reasons = _counts(rows)
            counts = (str(verdicts[name]) for name in VERDICTS)
            lines.append(_line(system, *counts, str(reasons.total())))
    return "\n".join(lines)


def _counts(rows: Iterable[Row]) -> tuple[Counter[str], Counter[str]]:
    """Count judged rows: those that are counted by verdict, the others by reason."""
    judged = [row for row in rows if row.verdict]
    verdicts = Counter(row.verdict for row in judged if not row.excluded)
    return verdicts, Counter(row.excluded for row in judged if row.excluded)


def _example(page_rows: list[Row], name: str | None) -> tuple[str, str]:
    """Choose the number to show: the one of that name, else the first prediction."""
    judged = [row for row in page_rows if row.verdict]
    for row in sorted(judged, key=lambda row: bool(row.excluded)):
        if name in (None, row.name):
            interval = f" ({row.interval})" if row.interval else ""
            return f"{row.name}: {row.paper}", f"{row.ours}{interval}"
    return "", ""


def _agreement(page_rows: list[Row]) -> str:
    verdicts, reasons = _counts(page_rows)
    words = [f"{verdicts[name]} {name}" for name in VERDICTS if verdicts[name]]
    if reasons:
        words.append(f"{reasons.total()} not counted ({', '.join(sorted(reasons))})")
    met = [row.met for row in page_rows if row.met]
    if met:
        words.append(f"{met.count('yes')} of {len(met)} as expected")
    return ", ".join(words)


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
