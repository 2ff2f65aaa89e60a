"""Verbs that build a request for a grid: run, plan, retry, track, verify."""

from __future__ import annotations

import argparse
import hashlib
import heapq
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sim.base.errors import InputError
from sim.base.masking import mask_tree
from sim.base.text import table_lines
from sweep import driver
from sweep import track as tracking
from sweep.cli import outcome
from sweep.cli.command import REQUEST_IS_FIXED, Command, add_grid_flags, repeat_request
from sweep.execution import cell_costs, notes
from sweep.execution.plan import PlannedCell, PreparedGrid, source_tables, stored_config
from sweep.execution.rerun import rerun
from sweep.stats.cell_columns import AXES, Rows
from sweep.store.cache import Cache
from sweep.store.cache_miss import ClosestCached
from sweep.store.cell import CellResult
from sweep.store.journal import Journal
from sweep.store.provenance import other_bits

run_arguments = add_grid_flags


def run(command: Command) -> int:
    """Run a grid (the default): simulate cells that are not cached; tabulate, report and track."""
    request = command.request()
    return outcome.show(driver.run(request), request.settings)


def retry_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    words = "[SWEEP] [launcher=... tracking=... paths.results=DIR max_failures=N ...]"
    parser.usage = f"{parser.prog} {words} [flags]"
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first failed cell")
    parser.epilog = REQUEST_IS_FIXED


def retry(command: Command) -> int:
    """Run the failed cells of a sweep again, and cells whose sources changed since."""
    _, request = repeat_request(command)
    return outcome.show(driver.run(request), request.settings)


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
    print(f"{folder.sweep} is in MLflow: {outcome.ui_command(request.settings)}")
    return 0


MAX_LINES = 40


def plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    add_grid_flags(parser)
    parser.add_argument("--all", action="store_true", help="a line for each cell, cached or not")


def plan(command: Command) -> int:
    """Show which cells are cached, and what changed for those that are not; run nothing."""
    request = command.request()
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
    if request.goal is not None:
        print("the search starts with these cells; their results decide which follow")
    if n_todo or command.flags.all:
        print(_lines(prepared, is_cached, show_all=command.flags.all))
    return 0


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


def verify_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    parser.usage = f"{parser.prog} [SWEEP] [--cells K] [--seed N] [paths.results=DIR] [flags]"
    parser.add_argument(
        "--cells", type=int, default=5, metavar="K", help="number of cells (default 5)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of their choice (default 0)"
    )
    parser.epilog = REQUEST_IS_FIXED


def verify(command: Command) -> int:
    """Run random cells of a sweep again; check that every bit of their results is the same."""
    if command.flags.cells < 1:
        raise InputError(f"--cells must be at least 1, not {command.flags.cells}")
    folder, request = repeat_request(command)
    failed, swept = folder.failed(), folder.config()["swept"]
    rows = np.flatnonzero(~failed)
    if not len(rows):
        raise InputError(f"every cell of {folder.sweep} failed; nothing can be compared")
    n_wrong = 0
    for number in _sample(rows, command.flags.cells, command.flags.seed):
        row = folder.row(number)
        prepared, planned = driver.plan_cell(request, {key: row[key] for key in (*AXES, *swept)})
        verdict, is_same = _verify(prepared, planned, row["key"])
        n_wrong += not is_same
        labels = " ".join(f"{value}" for value in mask_tree(planned.cell.labels).values())
        print(f"row {number}: {labels}: {verdict}")
    n_run = min(command.flags.cells, len(rows))
    print(f"{n_run - n_wrong} of {n_run} cells are the same, bit for bit")
    if n_wrong and (differs := other_bits(folder.provenance())):
        print(f"{folder.sweep} was computed in an environment with other bits: {differs}")
    return 1 if n_wrong else 0


def _sample(rows: Rows, n: int, seed: int) -> list[int]:
    """Choose rows by a hash, so that the same seed always chooses the same ones."""

    def rank(row: int) -> bytes:
        return hashlib.sha256(f"{seed}:{row}".encode()).digest()

    return sorted(heapq.nsmallest(n, map(int, rows), key=rank))


def _verify(prepared: PreparedGrid, planned: PlannedCell, key: str) -> tuple[str, bool]:
    cached = Cache(prepared.grid.request.settings.results).get(key)
    if cached is None:
        return "differs: its result is no longer in the cache, or damaged", False
    again = rerun(prepared, planned)
    since = "" if planned.key == key else " (sources or input changed since)"
    if again.error is not None:
        return f"differs: fails now: {again.error['message']}{since}", False
    differences = _differences(cached, again)
    if differences:
        return f"differs in {', '.join(differences)}{since}", False
    return f"same{since}", True


def _differences(old: CellResult, new: CellResult) -> list[str]:
    names = dict.fromkeys((*old.metrics, *new.metrics))
    absent = math.inf
    wrong = [
        f"{name} ({old.metrics.get(name)!r} → {new.metrics.get(name)!r})"
        for name in names
        if repr(old.metrics.get(name, absent)) != repr(new.metrics.get(name, absent))
    ]
    assert old.jobs is not None
    assert new.jobs is not None
    for column in old.jobs.column_names:
        before, now = old.jobs[column].to_numpy(), new.jobs[column].to_numpy()
        if before.tobytes() != now.tobytes():
            wrong.append(f"column {column}")
    return wrong
