"""Names of findings that are fields of a table, such as those of a workload and an objective.

A figure or quantity of several parts is written ``PART · PART``: the figure of a field is
``capacity 0.6 · mean JCT, s``, its quantity ``cosmos · bayes``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

BETTER, WORSE, LEVEL = "▲", "▼", "="
"""Marks of a comparison that is told from its level, or that is level within a tolerance."""
MAYBE_BETTER, MAYBE_WORSE = "△", "▽"
"""The same by the 95 % interval of that comparison alone, not corrected for all others."""
MARKS = (BETTER, MAYBE_BETTER, LEVEL, "", MAYBE_WORSE, WORSE)

_SEPARATOR = " · "


def field(*parts: str) -> str:
    """Join the parts of a name, without those that are empty."""
    return _SEPARATOR.join(filter(None, parts))


def split(name: str) -> tuple[str, str]:
    """Split a name into its first part and the rest; that is empty if there is none."""
    first, _, rest = name.partition(_SEPARATOR)
    return first, rest


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table of Markdown texts; the first column is to the left."""
    lines = [_line(header), "| --- |" + " --- |" * (len(header) - 1), *map(_line, rows)]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
