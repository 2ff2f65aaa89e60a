"""Statistics of a workload beside the published numbers of the paper."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from sim.base.arrays import F8, I8, Mask
from sim.dags import Graphs
from sim.published import numbers
from sim.workload.columns import Columns
from sim.workload.paths import stage_depth, stage_tail_s, topological_order
from sim.workload.workload import Workload


def statistics(workload: Workload) -> dict[str, tuple[float, float]]:
    """Return (published, actual) statistics of production DAGs.

    Work is duration × Σ demand over the resources. Depth is the number of stages of a longest path.
    A task's in-degree is the number of tasks it waits for: all of a barrier parent's, one of a one-
    to-one parent's. Degrees and demands are those of all tasks of all jobs.
    """
    paper, published_dags = numbers("dagps"), numbers("dagps")["dags"]
    columns = workload.columns
    n_tasks = np.diff(columns.stage_task0)
    job0 = columns.job_stage0[:-1]
    pairs: dict[str, tuple[float, float]] = {}
    for i, name in enumerate(columns.resources):
        if name in paper["table1"]:
            demand = columns.stage_demand_f[:, i]
            mean = np.average(demand, weights=n_tasks)
            spread = np.sqrt(np.average((demand - mean) ** 2, weights=n_tasks))
            pairs[f"variation of {name}"] = (paper["table1"][name], float(spread / mean))
    for row, share in work_shares(workload).items():
        counts = np.histogram(share, [0, 0.2, 0.4, 0.6, 0.8, 1 + 1e-9])[0] / len(share)
        for k in range(5):
            fifth = f"{row} {20 * k}-{20 * k + 20} %"
            pairs[fifth] = (paper["table2"][row][k], float(counts[k]))
    depth = np.maximum.reduceat(stage_depth(columns), job0) + 1
    tasks = np.add.reduceat(n_tasks, job0)
    pairs["depth, median"] = (published_dags["depth_p50"], float(np.median(depth)))
    pairs["tasks, median"] = (published_dags["tasks_p50"], float(np.median(tasks)))
    in_degree, out_degree = _degrees(columns, n_tasks)
    for i, (name, q) in enumerate((("median", 0.5), ("p75", 0.75))):
        pairs[f"in-degree, {name}"] = (
            published_dags["in_degree"][i],
            _quantile(in_degree, n_tasks, q),
        )
        pairs[f"out-degree, {name}"] = (
            published_dags["out_degree"][i],
            _quantile(out_degree, n_tasks, q),
        )
    four = float((_n_parts(columns) >= 4).mean())
    pairs["four parts or more"] = (published_dags["four_parts"], four)
    first_runs = np.unique(columns.job_template, return_index=True)[1]
    pairs["recurring"] = (
        published_dags["recurring"],
        1 - len(first_runs) / len(columns.job_template),
    )
    return pairs


def compare_published(workload: Workload, seed: int) -> Iterator[tuple[str, str, float, float]]:
    """Yield published beside actual statistics: (table, row, published, actual).

    `seed` is not used: everything that was drawn is in the workload.
    """
    for row, (published, actual) in statistics(workload).items():
        table = "Table 1" if row.startswith("variation") else "Text of §2.3, §4.4 and §7.1"
        if row.startswith(tuple(numbers("dagps")["table2"])):
            table = "Table 2"
        yield table, row, published, actual


def work_shares(workload: Workload) -> dict[str, F8]:
    """Return the share of each job's work in each row of Table 2, (J,) float64 each."""
    columns = workload.columns
    work = columns.stage_work * columns.stage_demand_f.sum(axis=1)
    job0 = columns.job_stage0[:-1]
    total = np.add.reduceat(work, job0)
    total = np.where(total > 0, total, 1.0)
    graphs = Graphs.from_workload(workload)
    stages = {"critical path": _critical(columns), "unconstrained": graphs.n_parents == 0}
    shares = {row: np.add.reduceat(work * mask, job0) / total for row, mask in stages.items()}
    shares["unordered"] = np.array(
        [_unordered(graphs, j, work) / total[j] for j in range(len(job0))]
    )
    return shares


def _critical(columns: Columns) -> Mask:
    """Mark the stages of one longest path of each job."""
    tail = stage_tail_s(columns)
    child_tail = np.append(tail[columns.edge_child], -1.0)
    critical = np.zeros(len(tail), bool)
    for begin, end in zip(columns.job_stage0[:-1], columns.job_stage0[1:], strict=True):
        s = int(begin + np.argmax(tail[begin:end]))
        while True:
            critical[s] = True
            first, last = columns.edge0[s], columns.edge0[s + 1]
            if first == last:
                break
            s = int(columns.edge_child[first + np.argmax(child_tail[first:last])])
    return critical


def _unordered(graphs: Graphs, job: int, work: F8) -> float:
    """Return the work of the heaviest antichain: stages none of which is an ancestor of another.

    It is all work minus a maximum flow between ancestors and descendants (Dilworth, with weights).
    """
    begin, end = int(graphs.job_stage0[job]), int(graphs.job_stage0[job + 1])
    g = end - begin
    stage_work = work[begin:end]
    if g == 1 or stage_work.sum() == 0:
        return float(stage_work.sum())
    below = np.zeros((g, g), bool)
    for s in graphs.order[begin:end][::-1] - begin:
        children = graphs.edge_child[graphs.edge0[begin + s] : graphs.edge0[begin + s + 1]] - begin
        below[s, children] = True
        below[s] |= below[children].any(axis=0)
    quanta = np.rint(stage_work / stage_work.sum() * 2**24).astype(np.int32)
    up, down = np.nonzero(below)
    inner = np.arange(g)
    tail = np.concatenate([np.zeros(g, int), 1 + up, 1 + g + inner])
    head = np.concatenate([1 + inner, 1 + g + down, np.full(g, 2 * g + 1)])
    room = np.concatenate([quanta, np.full(len(up), 2**25), quanta]).astype(np.int32)
    network = csr_array((room, (tail, head)), shape=(2 * g + 2, 2 * g + 2))
    flow = maximum_flow(network, 0, 2 * g + 1).flow_value
    return min(1.0, float(quanta.sum() - flow) / 2**24) * float(stage_work.sum())


def _degrees(columns: Columns, n_tasks: I8) -> tuple[I8, I8]:
    """Return the in-degree and the out-degree of a task of each stage."""
    parent = np.repeat(np.arange(len(n_tasks)), np.diff(columns.edge0))
    child = columns.edge_child
    barrier = columns.edge_kind == 0
    n = len(n_tasks)
    return (
        np.bincount(child, np.where(barrier, n_tasks[parent], 1), n),
        np.bincount(parent, np.where(barrier, n_tasks[child], 1), n),
    )


def _quantile(values: I8, weights: I8, q: float) -> float:
    order = np.argsort(values, kind="stable")
    cum_weight = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cum_weight, q * cum_weight[-1])])


def _n_parts(columns: Columns) -> I8:
    from sim.bounds.kernels import bounds  # loads numba

    starts = bounds.part_starts(
        topological_order(columns), columns.job_stage0, columns.edge0, columns.edge_child,
        columns.edge_kind, columns.stage_task0,
    )  # fmt: skip
    return np.add.reduceat(starts.astype(np.int64), columns.job_stage0[:-1])
