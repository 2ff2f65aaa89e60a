"""Stages and edges of one DAG: levels, separated in places by a barrier over all stages.

Constants are assumptions where the paper is silent; they are set so that the depth and the share of
DAGs that split are as published (`policies.dagps.synth.production_dags.statistics`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8, Mask
from sim.base.random import Stream
from sim.published import numbers

_PAPER = numbers("dagps")
DEPTH_P50 = _PAPER["dags"]["depth_p50"]
DEPTH_SIGMA = 0.6
"""Spread of the number of levels, log-normal about the published median."""
MAX_LEVELS = 40
MORE_STAGES = 1.0
"""Stages of any other level beyond one, on average; geometric."""
SECOND_PARENT = 0.35
"""Chance that a stage reads a second stage of its segment."""
OUTPUT = 0.35
"""Chance that an unread stage stays an output of its segment."""
ONE_TO_ONE = 0.15
"""Chance that an edge within a segment is one-to-one, if its child has no other such parent."""


@dataclass(frozen=True, eq=False)
class Structure:
    """Stages of a DAG by level, and its edges, each (e,); parents have lower numbers."""

    level: I8
    parent: I8
    child: I8
    one_to_one: Mask

    def unordered(self) -> Mask:
        """Return the pairs of stages neither of which is an ancestor of the other, (g, g)."""
        below = np.zeros((len(self.level), len(self.level)), bool)
        for p, c in zip(self.parent[::-1].tolist(), self.child[::-1].tolist(), strict=True):
            below[p] |= below[c]
            below[p, c] = True
        return ~(below | below.T)


def draw_structure(rng: Stream, more_sources: float, cut: float) -> Structure:
    """Draw the stages and edges of one DAG.

    At a *cut* all stages of a level read every stage that is unread so far: everything after it
    waits for everything before it.

    Parameters
    ----------
    rng : Stream
        Random stream of the DAG.
    more_sources : float
        Stages of the first level beyond one, on average; geometric.
    cut : float
        Chance that all stages of a level wait for everything before it.
    """
    n_levels = int(
        np.clip(np.rint(DEPTH_P50 * maths.exp(DEPTH_SIGMA * rng.normal())), 1, MAX_LEVELS)
    )
    more = np.full(n_levels, MORE_STAGES)
    more[0] = more_sources
    width = rng.geometric(1 / (1 + more))
    first = np.concatenate([[0], np.cumsum(width)]).tolist()
    level = np.repeat(np.arange(n_levels), width)
    edges: dict[tuple[int, int], bool] = {}
    segment = 0  # its first stage
    for k in range(1, n_levels + 1):
        if k < n_levels and rng.random() >= cut:
            _add_level(edges, segment, first[k - 1 : k + 2], rng)
            continue
        outputs = _outputs(edges, segment, first, level[: first[k]].tolist(), rng)
        if k < n_levels:
            new = range(first[k], first[k + 1])
            edges.update(((p, s), False) for p in outputs for s in new)
        segment = first[k]
    pairs = sorted(edges)
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    one_to_one = np.array([edges[pair] for pair in pairs], bool)
    return Structure(level, ends[:, 0].copy(), ends[:, 1].copy(), one_to_one)


def _add_level(
    edges: dict[tuple[int, int], bool], segment: int, first: list[int], rng: Stream
) -> None:
    """Add edges of a new level: each stage reads the level before, and perhaps another stage."""
    before, begin, end = first
    for s in range(begin, end):
        parents = {int(rng.integers(before, begin))}
        if rng.random() < SECOND_PARENT:
            parents.add(int(rng.integers(segment, begin)))
        has_pair = False
        for p in sorted(parents):
            edges[p, s] = not has_pair and rng.random() < ONE_TO_ONE
            has_pair |= edges[p, s]


def _outputs(
    edges: dict[tuple[int, int], bool],
    segment: int,
    first: list[int],
    level: list[int],
    rng: Stream,
) -> list[int]:
    """Return the outputs of a segment; other unread stages get a later reader in the segment."""
    read = {p for p, _ in edges}
    outputs = []
    for s in range(segment, len(level)):
        if s not in read:
            after = first[level[s] + 1]
            if after < len(level) and rng.random() >= OUTPUT:
                edges[s, int(rng.integers(after, len(level)))] = False
            else:
                outputs.append(s)
    return outputs


def critical_stages(structure: Structure, duration: F8) -> Mask:
    """Find the stages of the longest path; parents have lower numbers, and edges are sorted."""
    n = len(duration)
    tail = duration.copy()
    after = np.full(n, -1)
    for p, c in zip(structure.parent[::-1].tolist(), structure.child[::-1].tolist(), strict=True):
        if duration[p] + tail[c] > tail[p]:
            tail[p] = duration[p] + tail[c]
            after[p] = c
    critical = np.zeros(n, bool)
    s = int(np.argmax(tail))
    while s >= 0:
        critical[s] = True
        s = int(after[s])
    return critical
