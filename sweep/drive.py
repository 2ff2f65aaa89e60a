"""The driver: the one writer of cells, tables and reports."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.errors import InputError
from sweep import files, finish, grid, prepare, runner, say, tracking
from sweep.cell import CellError, Simulate
from sweep.folder import SweepFolder
from sweep.journal import Journal
from sweep.masking import mask, mask_tree
from sweep.prepare import Planned, Prepared
from sweep.progress import Progress
from sweep.request import Request
from sweep.runner import Work

if TYPE_CHECKING:
    from sweep.cell import CellResult, CellSpec


def run(
    request: Request,
    python_path: Sequence[str],
    simulate: Simulate | None = None,
    on_folder: Callable[[SweepFolder], object] | None = None,
) -> int:
    """Run a sweep to its end.

    Parameters
    ----------
    request : Request
        What was asked for.
    python_path : sequence of str
        Folders in which a user's modules may lie, for the workers.
    simulate : callable, optional
        Stands in for `sim.simulate`.
    on_folder : callable, optional
        Told the sweep's folder as soon as it is known.

    Returns
    -------
    int
        0 if all cells are done, 1 if some failed.

    Raises
    ------
    InputError
        If anything is wrong with what was asked, before anything is started.
    KeyboardInterrupt
        When interrupted; what is done is kept.
    """
    cells = grid.build(request)
    results = request.settings.results
    _check_writable(results)
    for part in ("cache", "sweeps", "journal"):
        files.sweep_temporaries(results / part)
    prepared = prepare.prepare(cells)
    journal = Journal(results, prepared.sweep)
    if on_folder is not None:
        on_folder(SweepFolder.of(results, prepared.sweep))
    waited = False

    def on_wait() -> None:
        nonlocal waited
        waited = True
        say.note(f"another process runs {prepared.sweep} in {results}; waiting for it")

    with journal.locked(on_wait):
        if waited:
            prepared = prepare.prepare(cells)
        folder = SweepFolder.of(results, prepared.sweep)
        if not prepared.todo() and folder.is_whole() and journal.is_complete():
            finish.again(prepared, folder, journal)
            return 0
        return _run(prepared, folder, journal, python_path, simulate)


def _run(
    prepared: Prepared,
    folder: SweepFolder,
    journal: Journal,
    python_path: Sequence[str],
    simulate: Simulate | None,
) -> int:
    specs = list(prepare.specs(prepared))
    say.grid(prepared, len(specs))
    cached = _cached_before(prepared, journal)
    journal.append(
        "begin",
        cells=len(prepared.planned),
        todo=len(specs),
        cached=[row for row, was in enumerate(cached) if was],
        argv=[mask(word) for word in sys.argv[1:]],
    )
    errors: dict[str, CellError] = {}
    if not specs:
        return finish.sweep(prepared, folder, journal, cached, errors)
    settings = prepared.grid.request.settings
    cells = runner.make(settings.launcher, python_path, simulate)
    if settings.tracking["kind"] == "mlflow":
        tracking.warm_up()
    try:
        _run_cells(prepared, specs, cells, journal, errors)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            say.interrupted(prepared, len(specs))
        cells.close()
        raise
    with ThreadPoolExecutor(1) as aside:  # stopping Ray takes a second or two
        closed = aside.submit(cells.close)
        code = finish.sweep(prepared, folder, journal, cached, errors)
        closed.result()
    return code


def _run_cells(
    prepared: Prepared,
    specs: Sequence[tuple[Planned, CellSpec]],
    cells: runner.Runner,
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
        prepared.cache.put(result, prepare.kept_config(prepared, one))
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


def _check_writable(results: Path) -> None:
    try:
        results.mkdir(parents=True, exist_ok=True)
        files.write_bytes(results / "cache" / "CACHEDIR.TAG", _TAG)
    except OSError as error:
        raise InputError(
            f"results can't be written to {results}: {error.strerror}; give paths.results=DIR",
            rule="results folder",
        ) from error


_TAG = b"""Signature: 8a477f597d28d172789f06886806bc55
# Results of cells by content; deleting this folder costs time, nothing else.
"""
