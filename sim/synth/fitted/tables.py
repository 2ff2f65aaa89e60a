"""The probability tables that a workload is synthesized from.

A histogram holds ascending values and how often each was counted. Counts, not fractions, so that a
draw is exact and a reader sees how much evidence there is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base import maths
from sim.base.arrays import F8, I4, I8, offsets
from sim.base.errors import InputError

Numbers = NDArray[Any]


@dataclass(frozen=True)
class Histogram:
    """How often each value was counted."""

    values: F8
    counts: I8

    @classmethod
    def of(cls, values: ArrayLike, counts: ArrayLike | None = None) -> Histogram:
        """Count `values` (each once, or `counts` times); those counted 0 times are left out."""
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
        """Return (cell0 [C+1], value, cum), as `kernels.tian_algorithm2` reads tables."""
        cell0 = offsets(np.array([len(cell.values) for cell in self.cells]))
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
            [len(self.rows), len(cells)], self.lower, row_begin, *(row.lower for row in self.rows),
            cell_begin, *(cell.values for cell in cells),
            *(np.cumsum(cell.counts) for cell in cells),
        )  # fmt: skip
        return np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])


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
        """The counts by number of parents as rates, (6, 3), as `kernels.improved` has them."""
        far_idle = np.stack([self.far_idle] * 3)
        idle = (self.idle_tree, self.idle_other, self.idle_late)
        rows = (*idle, self.scatter, self.far_busy, far_idle)
        return np.array([[n / max(of, 1) for n, of in row] for row in rows], dtype=np.float64)

    def book(self) -> I8:
        """Return the tables of the edge step as one array, as `kernels.improved` reads them."""
        tables = [
            self.joined_tree.packed(), self.joined_first.packed(), self.joined_plain.packed(),
            self.joined_again.packed(), Grid.of(self.surplus).packed(), Grid.of(self.far).packed(),
            Grid.of(self.span).packed(),
        ]  # fmt: skip
        begin = len(tables) + np.cumsum([0, *map(len, tables[:-1])])
        return np.concatenate([begin, *tables])


ROLES = 3
"""Stages without parents, with one, with several: they differ in tasks and demands."""


@dataclass(frozen=True)
class Ranks:
    """How the ranks of one metric's values spread, in each role."""

    edges: F8  # ranks, from 0 to 1, at which bins of values begin and end
    counts: I8  # stages in each bin; R is 1 if roles are not told apart, else `ROLES`

    def rank(self, uniform: F8, role: I8) -> F8:
        """Map uniform numbers within each role to ranks among all stages."""
        out = np.empty(len(uniform))
        for r, counts in enumerate(self.counts):
            cum = np.concatenate([[0.0], np.cumsum(counts / counts.sum())])
            here = role == r if len(self.counts) > 1 else slice(None)
            out[here] = maths.interp(uniform[here], cum, self.edges)
        return out


@dataclass(frozen=True)
class Joint:
    """What attributes have to do with each other; M metrics."""

    ranks: dict[str, Ranks]  # by metric: ``duration_s``, ``n_tasks``, ``demand <resource>``
    # the latent numbers that all stages of a job share are ``job @ e``, with e independent
    # standard normal numbers; for the others see `sim.synth.fitted.kernels.chance.follow`
    job: F8
    root: F8
    pull: F8
    noise: F8
    taken_over: F8  # chance that a stage takes the value over from its first child
    # in half of the jobs the variance of what stages do not share is 1 + this times the average,
    # in the others 1 − this
    unequal: float
    # JSON-able: where the numbers come from
    provenance: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cells:
    """What the attributes of jobs of one stage have to do with each other: which ranks meet."""

    # by metric, as in `Joint`: ranks, from 0 to 1, at which bins of values begin and end
    edges: dict[str, F8]
    places: I8  # the bin of each metric, in each of the K cells in which jobs are, (K, M)
    counts: I8  # jobs in each, (K,)


@dataclass(frozen=True)
class OfSize:
    """What stages have in jobs of some numbers of stages."""

    tables: dict[str, Histogram]  # by metric, as `Tables.attributes`
    joint: Joint | Cells


@dataclass(frozen=True)
class BySize:
    """What stages have, given how many their job has."""

    # part p is of jobs of ``lower[p]`` stages up to the next part's; the last of all that follow,
    # the first also of what lies below it
    lower: I8
    parts: tuple[OfSize, ...]


@dataclass(frozen=True)
class Arrivals:
    """When the jobs of a workload came, to take blocks of."""

    interval_s: F8  # from each to the next
    block_s: float  # how long blocks are
    clock_s: float  # what is kept of when a block begins: its time of the day, or in the hour


