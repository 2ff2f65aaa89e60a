"""Algorithm 2 of Tian et al. (SoCC 2019, §7.2) as printed: DAGs of given sizes, many at once."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.base.random import stream
from sim.synth.alibaba2018.tables import Tables


def draw_lengths(tables: Tables, n_stages: I8, seed: int) -> I8:
    """Draw critical path lengths CP(n), among the lengths that n stages allow (line 3).

    Where the table has none, as it was counted of larger jobs only, it is n: a chain.
    """
    from sim.synth.alibaba2018.kernels import algorithm2

    length = np.empty(len(n_stages), dtype=np.int64)
    cell = tables.length.cell_of(n_stages)
    uniform = _uniform(seed, "length", len(n_stages))
    algorithm2.draw_lengths(n_stages, cell, *tables.length.packed(), uniform, length)
    return np.minimum(length, n_stages)


def link_levels(tables: Tables, stage0: I8, length: I8, seed: int) -> tuple[I4, I8, I4]:
    """Draw levels and edges (lines 4 to 12).

    The first stages of a random permutation get the levels 1 to their job's length, the others
    LV(length), among the levels of at most that length. On each level but the last, every stage
    samples ⌈next level's size / own level's size⌉ children of the next level, without
    replacement. So every stage of level 1 begins a path through all levels, and a stage of a later
    level may be left without parents.
    """
    from sim.synth.alibaba2018.kernels import algorithm2

    n_all = int(stage0[-1])
    level = np.empty(n_all, dtype=np.int32)
    algorithm2.assign_levels(
        stage0,
        length,
        tables.level.cell_of(length),
        *tables.level.packed(),
        _uniform(seed, "permutation", n_all),
        _uniform(seed, "level", n_all),
        level,
    )
    out_degree = np.empty(n_all, dtype=np.int32)
    algorithm2.count_children(stage0, length, level, out_degree)
    edge0 = np.zeros(n_all + 1, dtype=np.int64)
    np.cumsum(out_degree, out=edge0[1:])
    child = np.empty(int(edge0[-1]), dtype=np.int32)
    algorithm2.sample_children(
        stage0, length, level, edge0, _uniform(seed, "child", len(child)), child
    )
    return level, edge0, child


def _uniform(seed: int, purpose: str, n: int) -> F8:
    return stream(seed, "synth", "alibaba2018", purpose).random(n)
