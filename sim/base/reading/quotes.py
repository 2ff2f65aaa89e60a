"""Fields of a line of delimited text in which quotes may enclose a field.

As Arrow reads them: a quote begins an enclosed field only at the field's begin, and two quotes
inside stand for one. Not by the module ``csv``, which refuses fields of more than 131,072
characters and a carriage return that no line end follows.
"""

from __future__ import annotations

import re
from functools import cache


def split_fields(text: str, delimiter: str) -> list[str]:
    """Return the fields of a row, without their quotes; one that is not closed ends with the row.

    The time is proportional to the length of the row.
    """
    return [_value(match) for match in _matches(text, delimiter)]


def ends_in_quotes(line: str, delimiter: str, *, inside: bool) -> bool:
    """Tell whether an enclosed field goes on after a line; `inside`: one was open before it."""
    if not inside and '"' not in line:
        return False
    last = _matches(f'"{line}' if inside else line, delimiter)[-1]
    return last["enclosed"] is not None and not last["end"]


def _matches(text: str, delimiter: str) -> list[re.Match[str]]:
    pattern, matches, begin = _pattern(delimiter), [], 0
    while True:
        match = pattern.match(text, begin)
        assert match is not None  # the pattern matches any text
        matches.append(match)
        begin = match.end()
        if not match["after"]:
            return matches


def _value(match: re.Match[str]) -> str:
    if match["enclosed"] is None:
        return match["plain"]
    return match["enclosed"].replace('""', '"') + match["rest"]


@cache
def _pattern(delimiter: str) -> re.Pattern[str]:
    between = re.escape(delimiter)
    return re.compile(
        r'(?:"(?P<enclosed>[^"]*+(?:""[^"]*+)*+)(?P<end>"?+)(?P<rest>[^'
        rf"{between}]*+)|(?P<plain>[^{between}]*+))(?P<after>{between}|\Z)"
    )
