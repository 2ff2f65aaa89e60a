"""Plain text for a terminal or a pipe: tables, and words of others that may hold anything."""

from __future__ import annotations

import re
from collections.abc import Sequence

# what moves the cursor, colours, renames the window or turns the direction of writing around
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""Return a text whose control characters, but for line ends and tabs, are written as escapes.

    Examples
    --------
    >>> print(printable("a \x1b[31mred\x1b[0m word"))
    a \x1b[31mred\x1b[0m word
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def table_lines(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    gap: int = 2,
    numbers: bool = False,
    narrowest: int = 0,
) -> list[str]:
    """Lay rows of text out in columns; of `numbers`, all columns but the first are flush right."""
    lines = [[printable(text) for text in line] for line in (header, *rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(header))]
    widths[1:] = [max(narrowest, width) for width in widths[1:]]
    laid_out = []
    for line in lines:
        cells = [
            text.rjust(width) if numbers and at else text.ljust(width)
            for at, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        laid_out.append((" " * gap).join(cells).rstrip())
    return laid_out
