"""Folder of a finished sweep: tables, report, provenance; plug-ins add to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from sweep import report
from sweep.driver import added
from sweep.execution import cells_table, origin
from sweep.execution.cell_metrics import Flags
from sweep.execution.memory import return_memory
from sweep.execution.plan import PreparedGrid
from sweep.report.contribution import Finished
from sweep.stats import done_jobs
from sweep.stats.summary import check_metrics
from sweep.store.cell import CellError
from sweep.store.folder import DONE_JOBS, SweepFolder


def write_folder(
    prepared: PreparedGrid,
    folder: SweepFolder,
    cached: Sequence[bool] | Flags,
    errors: Mapping[str, CellError],
    confirm: Callable[[], None],
) -> Finished:
    """Write the sweep's folder, ``cells.parquet`` last, as it marks the folder as complete.

    `confirm` raises if another process has taken over; nothing is written from then on.
    """
    return_memory()
    cells = cells_table.narrow(prepared, errors, cached)
    return_memory()
    config = origin.config_record(prepared)
    check_metrics(cells, config)
    confirm()
    provenance = folder.replace_origin(config, *origin.provenance_record(prepared))
    sweep = Finished(folder, cells, config, provenance)
    write_cells(prepared, sweep, confirm)
    return sweep


def write_cells(prepared: PreparedGrid, sweep: Finished, confirm: Callable[[], None]) -> None:
    """Write the tables and the report of cells, ``cells.parquet`` last."""
    config, cache = sweep.config, prepared.cache
    with sweep.folder.replacing_cells(cells_table.parts(prepared, sweep.cells)):
        return_memory()
        common = done_jobs.table(sweep.cells, config["swept"], config["baseline"], cache.jobs)
        sweep.folder.replace(DONE_JOBS, common)
        parts = partial(cells_table.parts, prepared, sweep.cells)
        added.replace_tables(sweep.folder, parts, config, cache)
        write_report(sweep, cache=cache)
        confirm()


def write_report(sweep: Finished, **options: Any) -> None:
    """Write the report, and all that plug-ins add to it; see `sweep.report.write_all`."""
    contribution = added.contribution(sweep)
    report.write_all(
        sweep.folder, sweep.cells, sweep.config, sweep.provenance, added=contribution, **options
    )
