"""Random numbers and tables inside kernels, and propagation of attributes along DAGs.

Where the number of draws depends on the draws, no array of uniforms can be prepared beforehand. So
each job has its own generator: L'Ecuyer's combined multiplicative one (*Efficient and portable
combined random number generators*, CACM 31, 1988), whose products fit into 64 bits, so that it
gives the same numbers compiled and as plain Python.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.base.jit import jit
from sim.workload.kernels.paths import by_child

MODULUS = (2_147_483_563, 2_147_483_399)
"""A state is two numbers, each from 1 to its modulus less 1."""


@jit
def uniform(state_random: I8) -> float:
    """Draw from (0, 1) and advance the state."""
    first = state_random[0] * 40_014 % 2_147_483_563
    second = state_random[1] * 40_692 % 2_147_483_399
    state_random[0] = first
    state_random[1] = second
    difference = first - second
    if difference < 1:
        difference += 2_147_483_562
    drawn: float = difference / 2_147_483_563.0
    return drawn


@jit
def below(n: int, state_random: I8) -> int:
    """Draw a whole number from 0 to n − 1."""
    return int(uniform(state_random) * n)


@jit
def shuffle(state_order: I8, begin: int, end: int, n: int, state_random: I8) -> None:
    """Swap `n` random entries of ``state_order[begin:end]`` to its front, in random order."""
    for i in range(begin, begin + n):
        pick = i + below(end - i, state_random)
        state_order[i], state_order[pick] = state_order[pick], state_order[i]


@jit
def draw(table: I8, row: int, column: int, limit: int, u: float) -> int:
    """Draw one of a table's values of at most `limit`, in proportion to their counts."""
    n_rows = table[0]
    n_columns = table[1]
    r = _last(table, 2, 2 + n_rows, row) - 2
    begins = 2 + n_rows
    lowers = begins + n_rows + 1
    c = _last(table, lowers + table[begins + r], lowers + table[begins + r + 1], column) - lowers
    cells = lowers + n_columns
    values = cells + n_columns + 1
    cums = values + table[cells + n_columns]
    first = table[cells + c]
    last = _last(table, values + first, values + table[cells + c + 1], limit) - values
    ticket = int(u * table[cums + last])
    low = first
    high = last
    while low < high:  # the first value whose cumulative count exceeds the ticket
        middle = (low + high) >> 1
        if table[cums + middle] <= ticket:
            low = middle + 1
        else:
            high = middle
    drawn: int = table[values + low]
    return drawn


@jit
def _last(table: I8, begin: int, end: int, limit: int) -> int:
    """Return the last index of an ascending run with an entry of at most `limit`, or the first."""
    low = begin + 1
    high = end
    while low < high:
        middle = (low + high) >> 1
        if table[middle] <= limit:
            low = middle + 1
        else:
            high = middle
    return low - 1


@jit
def follow(
    order: I8, edge0: I8, edge_child: I4, root: F8, pull: F8, noise: F8, state_latent: F8
) -> None:
    """Compute each stage's latent numbers from its noise and those of its first child."""
    n = state_latent.shape[1]
    new = np.empty(n)
    for i in range(len(order) - 1, -1, -1):
        s = order[i]
        follows = edge0[s + 1] > edge0[s]
        factor = noise if follows else root
        for m in range(n):
            total = 0.0
            for k in range(n):
                total += factor[m, k] * state_latent[s, k]
            if follows:
                child = edge_child[edge0[s]]
                for k in range(n):
                    total += pull[m, k] * state_latent[child, k]
            new[m] = total
        for m in range(n):
            state_latent[s, m] = new[m]


@jit
def copy_from_child(
    order: I8, edge0: I8, edge_child: I4, uniform: F8, chance: F8, state_value: F8
) -> None:
    """Replace values of stages, by chance, with those of their first child."""
    for i in range(len(order) - 1, -1, -1):
        s = order[i]
        if edge0[s + 1] > edge0[s]:
            child = edge_child[edge0[s]]
            for m in range(len(chance)):
                if uniform[s, m] < chance[m]:
                    state_value[s, m] = state_value[child, m]


@jit
def postorder(job_stage0: I8, edge0: I8, edge_child: I4, edge_parent: I4) -> I8:
    """Order each job's stages in depth-first postorder, parents before children.

    The traversal starts from each sink and visits parents by row, none twice; so a branch of a tree
    is contiguous in the order.
    """
    n_stages = len(edge0) - 1
    in0, in_edge = by_child(n_stages, edge_child)
    order = np.empty(n_stages, np.int64)
    seen = np.zeros(n_stages, np.int8)
    visited = np.zeros(n_stages, np.int64)  # number of parents visited so far
    stack = np.empty(n_stages, np.int64)
    n_done = 0
    for sink in range(n_stages):
        if edge0[sink + 1] > edge0[sink]:
            continue
        stack[0] = sink
        seen[sink] = 1
        height = 1
        while height > 0:
            s = stack[height - 1]
            if visited[s] < in0[s + 1] - in0[s]:
                parent = edge_parent[in_edge[in0[s] + visited[s]]]
                visited[s] += 1
                if seen[parent] == 0:
                    seen[parent] = 1
                    stack[height] = parent
                    height += 1
            else:
                order[n_done] = s
                n_done += 1
                height -= 1
    return order
