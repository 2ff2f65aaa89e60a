"""Extension of the verb ``show``: why jobs wait in a cell, or lose against another policy."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rich.console import Console

from sim.base.errors import InputError
from sweep.cli.command import Command
from sweep.cli.show import chosen_cell, find_row
from sweep.questions.why.plug_in import explain, explain_waits
from sweep.report import table_model
from sweep.report.console import print_line, terminal_width

if TYPE_CHECKING:
    from sweep.questions.why.answer import WaitAnswer
    from sweep.questions.why.rows import JobRow

N_LOST, N_WON = 12, 8
"""Jobs that a terminal gets; the page has 20 of each."""
N_GROUPS, N_REASONS = 8, 4
"""Groups of a column, and reasons, that a terminal gets; the page has 31, and all."""
GAP = 2
"""Blanks between columns."""


def show_why_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--why",
        action="store_true",
        help="run the cell again: why its jobs waited, by user, queue and period; with --against "
        "also that of another policy: which jobs lost, and behind whom",
    )
    parser.add_argument(
        "--against",
        metavar="POLICY",
        help="with --why: the other policy, or the row of its cell if it has several",
    )
    parser.add_argument(
        "--recorded",
        action="store_true",
        help="with --why: of the log's own schedule on the cell's cluster, by its recorded starts",
    )


def show_why(command: Command) -> int | None:
    """Print who lost and why, and write the page."""
    flags = command.flags
    if not flags.why and flags.against is None and not flags.recorded:
        return None
    folder, cell = chosen_cell(command)
    if cell is None or not flags.why:
        raise InputError("say which cell: show 0 --why, or show 0 --why --against las")
    row, word = find_row(folder, cell), flags.against
    if word is None or flags.recorded:
        if word is not None:
            raise InputError("--recorded is of the log's own schedule: leave out --against")
        return _show_waits(explain_waits(folder, row, is_log=flags.recorded))
    answer = explain(folder, row, find_row(folder, word) if word.isdigit() else word)
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


def _show_waits(answer: WaitAnswer) -> int:
    """Print why jobs waited, by group, and write the page."""
    console = Console()
    for sentence in answer.sentences:
        print_line(console, sentence, "bold")
    for column in answer.waits.columns:
        print_line(console, "")
        lines = _wait_lines(answer, column)
        table_model.print_model(table_model.from_texts(lines[0], lines[1:]), console)
    print_line(console, "")
    print(answer.write_pages())
    return 0


def _wait_lines(answer: WaitAnswer, column: str) -> list[tuple[str, ...]]:
    """Return header and rows of the groups of a column that waited longest."""
    from sweep.questions.why import waits  # brings numba
    from sweep.questions.why.sentences import SHORT, percent, reason_words, seconds

    groups = answer.waits.by(column)
    shown = waits.largest(groups, N_GROUPS, in_order=column in waits.PERIODS_S)
    reasons = [*answer.waits.waits][:N_REASONS]
    names = [SHORT.get(reason, reason_words(reason)) for reason in reasons]
    lines = [(column, "jobs", "wait", "a job", *names)]
    for group in shown:
        total_s = group.wait_s or 1.0
        shares = (percent(group.waits.get(reason, 0.0) / total_s) for reason in reasons)
        wait = (seconds(group.wait_s), seconds(group.wait_s / group.n_jobs))
        lines.append((group.name, f"{group.n_jobs:,}", *wait, *shares))
    if len(shown) < len(groups):
        lines.append((f"and {len(groups) - len(shown):,} more", *[""] * (len(lines[0]) - 1)))
    return lines


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
