"""Random DAGs out of random bits (Kuipers and Moffa, Statistics and Computing 2015)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.jit import jit

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
I4 = NDArray[np.int32]
U1 = NDArray[np.uint8]


@jit
def draw_layers(job_stage0: I8, first: F8, later: F8, uniform: F8, out_layer: I4) -> None:
    """Draw how many outpoints each job has, how many remain when these are gone, and so on.

    Parameters
    ----------
    job_stage0 : (J + 1,) int64
        First stage of each job.
    first : (N + 1, N + 1) float64
        ``first[n, k]``: share of the DAGs of n stages that have at most k outpoints. Larger DAGs
        use the last row.
    later : (N + 1, N + 1, N + 1) float64
        ``later[m, k, s]``: the share that has at most s outpoints among the DAGs of m stages each
        of whose outpoints has one or more parents among k further stages.
    uniform : (G,) float64 in [0, 1)
        Draws; those of a job's first stages are used.
    out_layer : (G,) int32
        Overwritten, with the layer of each stage of a job in ascending order, from 0.
    """
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
    """Permute 0 to n − 1 for each job of n stages (Fisher and Yates).

    Parameters
    ----------
    job_stage0 : (J + 1,) int64
        First stage of each job.
    uniform : (G,) float64 in [0, 1)
        Draws.
    out_name : (G,) int64
        Overwritten.
    """
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
    """Draw each stage's parents: some of the layer before its own, any of those before that.

    Parameters
    ----------
    job_stage0 : (J + 1,) int64
        First stage of each job.
    layer : (G,) int32
        Of `draw_layers`.
    name : (G,) int64
        Which of the job's stages, from 0, is on each place of the layers.
    byte0 : (J,) int64
        First random byte of each job, which needs n (n − 1) / 2 bits.
    random_byte : (B,) uint8
        Random bits, one a pair of places.
    uniform : (G,) float64 in [0, 1)
        Draws, one a place: which parent is the first in the layer before.
    out_edge0, out_child : (G + 1,) int64, (P,) int32
        Overwritten with the edges by parent; P is at least the number of pairs of stages.
    """
    widest = 0
    for j in range(len(job_stage0) - 1):
        widest = max(widest, job_stage0[j + 1] - job_stage0[j])
    linked = np.zeros((widest, widest), np.bool_)
    out_edge0[0] = 0
    edge = 0
    for j in range(len(job_stage0) - 1):
        begin = job_stage0[j]
        n = job_stage0[j + 1] - begin
        before, own = 0, 0  # first places of the layer before and of this one
        for i in range(n):
            if layer[begin + i] != layer[begin + own]:
                before, own = own, i
            sure = before + _first_of(own - before, uniform[begin + i])
            for q in range(own):
                bit = i * (i - 1) // 2 + q
                drawn = (random_byte[byte0[j] + bit // 8] >> (bit % 8)) & 1
                if q == sure or (drawn and not before <= q < sure):
                    linked[name[begin + q], name[begin + i]] = True
        for a in range(n):
            for b in range(n):
                if linked[a, b]:
                    linked[a, b] = False
                    out_child[edge] = begin + b
                    edge += 1
            out_edge0[begin + a + 1] = edge


@jit
def _first_of(n, uniform):
    # Of n fair coins that do not all show tails, the first that shows heads: i of probability
    # 2^-(i + 1) / (1 - 2^-n).
    scaled = uniform * (1.0 - 0.5**n)
    i, tails = 0, 0.5
    while i < n - 1 and scaled >= 1.0 - tails:
        i += 1
        tails *= 0.5
    return i
