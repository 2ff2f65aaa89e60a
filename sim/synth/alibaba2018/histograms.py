"""Counted values, plain and given one or two conditions: what everything is drawn from.

A histogram holds ascending values and how often each was counted. Counts, not fractions, so that a
draw is exact and a reader sees how much evidence there is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sim.base.arrays import F8, I8


@dataclass(frozen=True)
class Histogram:
    """How often each value was counted."""

    values: F8
    counts: I8

    @classmethod
    def of(cls, values: ArrayLike, counts: ArrayLike | None = None) -> Histogram:
        """Count `values` (each once, or `counts` times); those counted 0 times are left out."""
        found, inverse = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True)
        weights = np.ones(len(inverse)) if counts is None else np.asarray(counts, dtype=np.float64)
        total = np.bincount(inverse, weights=weights, minlength=len(found)).astype(np.int64)
        return cls(found[total > 0], total[total > 0])

    def draw(self, uniform: F8) -> F8:
        """Map uniforms in [0, 1) to values, in proportion to their counts."""
        cum = np.cumsum(self.counts)
        ticket = (uniform * cum[-1]).astype(np.int64)
        drawn: F8 = self.values[np.searchsorted(cum, ticket, side="right")]
        return drawn

    def up_to(self, limit: float) -> Histogram:
        """Return the part of the table with values of at most `limit`."""
        n = int(np.searchsorted(self.values, limit, side="right"))
        return Histogram(self.values[:n], self.counts[:n])


@dataclass(frozen=True)
class Conditional:
    """One histogram for each range of a condition."""

    # cell c holds for conditions from ``lower[c]`` up to the next cell's; the last for all that
    # follow, the first also for what lies below it
    lower: I8
    cells: tuple[Histogram, ...]  # of whole numbers

    def cell_of(self, condition: I8) -> I8:
        """Return the cell of each condition."""
        cell = np.searchsorted(self.lower, condition, side="right") - 1
        return np.maximum(cell, 0).astype(np.int64)

    def range_of(self, cell: int) -> tuple[float, float]:
        """Return the least and the greatest condition that a cell holds for."""
        low = -np.inf if cell == 0 else float(self.lower[cell])
        high = np.inf if cell == len(self.cells) - 1 else float(self.lower[cell + 1] - 1)
        return low, high

    def packed(self) -> tuple[I8, I8, I8]:
        """Return (cell0 [C+1], value, cum), as `kernels.algorithm2` reads tables."""
        cell0 = np.zeros(len(self.cells) + 1, dtype=np.int64)
        np.cumsum([len(cell.values) for cell in self.cells], out=cell0[1:])
        value = np.concatenate([cell.values for cell in self.cells]).astype(np.int64)
        cum = np.concatenate([np.cumsum(cell.counts) for cell in self.cells])
        return cell0, value, cum


@dataclass(frozen=True)
class Grid:
    """One histogram for each range of a condition, and of a second one inside."""

    # row r holds for first conditions from ``lower[r]`` up to the next row's; the last for all
    # that follow, the first also for what lies below it
    lower: I8
    rows: tuple[Conditional, ...]  # each row's histograms, given the second condition

    @classmethod
    def of(cls, table: Conditional | Histogram) -> Grid:
        """Make a grid of a table of one condition, or of none."""
        zero = np.zeros(1, dtype=np.int64)
        if isinstance(table, Histogram):
            return cls(zero, (Conditional(zero, (table,)),))
        return cls(table.lower, tuple(Conditional(zero, (cell,)) for cell in table.cells))

    def packed(self) -> I8:
        """Return the table as one array, as `kernels.chance.draw` reads it."""
        cells = [cell for row in self.rows for cell in row.cells]
        row_begin = np.cumsum([0, *(len(row.cells) for row in self.rows)])
        cell_begin = np.cumsum([0, *(len(cell.values) for cell in cells)])
        parts = (
            [len(self.rows), len(cells)],
            self.lower,
            row_begin,
            *(row.lower for row in self.rows),
            cell_begin,
            *(cell.values for cell in cells),
            *(np.cumsum(cell.counts) for cell in cells),
        )
        return np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])
