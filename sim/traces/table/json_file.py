"""Refuse JSON where a table is expected, and say which reader takes it."""

from __future__ import annotations

import os
import re

from sim.base.errors import InputError
from sim.base.reading import kind_of_json

_OTHER = (
    "JSON of no kind that is read here: write it as CSV with a row a job, such as by "
    "pandas.read_json(...).to_csv(...)"
)


def refuse_json(path: str | os.PathLike[str], line: str) -> None:
    """Raise an InputError if the first line of a file is JSON."""
    if not re.match(r"\s*(\{\s*(\"|\}|$)|\[\s*(\{|\[|\"|\]|\d|$))", line):
        return
    text = f"the file is JSON, no table; {kind_of_json(line) or _OTHER}"
    raise InputError(text, file=path, line=1, rule="not a table")
