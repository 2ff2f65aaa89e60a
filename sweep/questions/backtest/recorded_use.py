"""Recorded waits and use of the cluster, as arrays, by pool."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import F8, I8, Mask, inverse, offsets
from sim.base.errors import InputError
from sim.cluster.cluster import Cluster
from sim.cluster.requests import requested
from sim.workload.columns import capacity_quanta
from sim.workload.node_names import NODE_LIST
from sim.workload.schema import CATEGORY, DEFAULT_QUANTUM, ELIGIBLE, HELD_PREFIX, RECORDED
from sim.workload.tables import column_or_default, values
from sim.workload.workload import Workload
from sweep.questions.backtest.kernels.line import BEGIN, END, ENTER, START
from sweep.questions.backtest.node_lists import Nodes, named_nodes
from sweep.questions.backtest.node_shares import shares
from sweep.questions.backtest.node_sizes import NodeSizes, least_sizes
from sweep.questions.backtest.starts import find_starts, no_starts

MAX_ROOM = 2**60
"""Capacity of a resource of which a cluster has as much as can be."""
_QUANTA = {"gpu": 1.0}
PRIORITY, PARTITION = "priority", "partition"
"""Columns of ``jobs``: the first in line has the highest priority of its partition."""
_START, _FINISH = RECORDED


@dataclass(frozen=True)
class NodeUse:
    """Uses and needs by node, with the names of `kernels.line.replay_line`."""

    use0: I8
    use_node: I8
    use_share: I8
    n_nodes: I8
    per_node: I8
    room: I8  # (N, R), of each node

    def only(self, is_inside: Mask) -> tuple[NodeUse, I8]:
        """Return uses of some of the named nodes alone, numbered anew; and their sums, (U, R)."""
        n_named = len(is_inside)
        use = np.repeat(np.arange(len(self.use0) - 1), np.diff(self.use0))
        is_left = is_inside[self.use_node]
        node = (np.cumsum(is_inside) - 1)[self.use_node[is_left]]
        use0 = offsets(np.bincount(use[is_left], minlength=len(self.use0) - 1))
        sums = np.zeros((len(self.use0) - 1, self.use_share.shape[1]), np.int64)
        np.add.at(sums, use[is_left], self.use_share[is_left])
        part = replace(
            self,
            use0=use0,
            use_node=node,
            use_share=self.use_share[is_left],
            room=self.room[:n_named][is_inside],
        )
        return part, sums


@dataclass(frozen=True)
class Recorded:
    """Recorded waits of J jobs and uses of R resources, in quanta.

    Attributes
    ----------
    place : (J,) int64
        Order of the jobs in line: by priority, where the log has several, then of submission.
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
        Jobs of the line, ascending.
    nodes : NodeUse, optional
        The same by node; without it only the sum over nodes is known.
    """

    place: I8
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
    nodes: NodeUse | None = None

    def node_arrays(self) -> tuple[I8, I8, I8, I8, I8, I8]:
        """Return the arrays of `nodes` for the kernel, new ones that may be overwritten."""
        if self.nodes is not None:
            u = self.nodes
            return u.use0, u.use_node, u.use_share, u.n_nodes, u.per_node, u.room.copy()
        use0 = np.zeros(len(self.use) + 1, np.int64)
        none, no_rows = np.zeros(0, np.int64), np.zeros((0, self.need.shape[1]), np.int64)
        n_nodes = np.zeros(len(self.need), np.int64)
        return use0, none, no_rows, n_nodes, self.need, no_rows.copy()

    def events(self) -> tuple[F8, Any, I8]:
        """Return time, kind and item of the events (`sweep.questions.backtest.kernels.line`)."""
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
        order = np.argsort(time, kind="stable")  # groups are in order of kind, items ascend
        return time[order], kind[order], item[order]


def held_resources(workload: Workload) -> list[str]:
    """Return the resources that a log's jobs held and that its tasks do not demand."""
    names = workload.stages.column_names
    return [name.removeprefix(HELD_PREFIX) for name in names if name.startswith(HELD_PREFIX)]


def _held_amounts(workload: Workload) -> I8:
    """Return what each stage held of these resources in all, in quanta, (G, H)."""
    columns = [
        np.rint(values(workload.stages, HELD_PREFIX + name) / _QUANTA.get(name, DEFAULT_QUANTUM))
        for name in held_resources(workload)
    ]
    return np.stack(columns, axis=1).astype(np.int64)


