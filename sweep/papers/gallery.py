"""The page that lists what is reproduced: every figure of the papers, and how ours came out."""

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
"""A file a system: which figures its paper has, and which page each is on, or why it is on none."""

_ASIDE = re.compile(r" \([^()]*\)(?=\.$)")
_BAR = re.compile(r"(?<!\\)\|")
_INTRO = """# Published experiments

Every figure and table of the five papers. Of those that an experiment makes: one number of the
paper's, and ours with its 95 % confidence interval; how many of the numbers that the paper prints
come out the **same** (in our interval, or within 5 %; of what is said to be rounded, half a unit
either way is the paper's), **close** (within 25 %) or **different**, and why; and how many are as
wanted, where something is. The page has all of them.

Since 22 November 2026 the same command gives the same numbers, to the last bit, on every machine
(`docs/decisions/0010-same-bits.md`). Pages that were made since say so; the others come out, made
again, as those of another seed would.

A page is made again by `python -m sweep reproduce PAGE paths.traces=DIR`, for instance
`python -m sweep reproduce wing/fig10`; all of them by `make reproduce TRACES=DIR`."""
_SMALLER = """`make reproduce` takes less of these, to be done within two hours on two cores; with
`SCALE=paper` it takes all. Each page here says which command made it."""


@dataclass(frozen=True)
class Study:
    """An experiment that has a study: what it is, of which source, and what a gallery changes."""

    summary: str
    source: str
    gallery: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """One figure of a page, as texts."""

    figure: str
    what: str
    ours: str
    between: str
    paper: str
    verdict: str
    met: str

    @property
    def name(self) -> str:
        """What it is of, in one line."""
        return ", ".join(filter(None, (self.figure, self.what)))


def index(folder: Path, studies: Mapping[str, Study]) -> str:
    """Word the list of the pages in `folder`, in Markdown."""
    parts = [_INTRO]
    for paper in papers():
        entries = paper["figures"]
        rows = ["| | what | the paper's | ours | in all | why | page |"]
        rows += ["| --- | --- | --- | --- | --- | --- | --- |"]
        rows += [_row(folder, entry) for entry in entries]
        parts += [f"## {paper['title']}", f"{paper['source']}.", "\n".join(rows)]
    listed = {page for paper in papers() for entry in paper["figures"] for page in pages_of(entry)}
    beyond = sorted(set(studies) - listed)
    if beyond:
        rows = ["| what | source | in all | page |", "| --- | --- | --- | --- |"]
        for name in beyond:
            study = studies[name]
            cells = (_ASIDE.sub("", study.summary), study.source, _in_all(read(folder, name)))
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
    """Read what the papers have, a mapping a system, by name."""
    import yaml

    return [
        yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(PAPERS.glob("*.yaml"))
    ]


def pages_of(entry: Mapping[str, Any]) -> list[str]:
    """Return the experiments whose pages have a figure."""
    return list(entry.get("pages", ()))


def read(folder: Path, name: str) -> list[Row]:
    """Read the figures of an experiment's page; none if there is no page."""
    page = _path(folder, name)
    if not page.is_file():
        return []
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    table = [[c.strip().replace("\\|", "|") for c in _BAR.split(line)[1:-1]] for line in lines]
    rows, figure = [], ""
    for texts in table[2:]:
        cells = dict(zip(table[0], texts, strict=True))
        figure = cells["figure"] or figure
        shown = ("what", "ours", "95 % interval", "paper", "verdict", "met")
        rows.append(Row(figure, *(cells.get(key, "") for key in shown)))
    return rows


def rows_of(folder: Path, entry: Mapping[str, Any]) -> list[Row]:
    """Read what the pages have of a figure."""
    rows = [row for name in pages_of(entry) for row in read(folder, name)]
    return [row for row in rows if row.figure in entry.get("of", [row.figure])]


def _row(folder: Path, entry: Mapping[str, Any]) -> str:
    if "none" in entry:
        return _line(entry["at"], entry["what"], "", "", "not made", entry["none"], "")
    if "test" in entry:
        test = f"`python -m pytest {entry['test']}`"
        return _line(entry["at"], entry["what"], "", "", "held by a test", "", test)
    rows = rows_of(folder, entry)
    paper, ours = _shown(rows, entry.get("show"))
    links = ", ".join(_link(folder, name) for name in pages_of(entry))
    differs = any(row.verdict == DIFFERS or row.met == "no" for row in rows)
    why = entry.get("why", "") if differs else ""
    return _line(entry["at"], entry["what"], paper, ours, _in_all(rows), why, links)


def _shown(rows: list[Row], name: str | None) -> tuple[str, str]:
    """Choose the figure to show: the one of that name, else the first that the paper has too."""
    for row in rows:
        if row.name == name or (name is None and row.verdict):
            between = f" ({row.between})" if row.between else ""
            return f"{row.name}: {row.paper}", f"{row.ours}{between}"
    return "", ""


def _in_all(rows: list[Row]) -> str:
    found = Counter(row.verdict for row in rows)
    words = [f"{found[name]} {word}" for name, word in _WORDS if found[name]]
    wanted = [row.met for row in rows if row.met]
    if wanted:
        words.append(f"{wanted.count('yes')} of {len(wanted)} as wanted")
    return ", ".join(words)


_WORDS = ((SAME, "same"), (CLOSE, "close"), (DIFFERS, "different"))


def _link(folder: Path, name: str) -> str:
    page = _path(folder, name)
    return f"[{name}]({page.name})" if page.is_file() else f"{name} (no page yet)"


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name.replace('/', '-')}.md"


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
