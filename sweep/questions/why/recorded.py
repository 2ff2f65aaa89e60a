"""The log's own schedule as a run: each job is placed when the log says that it started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import policies
import sim
from sim.base.errors import InputError
from sim.engine.plan.state import State
from sim.result import Result
from sim.state import recorded_state
from sim.workload.schema import RECORDED
from sim.workload.tables import column_or_default
from sweep.driver.captured_run import Captured, capturing
from sweep.driver.one_cell import plan_cell
from sweep.driver.request import repeat_request
from sweep.execution import rerun
from sweep.stats.cell_columns import AXES
from sweep.store.folder import SweepFolder

NAME = "the log's own schedule"
FOOTER = (
    "Starts are those of the log, and ends follow from run times; the cluster is that of the cell."
)
MAX_LATE_S = 1.0
"""By how much a start may be later than the log's, s: times are rounded."""


def schedule(folder: SweepFolder, row: Mapping[str, Any]) -> tuple[Captured, tuple[str, ...]]:
    """Run the log of a cell on its cluster, as its scheduler did; return the run, and notes.

    Raises
    ------
    InputError
        If the log has no starts, or not where jobs ran.
    """
    labels = {key: row[key] for key in (*AXES, *folder.config()["swept"])}
    prepared, planned = plan_cell(repeat_request(folder), labels)
    runs: list[Captured] = []

    def simulate(workload: sim.Workload, cluster: sim.Cluster, *_: Any, **options: Any) -> Result:
        policy = policies.build("fifo", fit="skip")  # it places nothing
        state = pinned(workload, cluster)
        return capturing(runs)(workload, cluster, policy, **options | {"state": state})

    result = rerun.rerun(prepared.inputs, planned, simulate)
    if not runs:
        message = "its evaluator simulates nothing"
        raise InputError(result.error["message"] if result.error else message, rule="no run")
    runs[0].title = f"{NAME} on {labels['trace']}"
    return runs[0], _notes(runs[0])


def pinned(workload: sim.Workload, cluster: sim.Cluster) -> State:
    """Return the state in which each job is placed as the log says.

    Raises
    ------
    InputError
        If no start is recorded, no job can be pinned, or the log has not where jobs ran.
    """
    start_s = column_or_default(workload.jobs, RECORDED[0])
    if np.isnan(start_s).all():
        raise InputError(
            "the workload has no recorded starts: the log has none, or a load, a draw or another "
            "transform moved its submissions",
            rule="no recorded start",
        )
    columns = workload.columns
    n_tasks = columns.job_n_tasks
    can_be = (n_tasks == 1) | (columns.job_min_tasks == n_tasks)
    if not can_be[~np.isnan(start_s)].any():
        raise InputError(
            "only gangs and jobs of one task have one start, and this log has none of them: "
            "trace.gang=true or trace.tasks=job makes them so",
            rule="no recorded start",
        )
    if cluster.n_machines > 1:
        return recorded_state(workload, cluster)
    machine = np.where(np.repeat(can_be, n_tasks), 0, -1).astype(np.int32)
    return State(np.inf, np.where(can_be, start_s, np.nan), machine)


def _notes(run: Captured) -> tuple[str, ...]:
    """Say which jobs started later than in the log: the cluster was larger, or jobs shared it."""
    result = run.result
    start_s = column_or_default(result.workload.jobs, RECORDED[0])
    late = result.job_start > start_s + MAX_LATE_S
    n_late = int(late.sum())
    if not n_late:
        return ()
    return (
        f"{n_late:,} jobs had no room on the cell's cluster at their recorded start, or their "
        "inputs were not there yet: they start later than in the log.",
    )
