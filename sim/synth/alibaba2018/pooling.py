"""Conditional tables from what was seen, with cells of too few pooled, and said to be."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I4
from sim.synth.alibaba2018.histograms import Conditional, Grid, Histogram

LEAST = 30
"""Cells of a conditional table that count fewer are pooled with the next."""

Numbers = NDArray[Any]


def pooled_conditional(
    name: str,
    condition: Numbers,
    values: Numbers,
    pooled: list[str],
    what: str = "seen",
    owner: I4 | None = None,
    default: int = 0,
) -> Conditional:
    """Count `values` given `condition`.

    Conditions that fewer than `LEAST` have are pooled with the next larger ones until there are
    enough, the last ones with the cell before.
    """
    if not len(condition):
        pooled.append(f"{name}: nothing {what} to count, {default} taken")
        return Conditional(np.zeros(1, dtype=np.int64), (Histogram.of([default]),))
    cells = []
    groups = _groups(condition)
    for low, high in groups:
        here = (condition >= low) & (condition <= high)
        cells.append(Histogram.of(values[here if owner is None else here[owner]]))
        if high > low:
            pooled.append(f"{name}: one table for {low} to {high} ({here.sum()} {what})")
    return Conditional(np.array([low for low, _ in groups], dtype=np.int64), tuple(cells))


def pooled_grid(
    name: str,
    row: Numbers,
    column: Numbers,
    values: Numbers,
    pooled: list[str],
    default: int = 0,
) -> Grid:
    """Count `values` given `row` and `column`, (N,) int each; as `pooled_conditional` does."""
    if not len(row):
        return Grid.of(pooled_conditional(name, row, values, pooled, default=default))
    groups = _groups(row)
    rows = []
    for low, high in groups:
        here = (row >= low) & (row <= high)
        label = f"{name} given {low}" + (f" to {high}" if high > low else "")
        rows.append(pooled_conditional(label, column[here], values[here], pooled))
    return Grid(np.array([low for low, _ in groups], dtype=np.int64), tuple(rows))


def _groups(condition: Numbers) -> list[tuple[int, int]]:
    """Return ranges of conditions, each with `LEAST` or more, if there are as many."""
    sizes, counts = np.unique(condition, return_counts=True)
    starts: list[int] = []
    gathered = LEAST
    for i, n in enumerate(counts):
        if gathered >= LEAST:
            starts.append(i)
            gathered = 0
        gathered += int(n)
    if gathered < LEAST and len(starts) > 1:
        starts.pop()
    ends = [*starts[1:], len(sizes)]
    return [(int(sizes[a]), int(sizes[b - 1])) for a, b in zip(starts, ends, strict=True)]
