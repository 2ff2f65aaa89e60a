"""Columns of delimited text: their types and constraints, and how rows are laid out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from sim.base.reading.utf8 import INVALID

OnBadRow = Literal["error", "skip"]
Kind = Literal["text", "number", "whole", "any"]

MISSING = ("", "nan", "NaN", "NA", "null", "NULL", "None", "\\N")
"""Texts that mean that a value is missing."""
MAX_WHOLE = 2**31
"""Limit of whole numbers: they are smaller."""


@dataclass(frozen=True)
class Field:
    """Type and constraints of a column."""

    # text; a finite number; a whole number; any number, infinite ones included
    kind: Kind = "text"
    # True: an empty field makes the row bad; else it is null, or NaN for numbers
    required: bool = False
    low: float = 0.0  # smallest valid number (except for ``any``)
    high: float = math.inf  # largest valid number (for ``number``)
    form: str = ""  # regular expression that a text must match
    example: str = ""  # a text that matches it
    # of an invalid text: what it looks like, and the way out; appended to the message
    explain: Callable[[str], str] | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, not {self.kind!r}")

    def accepts(self, text: str) -> bool:
        """Tell whether a row may have this text in the column."""
        if text in MISSING:
            return not self.required
        if self.kind == "text":
            has_form = not self.form or re.search(self.form, text) is not None
            return has_form and INVALID not in text
        number = parse(text)
        if number is None or self.kind == "any":
            return number is not None
        is_whole = number == math.floor(number) and number < MAX_WHOLE
        return self.low <= number <= min(self.high, 1e308) and (self.kind != "whole" or is_whole)


@dataclass(frozen=True)
class Layout:
    """Layout of delimited text: names of all columns, delimiter, lines before the rows.

    A row with more or fewer fields than names is bad, unless `free_text` explains it and all its
    other values are valid.
    """

    names: tuple[str, ...]
    delimiter: str = ","
    skip_lines: int = 0
    quoted: bool = True  # a field may be enclosed in "
    multiline: bool = False  # such a field may hold line ends
    # maps a line of the text to a line of the file, both from 1, if they differ
    lines: Callable[[int], int] | None = None
    # columns that may hold the delimiter or a line end, as nothing escapes these
    free_text: tuple[str, ...] = ()


def parse(text: str | None) -> float | None:
    """Return the number that a text is; None if it is none."""
    try:
        return None if text is None or "_" in text else float(text)
    except ValueError:
        return None
