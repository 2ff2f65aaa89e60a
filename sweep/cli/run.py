"""Verbs that build a request for a grid: run, plan, retry, track."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from sim.base.errors import InputError
from sim.base.masking import mask_tree
from sim.base.text import table_lines
from sweep import driver
from sweep import track as tracking
from sweep.cli import outcome, verbs
from sweep.cli.command import (
    REQUEST_IS_FIXED,
    Command,
    add_config_flags,
    add_grid_flags,
    repeat_request,
)
from sweep.cli.composed import composed
from sweep.execution import cell_costs, notes
from sweep.execution.plan import PreparedGrid, source_tables, stored_config
from sweep.grid.request import Request
from sweep.store.cache_miss import ClosestCached
from sweep.store.journal import Journal


def run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    add_grid_flags(parser)
    parser.add_argument(
        *("-v", "--verbose"), action="store_true", help="show a terminal all verdicts and tables"
    )
    add_config_flags(parser)


def run(command: Command) -> int:
    """Run a grid (the default): simulate cells that are not cached; tabulate, report and track."""
    request = command.request()
    if command.shows_config:
        print(composed(request), end="")
        return 0
    return outcome.run(request, verbose=command.flags.verbose)[1]


def retry_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    words = "[SWEEP] [launcher=... tracking=... paths.results=DIR max_failures=N ...]"
    parser.usage = f"{parser.prog} {words} [flags]"
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first failed cell")
    parser.epilog = REQUEST_IS_FIXED


def retry(command: Command) -> int:
    """Run the failed cells of a sweep again, and cells whose sources changed since."""
    _, request = repeat_request(command)
    return outcome.run(request)[1]


def track_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags: none."""
    parser.usage = f"{parser.prog} [SWEEP] [tracking.uri=URI] [paths.results=DIR] [flags]"
    parser.epilog = REQUEST_IS_FIXED


def track(command: Command) -> int:
    """Log a finished sweep to MLflow; existing runs are not changed."""
    folder, request = repeat_request(command)
    target = tracking.target_id(request.settings)
    if target is None:
        raise InputError("tracking=none logs to no server; use tracking=mlflow")
    try:
        tracking.log(folder, request.settings, notes.note)
    except tracking.TrackingDown as down:
        notes.note(f"error: {down}")
        return 1
    Journal(folder.results, folder.sweep).append("tracked", tracked=target)
    command_line = outcome.browser_command(request.settings)[1]
    print(f"{folder.sweep} is in MLflow" + f": {command_line}" * bool(command_line))
    return 0


MAX_LINES = 40


def plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.usage = f"{parser.prog} [SWEEP | key=value ...] [flags]"
    parser.epilog = REQUEST_IS_FIXED
    add_grid_flags(parser)
    add_config_flags(parser)
    parser.add_argument("--all", action="store_true", help="a line for each cell, cached or not")


def plan(command: Command) -> int:
    """Show which cells of a grid, or of a sweep, are cached, and what changed; run nothing."""
    request = _grid_or_sweep(command)
    if command.shows_config:
        print(composed(request), end="")
        return 0
    prepared = driver.prepare_first(request)
    is_cached = prepared.is_cached().tolist()
    n_cells, n_todo, n_cached = len(is_cached), len(prepared.missing_rows()), sum(is_cached)
    counts = f"{notes.count(n_cells, 'cells')}, {n_cached:,} cached, {n_todo:,} to run"
    print(f"{prepared.sweep}: {counts}")
    if n_todo:
        print(cell_costs.estimate(prepared))
    if request.precision is not None and not prepared.grid.is_fixed:
        n, limit = len(request.axes["seed"]), request.precision.max_seeds
        print(f"seeds=auto starts with these {n} seeds and adds more, up to {limit}, as needed")
    if prepared.grid.is_fixed and request.precision is not None:
        print(f"{driver.ONE_SEED}: seeds=auto takes one")
    elif prepared.grid.is_fixed and len(request.axes["seed"]) > 1:
        print(f"{driver.ONE_SEED}: seed=0 gives the same as all of these")
    if request.chooses_cells:
        print("the search starts with these cells; their results decide which follow")
    if n_todo or command.flags.all:
        print(_lines(prepared, is_cached, show_all=command.flags.all))
    return 0


def _grid_or_sweep(command: Command) -> Request:
    """Build the request for the grid that the words describe, or again for the sweep they name."""
    if len(command.names) == 1 and command.names[0] not in verbs.names():
        return repeat_request(command)[1]
    return command.request()


def _lines(prepared: PreparedGrid, is_cached: Sequence[bool], *, show_all: bool) -> str:
    closest = ClosestCached(prepared.cache.configs(), _sources_changed(prepared))
    header = ["row", *prepared.planned[0].cell.labels, "", "what changed"]
    rows: list[list[str]] = []
    reasons = Counter[str]()
    for planned in prepared.planned:
        state, reason = "cached", ""
        if not is_cached[planned.row]:
            is_first = closest.is_empty
            changes = None if is_first else closest.differences(stored_config(prepared, planned))
            state, reason = "to run", "; ".join(changes or ["no similar cell is cached"])
            reasons[reason] += 1
        if show_all or (state == "to run" and len(rows) < MAX_LINES):
            shown = mask_tree(planned.cell.labels).values()
            labels = ["" if value is None else str(value) for value in shown]
            rows.append([str(planned.row), *labels, state, reason])
    text = "\n".join(table_lines(header, rows))
    n_more = reasons.total() - len(rows)
    if n_more > 0 and not show_all:
        common = "\n".join(f"  {n} cells: {reason}" for reason, n in reasons.most_common(10))
        text += f"\nand {n_more} more (--all shows them); in all\n{common}"
    return text


def _sources_changed(prepared: PreparedGrid) -> Callable[[Any, str], list[str]]:
    """Return a function that lists the modules in which a cached and a new cell differ."""
    kinds = {
        (id(p.cell.policy), id(p.cell.evaluator), p.workload): p for p in prepared.representatives
    }.values()
    tables = dict(item for planned in kinds for item in source_tables(prepared, planned).items())
    return lambda old, new: prepared.cache.sources.changes(old, tables[new])
