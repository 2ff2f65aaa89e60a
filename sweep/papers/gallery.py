"""List of reproductions: every figure of the papers, and the agreement of our numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweep.report.findings import CLOSE, DIFFERS, SAME

NAME = "README.md"
PAPERS = Path(__file__).parent
"""One file for each system: the figures of its paper; the page of each, or the reason for none."""

_ASIDE = re.compile(r" \([^()]*\)(?=\.$)")
_BAR = re.compile(r"(?<!\\)\|")
_INTRO = """# Published experiments

Every figure and table of the five papers. A reproduced figure has one number of the paper, and
ours with its 95 % confidence interval. The column *agreement* counts the numbers that the paper
prints: **same** (in our interval, or within 5 %; a number that the paper rounds counts as half a
unit either way), **close** (within 25 %) or **different**. If a range is expected, it counts the
numbers in that range. The column *reason* explains differences. The page has all numbers.

Since 22 November 2026 the same command gives the same numbers, to the last bit, on every machine
(`docs/decisions/0010-same-bits.md`). Pages made since then say so. The others, made again, differ
as with another seed.

The command `python -m sweep reproduce PAGE paths.traces=DIR` makes a page again, for instance
`python -m sweep reproduce wing/fig10`; `make reproduce TRACES=DIR` makes all of them."""
_SMALLER = """`make reproduce` runs these at a smaller scale, to finish within two hours on two
cores; with `SCALE=paper` it runs them in full. Each page here names the command that made it."""


@dataclass(frozen=True)
class Study:
    """An experiment with a study: its summary, its source and the words that reduce its scale."""

    summary: str
    source: str
    gallery: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """One row of a page's table, as texts."""

    figure: str
    quantity: str
    ours: str
    interval: str
    paper: str
    verdict: str
    met: str

    @property
    def name(self) -> str:
        """Figure and quantity, in one line."""
        return ", ".join(filter(None, (self.figure, self.quantity)))


def index(folder: Path, studies: Mapping[str, Study]) -> str:
    """Write the list of the pages in `folder`, in Markdown."""
    parts = [_INTRO]
    for paper in papers():
        entries = paper["figures"]
        rows = ["| | content | paper | ours | agreement | reason | page |"]
        rows += ["| --- | --- | --- | --- | --- | --- | --- |"]
        rows += [_row(folder, entry) for entry in entries]
        parts += [f"## {paper['title']}", f"{paper['source']}.", "\n".join(rows)]
    listed = {page for paper in papers() for entry in paper["figures"] for page in pages(entry)}
    beyond = sorted(set(studies) - listed)
    if beyond:
        rows = ["| content | source | agreement | page |", "| --- | --- | --- | --- |"]
        for name in beyond:
            study = studies[name]
            cells = (_ASIDE.sub("", study.summary), study.source, _agreement(read(folder, name)))
            rows.append(_line(*cells, _link(folder, name)))
        parts += ["## Beyond the papers' figures", "\n".join(rows)]
    smaller = [
        f"- {_link(folder, name)}: {', '.join(f'`{word}`' for word in study.gallery)}"
        for name, study in sorted(studies.items())
        if study.gallery
    ]
    if smaller:
        parts += ["## Smaller at `scale=gallery`", _SMALLER, "\n".join(smaller)]
    return "\n\n".join(parts) + "\n"


def papers() -> list[dict[str, Any]]:
    """Read the figures of the papers: one mapping for each system, in order of names."""
    import yaml

    return [
        yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(PAPERS.glob("*.yaml"))
    ]


def pages(entry: Mapping[str, Any]) -> list[str]:
    """Return the experiments whose pages have the figure."""
    return list(entry.get("pages", ()))


def read(folder: Path, name: str) -> list[Row]:
    """Read the table of an experiment's page; empty if there is no page."""
    page = _path(folder, name)
    if not page.is_file():
        return []
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    table = [[c.strip().replace("\\|", "|") for c in _BAR.split(line)[1:-1]] for line in lines]
    parsed, figure = [], ""
    for texts in table[2:]:
        cells = dict(zip(table[0], texts, strict=True))
        figure = cells["figure"] or figure
        columns = ("what", "ours", "95 % interval", "paper", "verdict", "met")
        parsed.append(Row(figure, *(cells.get(key, "") for key in columns)))
    return parsed


def figure_rows(folder: Path, entry: Mapping[str, Any]) -> list[Row]:
    """Read the rows of a figure from its pages."""
    page_rows = [row for name in pages(entry) for row in read(folder, name)]
    return [row for row in page_rows if row.figure in entry.get("titles", [row.figure])]


def _row(folder: Path, entry: Mapping[str, Any]) -> str:
    label = entry["figure"], entry["content"]
    if "omitted" in entry:
        return _line(*label, "", "", "not reproduced", entry["omitted"], "")
    if "test" in entry:
        test = f"`python -m pytest {entry['test']}`"
        return _line(*label, "", "", "checked by a test", "", test)
    page_rows = figure_rows(folder, entry)
    paper, ours = _example(page_rows, entry.get("show"))
    links = ", ".join(_link(folder, name) for name in pages(entry))
    differs = any(row.verdict == DIFFERS or row.met == "no" for row in page_rows)
    reason = entry.get("reason", "") if differs else ""
    return _line(*label, paper, ours, _agreement(page_rows), reason, links)


def _example(page_rows: list[Row], name: str | None) -> tuple[str, str]:
    """Choose the number to show: the one of that name, else the first with a counterpart."""
    for row in page_rows:
        if row.name == name or (name is None and row.verdict):
            interval = f" ({row.interval})" if row.interval else ""
            return f"{row.name}: {row.paper}", f"{row.ours}{interval}"
    return "", ""


def _agreement(page_rows: list[Row]) -> str:
    verdicts = Counter(row.verdict for row in page_rows)
    words = [f"{verdicts[name]} {word}" for name, word in _WORDS if verdicts[name]]
    met = [row.met for row in page_rows if row.met]
    if met:
        words.append(f"{met.count('yes')} of {len(met)} as expected")
    return ", ".join(words)


_WORDS = ((SAME, "same"), (CLOSE, "close"), (DIFFERS, "different"))


def _link(folder: Path, name: str) -> str:
    page = _path(folder, name)
    return f"[{name}]({page.name})" if page.is_file() else f"{name} (no page yet)"


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name.replace('/', '-')}.md"


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
