"""The headline table on a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.text import Text

from sweep.report.table.contrasts_view import Entry, Headline, Line
from sweep.report.table.rich import signs
from sweep.report.table.view import capacity_text

_STYLES = {"better": "green", "worse": "red", "": "dim"}
_GAP = "  "


def print_headlines(headlines: Sequence[Headline], baseline: str, console: Console) -> None:
    """Print each table: policies below each other, a column a contrast, as many as fit."""

    def say(*parts: tuple[str, str]) -> None:
        text = Text()
        for part, style in parts:
            text.append(part.translate(signs(console)), style=style)
        text.rstrip()
        console.print(text, soft_wrap=True)

    for number, one in enumerate(headlines):
        say(("", ""))
        title = f"against {baseline}" + (f", {one.title}" if len(headlines) > 1 else "")
        first = max(len(title), *(len(line.policy) + 2 for line in one.lines))
        widths = [
            max(len(head), *(len(line.entries[at].text()) for line in one.lines))
            for at, head in enumerate(one.heads)
        ]
        n = _n_fitting(widths, console.width - first) if console.is_terminal else len(widths)
        heads = [
            (_GAP + head.ljust(width), "bold")
            for head, width in zip(one.heads[:n], widths[:n], strict=True)
        ]
        say((title.ljust(first), "bold"), *heads)
        for capacity, lines in groupby(one.lines, key=lambda line: line.capacity):
            say((f"capacity {capacity_text(capacity)}", "bold"))
            for line in lines:
                say((f"  {line.policy}".ljust(first), ""), *_parts(line, widths, n))
        notes = [*one.notes]
        if n < len(one.heads):
            notes.append(f"not shown here: {', '.join(one.heads[n:])}")
        is_last = number == len(headlines) - 1
        if is_last or headlines[number + 1].notes != one.notes or n < len(one.heads):
            for note in notes:
                say((note, "dim"))


def _parts(line: Line, widths: Sequence[int], n: int) -> list[tuple[str, str]]:
    texts = [entry.text() for entry in line.entries]
    return [
        (_GAP + text.ljust(width), _STYLES[entry.verdict])
        for text, width, entry in zip(texts[:n], widths[:n], line.entries[:n], strict=True)
    ]


def _n_fitting(widths: Sequence[int], room: int) -> int:
    """How many columns fit; one at least."""
    used, n = 0, 0
    for width in widths:
        used += width + len(_GAP)
        n += used <= room
    return max(1, n)


def to_markdown(headlines: Sequence[Headline], baseline: str, level: int = 2) -> str:
    """Write the same tables as Markdown, with p-values; empty without any."""
    parts = []
    for one in headlines:
        title = f"Against {baseline}" + (f": {one.title}" if len(headlines) > 1 else "")
        lines = [f"{'#' * level} {_escape(title)}", ""]
        lines.append(_pipes(["capacity", "policy", *map(_escape, one.heads)]))
        lines.append(_pipes(["---:", "---", *["---"] * len(one.heads)]))
        lines += [
            _pipes([capacity_text(line.capacity), _escape(line.policy), *map(_cell, line.entries)])
            for line in one.lines
        ]
        lines += ["", *(_escape(note) + "  " for note in one.notes)]
        parts.append("\n".join(lines).rstrip() + "\n")
    return "\n".join(parts)


def _cell(entry: Entry) -> str:
    text = _escape(entry.text())
    text = f"**{text}**" if entry.verdict == "better" else text
    return f"{text} ({_escape(entry.p)})" if entry.p else text


def _pipes(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _escape(text: str) -> str:
    for sign in ("\\", "|", "*", "_", "<", "`", "["):
        text = text.replace(sign, "\\" + sign)
    return " ".join(text.split())
