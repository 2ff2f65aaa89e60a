"""Plain text for a terminal or a pipe: tables, and escaping of untrusted text."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

# characters that move the cursor, colour, rename the window or reverse the writing direction, and
# halves of surrogate pairs, which UTF-8 can't encode
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
MAX_LABEL = 100
"""Maximum length of a label in a plain-text table, in characters."""


def printable(text: str) -> str:
    r"""Escape control characters, except line ends and tabs.

    Halves of surrogate pairs are escaped too, so that the text can be written as UTF-8.

    Examples
    --------
    >>> print(printable("a \x1b[31mred\x1b[0m word"))
    a \x1b[31mred\x1b[0m word
    """
    return _CONTROL.sub(_escape, text)


def label(text: str) -> str:
    r"""Return a printable text of one line, shortened to `MAX_LABEL` characters.

    Examples
    --------
    >>> print(label("two\nlines"))
    two\nlines
    """
    line = single_line(text)
    return line if len(line) <= MAX_LABEL else line[: MAX_LABEL - 1] + "…"


def is_utf8(text: str) -> bool:
    """Check that UTF-8 can encode a text: Python's may hold halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def not_utf8(text: str) -> str:
    """Tell why a name of the system can't be written as UTF-8, with the way out; empty if it can.

    Where the locale's encoding is not UTF-8, Python takes the bytes of a name for something else.
    """
    encoding = sys.getfilesystemencoding()
    if is_utf8(text) and (text.isascii() or encoding == "utf-8"):
        return ""
    if encoding == "utf-8" or not _holds_utf8(text):
        return "is not valid UTF-8"
    locale = next((name for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "")
    names = [name for name in ("PYTHONUTF8", locale) if name in os.environ]
    variables = ", ".join(f"{name}={os.environ[name]}" for name in names)
    because = f" ({variables})" if variables else ""
    return f"can't be read in the encoding {encoding}{because}: set PYTHONUTF8=1"


def _holds_utf8(text: str) -> bool:
    try:
        os.fsencode(text).decode()
    except UnicodeError:
        return False
    return True


def single_line(text: str) -> str:
    """Escape control characters, including line ends and tabs."""
    return re.sub(r"[\n\t]", _escape, printable(text))


def format_count(n: float) -> str:
    """Write a number of things, such as ``41`` or ``12,345.5``; below 1 with two digits."""
    return f"{n:,.2f}".rstrip("0").rstrip(".") if n >= 1 else f"{n:.2g}"


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def table_lines(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    gap: int = 2,
    numbers: bool = False,
    min_width: int = 0,
) -> list[str]:
    """Lay out rows of text in columns; with `numbers`, all but the first are right-aligned."""
    table = [[single_line(text) for text in row] for row in (header, *rows)]
    # one very long text must not pad every line with blanks
    widths = [min(max(map(len, column)), MAX_LABEL) for column in zip(*table, strict=True)]
    widths[1:] = [max(min_width, width) for width in widths[1:]]
    lines = []
    for row in table:
        cells = [
            text.rjust(width) if numbers and column else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((" " * gap).join(cells).rstrip())
    return lines
