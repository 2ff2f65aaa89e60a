"""Loops along DAGs: attributes that hang together, and stages in depth-first order."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.base.jit import jit
from sim.workload.kernels.paths import by_child


@jit
def follow(
    order: I8, edge0: I8, edge_child: I4, root: F8, pull: F8, noise: F8, state_latent: F8
) -> None:
    """Let each stage's latent numbers follow those of its first child."""
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
def take_over(
    order: I8, edge0: I8, edge_child: I4, uniform: F8, chance: F8, state_value: F8
) -> None:
    """Give stages, by chance, the value of their first child."""
    for i in range(len(order) - 1, -1, -1):
        s = order[i]
        if edge0[s + 1] > edge0[s]:
            child = edge_child[edge0[s]]
            for m in range(len(chance)):
                if uniform[s, m] < chance[m]:
                    state_value[s, m] = state_value[child, m]


@jit
def postorder(job_stage0: I8, edge0: I8, edge_child: I4, edge_parent: I4) -> I8:
    """Order each job's stages so that a stage comes right after all that only it waits for.

    From each sink, by row, parents are visited before their child, by row, and none twice; so a
    branch of a tree is a run of the order.
    """
    n_stages = len(edge0) - 1
    in0, in_edge = by_child(n_stages, edge_child)
    order = np.empty(n_stages, np.int64)
    seen = np.zeros(n_stages, np.int8)
    visited = np.zeros(n_stages, np.int64)  # parents looked at so far
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
