"""What a sweep says: notes on standard error, the table and the folder on standard output."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweep import report, ui
from sweep.grid.settings import Settings
from sweep.report import findings, table
from sweep.report.table import contrasts_table, contrasts_view
from sweep.run.plan import Prepared
from sweep.store.folder import SweepFolder, shown_metrics

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

MAX_FAILURES = 5


def err() -> Console:
    """Console for notes and progress."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


def note(text: str) -> None:
    """Say one thing on standard error."""
    print(text, file=sys.stderr, flush=True)


def grid(prepared: Prepared, n_todo: int) -> None:
    """Say what is about to run."""
    axes = " × ".join(
        _count(len(values), _PLURAL.get(key, key))
        for key, values in prepared.grid.request.axes.items()
        if len(values) > 1 or key in _PLURAL
    )
    n_cells = len(prepared.planned)
    n_cached = sum(one.key in prepared.metrics for one in prepared.planned)
    note(f"{prepared.sweep}: {axes}: {n_cells} cells, {n_cached} cached, {n_todo} to run")
    notes = []
    for name in dict.fromkeys(one.input for one in prepared.planned):
        about = prepared.inputs.describe(name)
        dropped = _dropped(about["meta"].get("report") or {})
        if dropped:
            trace = about["meta"].get("name", "trace")
            notes.append(f"  {trace}: {about['n_jobs']:,} jobs; {dropped}")
    for line in dict.fromkeys(notes):
        note(line)


def interrupted(prepared: Prepared, n_todo: int) -> None:
    """Say what is kept."""
    left = len(prepared.todo())
    note(
        f"interrupted: {n_todo - left} of {n_todo} cells are done and kept; "
        "the same command goes on from here"
    )


def result(
    folder: SweepFolder, cells: pa.Table, config: Mapping[str, Any], settings: Settings
) -> None:
    """Print the table, the failures, and where the results lie; the folder last."""
    from rich.console import Console

    summary = table.summarise(
        shown_metrics(cells, config), swept=config["swept"], baseline=config["baseline"]
    )
    console = Console()
    table.print_table(summary, console)
    headlines = contrasts_view.headlines(folder.contrasts())
    contrasts_table.print_headlines(headlines, config["baseline"], console)
    sys.stdout.flush()
    _findings(folder)
    _failures(cells, folder.sweep)
    print()
    print(f"report:  {folder.path / report.HTML}")
    command = ui_command(settings)
    if command:
        print(f"MLflow:  {command}")
    print(f"cells:   {folder.path / 'cells.parquet'}")
    print(folder.path, flush=True)


def ui_command(settings: Settings) -> str:
    """Give the one command that opens the results in MLflow's UI; empty without tracking."""
    from sweep.track import hand_over

    uri = hand_over.uri_of(settings)
    if uri is None:
        return ""
    hint = ui.hint(uri)
    return "make ui" if hint == "python -m sweep.ui" and Path("Makefile").is_file() else hint


def _findings(folder: SweepFolder) -> None:
    found = folder.findings()
    if found is not None:
        print("\nfindings:")
        print(rows_as_text(*findings.to_text(found)))


def _failures(cells: pa.Table, sweep: str) -> None:
    failed = [at for at, status in enumerate(cells["status"].to_pylist()) if status == "failed"]
    if not failed:
        return
    print(f"\n{_count(len(failed), 'cells')} failed:")
    for at in failed[:MAX_FAILURES]:
        row = cells.slice(at, 1).to_pylist()[0]
        where = f"{row['policy']} {row['trace']} capacity {row['capacity']:g} seed {row['seed']}"
        print(f"  {where}: {row['error_type']} ({row['error_stage']}): {row['error_message']}")
        print(f"    {row['reproduce']}")
    if len(failed) > MAX_FAILURES:
        print(f"  and {len(failed) - MAX_FAILURES} more: python -m sweep show {sweep}")


def _dropped(report: Mapping[str, Any]) -> str:
    """Word what a loader dropped or filled in, by rule."""
    words: list[str] = []
    for what in ("dropped", "filled", "edges_dropped", "bad_rows"):
        counts = report.get(what)
        if isinstance(counts, Mapping) and counts:
            rules = ", ".join(f"{rule} ({n:,})" for rule, n in counts.items())
            words.append(f"{what.replace('_', ' ')}: {rules}")
    return "; ".join(words)


_PLURAL = {"policy": "policies", "trace": "traces", "capacity": "capacities", "seed": "seeds"}
_SINGULAR = {plural: singular for singular, plural in _PLURAL.items()} | {"cells": "cell"}


def _count(n: int, plural: str) -> str:
    return f"{n:,} {_SINGULAR.get(plural, plural) if n == 1 else plural}"


def rows_as_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay rows of text out in columns."""
    widths = [max(len(line[at]) for line in [header, *rows]) for at in range(len(header))]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in [header, *rows]
    ]
    return "\n".join(lines)
