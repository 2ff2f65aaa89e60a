"""Recorded waits and use of the cluster, as arrays, by pool."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.cluster.cluster import Cluster
from sim.workload.columns import capacity_quanta, column_or_default
from sim.workload.schema import CATEGORY, ELIGIBLE, RECORDED
from sim.workload.workload import Workload
from sweep.backtest.kernels.line import BEGIN, END, ENTER, START
from sweep.backtest.node_lists import Nodes, named_nodes

PARTITION = "partition"
"""Column of ``jobs``: a job of another partition is not first in the same line."""
_START, _FINISH = RECORDED


@dataclass(frozen=True)
class Recorded:
    """Recorded waits of J jobs and uses of R resources, in quanta.

    Attributes
    ----------
    enter_s, start_s : (J,) float64
        When a job comes into the line, and when it starts; NaN if unknown.
    need : (J, R) int64
        Room that a job needs to start: its gang, or one task of its first stage.
    begin_s, end_s : (U,) float64
        Uses: of tasks, stages or jobs, whichever the log has times of.
    use : (U, R) int64
        Room of a use.
    use_stage : (U,) int64
        Its stage.
    capacity : (R,) int64
        Room of the cluster, or of a partition's nodes.
    name : str
        The partition; "" for the whole cluster.
    rows : (K,) int64
        Jobs of the line.
    """

    enter_s: F8
    start_s: F8
    need: I8
    begin_s: F8
    end_s: F8
    use: I8
    use_stage: I8
    capacity: I8
    name: str
    rows: I8

    def events(self) -> tuple[F8, Any, I8]:
        """Return time, kind and item of the events (`sweep.backtest.kernels.line`)."""
        uses = np.arange(len(self.begin_s))
        groups = (
            (END, self.end_s, uses),
            (ENTER, self.enter_s[self.rows], self.rows),
            (START, self.start_s[self.rows], self.rows),
            (BEGIN, self.begin_s, uses),
        )
        time = np.concatenate([times for _, times, _ in groups])
        kind = np.concatenate([np.full(len(times), k, np.int8) for k, times, _ in groups])
        item = np.concatenate([items for _, _, items in groups])
        order = np.lexsort((item, kind, time))
        return time[order], kind[order], item[order]


def recorded(workload: Workload, cluster: Cluster) -> Recorded:
    """Return what the log records of all jobs, on the whole cluster.

    Raises
    ------
    InputError
        If no start is recorded.
    """
    columns, jobs = workload.columns, workload.jobs
    start_s = column_or_default(jobs, _START)
    known = np.isfinite(start_s)
    if not known.any():
        raise InputError("the log does not tell when jobs started", rule="no recorded start")
    eligible_s = column_or_default(jobs, ELIGIBLE)
    enter_s = np.fmin(np.fmax(columns.job_submit, eligible_s), start_s)
    demand, capacity = _resources(workload, cluster)
    gang = np.maximum(columns.job_min_tasks, 1).astype(np.int64)
    need = demand[columns.job_stage0[:-1]] * gang[:, None]
    begin_s, end_s, use, stage = _uses(workload, demand)
    rows = np.flatnonzero(known)
    return Recorded(enter_s, start_s, need, begin_s, end_s, use, stage, capacity, "", rows)


def _resources(workload: Workload, cluster: Cluster) -> tuple[I8, I8]:
    """Return the demand of a task of each stage, and the cluster's capacity, in quanta."""
    columns = workload.columns
    if cluster.unit:
        return np.ones((len(columns.stage_job), 1), np.int64), cluster.total.astype(np.int64)
    shared = [name for name in columns.resources if name in cluster.resources]
    index = [columns.resources.index(name) for name in shared]
    total = cluster.total[[cluster.resources.index(name) for name in shared]]
    return columns.stage_demand[:, index], capacity_quanta(total, columns.quantum[index])


def _uses(workload: Workload, demand: I8) -> tuple[F8, F8, I8, I8]:
    """Return begin, end, room and stage of each use of positive length."""
    columns = workload.columns
    whole = demand * columns.stage_n_tasks[:, None]
    stage = np.arange(len(columns.stage_job))
    begin_s, end_s = _times(workload.stages)
    use = whole
    if workload.stage_duration_s is None and _START.name in workload.tasks.column_names:
        begin_s, end_s = _times(workload.tasks)
        stage = columns.task_stage()
        use = demand[stage]
    elif not np.isfinite(begin_s).any():
        begin_s, end_s = _times(workload.jobs)
        stage = columns.job_stage0[:-1]
        use = np.zeros((workload.n_jobs, demand.shape[1]), np.int64)
        np.maximum.at(use, columns.stage_job, whole)
    is_use = end_s > begin_s
    return begin_s[is_use], end_s[is_use], use[is_use], stage[is_use]


def _times(table: pa.Table) -> tuple[F8, F8]:
    return column_or_default(table, _START), column_or_default(table, _FINISH)


def pools(log: Recorded, workload: Workload, cluster: Cluster) -> list[Recorded]:
    """Split a log by partition; the whole log if it has one only.

    A partition has the nodes that its jobs ran on, if the log names them, else the whole cluster.
    """
    if PARTITION not in workload.jobs.column_names:
        return [log]
    column = workload.jobs[PARTITION].combine_chunks().cast(CATEGORY)
    codes = column.indices.to_numpy()[log.rows]
    names = column.dictionary.to_pylist()
    parts = [(names[code], log.rows[codes == code]) for code in np.unique(codes)]
    if len(parts) < 2:
        return [log]
    nodes = named_nodes(workload)
    if nodes is None:
        return [replace(log, name=name, rows=rows) for name, rows in parts]
    room = _node_room(log, nodes)
    split = []
    for name, rows in parts:
        is_inside = np.zeros(nodes.n_nodes, bool)
        in_line = np.isin(workload.columns.stage_job, rows)
        is_inside[nodes.node[in_line[nodes.stage]]] = True
        inside = np.bincount(nodes.stage[is_inside[nodes.node]], minlength=len(nodes.count))
        stage = log.use_stage
        use = log.use * inside[stage][:, None] // np.maximum(nodes.count[stage], 1)[:, None]
        split.append(
            replace(log, name=name, rows=rows, use=use, capacity=room[is_inside].sum(axis=0))
        )
    return split


def _node_room(log: Recorded, nodes: Nodes) -> I8:
    """Return the room of each named node: an equal part of the cluster's."""
    return np.repeat((log.capacity // nodes.n_nodes)[None], nodes.n_nodes, axis=0)
