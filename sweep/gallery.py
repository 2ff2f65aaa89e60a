"""The page that lists what is reproduced: a row a published experiment, and how it came out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

NAME = "README.md"
_ASIDE = re.compile(r" \([^()]*\)(?=\.$)")
_MET = re.compile(r"\| (yes|no) \|$", re.MULTILINE)
_SYSTEMS = {
    "alibaba": "Alibaba DAGs: what production DAGs look like, and a generator of more",
    "dagps": "DAGPS: troublesome tasks first",
    "jockey": "Jockey: guaranteed job latency",
    "slearn": "SLearn: job sizes learnt from pilot tasks",
    "wing": "Wing: hidden dependencies and aggregate value",
}


def index(folder: Path, studies: Mapping[str, tuple[str, str]]) -> str:
    """Word the list of the pages in `folder`, in Markdown.

    Parameters
    ----------
    folder : Path
        Where the pages are.
    studies : mapping of str to (str, str)
        Of every experiment that has a study: its summary and its source.
    """
    parts = [
        "# Published experiments",
        "Each page has our figures with 95 % confidence intervals, those of the paper, what was "
        "wanted, and why they differ where they do. *As wanted* counts the figures for which "
        "something is wanted; the others are there to be compared. A page is made again by\n"
        "`python -m sweep reproduce EXPERIMENT paths.traces=DIR`, all of them by "
        "`make reproduce TRACES=DIR`.",
    ]
    for system in dict.fromkeys(name.split("/")[0] for name in sorted(studies)):
        names = sorted(name for name in studies if name.split("/")[0] == system)
        rows = ["| experiment | what | source | as wanted |", "| --- | --- | --- | --- |"]
        rows += [_row(folder, name, *studies[name]) for name in names]
        parts += [f"## {_SYSTEMS.get(system, system)}", "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def _row(folder: Path, name: str, summary: str, source: str) -> str:
    page = folder / f"{name.replace('/', '-')}.md"
    title, outcome = name, "no page yet"
    if page.is_file():
        met = _MET.findall(page.read_text(encoding="utf-8"))
        title = f"[{name}]({page.name})"
        outcome = f"{met.count('yes')} of {len(met)}" if met else ""
    cells = (title, _ASIDE.sub("", summary), source, outcome)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
