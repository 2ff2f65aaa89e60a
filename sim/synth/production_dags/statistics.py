"""How a workload compares with the published numbers: wanted and got, row by row."""

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
    """Measure what the paper publishes of its production DAGs.

    Work is duration × Σ demand over the resources. Depth counts the stages of a longest path. A
    task's in-degree is the number of tasks it waits for: all of a barrier parent's, one of a one-
    to-one parent's. Degrees and demands are those of all tasks of all jobs.
    """
    paper, of_dags = numbers("dagps"), numbers("dagps")["dags"]
    columns = workload.columns
    n_tasks = np.diff(columns.stage_task0)
    job0 = columns.job_stage0[:-1]
    pairs: dict[str, tuple[float, float]] = {}
    for i, name in enumerate(columns.resources):
        if name in paper["table1"]:
            held = columns.stage_demand_f[:, i]
            mean = np.average(held, weights=n_tasks)
            spread = np.sqrt(np.average((held - mean) ** 2, weights=n_tasks))
            pairs[f"variation of {name}"] = (paper["table1"][name], float(spread / mean))
    for row, share in work_shares(workload).items():
        counts = np.histogram(share, [0, 0.2, 0.4, 0.6, 0.8, 1 + 1e-9])[0] / len(share)
        for k in range(5):
            fifth = f"{row} {20 * k}-{20 * k + 20} %"
            pairs[fifth] = (paper["table2"][row][k], float(counts[k]))
    depth = np.maximum.reduceat(stage_depth(columns), job0) + 1
    tasks = np.add.reduceat(n_tasks, job0)
    pairs["depth, median"] = (of_dags["depth_p50"], float(np.median(depth)))
    pairs["tasks, median"] = (of_dags["tasks_p50"], float(np.median(tasks)))
    into, out = _degrees(columns, n_tasks)
    for i, (name, q) in enumerate((("median", 0.5), ("p75", 0.75))):
        pairs[f"in-degree, {name}"] = (of_dags["in_degree"][i], _quantile(into, n_tasks, q))
        pairs[f"out-degree, {name}"] = (of_dags["out_degree"][i], _quantile(out, n_tasks, q))
    four = float((_n_parts(columns) >= 4).mean())
    pairs["four parts or more"] = (of_dags["four_parts"], four)
    seen = np.unique(columns.job_template, return_index=True)[1]
    pairs["recurring"] = (of_dags["recurring"], 1 - len(seen) / len(columns.job_template))
    return pairs


def beside(workload: Workload, seed: int) -> Iterator[tuple[str, str, float, float]]:
    """Give what is published beside what the workload has: where it stands, what, both numbers.

    `seed` is not used: everything that was drawn is in the workload.
    """
    for row, (wanted, got) in statistics(workload).items():
        table = "Table 1" if row.startswith("variation") else "Text of §2.3, §4.4 and §7.1"
        if row.startswith(tuple(numbers("dagps")["table2"])):
            table = "Table 2"
        yield table, row, wanted, got


def work_shares(workload: Workload) -> dict[str, F8]:
    """Measure the share of each job's work in each row of Table 2, (J,) float64 each."""
    columns = workload.columns
    work = columns.stage_work * columns.stage_demand_f.sum(axis=1)
    job0 = columns.job_stage0[:-1]
    total = np.add.reduceat(work, job0)
    total = np.where(total > 0, total, 1.0)
    graphs = Graphs.from_workload(workload)
    places = {"critical path": _critical(columns), "unconstrained": graphs.n_parents == 0}
    shares = {row: np.add.reduceat(work * there, job0) / total for row, there in places.items()}
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
    """Find the greatest work of stages none of which is an ancestor of another.

    All work less a greatest flow between ancestors and descendants (Dilworth, with weights).
    """
    begin, end = int(graphs.job_stage0[job]), int(graphs.job_stage0[job + 1])
    g = end - begin
    own = work[begin:end]
    if g == 1 or own.sum() == 0:
        return float(own.sum())
    below = np.zeros((g, g), bool)
    for s in graphs.order[begin:end][::-1] - begin:
        children = graphs.edge_child[graphs.edge0[begin + s] : graphs.edge0[begin + s + 1]] - begin
        below[s, children] = True
        below[s] |= below[children].any(axis=0)
    whole = np.rint(own / own.sum() * 2**24).astype(np.int32)
    up, down = np.nonzero(below)
    inner = np.arange(g)
    tail = np.concatenate([np.zeros(g, int), 1 + up, 1 + g + inner])
    head = np.concatenate([1 + inner, 1 + g + down, np.full(g, 2 * g + 1)])
    room = np.concatenate([whole, np.full(len(up), 2**25), whole]).astype(np.int32)
    network = csr_array((room, (tail, head)), shape=(2 * g + 2, 2 * g + 2))
    flow = maximum_flow(network, 0, 2 * g + 1).flow_value
    return min(1.0, float(whole.sum() - flow) / 2**24) * float(own.sum())


def _degrees(columns: Columns, n_tasks: I8) -> tuple[I8, I8]:
    """Count how many tasks a task of each stage waits for, and how many wait for it."""
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
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, q * reached[-1])])


def _n_parts(columns: Columns) -> I8:
    from sim.bounds.kernels import bounds  # loads numba

    starts = bounds.part_starts(
        topological_order(columns), columns.job_stage0, columns.edge0, columns.edge_child,
        columns.edge_kind, columns.stage_task0,
    )  # fmt: skip
    return np.add.reduceat(starts.astype(np.int64), columns.job_stage0[:-1])
