"""Repair of a finished sweep's folder: damaged files are rewritten from intact ones."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.errors import InputError
from sweep.driver import added, output, run_sweep
from sweep.driver.request import find_modules, recorded_options, request_for_results
from sweep.driver.sweep_loop import SweepLoop
from sweep.execution import cells_table, notes, origin
from sweep.execution.plan import PreparedGrid
from sweep.grid import plugins
from sweep.grid.config_tree import to_yaml
from sweep.report.contribution import Finished
from sweep.store import sync
from sweep.store.cache import Cache
from sweep.store.folder import CONFIG, DIFF, PROVENANCE, SweepFolder, report_files
from sweep.store.journal import Journal


def open_intact(results: Path, name: str | None) -> SweepFolder:
    """Find a finished sweep, as `SweepFolder.find` does, and rewrite its damaged files.

    Raises
    ------
    DamagedError
        If a file is damaged and the cache lacks the cells that it is made from.
    """
    folder = SweepFolder.find(results, name)
    if folder.is_whole():
        return folder
    _check_has_cache(folder)
    with Journal(folder.results, folder.sweep).locked(partial(_note_waiting, folder)):
        damaged = folder.damaged()  # another process may have repaired it meanwhile
        if damaged:
            _rebuild(folder, damaged)
            notes.note(f"{folder.sweep}: {', '.join(damaged)}: damaged, rewritten")
            sync.push_all(folder.results, folder.path)
    return folder


def _note_waiting(folder: SweepFolder) -> None:
    notes.note(f"another process writes {folder.sweep}; waiting")


def _check_has_cache(folder: SweepFolder) -> None:
    """Refuse a damaged folder outside a results folder, where there is no cache."""
    if folder.path.parent.name != "sweeps":
        for name, reason in folder.damaged().items():
            raise folder.error(name, reason)


def _rebuild(folder: SweepFolder, damaged: Mapping[str, str]) -> None:
    """Rewrite damaged files: from the folder's other files if possible, else from the cache.

    Failed cells are not in the cache, and sources may have changed: then nothing is written.
    """
    name, reason = next(iter(damaged.items()))
    try:
        names = damaged.keys()
        rebuild = _from_folder if names <= {*report_files()} else _from_cache
        rebuild(folder, names)
    except InputError as error:
        message = f"{reason}; it can't be rebuilt from the cache ({error.message})"
        raise folder.error(name, message) from None


def _from_folder(folder: SweepFolder, damaged: Set[str]) -> None:
    cells, config = cells_table.read(folder), folder.config()
    if damaged & {*plugins.constants(plugins.SECTIONS, "TABLES")}:
        find_modules(recorded_options(folder, config["config_dirs"]))  # of a user's own study
        added.replace_tables(folder, folder.parts, config, Cache(folder.results))
    output.write_report(Finished(folder, cells, config, folder.provenance()))
    folder.commit()


def _from_cache(folder: SweepFolder, damaged: Set[str]) -> None:
    prepared, tables = _prepare_all(folder, damaged)
    if CONFIG in damaged:
        config = origin.config_record(prepared)
        if not folder.is_recorded(CONFIG, to_yaml(config).encode()):
            raise InputError("the command line in its journal gives another configuration now")
    else:
        config = folder.config()  # it may hold more, such as the result of seeds=auto
    if damaged & {PROVENANCE, DIFF}:
        provenance, diff = origin.provenance_record(prepared)
    else:
        provenance, diff = folder.provenance(), folder.diff()
    for name, table in tables.items():
        folder.replace(name, table)
    origin_record = folder.replace_origin(config, provenance, diff)
    cached = np.ones(len(prepared.planned), bool)
    confirm = Journal(folder.results, folder.sweep).confirm
    cells = cells_table.narrow(prepared, {}, cached)
    output.write_cells(prepared, Finished(folder, cells, config, origin_record), confirm)


def _prepare_all(
    folder: SweepFolder, damaged: Set[str]
) -> tuple[PreparedGrid, Mapping[str, pa.Table | Mapping[str, Any]]]:
    """Prepare the cells of a sweep, all from the cache; return them and a search's tables.

    Raises
    ------
    InputError
        If a cell is not cached, or the sweep's command line does not give its cells any more.
    """
    words, config_dirs = _recorded_words(folder, damaged)
    options = recorded_options(folder, config_dirs)
    request = request_for_results(
        folder.results, words, options, ["launcher=inline", "tracking=none"]
    )
    strategy = run_sweep.strategy_for(request)
    loop = SweepLoop(strategy)
    if loop.sweep != folder.sweep:
        raise InputError(f"its command line gives {loop.sweep} now: options or code have changed")
    return loop.run().prepared, strategy.tables()


def _recorded_words(folder: SweepFolder, damaged: Set[str]) -> tuple[list[str], list[str]]:
    """Return a sweep's command line and option folders: from ``config.yaml``, else its journal."""
    record = folder.config() if CONFIG not in damaged else {}
    for event in Journal(folder.results, folder.sweep).milestones():
        if CONFIG in damaged and event["event"] == "begin" and "words" in event:
            record = event
    if not record:
        raise InputError("its journal does not have its command line")
    return list(record["words"]), list(record["config_dirs"])
