"""Attributes that hang together along DAGs: latent normal numbers, and values taken over."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.base.jit import jit


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
