"""Say which cells are cached, which are not, and for those what changed; run nothing."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from typing import Any

from sweep.cli import say
from sweep.cli.command import Command, add_grid_flags
from sweep.grid import grid
from sweep.grid.masking import mask_tree
from sweep.run import plan
from sweep.run.plan import Prepared
from sweep.store.nearest import Nearest

MAX_LINES = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    add_grid_flags(parser)
    parser.add_argument("--all", action="store_true", help="a line for each cell, cached or not")


def run(command: Command) -> int:
    """Print the plan."""
    request = command.request()
    prepared = plan.prepare(grid.build(request))
    waiting = {one.key for one in prepared.todo()}
    n_cells, n_todo = len(prepared.planned), len(waiting)
    n_cached = sum(one.key not in waiting for one in prepared.planned)
    print(f"{prepared.sweep}: {n_cells} cells, {n_cached} cached, {n_todo} to run")
    if request.precision is not None:
        n, most = len(request.axes["seed"]), request.precision.most
        print(f"seeds=auto begins with these {n} seeds and adds more, up to {most}, as results ask")
    if n_todo or command.flags.all:
        print(_lines(prepared, waiting, show_all=command.flags.all))
    return 0


def _lines(prepared: Prepared, waiting: set[str], *, show_all: bool) -> str:
    kept = (prepared.cache.config(key) for key in prepared.cache.keys_kept())
    configs = (config for config in kept if config is not None)
    nearest = Nearest(configs, _sources_changed(prepared))
    header = ["row", *prepared.planned[0].cell.labels, "", "what changed"]
    rows, reasons = [], Counter[str]()
    for one in prepared.planned:
        shown = mask_tree(one.cell.labels).values()
        labels = ["" if value is None else str(value) for value in shown]
        if one.key not in waiting:
            if show_all:
                rows.append([str(one.row), *labels, "cached", ""])
            continue
        changes = nearest.changes(plan.kept_config(prepared, one))
        reason = "nothing like it is cached" if changes is None else "; ".join(changes)
        reasons[reason] += 1
        rows.append([str(one.row), *labels, "to run", reason])
    text = say.rows_as_text(header, rows if show_all else rows[:MAX_LINES])
    if len(rows) > MAX_LINES and not show_all:
        common = "\n".join(f"  {n} cells: {reason}" for reason, n in reasons.most_common(10))
        text += f"\nand {len(rows) - MAX_LINES} more (--all shows them); in all\n{common}"
    return text


def _sources_changed(prepared: Prepared) -> Callable[[Any, str], list[str]]:
    """Return what names the modules that differ, given the sources of a cached and a new cell."""
    tables = {plan.source_of(one.cell): plan.table_of(one.cell) for one in prepared.planned}
    return lambda old, new: prepared.cache.sources.changes(old, tables[new])
