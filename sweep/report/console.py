"""Print lines to a terminal, a pipe or a file: width, wrapping, ASCII substitutes."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from sim.base.text import printable

PIPE_WIDTH = 100
"""Width in columns of a pipe or a file; the environment variable COLUMNS overrides it."""

_ASCII = str.maketrans({"±": "+/-", "×": "x", "–": "-", "·": "|", "†": "#", "∞": "inf"})


def terminal_width(console: Console) -> int:
    """Return the terminal's width in columns."""
    columns = os.environ.get("COLUMNS", "")
    return console.width if console.is_terminal or columns.isdigit() else PIPE_WIDTH


def ascii_substitutes(console: Console) -> Mapping[int, str]:
    """Return the substitutes of characters that the output cannot encode (see `str.translate`)."""
    return {} if console.encoding.lower().startswith("utf") else _ASCII


def print_line(console: Console, line: str, style: str = "") -> None:
    """Print a line, wrapped between words if it is too long."""
    text = printable(line).translate(ascii_substitutes(console))
    parts = textwrap.wrap(
        text, terminal_width(console), break_long_words=False, break_on_hyphens=False
    ) or [""]
    for part in parts:
        console.print(Text(part, style=style), soft_wrap=True)
