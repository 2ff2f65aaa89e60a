"""What a run would do."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from typing import Any

from sim.base.masking import mask_tree
from sim.base.text import table_lines
from sweep.cli.command import Command, add_grid_flags
from sweep.grid import grid
from sweep.run.plan import Prepared, kept_config, prepare, source_of, table_of
from sweep.store.nearest import Nearest

MAX_LINES = 40


def plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's flags."""
    add_grid_flags(parser)
    parser.add_argument("--all", action="store_true", help="a line for each cell, cached or not")


def plan(command: Command) -> int:
    """Say which cells are cached, which are not, and for those what changed; run nothing."""
    request = command.request()
    prepared = prepare(grid.build(request))
    waiting = {planned.key for planned in prepared.todo()}
    n_cells, n_todo = len(prepared.planned), len(waiting)
    n_cached = sum(planned.key not in waiting for planned in prepared.planned)
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
    for planned in prepared.planned:
        shown = mask_tree(planned.cell.labels).values()
        labels = ["" if value is None else str(value) for value in shown]
        if planned.key not in waiting:
            if show_all:
                rows.append([str(planned.row), *labels, "cached", ""])
            continue
        changes = nearest.changes(kept_config(prepared, planned))
        reason = "nothing like it is cached" if changes is None else "; ".join(changes)
        reasons[reason] += 1
        rows.append([str(planned.row), *labels, "to run", reason])
    text = "\n".join(table_lines(header, rows if show_all else rows[:MAX_LINES]))
    if len(rows) > MAX_LINES and not show_all:
        common = "\n".join(f"  {n} cells: {reason}" for reason, n in reasons.most_common(10))
        text += f"\nand {len(rows) - MAX_LINES} more (--all shows them); in all\n{common}"
    return text


def _sources_changed(prepared: Prepared) -> Callable[[Any, str], list[str]]:
    """Return what names the modules that differ, given the sources of a cached and a new cell."""
    tables = {source_of(one.cell): table_of(one.cell) for one in prepared.planned}
    return lambda old, new: prepared.cache.sources.changes(old, tables[new])
