"""A cell of a sweep that is over, run once more in this process."""

from __future__ import annotations

from sweep.execution.cell import run_cell
from sweep.execution.plan import Planned, Prepared
from sweep.grid import clusters
from sweep.store.cell import CellResult, CellSpec


def run_again(prepared: Prepared, planned: Planned) -> CellResult:
    """Run a cell of a plan, cached or not; the cache stays as it is."""
    workload = prepared.inputs.workload(planned.input)
    cell = planned.cell
    sized = clusters.size(workload, cell.cluster, cell.capacity)
    return run_cell(workload, CellSpec(planned.key, cell.policy, sized, cell.measure, cell.seed))
