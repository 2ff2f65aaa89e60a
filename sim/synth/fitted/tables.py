"""Probability tables from which a workload is synthesized."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.dataclass_json import Shape
from sim.base.errors import InputError
from sim.base.parameters import Below1, Between, Positive
from sim.synth.fitted.histograms import (
    WHOLE,
    Conditional,
    Grid,
    Histogram,
    NotNegatives,
    WholeBetween,
)
from sim.synth.fitted.joint import BySize, Joint

DEMAND = "demand "
"""Prefix of the metric of a resource."""
TREE, NARROW, WIDE = 1, 2, 3
"""Shapes: a gathering tree; another DAG with one stage on its last level; with several."""
FULL = 1000
"""Shares are counted in thousandths."""


CountsByParents = Annotated[I8, Shape((3, 2)), Between(0)]
Shares = Annotated[Grid, WholeBetween(0, FULL)]


@dataclass(frozen=True, kw_only=True)
class Links:
    """Tables of edges for the improved variant, beyond Algorithm 2.

    A stage is *idle* if it is not on the last level and has no child on the next; an edge is *far*
    if it spans more than one level. A *tree* is a gathering one: one sink, on the last level, and
    one child for every other stage. Counts by number of parents on the level before have the shape
    (3, 2): for no, one, and several parents, the number of cases and of stages.
    """

    # JSON-able: source of the numbers and conditions that were pooled
    provenance: Mapping[str, Any] = field(default_factory=dict)
    run_tree: Below1  # chance that a further stage on a level comes with one on the level before
    run_other: Below1
    # by shape, the first level's share of further stages, relative to that in the table of levels
    first: Annotated[F8, Shape((WIDE,)), Between(0)]
    # idle stages among those on levels of several: before the last level but one, in trees and in
    # other jobs; and on that level, in other jobs
    idle_tree: CountsByParents
    idle_other: CountsByParents
    idle_late: CountsByParents
    scatter: CountsByParents  # children on the next level beyond the first, of stages that have one
    far_busy: CountsByParents  # far edges of stages that also have a child on the next level
    # idle stages with a far edge, and all idle stages, before the last level but one; in jobs that
    # are no trees
    far_idle: Annotated[I8, Shape((2,)), Between(0)]
    span: Annotated[Histogram, WholeBetween(2)]  # levels that far edges span
    # share of the possible further edges between two levels, in thousandths, given their number
    surplus: Annotated[Conditional, WholeBetween(0, FULL)]
    # far edges of a job, beyond those of idle stages, given its stages
    far: Annotated[Conditional, WholeBetween(0)]
    # `TREE`, `NARROW` or `WIDE`, given a job's stages and its critical path length
    shape: Annotated[Grid, WholeBetween(TREE, WIDE)]
    # share of a level's stages that have parents on the level before, in thousandths of the range
    # from one stage to the maximum, given the number of these parents and the level's size: in
    # trees; and in other jobs below the first level, below a level without joins, and below one on
    # which a stage with children has several parents
    joined_tree: Shares
    joined_first: Shares
    joined_plain: Shares
    joined_again: Shares

    @property
    def weight(self) -> F8:
        """Rates by number of parents, (6, 3), in the order of `kernels.improved`."""
        far_idle = np.stack([self.far_idle] * 3)
        idle = (self.idle_tree, self.idle_other, self.idle_late)
        rows = (*idle, self.scatter, self.far_busy, far_idle)
        return np.array([[n / max(total, 1) for n, total in row] for row in rows], dtype=np.float64)

    def book(self) -> I8:
        """Return the tables of the edge step as one array, as `kernels.improved` reads them."""
        tables = [
            self.joined_tree.packed(), self.joined_first.packed(), self.joined_plain.packed(),
            self.joined_again.packed(),
            *(Grid.from_table(table).packed() for table in (self.surplus, self.far, self.span)),
        ]  # fmt: skip
        begin = len(tables) + np.cumsum([0, *map(len, tables[:-1])])
        return np.concatenate([begin, *tables])


@dataclass(frozen=True)
class Arrivals:
    """Arrivals of a workload's jobs, to be redrawn in blocks (`sim.synth.fitted.arrivals`)."""

    block_s: Annotated[float, Between(above=0)]  # length of a block
    clock_s: float  # period, such as a day, of which blocks keep their phase
    interval_s: NotNegatives  # from one arrival to the next

    def check(self) -> None:
        """Raise ValueError on a clock that is no multiple of the blocks, or is too long."""
        span_s = self.interval_s.sum()
        if not self.block_s <= self.clock_s <= span_s or self.clock_s % self.block_s:
            raise ValueError(
                f"must have as clock_s a multiple of block_s, at most the sum of interval_s "
                f"({span_s:g})"
            )


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Distributions of Algorithm 2 and of the attributes of stages."""

    # JSON-able: source of the numbers, and values that were dropped or pooled
    provenance: Mapping[str, Any] = field(default_factory=dict)
    quantum: Mapping[str, Positive]  # step of each resource's demands
    n_stages: Annotated[Histogram, WHOLE]  # per job
    n_tasks: Annotated[Histogram, WHOLE]  # per stage
    duration_s: Histogram  # of a task
    interval_s: Histogram  # between the submissions of two jobs
    # critical path length, in stages, given the number of stages
    length: Annotated[Conditional, WHOLE]
    # level of a stage, from 1, given the critical path length
    level: Annotated[Conditional, WHOLE]
    # of a task, by resource
    demand: Mapping[str, Histogram] = field(metadata={"prefix": DEMAND})
    links: Links | None = None  # shapes and edges of ``variant="improved"``
    # joint distribution of attributes for ``joint=True``: `by_size`, or this one for all sizes
    joint: Joint | None = None
    # the longest of a stage's tasks over their mean; None where all last the same
    longest: Histogram | None = None
    by_size: BySize | None = None
    arrivals: Arrivals | None = None

    @property
    def attributes(self) -> dict[str, Histogram]:
        """Tables of attributes of stages: ``duration_s``, ``n_tasks``, ``demand <resource>``.

        And ``longest``, if it is in the tables.
        """
        demand = {DEMAND + name: table for name, table in self.demand.items()}
        longest = {} if self.longest is None else {"longest": self.longest}
        return {"duration_s": self.duration_s, "n_tasks": self.n_tasks, **demand, **longest}

    @property
    def has_joint(self) -> bool:
        """True if the tables hold a joint distribution of attributes."""
        return self.joint is not None or self.by_size is not None

    def check(self) -> None:
        """Raise InputError if a draw could have no possible value, or metrics do not match."""
        if not self.demand:
            raise InputError("no table 'demand <resource>'; at least one is needed")
        metrics = tuple(self.attributes)
        required = metrics[: len(self.demand) + 2]  # without ``longest``
        if self.joint is not None and self.joint.metrics != required:
            raise InputError(f"joint must have the metrics {', '.join(required)}, in this order")
        if self.by_size is not None:
            if self.by_size.lower[0] < 1:
                raise InputError("by_size must begin with jobs of 1 stage or more")
            if any(tuple(part.tables) != metrics for part in self.by_size.parts):
                raise InputError(
                    f"by_size must have the metrics {', '.join(metrics)}, in this order"
                )
        sizes = self.n_stages.values.astype(np.int64)
        lengths = _drawable("length", self.length, sizes, "{} stages")
        _drawable("level", self.level, np.array(sorted(lengths), dtype=np.int64), "length {}")


def _drawable(name: str, table: Conditional, limits: I8, words: str) -> set[int]:
    """Return the values that can be drawn under some limits; raise InputError if there are none."""
    drawable: set[int] = set()
    for limit, part in zip(limits, table.part_of(limits), strict=True):
        possible = table.parts[part].up_to(limit).values
        if not len(possible):
            raise InputError(
                f"table {name!r} has no {name} of at most {limit} for jobs of "
                f"{words.format(limit)}",
                rule="nothing to draw",
            )
        drawable.update(possible.astype(int).tolist())
    return drawable
