"""Run a sweep and print its outcome: verdict, table, findings, failures and folder."""

from __future__ import annotations

import os
import sys
from functools import partial

import numpy as np
from rich.console import Console

from sim.base.text import table_lines
from sweep import driver, track
from sweep.driver import Outcome
from sweep.grid import plugins, remote_results
from sweep.grid.request import Request, Settings
from sweep.report import default_metrics, findings, first_screen, headlines, terminal
from sweep.report.console import print_line
from sweep.report.section import print_section, shortened
from sweep.stats import troubles
from sweep.stats.cell_columns import shown_metrics, table_options
from sweep.stats.summary import summarise
from sweep.store.folder import CELLS, HTML, SweepFolder

MAX_FAILURES = 5
MAX_METRICS, MAX_ROWS = 4, 18
"""Most metrics and rows of the short table; one metric is always there."""


def run(request: Request, *, verbose: bool = True) -> tuple[Outcome, int]:
    """Run a sweep; print its answer, then paths, the folder last; return also 1 if cells failed.

    Unless `verbose` a terminal gets the short form, in which the answer comes last once more.
    """
    outcome = driver.run(request, on_answer=partial(_show_answer, verbose=verbose))
    folder = outcome.folder.path
    print(f"\nreport:  {folder / HTML}")
    label, command = browser_command(request.settings)
    if command and outcome.is_tracked:
        print(f"{label}:  {command}")
    print(f"cells:   {remote_results.display_path(folder / CELLS)}")
    print(remote_results.display_path(folder), flush=True)
    return outcome, int(outcome.n_failed > 0)


def _show_answer(outcome: Outcome, *, verbose: bool) -> None:
    """Print the tables and the failures; a reader who has closed the pipe stops nothing."""
    try:
        _show_tables(outcome, verbose=verbose)
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123


def _show_tables(outcome: Outcome, *, verbose: bool) -> None:
    folder = outcome.folder
    console = Console()
    is_short = console.is_terminal and not verbose
    parts = driver.build_sections(folder, outcome.config, folder.provenance())
    answers = [section for section in parts if section.is_answer]
    lead = _lead(folder)
    for line in lead:
        print_line(console, line, "bold")
    if lead:
        console.print()
    if question := first_screen.own_question(folder.answer()):
        print_line(console, question, "bold")
        console.print()
    for section in answers:
        print_section(section, console)
        console.print()
    if not answers:
        _verdict_and_tables(outcome, console, is_short=is_short)
    for section in parts:
        if not section.is_answer and section.has_text:
            console.print()
            print_section(shortened(section) if is_short else section, console)
    if is_short:
        _end_short(outcome, console, has_answers=bool(answers))
    sys.stdout.flush()
    for line in troubles.unmet(outcome.cells, outcome.config):
        print_line(console, line)
    _findings(folder)
    _failures(folder)


def _lead(folder: SweepFolder) -> list[str]:
    """Return the sentences before any answer: how far a forecast from a log is to be trusted."""
    trust = folder.trust()
    return [trust["sentence"], *trust["cautions"]] if trust else []


def _end_short(outcome: Outcome, console: Console, *, has_answers: bool) -> None:
    """Print the verdict once more below the tables, where a terminal ends, and how to see all."""
    lines = () if has_answers else outcome.folder.answer().get(first_screen.ANSWER, ())
    console.print()
    for line in lines[:1]:
        print_line(console, line, "bold")
    print_line(console, "-v shows all verdicts and tables, as the report does", "dim")


def _verdict_and_tables(outcome: Outcome, console: Console, *, is_short: bool) -> None:
    folder, config = outcome.folder, outcome.config
    baseline = config["baseline"]
    verdict = folder.verdict()
    sentences = [entry["sentence"] for entry in verdict]
    answer = folder.answer().get(first_screen.ANSWER, ())
    answer = [line for line in answer if line not in _lead(folder)]
    terminal.print_verdict(sentences, console, answer, is_short=is_short)
    metric = (config.get("verdict") or {}).get("metric")
    if metric and not verdict:
        print(f"no verdict: no cell has a value of {metric} (verdict.metric)\n")
    cells = shown_metrics(outcome.cells, config)
    summary = summarise(cells, **table_options(config))
    if config["metrics"]:
        terminal.print_table(summary, console)
        against = headlines.headlines(folder.contrasts(), baseline)
        headlines.print_headlines(against, console)
    else:
        judged = dict.fromkeys(entry["metric"] for entry in verdict)
        shown = default_metrics.choose_metrics(summary, list(judged))
        n_rows = sum(len(block.capacities) for block in summary.blocks)
        n_metrics = len(shown)
        if is_short:
            n_metrics = min(max(1, MAX_ROWS // max(1, n_rows) - 1), MAX_METRICS)
        terminal.print_table(summary, console, shown[:n_metrics], is_short=is_short)


def browser_command(settings: Settings) -> tuple[str, str]:
    """Return a name of the pages on the results, and the command that opens them in a browser.

    Both are empty without tracking, or if no plug-in has such pages.
    """
    uri = track.tracking_uri(settings)
    pages = () if uri is None else plugins.results(plugins.SECTIONS, "browser_command", uri)
    return next(iter(pages), ("", ""))


def _findings(folder: SweepFolder) -> None:
    figures = folder.findings()
    if figures is not None:
        print("\nfindings:")
        print("\n".join(table_lines(*findings.to_text(figures))))


def _failures(folder: SweepFolder) -> None:
    is_failed = folder.failed()
    failed = np.flatnonzero(is_failed).tolist()
    if not failed:
        return
    print(f"\n{len(failed):,} of {len(is_failed):,} cells failed:")
    for number in failed[:MAX_FAILURES]:
        row = folder.row(number)
        cell = f"{row['policy']} {row['trace']} capacity {row['capacity']:g} seed {row['seed']}"
        print(f"  {cell}: {row['error_type']} ({row['error_stage']}): {row['error_message']}")
        print(f"    {row['reproduce']}")
    if len(failed) > MAX_FAILURES:
        print(f"  and {len(failed) - MAX_FAILURES} more: python -m sweep show {folder.sweep}")