@dataclass(frozen=True)
class Tables:
    """All that Algorithm 2 and the attributes of its stages are drawn from."""

    n_stages: Histogram  # stages a job
    length: Conditional  # critical path length, in stages, given the number of stages
    level: Conditional  # level of a stage, from 1, given the critical path length
    n_tasks: Histogram  # tasks a stage
    duration_s: Histogram  # seconds a task lasts; seconds between one job's submission and the next
    interval_s: Histogram
    demand: Mapping[str, Histogram]  # what a task takes of each resource
    quantum: Mapping[str, float]  # the step each resource's demands are counted in
    # JSON-able: where the numbers come from and what was dropped or pooled on the way
    provenance: Mapping[str, Any] = field(default_factory=dict)
    links: Links | None = None  # what ``variant="improved"`` draws shapes and edges from
    # what ``joint=True`` draws the attributes of stages with: by size, or the same for all
    by_size: BySize | None = None
    joint: Joint | None = None
    # the longest of a stage's tasks over their mean; None where they last the same
    longest: Histogram | None = None
    arrivals: Arrivals | None = None

    @property
    def attributes(self) -> dict[str, Histogram]:
        """The tables of what stages have: ``duration_s``, ``n_tasks``, ``demand <resource>``.

        And ``longest``, where it is told.
        """
        demand = {f"demand {name}": table for name, table in self.demand.items()}
        longest = {} if self.longest is None else {"longest": self.longest}
        return {"duration_s": self.duration_s, "n_tasks": self.n_tasks, **demand, **longest}


def check_tables(tables: Tables, path: str | os.PathLike[str] | None = None) -> None:
    """Make sure that every draw has something to draw from."""
    if not tables.demand:
        raise InputError("no table 'demand <resource>'; at least one is needed", file=path)
    sizes = tables.n_stages.values.astype(np.int64)
    lengths = _drawable("length", tables.length, sizes, "{} stages", path)
    _drawable("level", tables.level, np.array(sorted(lengths), dtype=np.int64), "length {}", path)


def _drawable(
    name: str, table: Conditional, limits: I8, words: str, path: str | os.PathLike[str] | None
) -> set[int]:
    """Return what can be drawn under some limits; under each there must be something."""
    drawable: set[int] = set()
    for limit, cell in zip(limits, table.cell_of(limits), strict=True):
        possible = table.cells[cell].up_to(limit).values
        if not len(possible):
            raise InputError(
                f"table {name!r} has no {name} of at most {limit} for jobs of "
                f"{words.format(limit)}",
                file=path,
                rule="nothing to draw",
            )
        drawable.update(possible.astype(int).tolist())
    return drawable


LEAST = 30
"""Cells of a conditional table that count fewer are pooled with the next."""


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
    groups = condition_groups(condition)
    for low, high in groups:
        here = (condition >= low) & (condition <= high)
        cells.append(Histogram.of(values[here if owner is None else here[owner]]))
        if high > low:
            pooled.append(f"{name}: one table for {low} to {high} ({here.sum()} {what})")
    return Conditional(np.array([low for low, _ in groups], dtype=np.int64), tuple(cells))


def pooled_grid(
    name: str, row: Numbers, column: Numbers, values: Numbers, pooled: list[str], default: int = 0
) -> Grid:
    """Count `values` given `row` and `column`, (N,) int each; as `pooled_conditional` does."""
    if not len(row):
        return Grid.of(pooled_conditional(name, row, values, pooled, default=default))
    groups = condition_groups(row)
    rows = []
    for low, high in groups:
        here = (row >= low) & (row <= high)
        label = f"{name} given {low}" + (f" to {high}" if high > low else "")
        rows.append(pooled_conditional(label, column[here], values[here], pooled))
    return Grid(np.array([low for low, _ in groups], dtype=np.int64), tuple(rows))


def condition_groups(condition: Numbers, least: int = LEAST) -> list[tuple[int, int]]:
    """Return ranges of conditions, each with `least` or more, if there are as many."""
    sizes, counts = np.unique(condition, return_counts=True)
    starts: list[int] = []
    gathered = least
    for i, n in enumerate(counts):
        if gathered >= least:
            starts.append(i)
            gathered = 0
        gathered += int(n)
    if gathered < least and len(starts) > 1:
        starts.pop()
    ends = [*starts[1:], len(sizes)]
    return [(int(sizes[a]), int(sizes[b - 1])) for a, b in zip(starts, ends, strict=True)]
