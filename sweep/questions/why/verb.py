"""Extension of the verb ``show``: why the policy of a cell loses against another."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rich.console import Console

from sim.base.errors import InputError
from sweep.cli.command import Command
from sweep.cli.show import chosen_cell, find_row
from sweep.questions.why.plug_in import explain
from sweep.report import table_model
from sweep.report.console import print_line, terminal_width

if TYPE_CHECKING:
    from sweep.questions.why.rows import JobRow

N_LOST, N_WON = 12, 8
"""Jobs that a terminal gets; the page has 20 of each."""
GAP = 2
"""Blanks between columns."""


def show_why_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--why",
        action="store_true",
        help="run the cell and that of another policy again: which jobs lost, and behind whom",
    )
    parser.add_argument(
        "--against",
        metavar="POLICY",
        help="with --why: the other policy, or the row of its cell if it has several",
    )


def show_why(command: Command) -> int | None:
    """Print who lost and why, and write the page."""
    flags = command.flags
    if not flags.why and flags.against is None:
        return None
    folder, cell = chosen_cell(command)
    if cell is None or not flags.why or flags.against is None:
        raise InputError("say which cell, and against whom: show 0 --why --against las")
    word = flags.against
    other = find_row(folder, word) if word.isdigit() else word
    answer = explain(folder, find_row(folder, cell), other)
    console = Console()
    for sentence in answer.sentences:
        print_line(console, sentence, "bold")
    rows = answer.rows
    lost, won = ([r for r in rows if (r.lost_s > 0) is sign] for sign in (True, False))
    for title, job_rows, n in (("lost", lost, N_LOST), ("won", won, N_WON)):
        if job_rows:
            print_line(console, "")
            _print_table(console, f"{title} most", job_rows[:n])
    print_line(console, "")
    print(answer.write_pages())
    return 0


def _print_table(console: Console, title: str, rows: list[JobRow]) -> None:
    """Print a table of jobs; without users and queues where it would be too wide."""
    facts = rows[0].why.facts
    named = [
        n for n, column in (("user", facts.user), ("queue", facts.queue)) if len({*column}) > 1
    ]
    lines = _lines(title, rows, named)
    while named and _width(lines) > terminal_width(console):
        named = named[:-1]
        lines = _lines(title, rows, named)
    table_model.print_model(table_model.from_texts(lines[0], lines[1:]), console)


def _lines(title: str, rows: list[JobRow], named: list[str]) -> list[tuple[str, ...]]:
    """Return header and rows of the table."""
    from sweep.questions.why.rows import longer_words  # brings numba
    from sweep.questions.why.sentences import percent, seconds  # brings numba

    first, second = rows[0].why.names
    lines = [(title, *named, "tasks", "work", first, second, "change", "longer for", "overtaken")]
    for row in rows:
        fact = row.facts()
        lines.append(
            (
                fact["job_id"],
                *(fact.get(name, "") for name in named),
                f"{fact['n_tasks']:,}",
                seconds(fact["work_s"]),
                seconds(fact["jct_s"]),
                seconds(fact["jct_other_s"]),
                seconds(fact["lost_s"]),
                longer_words(row, is_short=True),
                percent(row.overtaken_share),
            )
        )
    return lines


def _width(lines: list[tuple[str, ...]]) -> int:
    """Return the width of a table."""
    columns = zip(*lines, strict=True)
    return sum(GAP + max(map(len, column)) for column in columns) - GAP
