"""Definitions on a page: what the paper's numbers are of, and what ours are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from sim import published as inputs
from sim.published import Definition, Numbers
from sweep.questions.papers import printed
from sweep.questions.papers.excluded import Marks, Ours
from sweep.report.findings import Finding

_HEAD = ("numbers", "the paper's", "place", "ours")
UNSTATED = "not stated (key `of` of the number)"
"""Text for a number without a definition, such as a plug-in's."""


def page_text(findings: Sequence[Finding], marks: Marks) -> str:
    """Write the table of definitions of the numbers on a page; empty if it has none."""
    rows: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    in_figure = Counter[str]()
    for finding in findings:
        path = getattr(finding.paper, "path", ())
        if path:
            paper, ours = printed.definition(path), marks.ours(finding.figure, finding.quantity)
            texts = (_paper(paper), paper.place, _ours(paper, ours))
            rows.setdefault(texts, {}).setdefault(finding.figure, []).append(finding.quantity)
            in_figure[finding.figure] += 1
    if not rows:
        return ""
    lines = [_line(*_HEAD), "| --- | --- | --- | --- |"]
    for texts, figures in rows.items():
        named = (
            figure if len(listed) == in_figure[figure] else f"{figure}: {', '.join(listed)}"
            for figure, listed in figures.items()
        )
        lines.append(_line("; ".join(named), *texts))
    return "What the paper's numbers are of, and ours:\n\n" + "\n".join(lines)


def uncompared_text() -> str:
    """Write the table of the numbers that no page compares, with the reason of each."""
    lines = [_line("paper", "numbers", "of", "place", "why"), "| --- | --- | --- | --- | --- |"]
    for paper in inputs.papers():
        numbers = printed.read(paper)
        stated = [(numbers.definition(*path), path) for path in numbers.paths()]
        uncompared = (pair for pair in stated if pair[0].uncompared)
        for defined, pairs in groupby(uncompared, itemgetter(0)):
            values = (f"{' '.join(path[1:])}: {_value(numbers, path)}" for _, path in pairs)
            lines.append(
                _line(paper, ", ".join(values), _paper(defined), defined.place, defined.uncompared)
            )
    return "\n".join(lines)


def _value(numbers: Numbers, path: Sequence[str]) -> str:
    value: Any = numbers
    for key in path:
        value = value[key]
    values = value if isinstance(value, tuple) else (value,)
    return " and ".join(f"{x:.10g}" if isinstance(x, float) else str(x) for x in values)


def _paper(paper: Definition) -> str:
    if paper.missing():
        return UNSTATED
    draws = "; one draw" if paper.draws == inputs.ONE_DRAW else ""
    return f"{paper.metric}, of {paper.population}; {paper.conditions}{draws}"


def _ours(paper: Definition, ours: Ours | None) -> str:
    if ours is None:
        return UNSTATED
    words = f"**differs**: {ours.metric}, of {ours.population}" if ours.differs(paper) else "same"
    return f"{words}; {ours.note}" if ours.note else words


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
