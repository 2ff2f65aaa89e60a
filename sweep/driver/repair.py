"""Open a sweep that is over; write anew what is damaged of it, from what is intact."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from sim.base.errors import InputError
from sweep.driver import output, run_sweep
from sweep.driver.request import find_modules, request_for_results
from sweep.driver.sweep_loop import SweepLoop
from sweep.execution import cells_table, notes, origin
from sweep.execution.plan import PreparedGrid
from sweep.grid.config_tree import to_yaml
from sweep.grid.options import Options
from sweep.store import sync
from sweep.store.cache import Cache
from sweep.store.folder import CONFIG, DIFF, FINDINGS, PROVENANCE, REPORT_FILES, SweepFolder
from sweep.store.journal import Journal


def open_intact(results: Path, name: str | None) -> SweepFolder:
    """Find a sweep that is over, as `SweepFolder.find` does, and write anew what is damaged of it.

    Raises
    ------
    DamagedError
        If a file is damaged and the cache does not hold what it is made from.
    """
    folder = SweepFolder.find(results, name)
    if folder.is_whole():
        return folder
    _check_place(folder)
    with Journal(folder.results, folder.sweep).locked(partial(_say_waiting, folder)):
        damaged = folder.damaged()  # another process may have been writing it
        if damaged:
            _rebuild(folder, damaged)
            notes.note(f"{folder.sweep}: {', '.join(damaged)}: damaged, and written anew")
            sync.push_all(folder.results, folder.path)
    return folder


def _say_waiting(folder: SweepFolder) -> None:
    notes.note(f"another process writes {folder.sweep}; waiting for it")


def _check_place(folder: SweepFolder) -> None:
    """Refuse a damaged folder that lies outside of a results folder: no cache is beside it."""
    if folder.path.parent.name != "sweeps":
        for name, reason in folder.damaged().items():
            raise folder.error(name, reason)


def _rebuild(folder: SweepFolder, damaged: Mapping[str, str]) -> None:
    """Write damaged files anew: from the folder's other files where these do, else from the cache.

    Cells that failed are not in the cache, and sources may have changed: then nothing is written.
    """
    name, reason = next(iter(damaged.items()))
    try:
        names = damaged.keys()
        rebuild = _from_folder if names <= {*REPORT_FILES} else _from_cache
        rebuild(folder, names)
    except InputError as error:
        why = f"{reason}; it can't be made from the cache ({error.message})"
        raise folder.error(name, why) from None


def _from_folder(folder: SweepFolder, damaged: Set[str]) -> None:
    cells, config = cells_table.read(folder), folder.config()
    if FINDINGS in damaged:
        find_modules(Options.from_folders(config["config_dirs"]))  # of a study of somebody's own
        folder.replace(FINDINGS, output.find(folder.parts(), config, Cache(folder.results)))
    output.write_report(folder, cells, config, folder.provenance())
    folder.commit()


def _from_cache(folder: SweepFolder, damaged: Set[str]) -> None:
    prepared, tables = _prepared(folder, damaged)
    if CONFIG in damaged:
        config = origin.config_record(prepared)
        if not folder.is_recorded(CONFIG, to_yaml(config).encode()):
            raise InputError("the words in its journal give another configuration now")
    else:
        config = folder.config()  # which may say more, as how seeds=auto came to its seeds
    if damaged & {PROVENANCE, DIFF}:
        provenance, diff = origin.provenance_record(prepared)
    else:
        provenance, diff = folder.provenance(), folder.diff()
    for name, table in tables.items():
        folder.replace(name, table)
    about = folder.replace_origin(config, provenance, diff)
    cached = np.ones(len(prepared.planned), bool)
    confirm = Journal(folder.results, folder.sweep).confirm
    cells = cells_table.narrow(prepared, {}, cached)
    output.write_cells(prepared, folder, cells, config, about, confirm)


def _prepared(
    folder: SweepFolder, damaged: Set[str]
) -> tuple[PreparedGrid, Mapping[str, pa.Table]]:
    """Prepare the cells of a sweep, all of which must be in the cache; and the tables of a search.

    Raises
    ------
    InputError
        If a cell is not there, or the words of the sweep do not give its cells any more.
    """
    words, config_dirs = _words(folder, damaged)
    asked = request_for_results(
        folder.results, words, config_dirs, ["launcher=inline", "tracking=none"]
    )
    question = run_sweep.strategy_for(asked)
    rounds = SweepLoop(question)
    if rounds.sweep != folder.sweep:
        raise InputError(f"its words give {rounds.sweep} now: options or sources have changed")
    return rounds.settle().prepared, question.tables()


def _words(folder: SweepFolder, damaged: Set[str]) -> tuple[list[str], list[str]]:
    """Return a sweep's words and folders of options: of ``config.yaml``, else of its journal."""
    about = folder.config() if CONFIG not in damaged else {}
    for event in Journal(folder.results, folder.sweep).milestones():
        if CONFIG in damaged and event["event"] == "begin" and "words" in event:
            about = event
    if not about:
        raise InputError("its journal does not have the words that it was asked with")
    return list(about["words"]), list(about["config_dirs"])
