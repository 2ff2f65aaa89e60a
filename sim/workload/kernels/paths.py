"""Longest paths through the DAGs of all jobs at once, and their edges indexed by child.

Stages are rows; the edges are in CSR form by parent (``edge0``, ``edge_child``, ``edge_kind``: 0
for a barrier, 1 for one-to-one). Input arrays are read-only; outputs are new arrays.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I1, I4, I8
from sim.base.jit import jit
from sim.workload.kernels.pairs import count_pairs


@jit
def by_child(n_stages: int, edge_child: I4) -> tuple[I8, I8]:
    """Sort edges by child, those of one child by row."""
    in0 = np.zeros(n_stages + 1, np.int64)
    for e in range(len(edge_child)):
        in0[edge_child[e] + 1] += 1
    for s in range(n_stages):
        in0[s + 1] += in0[s]
    next_row = np.empty(n_stages, np.int64)
    for s in range(n_stages):
        next_row[s] = in0[s]
    in_edge = np.empty(len(edge_child), np.int64)
    for e in range(len(edge_child)):
        in_edge[next_row[edge_child[e]]] = e
        next_row[edge_child[e]] += 1
    return in0, in_edge


@jit
def topological_order(job_stage0: I8, edge0: I8, edge_child: I4) -> I8:
    """Sort the stages of each job topologically (Kahn); -1 for stages on or after a cycle."""
    n_stages = edge0.shape[0] - 1
    order = np.full(n_stages, -1, np.int64)
    waits = np.zeros(n_stages, np.int32)
    for e in range(edge_child.shape[0]):
        waits[edge_child[e]] += 1
    for j in range(job_stage0.shape[0] - 1):
        tail = job_stage0[j]
        for s in range(job_stage0[j], job_stage0[j + 1]):
            if waits[s] == 0:
                order[tail] = s
                tail += 1
        head = job_stage0[j]
        while head < tail:
            s = order[head]
            head += 1
            for e in range(edge0[s], edge0[s + 1]):
                child = edge_child[e]
                waits[child] -= 1
                if waits[child] == 0:
                    order[tail] = child
                    tail += 1
    return order


@jit
def depths(order: I8, edge0: I8, edge_child: I4) -> I4:
    """Count the edges on the longest path from a source to each stage."""
    depth = np.zeros(order.shape[0], np.int32)
    for i in range(order.shape[0]):
        s = order[i]
        for e in range(edge0[s], edge0[s + 1]):
            child = edge_child[e]
            depth[child] = max(depth[child], depth[s] + 1)
    return depth


@jit
def tails(
    order: I8,
    group: I8,
    edge0: I8,
    edge_child: I4,
    edge_kind: I1,
    stage_task0: I8,
    stage_max: F8,
    task_duration: F8,
) -> F8:
    """Find the longest path, task by task, from each stage to the end of its group.

    A task's path continues through every task of a barrier child, and through the task of the same
    index of a one-to-one child, if it exists. Single tasks are considered only in stages with
    one-to-one edges; elsewhere the longest task represents its stage.
    """
    n_stages = order.shape[0]
    tail = np.zeros(n_stages, np.float64)
    paired = np.zeros(n_stages, np.bool_)
    any_paired = False
    for s in range(n_stages):
        for e in range(edge0[s], edge0[s + 1]):
            if edge_kind[e] == 1 and group[s] == group[edge_child[e]]:
                paired[s] = True
                paired[edge_child[e]] = True
                any_paired = True
    chain = np.zeros(task_duration.shape[0] if any_paired else 1, np.float64)
    for i in range(n_stages - 1, -1, -1):
        s = order[i]
        after = 0.0
        for e in range(edge0[s], edge0[s + 1]):
            child = edge_child[e]
            if edge_kind[e] == 0 and group[s] == group[child]:
                after = max(after, tail[child])
        if not paired[s]:
            tail[s] = after + stage_max[s]
            continue
        t0, n = stage_task0[s], stage_task0[s + 1] - stage_task0[s]
        chain[t0 : t0 + n] = after
        for e in range(edge0[s], edge0[s + 1]):
            child = edge_child[e]
            if edge_kind[e] == 1 and group[s] == group[child]:
                c0 = stage_task0[child]
                for k in range(count_pairs(stage_task0, s, child)):
                    chain[t0 + k] = max(chain[t0 + k], chain[c0 + k])
        longest = 0.0
        for k in range(t0, t0 + n):
            chain[k] += task_duration[k]
            longest = max(longest, chain[k])
        tail[s] = longest
    return tail


@jit
def task_tails(
    order: I8, edge0: I8, edge_child: I4, edge_kind: I1, stage_task0: I8, task_duration: F8
) -> F8:
    """Find the longest path from each task to the end of its job, itself included, (T,) s."""
    tail = np.zeros(order.shape[0], np.float64)
    out = np.zeros(task_duration.shape[0], np.float64)
    for i in range(order.shape[0] - 1, -1, -1):
        s = order[i]
        first, last = stage_task0[s], stage_task0[s + 1]
        for e in range(edge0[s], edge0[s + 1]):
            child = edge_child[e]
            c0 = stage_task0[child]
            if edge_kind[e] == 0:
                for k in range(first, last):
                    out[k] = max(out[k], tail[child])
                continue
            for k in range(count_pairs(stage_task0, s, child)):
                out[first + k] = max(out[first + k], out[c0 + k])
        for k in range(first, last):
            out[k] += task_duration[k]
            tail[s] = max(tail[s], out[k])
    return out
