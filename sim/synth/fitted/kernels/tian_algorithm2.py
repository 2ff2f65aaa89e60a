"""Algorithm 2 of Tian et al. (SoCC 2019): lengths, levels and edges of many DAGs at once.

The caller passes the uniforms, one array per purpose, so that a draw depends on its position and
not on the number of draws before it. Tables are passed as cells of ascending values: cell c holds
``value[cell0[c]:cell0[c + 1]]`` with cumulative counts in `cum`.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.base.jit import jit


@jit
def draw_lengths(
    n_stages: I8, cell: I8, cell0: I8, value: I8, cum: I8, uniform: F8, out_length: I8
) -> None:
    """Draw each job's critical path length, CP(n), among the lengths of at most n stages."""
    for j in range(len(n_stages)):
        out_length[j] = _draw(cell0, value, cum, cell[j], n_stages[j], uniform[j])


@jit
def assign_levels(
    stage0: I8,
    length: I8,
    cell: I8,
    cell0: I8,
    value: I8,
    cum: I8,
    u_order: F8,
    u_level: F8,
    out_level: I4,
) -> None:
    """Assign every stage a level, from 1 to its job's length (lines 4 to 8)."""
    n_jobs = len(length)
    widest = 0
    for j in range(n_jobs):
        widest = max(widest, stage0[j + 1] - stage0[j])
    order = np.empty(widest, dtype=np.int64)
    for j in range(n_jobs):
        begin = stage0[j]
        n = stage0[j + 1] - begin
        for i in range(n):
            order[i] = i
        for i in range(n):
            pick = i + int(u_order[begin + i] * (n - i))
            order[i], order[pick] = order[pick], order[i]
            if i < length[j]:
                level = i + 1
            else:
                level = _draw(cell0, value, cum, cell[j], length[j], u_level[begin + i])
            out_level[begin + order[i]] = level


@jit
def count_children(stage0: I8, length: I8, level: I4, out_degree: I4) -> None:
    """Set each stage's number of children: ceil(next level's size / its level's) (line 11)."""
    deepest = 0
    for j in range(len(length)):
        deepest = max(deepest, length[j])
    size = np.zeros(deepest + 2, dtype=np.int64)
    for j in range(len(length)):
        size[: length[j] + 2] = 0
        for s in range(stage0[j], stage0[j + 1]):
            size[level[s]] += 1
        for s in range(stage0[j], stage0[j + 1]):
            width = size[level[s]]
            out_degree[s] = (size[level[s] + 1] + width - 1) // width


@jit
def sample_children(
    stage0: I8, length: I8, level: I4, edge0: I8, uniform: F8, out_child: I4
) -> None:
    """Draw each stage's children from the next level, without replacement (lines 9 to 12)."""
    n_jobs = len(length)
    widest = 0
    deepest = 0
    for j in range(n_jobs):
        widest = max(widest, stage0[j + 1] - stage0[j])
        deepest = max(deepest, length[j])
    member = np.empty(widest, dtype=np.int64)  # the job's stages, by level
    first = np.zeros(deepest + 2, dtype=np.int64)  # begin of each level in `member`
    for j in range(n_jobs):
        n_levels = length[j]
        first[: n_levels + 2] = 0
        for s in range(stage0[j], stage0[j + 1]):
            first[level[s]] += 1
        total = 0
        for i in range(n_levels + 2):
            total, first[i] = total + first[i], total
        for s in range(stage0[j], stage0[j + 1]):
            member[first[level[s]]] = s
            first[level[s]] += 1
        for i in range(n_levels + 1, 0, -1):
            first[i] = first[i - 1]
        for i in range(1, n_levels):
            pool = first[i + 1]
            n_pool = first[i + 2] - pool
            for k in range(first[i], pool):
                begin = edge0[member[k]]
                for e in range(begin, edge0[member[k] + 1]):
                    front = pool + e - begin
                    pick = front + int(uniform[e] * (n_pool - (e - begin)))
                    child = member[pick]
                    member[pick] = member[front]
                    member[front] = child
                    slot = e
                    while slot > begin and out_child[slot - 1] > child:
                        out_child[slot] = out_child[slot - 1]
                        slot -= 1
                    out_child[slot] = child


@jit
def _draw(cell0: I8, value: I8, cum: I8, cell: int, limit: int, uniform: float) -> int:
    """Draw from the cell's values of at most `limit`, in proportion to their counts."""
    low = cell0[cell]
    high = cell0[cell + 1]
    while low < high:  # the first value above the limit
        middle = (low + high) >> 1
        if value[middle] <= limit:
            low = middle + 1
        else:
            high = middle
    high = low - 1
    ticket = int(uniform * cum[high])
    low = cell0[cell]
    while low < high:  # the first value whose cumulative count exceeds the ticket
        middle = (low + high) >> 1
        if cum[middle] <= ticket:
            low = middle + 1
        else:
            high = middle
    drawn: int = value[low]
    return drawn
