"""The README's table of ideas: which of them pays on which workload, from the stored results.

``python -m policies.wserpt.study.front_page`` prints it; with the name of a file it renews it
there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from policies.wserpt.study.parts_page import front
from sim.base import files
from sim.base.errors import InputError
from sweep.questions.papers.pages import PageTable

EXPERIMENT = "wserpt/parts"
PAGES = Path("results/reproductions")


def front_table(pages: Path = PAGES) -> str:
    """Make the table from the stored findings of the experiment.

    Raises InputError if there are none.
    """
    stored = PageTable.read(pages, EXPERIMENT)
    if stored is None:
        raise InputError(
            f"{pages} has no table of {EXPERIMENT}: run python -m sweep reproduce {EXPERIMENT}"
        )
    return front(stored.findings)


def shown(text: str, header: str) -> str:
    """Return the table with that header in a text; empty if there is none."""
    lines = text.splitlines()
    if header not in lines:
        return ""
    begin = end = lines.index(header)
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    return "\n".join(lines[begin:end])


def renew(path: Path, table: str) -> None:
    """Replace the table of a file by one with the same header.

    Raises InputError if the file has none.
    """
    text = path.read_text(encoding="utf-8")
    before = shown(text, table.splitlines()[0])
    if not before:
        message = f"no table begins with {table.splitlines()[0]!r}: paste the table there once"
        raise InputError(message, file=path)
    files.write_text(path, text.replace(before, table))


if __name__ == "__main__":
    if sys.argv[1:]:
        renew(Path(sys.argv[1]), front_table())
    else:
        print(front_table())
