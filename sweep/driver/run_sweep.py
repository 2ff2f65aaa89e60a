"""Run a sweep to its end: what is asked, its cells, the sweep's folder, tracking."""

from __future__ import annotations

import contextlib
import dataclasses
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sim.base import files, interrupt
from sim.base.errors import InputError
from sweep import track
from sweep.driver.output import Outcome, write_folder
from sweep.driver.request import python_path
from sweep.driver.sweep_loop import CompletedSweep, SweepLoop
from sweep.execution import cells_table, notes
from sweep.execution.cell import Simulate
from sweep.execution.on_ray.pool import make_runner
from sweep.execution.plan import PreparedGrid
from sweep.grid import grid, remote_results
from sweep.grid.goals import Target
from sweep.grid.grid import Grid
from sweep.grid.request import Request, Settings
from sweep.search.auto_seeds import AutoSeeds, with_seeds
from sweep.search.parameters import ParameterSearches
from sweep.search.strategy import Strategy, WholeGrid
from sweep.search.targets import TargetSearches
from sweep.store import storage, sync
from sweep.store.bucket import waiting
from sweep.store.folder import SweepFolder
from sweep.store.journal import Journal

_TAG = b"""Signature: 8a477f597d28d172789f06886806bc55
# Results of cells by content; deleting this folder costs time, nothing else.
"""


ONE_SEED = "no seed changes anything here, as the workload is fixed and no policy draws"


def strategy_for(asked: Request) -> Strategy:
    """Return what a request asks; its options and grid are checked."""
    if isinstance(asked.goal, Target):
        return TargetSearches(asked)
    if asked.goal is not None:
        return ParameterSearches(asked)
    if asked.precision is None:
        return WholeGrid(grid.build(asked))
    question = AutoSeeds(asked)
    return WholeGrid(grid.build(with_seeds(asked, 1))) if question.is_fixed else question


def run(asked: Request, simulate: Simulate | None = None) -> Outcome:
    """Run a sweep to its end."""
    question = strategy_for(asked)
    where = asked.settings
    _check_writable(where.results)
    for part in ("cache", "sweeps", "journal"):
        files.delete_stale_temporaries(where.results / part)
    interrupt.set_line(notes.INTERRUPTED)
    _note_remote_results(where)
    if silence := track.unreachable_warning(where):
        notes.note(silence)
    runner = make_runner(where.launcher, python_path(asked.options), simulate, where.cell_timeout_s)
    with contextlib.closing(runner), waiting(notes.note):
        rounds = SweepLoop(question, runner, lambda: _before_cells(rounds.first.grid))
        folder, journal = rounds.folder, rounds.journal
        _check_folder(folder.path)
        with rounds.held():
            settled = rounds.settle()
            if not rounds.n_run and _is_over(folder, journal):
                return _again(settled.prepared, folder, journal)
            if not rounds.n_run:
                notes.grid(settled.prepared, 0)
                rounds.begin(settled.prepared, settled.cached)
            with ThreadPoolExecutor(1) as aside:  # stopping Ray takes a second or two
                closed = aside.submit(runner.close)
                journal.confirm()
                for name, table in question.tables().items():
                    folder.replace(name, table)
                outcome = _finish(settled, folder, journal)
                closed.result()
            return outcome


def _before_cells(cells: Grid) -> None:
    """Say that one seed is enough, where it is; let MLflow be imported meanwhile."""
    asked = cells.request
    if cells.is_fixed and asked.precision is not None:
        notes.note(f"{ONE_SEED}: seeds=auto takes one")
    elif cells.is_fixed and len(asked.axes["seed"]) > 1:
        notes.note(f"{ONE_SEED}: seed=0 gives the same as all of these")
    if asked.settings.tracking["kind"] == "mlflow":
        track.warm_up()


def _is_over(folder: SweepFolder, journal: Journal) -> bool:
    """Tell whether a sweep is over and whole; name its files that are damaged."""
    if not folder.path.is_dir() or not journal.is_complete():
        return False
    damaged = folder.damaged()
    if damaged:
        notes.note(f"{folder.sweep}: {', '.join(damaged)}: damaged, and written anew")
    return not damaged


def prepare_first(asked: Request) -> PreparedGrid:
    """Prepare the cells that a request begins with: all of them, unless it is a search."""
    return SweepLoop(strategy_for(asked)).first


def _finish(settled: CompletedSweep, folder: SweepFolder, journal: Journal) -> Outcome:
    """Write the sweep's folder and track it."""
    prepared, errors = settled.prepared, settled.errors
    outcome = write_folder(prepared, folder, settled.cached, errors, journal.confirm)
    target = _track(folder, prepared.grid.request.settings)
    journal.append("end", failed=len(errors), tracked=target)
    prepared.cache.compact()
    journal.confirm()
    sync.push_all(folder.results, folder.path)
    is_tracked = track.is_logged(prepared.grid.request.settings, target)
    return dataclasses.replace(outcome, is_tracked=is_tracked)


def _again(prepared: PreparedGrid, folder: SweepFolder, journal: Journal) -> Outcome:
    """Answer a sweep that is over and of which every cell is cached: only statuses change."""
    settings = prepared.grid.request.settings
    journal.append("asked")
    cells = cells_table.read(folder)
    if cells["status"].unique().to_pylist() != ["cached"]:
        cells = cells_table.with_status(cells, "cached")
        with folder.replacing_cells(
            cells_table.with_status(part, "cached") for part in folder.parts()
        ):
            pass
    ends = [event for event in journal.milestones() if event["event"] == "end"]
    is_tracked = track.is_logged(settings, ends[-1].get("tracked"))
    if not is_tracked:
        target = _track(folder, settings)
        is_tracked = track.is_logged(settings, target)
        journal.append("end", failed=0, tracked=target)
    sync.push_all(folder.results, folder.path)
    notes.note(f"every cell is cached: all {cells.num_rows} were computed before")
    return Outcome(folder, cells, folder.config(), 0, is_tracked)


def _track(folder: SweepFolder, settings: Settings) -> str | None:
    """Log a sweep to where its settings say; return where that is, None if nowhere."""
    target = track.target_id(settings)
    if target is None:
        return None
    try:
        track.log(folder, settings, notes.note)
    except track.TrackingDown as down:
        notes.note(str(down))
        return None
    return target


def _note_remote_results(settings: Settings) -> None:
    """Report the store, the working copy here, and data that stays on this machine."""
    address = remote_results.address_for(settings.results)
    if address is None:
        return
    text = f"results are kept in {remote_results.display_address(address)}"
    text += f", with a working copy in {settings.results}"
    if settings.tracking["kind"] == "mlflow" and not settings.tracking.get("uri"):
        text += "; MLflow's database stays on this machine (tracking.uri=URI names another)"
    notes.note(text)


def _check_writable(results: Path) -> None:
    try:
        storage.for_results(results).put("cache/CACHEDIR.TAG", _TAG)
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
        with files.temporary_file(folder / "any"):
            pass
    except OSError as error:
        raise InputError(
            f"results can't be written to {folder}: {error.strerror}; have its owner allow it, or "
            "give paths.results=DIR",
            rule="results folder",
        ) from error
