"""Algorithm 2's level and edge steps, with what it leaves out fitted.

The sizes of levels: Algorithm 2 gives each level one stage and draws the others' levels from a
table that counts all stages. Here they are drawn from what is left of it when each job's first
stage of each level is taken off, and in runs, as further stages tend to come with others on the
level before. Few jobs have several stages on the last level; which do is drawn beforehand, with
which are gathering trees.

The edges: how many stages of a level have children on the next, how many of the next have parents,
who shares them, and which edges go further down are drawn from tables, given the two levels' sizes
and the shape: see `sim.synth.alibaba2018.kernels.link`.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.base.ragged import offsets
from sim.base.random import stream
from sim.synth.alibaba2018.links import NARROW, TREE, WIDE, Links
from sim.synth.alibaba2018.tables import Tables


def generators(seed: int, n_jobs: int) -> I8:
    """Return the states of one small generator a job, (J, 2), as `kernels.chance` has them."""
    from sim.synth.alibaba2018.kernels.chance import MODULUS

    uniform = stream(seed, "synth", "alibaba2018", "job").random((n_jobs, 2))
    states: I8 = 1 + (uniform * (np.array(MODULUS) - 1)).astype(np.int64)
    return states


def spread(
    tables: Tables, links: Links, n_stages: I8, length: I8, random: I8, shape: I8 | None = None
) -> tuple[I8, I8]:
    """Draw how many stages are on each level of each job."""
    from sim.synth.alibaba2018.kernels import spread as kernel

    if shape is None:
        shape = np.empty(len(length), dtype=np.int64)
        kernel.draw_shapes(n_stages, length, links.shape.packed(), random, shape)
    lengths, which = np.unique(length, return_inverse=True)
    further = [further_stages(tables, value) for value in lengths.tolist()]
    ends = [
        run_ends(
            parts(of_table, links.first[kind - TREE], kind == WIDE),
            links.run_tree if kind == TREE else links.run_other,
        )
        for kind in (TREE, NARROW, WIDE)
        for of_table in further
    ]
    ends0 = offsets(np.array([len(part) for part in ends]))[which + len(lengths) * (shape - TREE)]
    run = np.where(shape == TREE, links.run_tree, links.run_other)
    size = np.empty(int(length.sum()), dtype=np.int64)
    kernel.spread(offsets(length), n_stages, shape, ends0, np.concatenate(ends), run, random, size)
    return size, shape


def link(links: Links, stage0: I8, length: I8, size: I8, shape: I8, random: I8) -> tuple[I8, I4]:
    """Draw edges between levels of given sizes; return (edge0, child)."""
    from sim.synth.alibaba2018.kernels import link as kernel

    return kernel.link(stage0, offsets(length), size, shape, links.book(), links.weight, random)


def further_stages(tables: Tables, length: int) -> F8:
    """Return how the stages of jobs of `length` levels spread beyond the first of each level.

    The table of levels counts all stages. Each job has one on each level at least, so that the
    number of jobs of that length, which the table of lengths tells, comes off every level.
    """
    at = int(tables.level.cell_of(np.array([length]))[0])
    low, high = tables.level.range_of(at)
    cell = tables.level.cells[at].up_to(length)
    counts = np.zeros(length)
    counts[cell.values.astype(np.int64) - 1] = cell.counts
    for given in tables.length.cells:
        here = (given.values >= low) & (given.values <= high)
        for value, n in zip(given.values[here].astype(np.int64), given.counts[here], strict=True):
            counts[:value] -= n
    return np.maximum(counts, 0.0)


def parts(further: F8, first: float, wide: bool) -> F8:
    """Return the part of a job's further stages that each level has."""
    part = further.copy()
    if len(part) > 1:
        part[-1] = part[:-1].mean() if wide else 0.0
    if not part.any():
        part[: max(1, len(part) - 1)] = 1.0
    part /= part.sum()
    if 0.0 < part[0] < 1.0:
        top = min(first * part[0], 0.95)
        part *= (1.0 - top) / (1.0 - part[0])
        part[0] = top
    return part


def run_ends(part: F8, run: float) -> F8:
    """Return the chances, added up, that a run of further stages ends on each level.

    So that levels keep their part of the further stages, a level's chance is its part less what
    comes down to it in runs that end on a later one.
    """
    ends = np.maximum(part - run * np.append(part[1:], 0.0), 0.0)
    cum: F8 = np.cumsum(ends / ends.sum())
    cum[np.flatnonzero(ends)[-1] :] = 1.0
    return cum
