"""Algorithm 2 of Tian et al. (SoCC 2019, §7.2): DAGs of given sizes, many at once.

`draw_lengths` and `link_levels` are the algorithm as printed. The rest is the improved variant:
level and edge steps with fitted tables for the properties that the algorithm leaves out.

Sizes of levels: Algorithm 2 assigns one stage to each level and draws the levels of the others from
a table that counts all stages. The improved variant subtracts each job's first stage of each level
from that table, and draws levels in runs, as further stages tend to come with others on the level
before. Few jobs have several stages on the last level; these jobs, and the gathering trees, are
drawn beforehand.

Edges: tables, given the two levels' sizes and the shape, say how many stages of a level have
children on the next, how many of the next have parents, how these are shared, and which edges go
further down: see `sim.synth.fitted.kernels.improved`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I4, I8, offsets
from sim.base.errors import InputError, unknown
from sim.base.random import stream
from sim.dags import Graphs
from sim.synth.fitted.tables import NARROW, TREE, WIDE, Links, Tables

Variant = Literal["improved", "paper"]
VARIANTS: tuple[str, ...] = get_args(Variant)


@dataclass(frozen=True, eq=False)
class Structure:
    """J DAGs with G stages in all."""

    graph: Graphs
    length: I8  # critical path length of each DAG, in stages
    level: I4  # level of each stage, from 1


def synthesize_dags(
    tables: Tables, n_stages: NDArray[np.integer], seed: int, variant: str = "improved"
) -> Structure:
    """Synthesize one DAG of each of the given sizes, by a variant of `VARIANTS`."""
    if variant not in VARIANTS:
        raise InputError(unknown("variant", variant, VARIANTS), rule="unknown variant")
    sizes: I8 = np.asarray(n_stages, dtype=np.int64)
    stage0 = offsets(sizes)
    length = draw_lengths(tables, sizes, seed)
    if variant == "paper":
        level, edge0, child = link_levels(tables, stage0, length, seed)
        return Structure(Graphs(stage0, edge0, child), length, level)
    if tables.links is None:
        raise InputError(
            "variant=improved needs tables with edges (links), and these have none; fit them from "
            "a workload, or take variant=paper",
            rule="no links",
        )
    random = generators(seed, len(sizes))
    size, shape = draw_level_sizes(tables, tables.links, sizes, length, random)
    edge0, child = link(tables.links, stage0, length, size, shape, random)
    rank = np.arange(len(size)) - np.repeat(offsets(length)[:-1], length)
    level = np.repeat(rank.astype(np.int32) + np.int32(1), size)
    return Structure(Graphs(stage0, edge0, child), length, level)


def draw_lengths(tables: Tables, n_stages: I8, seed: int) -> I8:
    """Draw critical path lengths CP(n), among the lengths that n stages allow (line 3).

    A job smaller than all in the table is a chain of length n.
    """
    from sim.synth.fitted.kernels import tian_algorithm2  # loads numba

    length = np.empty(len(n_stages), dtype=np.int64)
    cell = tables.length.part_of(n_stages)
    uniform = uniforms(seed, "length", len(n_stages))
    tian_algorithm2.draw_lengths(n_stages, cell, *tables.length.packed(), uniform, length)
    return np.minimum(length, n_stages)


def link_levels(tables: Tables, stage0: I8, length: I8, seed: int) -> tuple[I4, I8, I4]:
    """Draw levels and edges (lines 4 to 12).

    Every stage of level 1 begins a path through all levels, and a stage of a later level may be
    left without parents.
    """
    from sim.synth.fitted.kernels import tian_algorithm2  # loads numba

    n_all = int(stage0[-1])
    level = np.empty(n_all, dtype=np.int32)
    tian_algorithm2.assign_levels(
        stage0, length, tables.level.part_of(length), *tables.level.packed(),
        uniforms(seed, "permutation", n_all), uniforms(seed, "level", n_all), level,
    )  # fmt: skip
    out_degree = np.empty(n_all, dtype=np.int32)
    tian_algorithm2.count_children(stage0, length, level, out_degree)
    edge0 = offsets(out_degree)
    child = np.empty(int(edge0[-1]), dtype=np.int32)
    tian_algorithm2.sample_children(
        stage0, length, level, edge0, uniforms(seed, "child", len(child)), child
    )
    return level, edge0, child


def uniforms(seed: int, purpose: str, n: int) -> F8:
    """Draw `n` numbers in [0, 1) for a purpose."""
    return stream(seed, "synth", "alibaba2018", purpose).random(n)


def generators(seed: int, n_jobs: int) -> I8:
    """Return the states of one random generator per job, (J, 2), for `kernels.chance`."""
    from sim.synth.fitted.kernels.chance import MODULUS  # loads numba

    uniform = stream(seed, "synth", "alibaba2018", "job").random((n_jobs, 2))
    states: I8 = 1 + (uniform * (np.array(MODULUS) - 1)).astype(np.int64)
    return states


def draw_level_sizes(
    tables: Tables, links: Links, n_stages: I8, length: I8, random: I8, shape: I8 | None = None
) -> tuple[I8, I8]:
    """Draw the number of stages on each level of each job."""
    from sim.synth.fitted.kernels import improved  # loads numba

    if shape is None:
        shape = np.empty(len(length), dtype=np.int64)
        improved.draw_shapes(n_stages, length, links.shape.packed(), random, shape)
    lengths, group = np.unique(length, return_inverse=True)
    further = [further_stages(tables, value) for value in lengths.tolist()]
    ends = [
        run_ends(
            level_shares(counts, links.first[kind - TREE], kind == WIDE),
            links.run_tree if kind == TREE else links.run_other,
        )
        for kind in (TREE, NARROW, WIDE)
        for counts in further
    ]
    ends0 = offsets(np.array([len(part) for part in ends]))[group + len(lengths) * (shape - TREE)]
    run = np.where(shape == TREE, links.run_tree, links.run_other)
    size = np.empty(int(length.sum()), dtype=np.int64)
    improved.draw_level_sizes(
        offsets(length), n_stages, shape, ends0, np.concatenate(ends), run, random, size
    )
    return size, shape


def link(links: Links, stage0: I8, length: I8, size: I8, shape: I8, random: I8) -> tuple[I8, I4]:
    """Draw edges between levels of given sizes; return (edge0, child)."""
    from sim.synth.fitted.kernels import improved  # loads numba

    return improved.link(stage0, offsets(length), size, shape, links.book(), links.weight, random)


def further_stages(tables: Tables, length: int) -> F8:
    """Count stages beyond the first of each level, in jobs of `length` levels.

    The table of levels counts all stages. Each job has at least one on each level, so that the
    number of jobs of that length, from the table of lengths, is subtracted from every level.
    """
    part = int(tables.level.part_of(np.array([length]))[0])
    low, high = tables.level.range_of(part)
    cell = tables.level.parts[part].up_to(length)
    counts = np.zeros(length)
    counts[cell.values.astype(np.int64) - 1] = cell.counts
    for table in tables.length.parts:
        rows = (table.values >= low) & (table.values <= high)
        for value, n in zip(table.values[rows].astype(np.int64), table.counts[rows], strict=True):
            counts[:value] -= n
    return np.maximum(counts, 0.0)


def level_shares(further: F8, first: float, wide: bool) -> F8:
    """Return each level's share of a job's further stages."""
    share = further.copy()
    if len(share) > 1:
        share[-1] = share[:-1].mean() if wide else 0.0
    if not share.any():
        share[: max(1, len(share) - 1)] = 1.0
    share /= share.sum()
    if 0.0 < share[0] < 1.0:
        top = min(first * share[0], 0.95)
        share *= (1.0 - top) / (1.0 - share[0])
        share[0] = top
    return share


def run_ends(share: F8, run: float) -> F8:
    """Return the cumulative chances that a run of further stages ends on each level.

    To preserve the levels' shares of further stages, a level's chance is its share minus the stages
    that reach it in runs that end on a later level.
    """
    ends = np.maximum(share - run * np.append(share[1:], 0.0), 0.0)
    cum: F8 = np.cumsum(ends / ends.sum())
    cum[np.flatnonzero(ends)[-1] :] = 1.0
    return cum
