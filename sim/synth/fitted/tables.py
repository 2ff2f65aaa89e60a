"""The probability tables that a workload is synthesized from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.dataclass_json import Shape
from sim.base.errors import InputError
from sim.base.parameters import Below1, Between, Positive
from sim.synth.fitted.histograms import WHOLE, Conditional, Grid, Histogram, NotNegatives, Of
from sim.synth.fitted.joint import BySize, Joint

DEMAND = "demand "
"""The metric of a resource begins with it."""
TREE, NARROW, WIDE = 1, 2, 3
"""Shapes: a gathering tree; another DAG with one stage on its last level; with several."""
FULL = 1000
"""Shares are counted in thousandths."""


CountsOf = Annotated[I8, Shape((3, 2)), Between(0)]
Shares = Annotated[Grid, Of(0, FULL)]


@dataclass(frozen=True, kw_only=True)
class Links:
    """What the improved variant knows of edges beyond Algorithm 2.

    A stage is *idle* if it is not on the last level and has no child on the next; an edge is *far*
    if it spans more than one level. A *tree* is a gathering one: one sink, on the last level, and
    one child for every other stage. Counts by number of parents (on the level before) are (3, 2):
    for none, one, and several, how many there were and of how many.
    """

    # JSON-able: where the numbers come from and what was pooled on the way
    provenance: Mapping[str, Any] = field(default_factory=dict)
    run_tree: Below1  # chance that a further stage on a level comes with one on the level before
    run_other: Below1
    # by shape, the part of further stages that is on the first level over the part that the table
    # of levels gives it
    first: Annotated[F8, Shape((WIDE,)), Between(0)]
    # idle stages, of those on levels of several; before the last level but one, and in jobs that
    # are no trees on that one
    idle_tree: CountsOf
    idle_other: CountsOf
    idle_late: CountsOf
    scatter: CountsOf  # children on the next level beyond the first, of stages that have one
    far_busy: (
        CountsOf  # far edges of stages that have a child on the next level too, of such stages
    )
    # idle stages with a far edge, of all idle ones before the last level but one; in jobs that
    # are no trees
    far_idle: Annotated[I8, Shape((2,)), Between(0)]
    span: Annotated[Histogram, Of(2)]  # levels that far edges span
    # share of the further edges that fit between two levels, in thousandths, given how many fit
    surplus: Annotated[Conditional, Of(0, FULL)]
    # far edges of a job, beyond those of idle stages, given its stages
    far: Annotated[Conditional, Of(0)]
    # `TREE`, `NARROW` or `WIDE`, given a job's stages and its critical path length
    shape: Annotated[Grid, Of(TREE, WIDE)]
    # share of a level's stages that have parents on the level before, in thousandths between one
    # stage and as many as there can be, given those parents' number and the level's size; in
    # trees; and in others below the first level, below one on which no stage with children has
    # several parents, and below one on which some has
    joined_tree: Shares
    joined_first: Shares
    joined_plain: Shares
    joined_again: Shares

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


@dataclass(frozen=True)
class Arrivals:
    """When the jobs of a workload came, to take blocks of."""

    block_s: Annotated[float, Between(above=0)]  # how long blocks are
    clock_s: float  # what is kept of when a block begins: its time of the day, or in the hour
    interval_s: NotNegatives  # from each to the next

    def check(self) -> None:
        """Refuse a clock that is no multiple of the blocks, or longer than all intervals."""
        most_s = self.interval_s.sum()
        if not self.block_s <= self.clock_s <= most_s or self.clock_s % self.block_s:
            raise ValueError(
                f"must have as clock_s a multiple of block_s, at most the sum of interval_s "
                f"({most_s:g})"
            )


@dataclass(frozen=True, kw_only=True)
class Tables:
    """All that Algorithm 2 and the attributes of its stages are drawn from."""

    # JSON-able: where the numbers come from and what was dropped or pooled on the way
    provenance: Mapping[str, Any] = field(default_factory=dict)
    quantum: Mapping[str, Positive]  # the step each resource's demands are counted in
    n_stages: Annotated[Histogram, WHOLE]  # stages a job
    n_tasks: Annotated[Histogram, WHOLE]  # tasks a stage
    duration_s: Histogram  # seconds a task lasts; seconds between one job's submission and the next
    interval_s: Histogram
    # critical path length, in stages, given the number of stages
    length: Annotated[Conditional, WHOLE]
    # level of a stage, from 1, given the critical path length
    level: Annotated[Conditional, WHOLE]
    # what a task takes of each resource
    demand: Mapping[str, Histogram] = field(metadata={"prefix": DEMAND})
    links: Links | None = None  # what ``variant="improved"`` draws shapes and edges from
    # what ``joint=True`` draws the attributes of stages with: by size, or the same for all
    joint: Joint | None = None
    # the longest of a stage's tasks over their mean; None where they last the same
    longest: Histogram | None = None
    by_size: BySize | None = None
    arrivals: Arrivals | None = None

    @property
    def attributes(self) -> dict[str, Histogram]:
        """The tables of what stages have: ``duration_s``, ``n_tasks``, ``demand <resource>``.

        And ``longest``, where it is told.
        """
        demand = {DEMAND + name: table for name, table in self.demand.items()}
        longest = {} if self.longest is None else {"longest": self.longest}
        return {"duration_s": self.duration_s, "n_tasks": self.n_tasks, **demand, **longest}

    @property
    def tell_joint(self) -> bool:
        """Tell whether they hold the joint distribution of attributes."""
        return self.joint is not None or self.by_size is not None

    def check(self) -> None:
        """Make sure that every draw has something to draw from."""
        if not self.demand:
            raise InputError("no table 'demand <resource>'; at least one is needed")
        metrics = tuple(self.attributes)
        own = metrics[: len(self.demand) + 2]  # without ``longest``
        if self.joint is not None and self.joint.metrics != own:
            raise InputError(f"joint must tell of {', '.join(own)}, in this order")
        if self.by_size is not None:
            if self.by_size.lower[0] < 1:
                raise InputError("by_size must begin with jobs of 1 stage or more")
            if any(tuple(of.tables) != metrics for of in self.by_size.parts):
                raise InputError(f"by_size must tell of {', '.join(metrics)}, in this order")
        sizes = self.n_stages.values.astype(np.int64)
        lengths = _drawable("length", self.length, sizes, "{} stages")
        _drawable("level", self.level, np.array(sorted(lengths), dtype=np.int64), "length {}")


def _drawable(name: str, table: Conditional, limits: I8, words: str) -> set[int]:
    """Return what can be drawn under some limits; under each there must be something."""
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
