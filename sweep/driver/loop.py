"""Run a sweep to its end: what is cached, what is not, the search for what is asked for."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sim.base import files, interrupt
from sim.base.errors import InputError
from sweep import track
from sweep.driver.output import Outcome, write_folder
from sweep.driver.request import python_path
from sweep.execution import compute, notes, plan, rows, seeds, together
from sweep.execution.cell import Simulate
from sweep.execution.compute import Runner
from sweep.execution.inputs import Inputs
from sweep.execution.known import Flags
from sweep.execution.on_ray.pool import make_runner
from sweep.execution.plan import Prepared
from sweep.grid import elsewhere, grid
from sweep.grid.grid import Grid
from sweep.grid.request import Request, Settings
from sweep.search.settle import Pursuit
from sweep.stats import FIRST_SEEDS
from sweep.store import mirror, place
from sweep.store.bucket import waiting
from sweep.store.cell import CellError
from sweep.store.folder import SweepFolder
from sweep.store.journal import Journal

_TAG = b"""Signature: 8a477f597d28d172789f06886806bc55
# Results of cells by content; deleting this folder costs time, nothing else.
"""


ONE_SEED = "no seed changes anything here, as the workload is fixed and no policy draws"


def run(asked: Request, simulate: Simulate | None = None) -> Outcome:
    """Run a sweep to its end."""
    cells = None if asked.goal is not None else grid.build(asked)
    results = asked.settings.results
    _check_writable(results)
    for part in ("cache", "sweeps", "journal"):
        files.sweep_temporaries(results / part)
    where = asked.settings
    folders = python_path(asked.options)
    interrupt.set_line(notes.INTERRUPTED)
    _say_where(where)
    if silence := track.silent(where):
        notes.note(silence)
    runner = make_runner(where.launcher, folders, simulate, where.cell_timeout_s)
    with contextlib.closing(runner), waiting(notes.note):
        if cells is None:
            return _pursue(Pursuit(asked, runner, lambda: _warm_up(asked.settings)), runner)
        if asked.precision is not None and not cells.is_fixed:
            first = seeds.with_seeds(asked, FIRST_SEEDS)
            asked = seeds.settle(first, runner, lambda: _warm_up(asked.settings))
            cells = grid.build(asked)
        elif asked.precision is not None:
            notes.note(f"{ONE_SEED}: seeds=auto takes one")
            cells = grid.build(seeds.with_seeds(asked, 1))
        return _whole(cells, runner)


def _whole(cells: Grid, runner: Runner) -> Outcome:
    """Run what is not cached, and write the sweep's folder."""
    results = cells.request.settings.results
    inputs = Inputs(results, convert=runner.convert)
    prepared = plan.prepare(cells, inputs)
    journal = Journal(results, prepared.sweep)
    _check_folder(results / "sweeps" / prepared.sweep)
    waited = False

    def on_wait() -> None:
        nonlocal waited
        waited = True
        notes.note(f"another process runs {prepared.sweep} in {results}; waiting for it")

    with journal.locked(on_wait):
        if waited:
            mirror.fetch(results)
            inputs = Inputs(results, convert=runner.convert)
            prepared = plan.prepare(cells, inputs)
        folder = SweepFolder.of(results, prepared.sweep)
        if not len(prepared.rows_to_do()) and _is_over(folder, journal):
            return _again(prepared, folder, journal)
        rows = prepared.rows_to_do()
        n_todo = len(rows)
        cached = compute.begin(prepared, journal, n_todo)
        errors: dict[str, CellError] = {}
        if n_todo:
            if cells.is_fixed and len(cells.request.axes["seed"]) > 1:
                notes.note(f"{ONE_SEED}: seed=0 gives the same as all of these")
            _warm_up(cells.request.settings)
            cells_todo = prepared.in_order(rows)
            errors = together.run(prepared, cells_todo, n_todo, journal, runner)
        with ThreadPoolExecutor(1) as aside:  # stopping Ray takes a second or two
            closed = aside.submit(runner.close)
            outcome = _finish(prepared, folder, journal, cached, errors)
            closed.result()
        return outcome


def _pursue(pursuit: Pursuit, runner: Runner) -> Outcome:
    """Look for what was asked for, round by round, and write the sweep's folder."""
    with pursuit.held():
        found = pursuit.settle()
        folder, journal = SweepFolder.of(*pursuit.where), Journal(*pursuit.where)
        if not found.n_run and _is_over(folder, journal):
            return _again(found.prepared, folder, journal)
        with ThreadPoolExecutor(1) as aside:  # stopping Ray takes a second or two
            closed = aside.submit(runner.close)
            journal.confirm()
            for name, table in found.tables.items():
                folder.replace(name, table)
            outcome = _finish(found.prepared, folder, journal, found.cached, found.errors)
            closed.result()
        return outcome


