"""The stages of a job: pipelined segments, joined at full shuffles.

A barrier stage begins a segment; the stages after it have as many vertices and wait one for one.
Of the paper's Fig. 3 the text says no more than how many stages and barriers there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.arrays import I8, Mask

CHAINED = 0.8
"""Chance that a stage follows the one before it, rather than an earlier one of its segment."""
SIZE_SIGMA, SOURCE_SIZE = 0.9, 4.0
"""Spread of the segments' widths, and how many times as wide those are that read the input."""
LEAST = 4
"""Vertices that a stage has at the least."""


@dataclass(frozen=True, eq=False)
class Structure:
    """A job of g stages and e edges; parents have lower numbers."""

    n_tasks: I8  # vertices of each stage
    parent: I8  # edges, by parent and child
    child: I8
    one_to_one: Mask  # whether tasks wait one for one rather than for all


def draw_structure(
    n_stages: int, n_barriers: int, n_vertices: int, rng: np.random.Generator
) -> Structure:
    """Draw a DAG of as many stages, barrier stages and vertices."""
    n_sources = 2 + (n_stages - n_barriers) // 12
    source = _places(n_sources, n_barriers, rng)
    length = _lengths(n_stages, source, rng)
    width = _widths(length, source, n_vertices, rng)
    edges: list[tuple[int, int, bool]] = []
    unread: list[int] = []  # stages whose output no stage reads as yet
    first = np.cumsum(length) - length
    for segment, (begin, n) in enumerate(zip(first.tolist(), length.tolist(), strict=True)):
        if not source[segment]:
            last = not (~source[segment + 1 :]).any()
            some = len(unread) if last else min(len(unread), int(rng.integers(1, 4)))
            edges += [(stage, begin, False) for stage in unread[len(unread) - some :]]
            del unread[len(unread) - some :]
        within = _chain(begin, n, rng)
        edges += within
        read = {parent for parent, _, _ in within}
        unread += [stage for stage in range(begin, begin + n) if stage not in read]
    edges.sort()
    parent, child, one_to_one = np.array(edges, np.int64).reshape(-1, 3).T
    return Structure(np.repeat(width, length), parent, child, one_to_one == 1)


def _places(n_sources: int, n_barriers: int, rng: np.random.Generator) -> Mask:
    """Say of each segment whether it reads the input; the first does, the last if all do."""
    middle = rng.permutation(np.arange(n_sources + n_barriers - 1 - (n_barriers > 0)))
    source = np.concatenate([[True], middle < n_sources - 1])
    return np.append(source, False) if n_barriers else source


def _lengths(n_stages: int, source: Mask, rng: np.random.Generator) -> I8:
    """Draw how many stages each segment has; the first source has one (see `_widths`)."""
    weight = np.where(source, 2.0, 1.0)
    weight[0] = 0.0
    extra = rng.multinomial(n_stages - len(source), weight / weight.sum())
    length: I8 = 1 + extra
    return length


def _widths(length: I8, source: Mask, n_vertices: int, rng: np.random.Generator) -> I8:
    """Draw how many vertices the stages of each segment have; the first makes up the sum."""
    weight = np.exp(SIZE_SIGMA * rng.normal(size=len(length))) * np.where(source, SOURCE_SIZE, 1.0)
    weight[0] = weight[source].max()
    share = n_vertices * weight / (weight @ length)
    while True:
        width = np.maximum(np.floor(share).astype(np.int64), LEAST)
        width[0] = n_vertices - int(width[1:] @ length[1:])
        if width[0] >= LEAST:
            return width
        share *= 0.9  # the narrow ones, widened, took all


def _chain(begin: int, n: int, rng: np.random.Generator) -> list[tuple[int, int, bool]]:
    parents = [
        stage - 1 if rng.random() < CHAINED else int(rng.integers(begin, stage))
        for stage in range(begin + 1, begin + n)
    ]
    return [(parent, begin + 1 + i, True) for i, parent in enumerate(parents)]
