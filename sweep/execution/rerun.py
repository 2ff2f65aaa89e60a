"""Rerun of a cell of a finished sweep, in this process."""

from __future__ import annotations

from sim.base.errors import InputError
from sweep.execution import notes
from sweep.execution.cell import Simulate, run_cell
from sweep.execution.plan import PlannedCell, PreparedGrid, stored_config
from sweep.grid import clusters
from sweep.store.cell import CellResult


def rerun(
    prepared: PreparedGrid, planned: PlannedCell, simulate: Simulate | None = None
) -> CellResult:
    """Run a cell of a plan, cached or not; do not change the cache.

    `simulate` stands in for `sim.simulate`.
    """
    workload = prepared.inputs.workload(planned.workload)
    built = clusters.build_for(workload, planned.cell.cluster, planned.cell.capacity)
    return run_cell(workload, planned.spec, built, simulate)


def rerun_and_store(prepared: PreparedGrid, planned: PlannedCell, key: str) -> CellResult:
    """Run a cell of a plan again; store it if its key is unchanged."""
    result = rerun(prepared, planned)
    if result.error is not None:
        raise InputError(f"this cell fails now: {result.error['message']}")
    if planned.key == key:
        prepared.cache.put(result, stored_config(prepared, planned))
    else:
        notes.note("its code or trace changed since: its numbers may differ from the sweep's")
    return result
