"""Run of a sweep from start to end: strategy, cells, folder, tracking."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sim.base import files, interrupt
from sim.base.errors import InputError
from sim.base.masking import mask
from sweep import track
from sweep.driver.added import is_current
from sweep.driver.auto_seeds import AutoSeeds, with_seeds
from sweep.driver.output import write_folder, write_report
from sweep.driver.request import python_path
from sweep.driver.sweep_loop import CompletedSweep, SweepLoop
from sweep.execution import cells_table, notes
from sweep.execution.cell import Simulate
from sweep.execution.on_ray.launch import make_runner
from sweep.execution.plan import PreparedGrid
from sweep.execution.strategy import ONE_SEED, Strategy, WholeGrid
from sweep.grid import grid, plugins, remote_results
from sweep.grid.grid import Grid
from sweep.grid.overrides import QUESTION
from sweep.grid.request import Request, Settings
from sweep.report.contribution import Finished
from sweep.store import storage, sync
from sweep.store.bucket import waiting
from sweep.store.folder import SweepFolder
from sweep.store.journal import Journal

_TAG = b"""Signature: 8a477f597d28d172789f06886806bc55
# Results of cells by content; deleting this folder costs time, nothing else.
"""


@dataclass(frozen=True)
class Outcome:
    """Result of a finished sweep."""

    folder: SweepFolder
    cells: pa.Table  # ``cells.parquet``, narrow; see `sweep.execution.cells_table`
    config: Mapping[str, Any]  # ``config.yaml``
    n_failed: int
    is_tracked: bool = True  # False: it should be in MLflow and is not


def strategy_for(request: Request) -> Strategy:
    """Return the strategy of a request; its options and grid are checked."""
    for strategy in plugins.results(plugins.STRATEGIES, "strategy", request):
        if strategy is not None:
            chosen: Strategy = strategy
            return chosen
    if request.precision is None:
        return WholeGrid(grid.build(request))
    seeds = AutoSeeds(request)
    return WholeGrid(grid.build(with_seeds(request, 1))) if seeds.is_fixed else seeds


def run(
    request: Request,
    simulate: Simulate | None = None,
    on_answer: Callable[[Outcome], object] = lambda _: None,
) -> Outcome:
    """Run a sweep to its end; call `on_answer` once its folder is written, before MLflow is told.

    Logging takes longer than a small sweep's cells.
    """
    strategy = strategy_for(request)
    settings = request.settings
    check_writable(settings.results)
    for part in ("cache", "sweeps", "journal"):
        files.delete_stale_temporaries(settings.results / part)
    interrupt.set_line(notes.INTERRUPTED)
    _note_remote_results(settings)
    if warning := track.unreachable_warning(settings):
        notes.note(warning)
    runner = make_runner(
        settings.launcher, python_path(request.options), simulate, settings.cell_timeout_s
    )
    with contextlib.closing(runner), waiting(notes.note):
        loop = SweepLoop(strategy, runner, lambda: _before_cells(loop.first.grid))
        folder, journal = loop.folder, loop.journal
        _check_folder(folder.path)
        with loop.locked():
            completed = loop.run()
            if not loop.n_run and _is_finished(folder, journal, request.question):
                return _answer_from_cache(completed.prepared, folder, journal, on_answer)
            if not loop.n_run:
                notes.grid(completed.prepared, 0)
                loop.note_round(completed.prepared, completed.cached)
            with ThreadPoolExecutor(1) as executor:  # stopping Ray takes a second or two
                closing = executor.submit(runner.close)
                journal.confirm()
                for name, table in strategy.tables().items():
                    folder.replace(name, table)
                outcome = _finish(completed, folder, journal, on_answer)
                closing.result()
            return outcome


def _before_cells(cells: Grid) -> None:
    """Note that one seed is enough, if so; import MLflow in the background."""
    request = cells.request
    if cells.is_fixed and request.precision is not None:
        notes.note(f"{ONE_SEED}: seeds=auto takes one")
    elif cells.is_fixed and not request.chooses_cells and len(request.axes["seed"]) > 1:
        notes.note(f"{ONE_SEED}: seed=0 gives the same as all of these")
    if request.settings.tracking["kind"] == "mlflow":
        track.warm_up()


def _is_finished(folder: SweepFolder, journal: Journal, question: str | None) -> bool:
    """Tell whether a sweep has ended with an intact folder and this question.

    Its damaged files are named.
    """
    if not folder.path.is_dir() or not journal.is_complete():
        return False
    damaged = folder.damaged()
    if damaged:
        notes.note(f"{folder.sweep}: {', '.join(damaged)}: damaged, rewritten")
    return not damaged and (folder.config().get(QUESTION) or "") == mask(question or "")


def prepare_first(request: Request) -> PreparedGrid:
    """Prepare the first batch of a request: all cells, unless it is a search."""
    return SweepLoop(strategy_for(request)).first


def _finish(
    completed: CompletedSweep,
    folder: SweepFolder,
    journal: Journal,
    on_answer: Callable[[Outcome], object],
) -> Outcome:
    """Write the sweep's folder, give its answer and track it."""
    prepared, errors = completed.prepared, completed.errors
    journal.note_status(left_s=None, activity="writing the report")
    sweep = write_folder(prepared, folder, completed.cached, errors, journal.confirm)
    outcome = Outcome(folder, sweep.cells, sweep.config, len(errors))
    try:
        on_answer(outcome)
    finally:  # the sweep ends as if it had been printed
        journal.note_status(activity="logging to MLflow")
        target = _track(folder, prepared.grid.request.settings)
        journal.append("end", failed=len(errors), tracked=target)
        prepared.cache.compact()
        journal.confirm()
        sync.push_all(folder.results, folder.path)
    is_tracked = track.is_logged(prepared.grid.request.settings, target)
    return dataclasses.replace(outcome, is_tracked=is_tracked)


