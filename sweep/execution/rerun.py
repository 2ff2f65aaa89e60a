"""Rerun of a cell of a finished sweep, in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim import evaluators
from sim.base.errors import InputError
from sim.base.plugins import check_names
from sweep.execution import notes
from sweep.execution.cell import Simulate, run_cell
from sweep.execution.inputs import Inputs
from sweep.execution.keys import cell_key, cluster_text, policy_text
from sweep.execution.plan import PlannedCell, PreparedGrid, sources_digest, stored_config
from sweep.grid import cluster_checks, clusters, traces
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Cell, build_policy
from sweep.store.cell import CellResult

PARTS = ("policy", "trace", "cluster", "evaluator")


def recorded_cell(
    labels: Mapping[str, Any], config: Mapping[str, Any], *, has_files: bool = True
) -> Cell:
    """Return the cell that a row of ``cells.parquet`` records: its labels and configuration.

    Without `has_files`, the paths in it are those of another machine.

    Raises
    ------
    InputError
        If it is no configuration of a cell: the file may be of another version, or of anybody.
    """
    try:
        cell = Cell(dict(labels), *(dict(config[part]) for part in PARTS))
        build_policy(cell.policy)
        traces.check(str(labels["trace"]), cell.trace, has_files=has_files)
        cluster_checks.check(cell.cluster)
        cluster_checks.check_count(cell.cluster, cell.capacity)
        known = evaluators.options(cell.evaluator["name"], cell.evaluator.get("module"))
        option_names = cell.evaluator.keys() - {"name", "module"}
        check_names("option of the evaluator", sorted(option_names), known, "unknown key")
        _ = cell.seed
    except InputError:
        raise
    except Exception as error:  # whatever a foreign configuration does
        raise InputError(
            f"its configuration is not one of a cell: {type(error).__name__}: {error}"
        ) from error
    return cell


def plan_recorded(inputs: Inputs, cell: Cell) -> PlannedCell:
    """Plan one recorded cell; its key tells whether sources and input are those of its row."""
    workload = inputs.workload_id(cell)
    parts = policy_text(cell.policy), cluster_text(cell.cluster), canonical(cell.evaluator)
    numbers = canonical(cell.capacity), str(cell.seed)
    key = cell_key(*parts, *numbers, workload, sources_digest(cell))
    return PlannedCell(0, cell, key.hex(), workload)


def rerun(inputs: Inputs, planned: PlannedCell, simulate: Simulate | None = None) -> CellResult:
    """Run a planned cell, cached or not; do not change the cache.

    `simulate` stands in for `sim.simulate`.
    """
    workload = inputs.workload(planned.workload)
    built = clusters.build_for(workload, planned.cell.cluster, planned.cell.capacity)
    return run_cell(workload, planned.spec, built, simulate)


def rerun_and_store(prepared: PreparedGrid, planned: PlannedCell, key: str) -> CellResult:
    """Run a cell of a plan again; store it if its key is unchanged."""
    result = rerun(prepared.inputs, planned)
    if result.error is not None:
        raise InputError(f"this cell fails now: {result.error['message']}")
    if planned.key == key:
        prepared.cache.put(result, stored_config(prepared, planned))
    else:
        notes.note("its code or trace changed since: its numbers may differ from the sweep's")
    return result
