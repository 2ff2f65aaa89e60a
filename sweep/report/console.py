"""Saying lines on a terminal, or into a pipe or file, which has a width too."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from sim.base.text import printable

PIPE_WIDTH = 100
"""Columns of what is written to a pipe or a file, unless COLUMNS says otherwise."""

_PLAIN = str.maketrans({"±": "+/-", "×": "x", "–": "-", "·": "|", "†": "#", "∞": "inf"})


def terminal_width(console: Console) -> int:
    """Columns that there are."""
    named = os.environ.get("COLUMNS", "")
    return console.width if console.is_terminal or named.isdigit() else PIPE_WIDTH


def ascii_substitutes(console: Console) -> Mapping[int, str]:
    """Give what stands for the signs that the output cannot hold (see `str.translate`)."""
    return {} if console.encoding.lower().startswith("utf") else _PLAIN


def print_line(console: Console, line: str, style: str = "") -> None:
    """Print a line, wrapped between words where it is too long."""
    text = printable(line).translate(ascii_substitutes(console))
    parts = textwrap.wrap(
        text, terminal_width(console), break_long_words=False, break_on_hyphens=False
    ) or [""]
    for part in parts:
        console.print(Text(part, style=style), soft_wrap=True)
