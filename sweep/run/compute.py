"""Running the cells of a sweep that are not cached, and keeping what comes of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sweep import track
from sweep.cli import say
from sweep.grid.masking import mask, mask_tree
from sweep.run import plan
from sweep.run.cell import CellError
from sweep.run.plan import Planned, Prepared
from sweep.run.progress import Progress
from sweep.run.runner import Runner, Work
from sweep.store.journal import Journal

if TYPE_CHECKING:
    from sweep.run.cell import CellResult, CellSpec


def begin(prepared: Prepared, journal: Journal, n_todo: int) -> list[bool]:
    """Say what is about to run; tell for each row whether an earlier sweep computed it."""
    say.grid(prepared, n_todo)
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
    """Run cells, and keep what comes of them.

    Returns
    -------
    dict of str to CellError
        Of the cells that failed, by key.

    Raises
    ------
    KeyboardInterrupt
        When interrupted, which is said.
    """
    errors: dict[str, CellError] = {}
    if prepared.grid.request.settings.tracking["kind"] == "mlflow":
        track.warm_up()
    try:
        _run_cells(prepared, specs, cells, journal, errors)
    except KeyboardInterrupt:
        say.interrupted(prepared, len(specs))
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
    by_key = {one.key: one for one, _ in specs}
    limit = prepared.grid.request.settings.max_failures
    work = [Work(spec, one.input) for one, spec in specs]
    with Progress(say.err(), len(work)) as progress:
        for result in cells.run(work, prepared.inputs):
            if isinstance(result, str):
                progress.beat(result)
                continue
            _take_in(result, by_key.pop(result.key), prepared, journal, errors)
            progress.cell(failed=result.error is not None)
            if limit is not None and len(errors) >= limit and by_key:
                break
    for one in by_key.values():
        errors[one.key] = {
            "stage": "skipped",
            "type": "Skipped",
            "message": f"not run: {limit} cells had failed before (max_failures={limit})",
            "traceback": "",
        }


def _take_in(
    result: CellResult,
    one: Planned,
    prepared: Prepared,
    journal: Journal,
    errors: dict[str, CellError],
) -> None:
    """Keep a result, then say in the journal that it is there."""
    fields: dict[str, Any] = {"row": one.row, "key": one.key, "seconds": round(result.seconds, 3)}
    if result.error is None:
        prepared.cache.sources.keep(plan.source_of(one.cell), plan.table_of(one.cell))
        prepared.cache.put(result, plan.kept_config(prepared, one))
        prepared.metrics[one.key] = result.metrics
        journal.append("cell", status="done", **fields)
    else:
        errors[one.key] = error = mask_tree(result.error)  # it may quote what it could not reach
        journal.append("cell", status="failed", error=error["message"][:500], **fields)


def _cached_before(prepared: Prepared, journal: Journal) -> list[bool]:
    """Tell for each row whether an earlier sweep computed it.

    A run that was killed is part of this one: what it computed counts as done here, so that the
    table is the same with or without the kill.
    """
    begun = journal.open_attempt()
    known = None if begun is None else set(begun["cached"])
    return [
        one.key in prepared.metrics and (known is None or one.row in known)
        for one in prepared.planned
    ]
