"""The table a sweep ends with, on a terminal and as Markdown."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from sweep.report.table import rich as table_rich
from sweep.report.table import view as table_view
from sweep.report.table.view import Entry, capacity_text
from sweep.stats.summary import Summary, summarise

__all__ = ["print_table", "summarise", "to_markdown", "to_text"]


def print_table(summary: Summary, console: Console | None = None) -> None:
    """Print every metric, a row each, for every policy, a column each, capacity by capacity.

    On a terminal the policies that do not fit beside each other go into further tables, so that
    no number is cut or wrapped; written to a file or a pipe every table has its full width. Where
    the output cannot hold ``±`` and ``×``, plain letters stand for them.
    """
    console = console or Console()

    def say(line: str, style: str = "") -> None:
        text = Text(line.translate(table_rich.signs(console)), style=style)
        console.print(text, soft_wrap=True)

    for number, line in enumerate(table_view.headline(summary)):
        say(line, style="bold" if number == 0 else "")
    for block in summary.blocks if summary.metrics else ():
        say("")
        if len(summary.blocks) > 1:
            say(block.title, style="bold underline")
        table_rich.print_block(summary, block, console)
    legend = table_view.legend(summary)
    if legend:
        say("")
    for line in legend:
        say(line, style="dim")


def to_text(summary: Summary) -> str:
    """Give what `print_table` prints without a terminal, as text."""
    file = io.StringIO()
    print_table(summary, Console(file=file, force_terminal=False, no_color=True))
    return file.getvalue()


def to_markdown(summary: Summary, level: int = 2) -> str:
    """Write the same tables as Markdown, a block's heading at `level`."""
    lines = [_escape(line) + "  " for line in table_view.headline(summary)]
    for block in summary.blocks if summary.metrics else ():
        if len(summary.blocks) > 1:
            lines += ["", f"{'#' * level} {_escape(block.title)}"]
        columns = table_view.columns_of(summary, block)
        heads = [" ".join(table_view.column_lines(summary.columns[at])) for at in columns]
        for number, capacity in enumerate(block.capacities):
            lines += ["", f"{'#' * (level + 1)} Capacity {capacity_text(capacity)}", ""]
            lines.append(_pipes(["metric", *map(_escape, heads)]))
            lines.append(_pipes(["---", *(["---:"] * len(columns))]))
            lines += [
                _pipes([f"`{row.metric}`", *map(_markdown_entry, row.entries)])
                for row in table_view.rows_of(summary, block, number)
            ]
    legend = [_escape(line) + "  " for line in table_view.legend(summary, best="bold")]
    return "\n".join([*lines, "", *legend]).rstrip() + "\n"


def _markdown_entry(entry: Entry) -> str:
    text = _escape(entry.text().replace(table_view.BEST, ""))
    return f"**{text}**" if entry.is_best else text


def _pipes(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _escape(text: str) -> str:
    for sign in ("\\", "|", "*", "_", "<", "`"):
        text = text.replace(sign, "\\" + sign)
    return " ".join(text.split())
