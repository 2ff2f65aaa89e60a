"""Where the inputs of tasks lie, and who ran there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import I4

if TYPE_CHECKING:
    from sim.engine.result import Result
    from sim.workload.columns import Columns


def task_homes(columns: Columns, n_machines: int) -> I4 | None:
    """Return the machine on which each task's input lies, -1 for none: (T,) int32.

    None if no task's input lies anywhere.
    """
    if not has_homes(columns):
        return None
    sizes = np.diff(columns.stage_task0)
    home = np.repeat(columns.stage_home.astype(np.int64), sizes)
    index = np.arange(len(home)) - np.repeat(columns.stage_task0[:-1], sizes)
    return np.where(home >= 0, (home + index) % n_machines, -1).astype(np.int32)


def has_homes(columns: Columns) -> bool:
    """Tell whether the input of any task lies on some machine."""
    return bool((columns.stage_home >= 0).any())


def local_share(run: Result) -> float:
    """Of the tasks that have run and whose input lies somewhere, return the share that ran there.

    NaN if there are none.
    """
    homes = task_homes(run.workload.columns, len(run.cluster.capacity))
    if homes is None or run.task_machine is None:
        return float("nan")
    counted = (homes >= 0) & (run.task_machine >= 0)
    return float((homes == run.task_machine)[counted].mean()) if counted.any() else float("nan")