def _answer_from_cache(
    prepared: PreparedGrid,
    folder: SweepFolder,
    journal: Journal,
    on_answer: Callable[[Outcome], object],
) -> Outcome:
    """Answer a finished sweep whose cells are all cached: only statuses change."""
    settings = prepared.grid.request.settings
    journal.append("asked")
    cells = cells_table.read(folder)
    if cells["status"].unique().to_pylist() != ["cached"]:
        cells = cells_table.with_status(cells, "cached")
        with folder.replacing_cells(
            cells_table.with_status(part, "cached") for part in folder.parts()
        ):
            pass
    sweep = Finished(folder, cells, folder.config(), folder.provenance())
    if not is_current(sweep):
        write_report(sweep)
        folder.commit()
    ends = [event for event in journal.milestones() if event["event"] == "end"]
    notes.note(f"every cell is cached: all {cells.num_rows} were computed before")
    notes.traces(prepared)
    outcome = Outcome(folder, cells, folder.config(), 0)
    try:
        on_answer(outcome)
    finally:
        is_tracked = track.is_logged(settings, ends[-1].get("tracked"))
        if not is_tracked:
            target = _track(folder, settings)
            is_tracked = track.is_logged(settings, target)
            journal.append("end", failed=0, tracked=target)
        sync.push_all(folder.results, folder.path)
    return dataclasses.replace(outcome, is_tracked=is_tracked)


def answer(
    folder: SweepFolder,
    journal: Journal,
    settings: Settings,
    on_answer: Callable[[Outcome], object],
) -> Outcome:
    """Answer a sweep that another process has run and written, and track it."""
    n_failed = int(folder.failed().sum())
    outcome = Outcome(folder, cells_table.read(folder), folder.config(), n_failed)
    try:
        on_answer(outcome)
    finally:
        target = _track(folder, settings)
        journal.append("end", failed=n_failed, tracked=target)
    return dataclasses.replace(outcome, is_tracked=track.is_logged(settings, target))


def _track(folder: SweepFolder, settings: Settings) -> str | None:
    """Log a sweep to its tracking target; return the target, None if there is none."""
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


def check_writable(results: Path) -> None:
    """Raise InputError if results can't be written."""
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
    """Refuse an existing folder that is not writable, before any cell runs."""
    if not folder.is_dir():
        return
    try:
        with files.temporary_file(folder / "any"):
            pass
    except OSError as error:
        raise InputError(
            f"results can't be written to {folder}: {error.strerror}; make it writable, or "
            "give paths.results=DIR",
            rule="results folder",
        ) from error
