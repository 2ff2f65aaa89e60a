"""Uniform random generation of labelled DAGs of a size (Kuipers and Moffa).

J. Kuipers, G. Moffa, *Uniform random generation of large acyclic digraphs*, Statistics and
Computing 25, 2015, §4: layers of *outpoints* (vertices without parents) are drawn by the number of
DAGs with so many outpoints, from the outermost layer inwards, then the edges between the layers.
"""

from __future__ import annotations

from functools import cache
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from sim.base.arrays import F8, offsets
from sim.base.errors import InputError
from sim.base.random import Stream, stream
from sim.dags.graphs import Graphs

EXACT = 40
"""Limit of remaining stages for shares from exact counts; beyond it, the shares of this number.

The shares converge so fast (§5) that the error is less than 1e-20, below a double's precision.
"""


@cache
def count_by_outpoints(n: int) -> tuple[int, ...]:
    """Count the labelled DAGs of `n` vertices by their outpoints, exactly (Eqs. 4 and 5)."""
    ways = [sum(_ways(n - k, k)) if k < n else 1 for k in range(1, n + 1)]
    return (0, *(comb(n, k) * w for k, w in zip(range(1, n + 1), ways, strict=True)))


@cache
def _ways(m: int, k: int) -> tuple[int, ...]:
    # For s = 1 to m: the number of ways to choose a DAG of m vertices with s outpoints and edges to
    # it from k more vertices, such that each of the s has at least one of these edges.
    counts = count_by_outpoints(m)
    return tuple((2**k - 1) ** s * 2 ** (k * (m - s)) * counts[s] for s in range(1, m + 1))


def uniform_dags(n_stages: ArrayLike, seed: int) -> Graphs:
    """Draw one DAG of each size, uniformly from the labelled DAGs of that size.

    Exact up to the 2^-53 of the doubles that choose layers. Stages without any edge, and DAGs of
    several components, are as likely as any other. The DAG of job j depends only on the seed and
    the sizes up to j; InputError if a size is less than 1.
    """
    from sim.dags.kernels import random_dags as kernel

    sizes = np.asarray(n_stages, dtype=np.int64)
    if (sizes < 1).any():
        raise InputError(f"a DAG has at least 1 stage, not {sizes.min()}")
    job_stage0 = offsets(sizes)
    n_all = int(job_stage0[-1])
    layer = np.empty(n_all, dtype=np.int32)
    first, later = _tables()
    kernel.draw_layers(job_stage0, first, later, _stream(seed, "layers").random(n_all), layer)
    name = np.empty(n_all, dtype=np.int64)
    kernel.shuffle(job_stage0, _stream(seed, "names").random(n_all), name)
    pairs = sizes * (sizes - 1) // 2
    byte0 = offsets((pairs + 7) // 8)
    edge0 = np.empty(n_all + 1, dtype=np.int64)
    child = np.empty(int(pairs.sum()), dtype=np.int32)
    kernel.draw_edges(
        job_stage0,
        layer,
        name,
        byte0,
        np.frombuffer(_stream(seed, "edges").bytes(int(byte0[-1])), dtype=np.uint8),
        _stream(seed, "first").random(n_all),
        edge0,
        child,
    )
    return Graphs(job_stage0, edge0, child[: edge0[-1]].copy())


def _stream(seed: int, purpose: str) -> Stream:
    return stream(seed, "dags", "uniform", purpose)


@cache
def _tables() -> tuple[F8, F8]:
    # Cumulative shares: [n, k] of DAGs of n vertices by outpoints, and [m, k, s] of `_ways`.
    first = np.ones((EXACT + 1, EXACT + 1))
    later = np.ones((EXACT + 1, EXACT + 1, EXACT + 1))
    for n in range(1, EXACT + 1):
        first[n, : n + 1] = _cumulative(count_by_outpoints(n))
        for k in range(1, EXACT + 1):
            later[n, k, : n + 1] = _cumulative((0, *_ways(n, k)))
    return first, later


def _cumulative(counts: tuple[int, ...]) -> list[float]:
    # Integers of any size divide to the nearest double.
    total, below, shares = sum(counts), 0, []
    for count in counts:
        below += count
        shares.append(below / total)
    return shares
