"""The stages and edges of one DAG: levels, cut here and there by a barrier for everything.

What is not published is assumed, in constants, so that depth and the DAGs that split come out as
published (`sim.synth.production_dags.statistics`).
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
MOST_LEVELS = 40
MORE_SOURCES = 1.5
"""Stages of the first level beyond one, on average; geometric."""
MORE_STAGES = 1.0
"""Stages of any other level beyond one, on average; geometric."""
CUT = 0.065
"""How often all stages of a level wait for everything before it."""
SECOND_PARENT = 0.35
"""How often a stage reads another stage of its segment too."""
OUTPUT = 0.35
"""How often what no stage reads so far stays an output of its segment."""
ONE_TO_ONE = 0.15
"""How often an edge within a segment is one-to-one, where its child has no other such parent."""


@dataclass(frozen=True, eq=False)
class Structure:
    """Stages of a DAG by level, and its edges, each (e,); parents have lower numbers."""

    level: I8
    parent: I8
    child: I8
    one_to_one: Mask

    def unordered(self) -> Mask:
        """Tell which pairs of stages are no ancestors of each other, (g, g)."""
        below = np.zeros((len(self.level), len(self.level)), bool)
        for p, c in zip(self.parent[::-1].tolist(), self.child[::-1].tolist(), strict=True):
            below[p] |= below[c]
            below[p, c] = True
        return ~(below | below.T)


def draw_structure(rng: Stream) -> Structure:
    """Draw the stages and edges of one DAG.

    At a *cut* all stages of a level read every stage that none has read: everything after it waits
    for everything before it.
    """
    n_levels = int(
        np.clip(np.rint(DEPTH_P50 * maths.exp(DEPTH_SIGMA * rng.normal())), 1, MOST_LEVELS)
    )
    more = np.full(n_levels, MORE_STAGES)
    more[0] = MORE_SOURCES
    width = rng.geometric(1 / (1 + more))
    first = np.concatenate([[0], np.cumsum(width)]).tolist()
    level = np.repeat(np.arange(n_levels), width)
    edges: dict[tuple[int, int], bool] = {}
    segment = 0  # its first stage
    for k in range(1, n_levels + 1):
        if k < n_levels and rng.random() >= CUT:
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
    """Let each stage of the last of two levels read the one before, and perhaps another stage."""
    before, begin, end = first
    for s in range(begin, end):
        parents = {int(rng.integers(before, begin))}
        if rng.random() < SECOND_PARENT:
            parents.add(int(rng.integers(segment, begin)))
        paired = False
        for p in sorted(parents):
            edges[p, s] = not paired and rng.random() < ONE_TO_ONE
            paired |= edges[p, s]


def _outputs(
    edges: dict[tuple[int, int], bool],
    segment: int,
    first: list[int],
    level: list[int],
    rng: Stream,
) -> list[int]:
    """Find what stays unread at the end of a segment; let later stages read some of the rest."""
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
