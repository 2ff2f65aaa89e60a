"""Random DAGs from random bits (Kuipers and Moffa, Statistics and Computing 2015)."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8, U1
from sim.base.jit import jit


@jit
def draw_layers(job_stage0: I8, first: F8, later: F8, uniform: F8, out_layer: I4) -> None:
    """Draw each job's number of outpoints, then those of the rest without them, and so on."""
    largest = len(first) - 1
    for j in range(len(job_stage0) - 1):
        s = job_stage0[j]
        end = job_stage0[j + 1]
        layer, k, i = 0, 0, s
        while s < end:
            m = min(end - s, largest)
            table = first[m] if layer == 0 else later[m, k]
            k = min(np.searchsorted(table, uniform[i], side="right"), m)
            i += 1
            out_layer[s : s + k] = layer
            s += k
            layer += 1


@jit
def shuffle(job_stage0: I8, uniform: F8, out_name: I8) -> None:
    """Permute 0 to n − 1 for each job of n stages (Fisher and Yates)."""
    for j in range(len(job_stage0) - 1):
        begin = job_stage0[j]
        for i in range(job_stage0[j + 1] - begin):
            k = int(uniform[begin + i] * (i + 1))
            out_name[begin + i] = out_name[begin + k]
            out_name[begin + k] = i


@jit
def draw_edges(
    job_stage0: I8,
    layer: I4,
    name: I8,
    byte0: I8,
    random_byte: U1,
    uniform: F8,
    out_edge0: I8,
    out_child: I4,
) -> None:
    """Draw each stage's parents: at least one in the previous layer, any in earlier layers."""
    widest = 0
    for j in range(len(job_stage0) - 1):
        widest = max(widest, job_stage0[j + 1] - job_stage0[j])
    linked = np.zeros((widest, widest), np.bool_)
    out_edge0[0] = 0
    edge = 0
    for j in range(len(job_stage0) - 1):
        begin = job_stage0[j]
        n = job_stage0[j + 1] - begin
        previous, current = 0, 0  # first positions of the previous layer and of this one
        for i in range(n):
            if layer[begin + i] != layer[begin + current]:
                previous, current = current, i
            first = previous + _first_heads(current - previous, uniform[begin + i])
            for q in range(current):
                bit = i * (i - 1) // 2 + q
                drawn = (random_byte[byte0[j] + bit // 8] >> (bit % 8)) & 1
                if q == first or (drawn and not previous <= q < first):
                    linked[name[begin + q], name[begin + i]] = True
        for a in range(n):
            for b in range(n):
                if linked[a, b]:
                    linked[a, b] = False
                    out_child[edge] = begin + b
                    edge += 1
            out_edge0[begin + a + 1] = edge


@jit
def _first_heads(n, uniform):
    # Of n fair coins that do not all show tails, the first that shows heads: i of probability
    # 2^-(i + 1) / (1 - 2^-n).
    scaled = uniform * (1.0 - 0.5**n)
    i, tails = 0, 0.5
    while i < n - 1 and scaled >= 1.0 - tails:
        i += 1
        tails *= 0.5
    return i
