"""Running the cells of a sweep that are not cached, and keeping what comes of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sim.base.masking import mask, mask_tree
from sweep.run import notes, plan
from sweep.run.on_ray.pool import RayRunner
from sweep.run.plan import Planned, Prepared
from sweep.run.runner import InlineRunner, Runner, Work
from sweep.store.cell import CellError
from sweep.store.journal import Journal

if TYPE_CHECKING:
    from sweep.run.cell import Simulate
    from sweep.store.cell import CellResult, CellSpec


def begin(prepared: Prepared, journal: Journal, n_todo: int) -> list[bool]:
    """Say what is about to run; tell for each row whether an earlier sweep computed it."""
    notes.grid(prepared, n_todo)
    cached = _cached_before(prepared, journal)
    journal.append(
        "begin",
        cells=len(prepared.planned),
        todo=n_todo,
        cached=[row for row, was in enumerate(cached) if was],
        argv=[mask(word) for word in sys.argv[1:]],
    )
    return cached


def run(
    prepared: Prepared,
    specs: Sequence[tuple[Planned, CellSpec]],
    journal: Journal,
    cells: Runner,
) -> dict[str, CellError]:
    """Run cells, and keep what comes of them; return the errors of those that failed, by key."""
    errors: dict[str, CellError] = {}
    try:
        _run_cells(prepared, specs, cells, journal, errors)
    except KeyboardInterrupt:
        notes.interrupted(prepared, len(specs))
        raise
    return errors


def _run_cells(
    prepared: Prepared,
    specs: Sequence[tuple[Planned, CellSpec]],
    cells: Runner,
    journal: Journal,
    errors: dict[str, CellError],
) -> None:
    """Take in results as they come, until there are none or too many failed."""
    by_key = {cell.key: cell for cell, _ in specs}
    limit = prepared.grid.request.settings.max_failures
    work = [Work(spec, cell.input) for cell, spec in specs]
    with notes.Progress(notes.console(), len(work)) as progress:
        for result in cells.run(work, prepared.inputs):
            if isinstance(result, str):
                progress.beat(result)
                continue
            _take_in(result, by_key.pop(result.key), prepared, journal, errors)
            progress.cell(failed=result.error is not None)
            if limit is not None and len(errors) >= limit and by_key:
                break
    for cell in by_key.values():
        errors[cell.key] = {
            "stage": "skipped",
            "type": "Skipped",
            "message": f"not run: {limit} cells had failed before (max_failures={limit})",
            "traceback": "",
        }


def _take_in(
    result: CellResult,
    cell: Planned,
    prepared: Prepared,
    journal: Journal,
    errors: dict[str, CellError],
) -> None:
    """Keep a result, then say in the journal that it is there."""
    seconds = round(result.seconds, 3)
    fields: dict[str, Any] = {"row": cell.row, "key": cell.key, "seconds": seconds}
    if result.error is None:
        prepared.cache.sources.keep(plan.source_of(cell.cell), plan.table_of(cell.cell))
        prepared.cache.put(result, plan.kept_config(prepared, cell))
        prepared.metrics[cell.key] = result.metrics
        journal.append("cell", status="done", **fields)
    else:
        # it may quote what it could not reach
        errors[cell.key] = error = mask_tree(result.error)
        journal.append("cell", status="failed", error=error["message"][:500], **fields)


def _cached_before(prepared: Prepared, journal: Journal) -> list[bool]:
    """Tell for each row whether an earlier sweep computed it.

    A run that was killed is part of this one: what it computed counts as done here, so that the
    table is the same with or without the kill.
    """
    begun = journal.open_attempt()
    known = None if begun is None else set(begun["cached"])
    return [
        cell.key in prepared.metrics and (known is None or cell.row in known)
        for cell in prepared.planned
    ]


def make_runner(
    launcher: Mapping[str, Any],
    python_path: Sequence[str] = (),
    simulate: Simulate | None = None,
) -> Runner:
    """Make the runner that a launcher's configuration names; nothing is started yet."""
    if launcher["kind"] == "inline":
        return InlineRunner(simulate)
    return RayRunner(launcher, python_path, simulate)