def _is_over(folder: SweepFolder, journal: Journal) -> bool:
    """Tell whether a sweep is over and whole; name its files that are damaged."""
    if not folder.path.is_dir() or not journal.is_complete():
        return False
    damaged = folder.damaged()
    if damaged:
        notes.note(f"{folder.sweep}: {', '.join(damaged)}: damaged, and written anew")
    return not damaged


def begin(asked: Request) -> Prepared:
    """Prepare the cells that a request begins with: all of them, unless something is looked for."""
    if asked.goal is not None:
        return Pursuit(asked).begin()
    return plan.prepare(grid.build(asked))


def prepare(asked: Request) -> Prepared:
    """Prepare the cells that a request comes to; of one with a goal those that were run for it."""
    if asked.goal is None:
        return plan.prepare(grid.build(asked))
    pursuit = Pursuit(asked)
    with pursuit.held():
        return pursuit.settle().prepared


def _warm_up(settings: Settings) -> None:
    if settings.tracking["kind"] == "mlflow":
        track.warm_up()


def _finish(
    prepared: Prepared,
    folder: SweepFolder,
    journal: Journal,
    cached: Sequence[bool] | Flags,
    errors: Mapping[str, CellError],
) -> Outcome:
    """Write the sweep's folder and track it."""
    outcome = write_folder(prepared, folder, cached, errors, journal.confirm)
    target = _track(folder, prepared.grid.request.settings)
    journal.append("end", failed=len(errors), tracked=target)
    prepared.cache.compact()
    journal.confirm()
    mirror.push_all(folder.results, folder.path)
    is_tracked = track.is_logged(prepared.grid.request.settings, target)
    return dataclasses.replace(outcome, is_tracked=is_tracked)


def _again(prepared: Prepared, folder: SweepFolder, journal: Journal) -> Outcome:
    """Answer a sweep that is over and of which every cell is cached: only statuses change."""
    settings = prepared.grid.request.settings
    journal.append("asked")
    cells = rows.read(folder)
    if cells["status"].unique().to_pylist() != ["cached"]:
        cells = rows.with_status(cells, "cached")
        with folder.replacing_cells(rows.with_status(part, "cached") for part in folder.parts()):
            pass
    ends = [event for event in journal.milestones() if event["event"] == "end"]
    is_tracked = track.is_logged(settings, ends[-1].get("tracked"))
    if not is_tracked:
        target = _track(folder, settings)
        is_tracked = track.is_logged(settings, target)
        journal.append("end", failed=0, tracked=target)
    mirror.push_all(folder.results, folder.path)
    notes.note(f"every cell is cached: all {cells.num_rows} were computed before")
    return Outcome(folder, cells, folder.config(), 0, is_tracked)


def _track(folder: SweepFolder, settings: Settings) -> str | None:
    """Log a sweep to where its settings say; return where that is, None if nowhere."""
    target = track.target_of(settings)
    if target is None:
        return None
    try:
        track.log(folder, settings, notes.note)
    except track.TrackingDown as down:
        notes.note(str(down))
        return None
    return target


def _say_where(settings: Settings) -> None:
    """Say what of the results stays on this machine where they lie in an object store."""
    address = elsewhere.address_of(settings.results)
    if address is not None:
        stays = ""
        if settings.tracking["kind"] == "mlflow" and not settings.tracking.get("uri"):
            stays = "; MLflow's database stays on this machine, tracking.uri=URI names another"
        notes.note(f"results go to {elsewhere.shown(address)}, by way of {settings.results}{stays}")


def _check_writable(results: Path) -> None:
    try:
        place.of(results).put("cache/CACHEDIR.TAG", _TAG)
        results.mkdir(parents=True, exist_ok=True)
        files.write_bytes(results / "cache" / "CACHEDIR.TAG", _TAG)
    except OSError as error:
        raise InputError(
            f"results can't be written to {results}: {error.strerror}; give paths.results=DIR",
            rule="results folder",
        ) from error
    for part in ("sweeps", "journal"):
        _check_folder(results / part)


def _check_folder(folder: Path) -> None:
    """Refuse a folder that is there and that files can't be made in, before any cell runs."""
    if not folder.is_dir():
        return
    try:
        with files.temporary(folder / "any"):
            pass
    except OSError as error:
        raise InputError(
            f"results can't be written to {folder}: {error.strerror}; have its owner allow it, or "
            "give paths.results=DIR",
            rule="results folder",
        ) from error
