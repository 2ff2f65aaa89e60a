"""Check of gangs that ask for domains: where their tasks run, and how much slower for that."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8, Mask
from sim.check.broken import refuse
from sim.cluster.domains import asked_levels
from sim.engine.record import Run


def check_domains(run: Run) -> None:
    """Check that gangs are in one domain of the level that they require, if none stopped.

    That of gangs all of whose tasks are slots. Others start tasks beside their slots anywhere.

    Parameters
    ----------
    run : Run
        A run with records of tasks.

    Raises
    ------
    BrokenRuleError
        If a gang is in several domains of the level that it requires.
    """
    columns, topology = run.workload.columns, run.cluster.topology
    required, (first, last) = asked_levels(columns, run.cluster)[0], _domains(run)
    is_apart = np.zeros(len(required), bool)
    for level in range(len(topology.levels)):
        is_apart |= (required == level) & (first[level] != last[level])
    is_apart &= _is_whole(run)
    refuse(is_apart, lambda j: f"the gang in row {j} is in several domains")


def crossing(run: Run) -> F8:
    """Return the factor on the run time of each gang for the widest level that it crosses, (J,).

    That of gangs of one stage all of whose tasks are slots; NaN of other gangs, whose slots the
    records do not show; 1 of other jobs.
    """
    columns, topology = run.workload.columns, run.cluster.topology
    factor, (first, last) = np.ones(len(columns.job_submit)), _domains(run)
    for level in reversed(range(len(topology.levels))):
        factor[first[level] != last[level]] = topology.factor[level]
    unknown = ~_is_whole(run) | (np.diff(columns.job_stage0) > 1)
    return np.where(columns.job_min_tasks == 0, 1.0, np.where(unknown, np.nan, factor))


def _is_whole(run: Run) -> Mask:
    """Return the mask of gangs all of whose tasks are slots, and of which none was stopped."""
    columns, stopped = run.workload.columns, run.stopped
    is_whole: Mask = (columns.job_min_tasks == columns.job_n_tasks) & (columns.job_width_min == 0)
    if stopped is not None:
        is_whole[columns.stage_job[columns.stages_of(stopped.task.astype(np.int64))]] = False
    return is_whole


def _domains(run: Run) -> tuple[I4, I4]:
    """Return the first and the last domain of the tasks that ran of each job, (L, J) each."""
    columns, topology = run.workload.columns, run.cluster.topology
    machine, start = run.task_machine, run.task_start
    assert machine is not None
    assert start is not None
    rows: I8 = np.flatnonzero(np.isfinite(start))
    job = columns.stage_job[columns.stages_of(rows)]
    shape = (len(topology.levels), len(columns.job_submit))
    first, last = np.full(shape, np.iinfo(np.int32).max, np.int32), np.full(shape, -1, np.int32)
    for level, domain in enumerate(topology.domain):
        np.minimum.at(first[level], job, domain[machine[rows]])
        np.maximum.at(last[level], job, domain[machine[rows]])
    return np.minimum(first, last), last