def recorded(workload: Workload, cluster: Cluster, *, with_held: bool = False) -> Recorded:
    """Return what the log records of all jobs, on the whole cluster.

    With `with_held`, resources that jobs held and tasks do not demand come after those that they
    do; the cluster's capacity of them is unknown, and as large as can be.

    Raises
    ------
    InputError
        If no start is recorded, or each is before the job's submission.
    """
    columns, jobs = workload.columns, workload.jobs
    starts = find_starts(workload)
    start_s = starts.start_s
    rows = np.flatnonzero(np.isfinite(start_s))
    if not len(rows):
        raise InputError(no_starts(starts), rule="no recorded start")
    enter_s = np.fmin(np.fmax(starts.release_s, column_or_default(jobs, ELIGIBLE)), start_s)
    demand, capacity = _resources(workload, cluster)
    gang = np.maximum(columns.job_min_tasks, 1).astype(np.int64)
    first = columns.job_stage0[:-1]
    need = demand[first] * gang[:, None]
    held_amount = np.zeros((len(demand), 0), np.int64)
    if with_held:
        held_amount = _held_amounts(workload)
        n_tasks = columns.stage_n_tasks[first][:, None].astype(np.int64)
        need = np.hstack([need, -(-held_amount[first] * gang[:, None] // n_tasks)])
        capacity = np.append(capacity, np.full(held_amount.shape[1], MAX_ROOM))
    begin_s, end_s, use, stage = _uses(workload, demand, held_amount)
    place = places_in_line(workload)
    return Recorded(place, enter_s, start_s, need, begin_s, end_s, use, stage, capacity, "", rows)


def places_in_line(workload: Workload) -> I8:
    """Return the order of the jobs in line: by priority, highest first, then of submission, (J,).

    A log has one priority of each job, though schedulers let it grow with the wait.
    """
    order = np.argsort(find_starts(workload).release_s, kind="stable")
    if has_priorities(workload):
        order = order[np.argsort(-workload.jobs[PRIORITY].to_numpy()[order], kind="stable")]
    return inverse(order)


def places_of_release(workload: Workload) -> I8:
    """Return the order of the jobs by release, (J,)."""
    return inverse(np.argsort(find_starts(workload).release_s, kind="stable"))


def has_priorities(workload: Workload) -> bool:
    """Tell whether the log has jobs of several priorities."""
    jobs = workload.jobs
    return PRIORITY in jobs.column_names and len(jobs[PRIORITY].unique()) > 1


def _resources(workload: Workload, cluster: Cluster) -> tuple[I8, I8]:
    """Return the request of a task of each stage, and the cluster's capacity, in quanta."""
    columns = requested(workload, cluster).columns
    if cluster.unit:
        return np.ones((len(columns.stage_job), 1), np.int64), cluster.total.astype(np.int64)
    shared = [name for name in columns.resources if name in cluster.resources]
    index = [columns.resources.index(name) for name in shared]
    total = cluster.total[[cluster.resources.index(name) for name in shared]]
    return columns.stage_demand[:, index], capacity_quanta(total, columns.quantum[index])


def _uses(workload: Workload, demand: I8, held_amount: I8) -> tuple[F8, F8, I8, I8]:
    """Return begin, end, room and stage of each use of positive length; what is held comes last.

    Stages of a job that ran at the same time on the same nodes are one use: the log tells what they
    had together.
    """
    columns = workload.columns
    n_tasks = columns.stage_n_tasks[:, None]
    whole = np.hstack([demand * n_tasks, held_amount])
    stage = np.arange(len(columns.stage_job))
    begin_s, end_s = _times(workload.stages)
    use = whole
    if workload.stage_duration_s is None and _START.name in workload.tasks.column_names:
        begin_s, end_s = _times(workload.tasks)
        stage = columns.task_stage()
        use = np.hstack([demand, held_amount // n_tasks])[stage]
    elif not np.isfinite(begin_s).any():
        begin_s, end_s = _times(workload.jobs)
        stage = columns.job_stage0[:-1]
        use = np.zeros((workload.n_jobs, whole.shape[1]), np.int64)
        np.maximum.at(use, columns.stage_job, whole)
    else:
        first = _first_of_alike(workload, begin_s, end_s)
        use = np.add.reduceat(whole, first) if len(first) else whole
        begin_s, end_s, stage = begin_s[first], end_s[first], first
    is_use = end_s > begin_s
    return begin_s[is_use], end_s[is_use], use[is_use], stage[is_use]


def _first_of_alike(workload: Workload, begin_s: F8, end_s: F8) -> I8:
    """Return the first of the stages that follow each other, of one job, time and node list."""
    columns: list[NDArray[Any]] = [workload.columns.stage_job, begin_s, end_s]
    if NODE_LIST in workload.stages.column_names:
        lists = workload.stages[NODE_LIST].combine_chunks().cast(CATEGORY)
        columns.append(lists.indices.to_numpy(zero_copy_only=False))
    is_new = np.zeros(workload.n_stages, bool)
    is_new[:1] = True
    for column in columns:
        is_new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(is_new)


def _times(table: pa.Table) -> tuple[F8, F8]:
    return column_or_default(table, _START), column_or_default(table, _FINISH)


def pools(log: Recorded, workload: Workload, cluster: Cluster) -> list[Recorded]:
    """Split a log by partition, and by node where it names nodes.

    A partition has the nodes that its jobs ran on, each as large as its machine, and with what
    the log says that jobs held there of resources that no task demands; with a pool of
    slots, which has no machines, as large as it must have been (`node_sizes`). Without names of
    nodes it has the whole cluster, as has the only partition of a log on a pool.
    """
    parts = _partitions(log, workload)
    nodes = named_nodes(workload)
    if nodes is None:
        return [replace(log, name=name, rows=rows) for name, rows in parts]
    if cluster.unit and len(parts) < 2:
        return [log]
    if len(parts) > 1 and held_resources(workload):
        log = recorded(workload, cluster, with_held=True)
    whole = _node_use(log, workload, nodes, cluster)
    if len(parts) < 2:
        return [replace(log, nodes=whole)]
    return [_part(log, whole, workload, nodes, name, rows) for name, rows in parts]


def _part(
    log: Recorded, whole: NodeUse, workload: Workload, nodes: Nodes, name: str, rows: I8
) -> Recorded:
    """Return the line of a partition, with the nodes that its jobs ran on."""
    is_inside = np.zeros(nodes.n_nodes, bool)
    in_line = np.isin(workload.columns.stage_job, rows)
    is_inside[nodes.node[in_line[nodes.stage]]] = True
    if not is_inside.any():  # its jobs name no node
        return replace(log, name=name, rows=rows)
    part, use = whole.only(is_inside)
    capacity = part.room.sum(axis=0)
    return replace(log, name=name, rows=rows, use=use, capacity=capacity, nodes=part)


def _partitions(log: Recorded, workload: Workload) -> list[tuple[str, I8]]:
    """Return each partition's name and jobs; one without a name if there is only one."""
    if PARTITION not in workload.jobs.column_names:
        return [("", log.rows)]
    column = workload.jobs[PARTITION].combine_chunks().cast(CATEGORY)
    codes = column.indices.to_numpy()[log.rows]
    names = column.dictionary.to_pylist()
    parts = [(names[code], log.rows[codes == code]) for code in np.unique(codes)]
    return parts if len(parts) > 1 else [("", log.rows)]


def _node_use(log: Recorded, workload: Workload, nodes: Nodes, cluster: Cluster) -> NodeUse:
    """Return uses and needs by node; what a use takes of each is a guess (`node_shares`)."""
    room = _machines(log, workload, cluster, nodes)
    use0, node, share = shares(log.begin_s, log.end_s, log.use, log.use_stage, nodes, room)
    is_gang = workload.columns.job_min_tasks > 1
    n_nodes = nodes.count[workload.columns.job_stage0[:-1]]
    n_nodes = np.where(is_gang, n_nodes, np.minimum(n_nodes, 1))
    per_node = -(-log.need // np.maximum(n_nodes, 1)[:, None])
    return NodeUse(use0, node, share, n_nodes, per_node, room)


def _machines(log: Recorded, workload: Workload, cluster: Cluster, nodes: Nodes) -> I8:
    """Return the room of the machine of each named node, then of the others, in quanta.

    Of machines of several sizes the largest are those of the nodes that must be largest.
    """
    if cluster.unit:
        return np.stack([sizes.size for sizes in sizes_by_resource(log, nodes)], axis=1)
    names = workload.columns.resources
    shared = [name for name in names if name in cluster.resources]
    capacity = cluster.capacity[:, [cluster.resources.index(name) for name in shared]]
    quantum = workload.columns.quantum[[names.index(name) for name in shared]]
    room = capacity_quanta(capacity, quantum)
    n_held = log.use.shape[1] - room.shape[1]
    if n_held:
        size = np.stack([sizes.size for sizes in sizes_by_resource(log, nodes)], axis=1)
        demanded = replace(log, use=log.use[:, :-n_held])
        placed = _machines(demanded, workload, cluster, nodes)
        held_amount = np.zeros((len(placed), n_held), np.int64)
        held_amount[: nodes.n_nodes] = size[:, -n_held:]
        return np.hstack([placed, held_amount])
    more = np.repeat(room[:1], max(nodes.n_nodes - len(room), 0), axis=0)
    room = np.concatenate([room, more])
    if (room == room[0]).all():
        return room
    size = np.stack([sizes.size for sizes in sizes_by_resource(log, nodes)], axis=1)
    room = room[_largest_first(room)]
    placed = room.copy()
    placed[_largest_first(size)] = room[: nodes.n_nodes]
    return placed


def sizes_by_resource(log: Recorded, nodes: Nodes) -> list[NodeSizes]:
    """Return the least sizes of nodes by each resource; alike are those alike by the first."""
    sizes: list[NodeSizes] = []
    for amount in log.use.T:
        within = sizes[0].kind if sizes else None
        sizes.append(
            least_sizes(log.begin_s, log.end_s, amount, log.use_stage, nodes, within=within)
        )
    return sizes


def _largest_first(room: I8) -> I8:
    """Return the rows of rooms (N, R) from the largest down, by the first resource, then others."""
    return np.lexsort(-room.T[::-1])
