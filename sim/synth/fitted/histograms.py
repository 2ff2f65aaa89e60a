"""Histograms of values, also conditional on one or two whole numbers.

A histogram holds ascending values and their counts. Counts, not fractions, so that a draw is exact
and a reader sees how much evidence there is. Rare conditions are pooled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base.arrays import F8, I4, I8, offsets
from sim.base.dataclass_json import MAX_EXACT
from sim.base.parameters import Between

Numbers = NDArray[Any]
NotNegatives = Annotated[F8, Between(0)]


@dataclass(frozen=True)
class Histogram:
    """Ascending values and their counts."""

    values: NotNegatives
    counts: Annotated[I8, Between(1)]

    def check(self) -> None:
        """Raise ValueError on a histogram from which nothing can be drawn."""
        if len(self.values) != len(self.counts) or not len(self.values):
            raise ValueError("must have one count a value")
        if (np.diff(self.values) <= 0).any():
            raise ValueError("must have ascending values")
        if self.counts.sum(dtype=np.float64) >= MAX_EXACT:
            raise ValueError("must have counts that add up to less than 2^53")

    @classmethod
    def count(cls, values: ArrayLike, counts: ArrayLike | None = None) -> Histogram:
        """Count `values` (each once, or `counts` times); values with a count of 0 are omitted."""
        distinct, inverse = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True)
        weights = np.ones(len(inverse)) if counts is None else np.asarray(counts, dtype=np.float64)
        total = np.bincount(inverse, weights=weights, minlength=len(distinct)).astype(np.int64)
        return cls(distinct[total > 0], total[total > 0])

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
class Ranges:
    """One part for each range of a whole number: the condition, or the stages of a job."""

    # by the lower bound of its range, ascending; a range ends where the next begins, the last one
    # is open, and the first one also covers what lies below it
    by_first: Mapping[int, Any]

    @cached_property
    def lower(self) -> I8:
        """Lower bounds of the ranges."""
        return np.array(list(self.by_first), dtype=np.int64)

    @property
    def parts(self) -> tuple[Any, ...]:
        """Parts in the order of their ranges."""
        return tuple(self.by_first.values())

    def part_of(self, condition: I8) -> I8:
        """Return the number of the part of each condition."""
        part = np.searchsorted(self.lower, condition, side="right") - 1
        return np.maximum(part, 0).astype(np.int64)

    def check(self) -> None:
        """Raise ValueError on bounds that do not ascend."""
        if not self.by_first or (np.diff(self.lower) <= 0).any():
            raise ValueError("must hold a part for each of some ascending whole numbers")


@dataclass(frozen=True)
class Conditional(Ranges):
    """One histogram of whole numbers for each range of a condition."""

    by_first: Mapping[int, Histogram]

    def range_of(self, part: int) -> tuple[float, float]:
        """Return the smallest and the largest condition of a part."""
        low = -np.inf if part == 0 else float(self.lower[part])
        high = np.inf if part == len(self.lower) - 1 else float(self.lower[part + 1] - 1)
        return low, high

    def packed(self) -> tuple[I8, I8, I8]:
        """Return (cell0 [C+1], value, cum), as `kernels.tian_algorithm2` reads tables."""
        cell0 = offsets(np.array([len(cell.values) for cell in self.parts]))
        value = np.concatenate([cell.values for cell in self.parts]).astype(np.int64)
        cum = np.concatenate([np.cumsum(cell.counts) for cell in self.parts])
        return cell0, value, cum


@dataclass(frozen=True)
class Grid(Ranges):
    """One histogram for each range of a condition, and within it of a second condition."""

    by_first: Mapping[int, Conditional]

    @classmethod
    def from_table(cls, table: Conditional | Histogram) -> Grid:
        """Convert a table with one condition, or none, to a grid."""
        if isinstance(table, Histogram):
            return cls({0: Conditional({0: table})})
        return cls({low: Conditional({0: cell}) for low, cell in table.by_first.items()})

    def packed(self) -> I8:
        """Return the table as one array, as `kernels.chance.draw` reads it."""
        rows = self.parts
        cells = [cell for row in rows for cell in row.parts]
        row_begin = np.cumsum([0, *(len(row.parts) for row in rows)])
        cell_begin = np.cumsum([0, *(len(cell.values) for cell in cells)])
        parts = (
            [len(rows), len(cells)], self.lower, row_begin, *(row.lower for row in rows),
            cell_begin, *(cell.values for cell in cells),
            *(np.cumsum(cell.counts) for cell in cells),
        )  # fmt: skip
        return np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])


@dataclass(frozen=True)
class WholeBetween:
    """Constraint on a table: all its values are whole numbers from `low` to `high`."""

    low: int
    high: int = 2**31 - 1

    def holds(self, table: Histogram | Ranges) -> bool:
        """Check that all values are whole and in the range."""
        if isinstance(table, Ranges):
            return all(map(self.holds, table.parts))
        values = table.values
        return bool(((values >= self.low) & (values <= self.high) & (values % 1 == 0)).all())

    def __str__(self) -> str:
        """Return the text that follows ``must be`` in messages."""
        return f"a table of whole values from {self.low} to {self.high}"


WHOLE = WholeBetween(1)

MIN_CELL = 30
"""Minimum count of a cell of a conditional table; smaller ones are pooled with the next."""


def pooled_conditional(
    name: str,
    condition: Numbers,
    values: Numbers,
    pooled: list[str],
    unit: str = "seen",
    owner: I4 | None = None,
    default: int = 0,
) -> Conditional:
    """Count `values` given `condition`.

    A condition with a count below `MIN_CELL` is pooled with the next larger ones until there are
    enough, the last ones with the cell before.
    """
    if not len(condition):
        pooled.append(f"{name}: nothing {unit} to count, {default} taken")
        return Conditional({0: Histogram.count([default])})
    cells: dict[int, Histogram] = {}
    for low, high in condition_groups(condition):
        rows = (condition >= low) & (condition <= high)
        cells[low] = Histogram.count(values[rows if owner is None else rows[owner]])
        if high > low:
            pooled.append(f"{name}: one table for {low} to {high} ({rows.sum()} {unit})")
    return Conditional(cells)


def pooled_grid(
    name: str, row: Numbers, column: Numbers, values: Numbers, pooled: list[str], default: int = 0
) -> Grid:
    """Count `values` given `row` and `column`, (N,) int each; as `pooled_conditional` does."""
    if not len(row):
        return Grid.from_table(pooled_conditional(name, row, values, pooled, default=default))
    cells_by_row: dict[int, Conditional] = {}
    for low, high in condition_groups(row):
        rows = (row >= low) & (row <= high)
        label = f"{name} given {low}" + (f" to {high}" if high > low else "")
        cells_by_row[low] = pooled_conditional(label, column[rows], values[rows], pooled)
    return Grid(cells_by_row)


def condition_groups(condition: Numbers, min_count: int = MIN_CELL) -> list[tuple[int, int]]:
    """Return ranges of conditions, each with a count of at least `min_count` if possible."""
    sizes, counts = np.unique(condition, return_counts=True)
    starts: list[int] = []
    pooled = min_count
    for i, n in enumerate(counts):
        if pooled >= min_count:
            starts.append(i)
            pooled = 0
        pooled += int(n)
    if pooled < min_count and len(starts) > 1:
        starts.pop()
    ends = [*starts[1:], len(sizes)]
    return [(int(sizes[a]), int(sizes[b - 1])) for a, b in zip(starts, ends, strict=True)]
