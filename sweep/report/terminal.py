"""Terminal output at the end of a sweep: the verdict, then a table of default metrics.

On a terminal metrics are rows and policies columns, unless a short table has fewer lines the other
way round; in a pipe, where the next program reads lines, policies are rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from sweep.report import default_metrics
from sweep.report.console import print_line
from sweep.report.table import build_table, headline, legend
from sweep.report.table_model import n_lines, print_model
from sweep.stats.summary import Summary

MAX_SENTENCES = 12


def print_verdict(
    sentences: Sequence[str],
    console: Console,
    answer: Sequence[str] = (),
    *,
    is_short: bool = False,
) -> None:
    """Print the sentences of a sweep's verdicts, a paragraph each.

    Of several verdicts `answer` (of `sweep.report.first_screen`) comes first; in short it alone.
    """
    is_one = len(sentences) < 2 or not answer
    if not is_one:
        print_line(console, " ".join(answer), "bold")
        print_line(console, "")
        if is_short:
            return
    for sentence in sentences[:MAX_SENTENCES]:
        print_line(console, sentence, "bold" if is_one else "")
    if len(sentences) > MAX_SENTENCES:
        print_line(
            console, f"and {len(sentences) - MAX_SENTENCES} more, in verdict.json and the report"
        )
    if sentences:
        print_line(console, "")


def print_table(
    summary: Summary,
    console: Console | None = None,
    shown: Sequence[str] | None = None,
    *,
    is_short: bool = False,
) -> None:
    """Print a table of metrics by policy and capacity: those in `shown`, or all.

    The number of failed cells is left to the list of failures, which follows it. In short the
    metrics that are not shown are not counted.
    """
    console = console or Console()
    by_policy = not console.is_terminal or (is_short and _fits_by_policy(summary, console, shown))
    for line in headline(summary, with_failures=False, is_short=is_short):
        print_line(console, line, "dim")
    for block in summary.blocks if summary.metrics else ():
        print_line(console, "")
        if len(summary.blocks) > 1:
            print_line(console, block.title, "bold underline")
        table = build_table(summary, block, shown, by_policy=by_policy)
        print_model(table, console)
    notes = legend(summary, shown=shown, is_short=is_short)
    if shown is not None and not is_short:
        notes += default_metrics.unshown_lines(summary, shown)
    if notes:
        print_line(console, "")
    for line in notes:
        print_line(console, line, "dim")


def _fits_by_policy(summary: Summary, console: Console, shown: Sequence[str] | None) -> bool:
    """Return True if the tables have fewer lines with a row a policy.

    A narrow terminal has room for few columns, and policies are often more than metrics.
    """
    if not summary.metrics:
        return False
    lines = [
        sum(
            n_lines(build_table(summary, block, shown, by_policy=by_policy), console)
            for block in summary.blocks
        )
        for by_policy in (True, False)
    ]
    return lines[0] < lines[1]
