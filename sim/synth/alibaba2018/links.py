"""The tables that the improved variant draws level sizes and edges from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sim.base.arrays import F8, I8
from sim.synth.alibaba2018.histograms import Conditional, Grid, Histogram

TREE, NARROW, WIDE = 1, 2, 3
"""Shapes: a gathering tree; another DAG with one stage on its last level; with several."""

FULL = 1000
"""Shares are counted in thousandths."""


@dataclass(frozen=True)
class Links:
    """What the improved variant knows of edges beyond Algorithm 2.

    A stage is *idle* if it is not on the last level and has no child on the next; an edge is *far*
    if it spans more than one level. A *tree* is a gathering one: one sink, on the last level, and
    one child for every other stage. Counts by number of parents (on the level before) are (3, 2):
    for none, one, and several, how many there were and of how many.
    """

    shape: Grid  # `TREE`, `NARROW` or `WIDE`, given a job's stages and its critical path length
    run_tree: float  # chance that a further stage on a level comes with one on the level before
    run_other: float
    # by shape, the part of further stages that is on the first level over the part that the table
    # of levels gives it
    first: F8
    # share of a level's stages that have parents on the level before, in thousandths between one
    # stage and as many as there can be, given those parents' number and the level's size; in
    # trees; and in others below the first level, below one on which no stage with children has
    # several parents, and below one on which some has
    joined_tree: Grid
    joined_first: Grid
    joined_plain: Grid
    joined_again: Grid
    # share of the further edges that fit between two levels, in thousandths, given how many fit
    surplus: Conditional
    far: Conditional  # far edges of a job, beyond those of idle stages, given its stages
    span: Histogram  # levels that far edges span
    # idle stages, of those on levels of several; before the last level but one, and in jobs that
    # are no trees on that one
    idle_tree: I8
    idle_other: I8
    idle_late: I8
    scatter: I8  # children on the next level beyond the first, of stages that have one
    far_busy: I8  # far edges of stages that have a child on the next level too, of such stages
    # idle stages with a far edge, of all idle ones before the last level but one; in jobs that
    # are no trees
    far_idle: I8
    # JSON-able: where the numbers come from and what was pooled on the way
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def weight(self) -> F8:
        """The counts by number of parents as rates, (6, 3), as `kernels.linkparts` has them."""
        far_idle = np.stack([self.far_idle] * 3)
        idle = (self.idle_tree, self.idle_other, self.idle_late)
        rows = (*idle, self.scatter, self.far_busy, far_idle)
        return np.array([[n / max(of, 1) for n, of in row] for row in rows], dtype=np.float64)

    def book(self) -> I8:
        """Return the tables of the edge step as one array, as `kernels.link` reads them."""
        tables = [
            self.joined_tree.packed(),
            self.joined_first.packed(),
            self.joined_plain.packed(),
            self.joined_again.packed(),
            Grid.of(self.surplus).packed(),
            Grid.of(self.far).packed(),
            Grid.of(self.span).packed(),
        ]
        begin = len(tables) + np.cumsum([0, *map(len, tables[:-1])])
        return np.concatenate([begin, *tables])
