"""What a sweep ends with, on standard output: tables, findings, failures, where it all lies."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from sim.base.text import table_lines
from sweep import track, ui
from sweep.driver import Outcome
from sweep.execution.notes import count
from sweep.grid.request import Settings
from sweep.report import findings, headlines, table
from sweep.report.section import print_section
from sweep.search import sections
from sweep.stats.arrange import shown_metrics
from sweep.stats.summary import summarise
from sweep.store.folder import CELLS, HTML, SweepFolder

MAX_FAILURES = 5


def show(outcome: Outcome, settings: Settings) -> int:
    """Print the tables, the failures and where all lies, the folder last; 1 if any failed."""
    folder, config = outcome.folder, outcome.config
    baseline = config["baseline"]
    console = Console()
    found = sections.of(folder)
    for section in (each for each in found if each.is_answer):
        print_section(section, console)
        console.print()
    if not any(section.is_answer for section in found):
        shown = shown_metrics(outcome.cells, config)
        table.print_table(summarise(shown, swept=config["swept"], baseline=baseline), console)
        against = headlines.headlines(folder.contrasts())
        headlines.print_headlines(against, baseline, console)
    for section in (each for each in found if not each.is_answer):
        console.print()
        print_section(section, console)
    sys.stdout.flush()
    _findings(folder)
    _failures(outcome.cells, folder.sweep)
    print()
    print(f"report:  {folder.path / HTML}")
    command = ui_command(settings)
    if command:
        print(f"MLflow:  {command}")
    print(f"cells:   {folder.path / CELLS}")
    print(folder.path, flush=True)
    return 1 if outcome.n_failed else 0


def ui_command(settings: Settings) -> str:
    """Give the one command that opens the results in MLflow's UI; empty without tracking."""
    uri = track.uri_of(settings)
    if uri is None:
        return ""
    hint = ui.hint(uri)
    return "make ui" if hint == "python -m sweep.ui" and Path("Makefile").is_file() else hint


def _findings(folder: SweepFolder) -> None:
    figures = folder.findings()
    if figures is not None:
        print("\nfindings:")
        print("\n".join(table_lines(*findings.to_text(figures))))


def _failures(cells: pa.Table, sweep: str) -> None:
    failed = [at for at, status in enumerate(cells["status"].to_pylist()) if status == "failed"]
    if not failed:
        return
    print(f"\n{count(len(failed), 'cells')} failed:")
    for at in failed[:MAX_FAILURES]:
        row = cells.slice(at, 1).to_pylist()[0]
        where = f"{row['policy']} {row['trace']} capacity {row['capacity']:g} seed {row['seed']}"
        print(f"  {where}: {row['error_type']} ({row['error_stage']}): {row['error_message']}")
        print(f"    {row['reproduce']}")
    if len(failed) > MAX_FAILURES:
        print(f"  and {len(failed) - MAX_FAILURES} more: python -m sweep show {sweep}")
