"""Plain text for a terminal or a pipe: tables, and words of others that may hold anything."""

from __future__ import annotations

import re
from collections.abc import Sequence

# what moves the cursor, colours, renames the window or turns the direction of writing around, and
# halves of surrogate pairs, which UTF-8 has no bytes for
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
LONGEST_LABEL = 100
"""Characters of a label in a table of plain text."""


def printable(text: str) -> str:
    r"""Return a text whose control characters, but for line ends and tabs, are written as escapes.

    So are halves of surrogate pairs: the text can be written as UTF-8.

    Examples
    --------
    >>> print(printable("a \x1b[31mred\x1b[0m word"))
    a \x1b[31mred\x1b[0m word
    """
    return _CONTROL.sub(_escape, text)


def label(text: str) -> str:
    r"""Return a printable text of one line, cut where it is very long.

    Examples
    --------
    >>> print(label("two\nlines"))
    two\nlines
    """
    line = single_line(text)
    return line if len(line) <= LONGEST_LABEL else line[: LONGEST_LABEL - 1] + "…"


def is_utf8(text: str) -> bool:
    """Tell whether UTF-8 has the text: Python's may hold halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def single_line(text: str) -> str:
    """Return a printable text whose line ends and tabs are written as escapes, too."""
    return re.sub(r"[\n\t]", _escape, printable(text))


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def table_lines(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    gap: int = 2,
    numbers: bool = False,
    narrowest: int = 0,
) -> list[str]:
    """Lay rows of text out in columns; of `numbers`, all columns but the first are flush right."""
    lines = [[single_line(text) for text in line] for line in (header, *rows)]
    # one very long text is no reason to fill every line with blanks
    widths = [min(max(len(line[at]) for line in lines), LONGEST_LABEL) for at in range(len(header))]
    widths[1:] = [max(narrowest, width) for width in widths[1:]]
    laid_out = []
    for line in lines:
        cells = [
            text.rjust(width) if numbers and at else text.ljust(width)
            for at, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        laid_out.append((" " * gap).join(cells).rstrip())
    return laid_out
