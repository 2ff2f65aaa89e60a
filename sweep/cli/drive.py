"""The driver: the one writer of cells, tables and reports."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from sim.base import files
from sim.base.errors import InputError
from sweep.cli import finish, say
from sweep.grid import grid
from sweep.grid.grid import Grid
from sweep.grid.request import Request
from sweep.run import compute, plan, rows, seeds
from sweep.run import runner as runners
from sweep.run.cell import Simulate
from sweep.run.plan import Prepared
from sweep.run.runner import Runner
from sweep.stats import MIN_PAIRS
from sweep.store.cell import CellError
from sweep.store.folder import SweepFolder
from sweep.store.journal import Journal


def run(
    request: Request,
    python_path: Sequence[str],
    simulate: Simulate | None = None,
    on_folder: Callable[[SweepFolder], object] | None = None,
) -> int:
    """Run a sweep to its end."""
    cells = grid.build(request)
    results = request.settings.results
    _check_writable(results)
    for part in ("cache", "sweeps", "journal"):
        files.sweep_temporaries(results / part)
    runner = runners.make(request.settings.launcher, python_path, simulate)
    with contextlib.closing(runner):
        if request.precision is not None:
            request = _settled(seeds.with_seeds(request, MIN_PAIRS), runner)
            cells = grid.build(request)
        return _whole(cells, runner, on_folder)


def _whole(cells: Grid, runner: Runner, on_folder: Callable[[SweepFolder], object] | None) -> int:
    """Run what is not cached, and write the sweep's folder."""
    results = cells.request.settings.results
    prepared = plan.prepare(cells)
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
            prepared = plan.prepare(cells)
        folder = SweepFolder.of(results, prepared.sweep)
        if not prepared.todo() and folder.is_whole() and journal.is_complete():
            finish.again(prepared, folder, journal)
            return 0
        return _run(prepared, folder, journal, runner)


def _run(prepared: Prepared, folder: SweepFolder, journal: Journal, runner: Runner) -> int:
    specs = list(plan.specs(prepared))
    cached = compute.begin(prepared, journal, len(specs))
    errors = compute.run(prepared, specs, journal, runner) if specs else {}
    with ThreadPoolExecutor(1) as aside:  # stopping Ray takes a second or two
        closed = aside.submit(runner.close)
        code = finish.sweep(prepared, folder, journal, cached, errors)
        closed.result()
    return code


def _settled(request: Request, runner: Runner) -> Request:
    """Add seeds until there are enough: the request with all of them, their cells computed.

    The attempt of the last round stays open in the journal: the sweep itself goes on with it.
    """
    while True:
        prepared, errors = _round(request, runner)
        nothing_cached = [False] * len(prepared.planned)
        cells = rows.table(
            prepared.grid,
            prepared.planned,
            prepared.metrics,
            errors,
            nothing_cached,
            prepared.cache,
        )
        n_seeds, about = seeds.more(request, cells, len(errors))
        if n_seeds == len(request.axes["seed"]):
            say.note(seeds.in_words(request, about))
            return replace(request, seeds=about)
        journal = Journal(request.settings.results, prepared.sweep)
        if journal.open_attempt() is not None:
            journal.append("end", failed=0, seeds=n_seeds)
        request = seeds.with_seeds(request, n_seeds)


def _round(request: Request, runner: Runner) -> tuple[Prepared, dict[str, CellError]]:
    """Run the cells of so many seeds, into the cache alone."""
    cells = grid.build(request)
    journal = Journal(request.settings.results, plan.prepare(cells).sweep)
    with journal.locked(lambda: say.note("another process runs these cells; waiting for it")):
        prepared = plan.prepare(cells)
        specs = list(plan.specs(prepared))
        errors: dict[str, CellError] = {}
        if specs:
            compute.begin(prepared, journal, len(specs))
            errors = compute.run(prepared, specs, journal, runner)
            if errors:
                runner.close()  # cells may be left on their way
    return prepared, errors


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
