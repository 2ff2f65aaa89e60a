"""Questions: a grid, seeds until intervals are narrow, a target, a search over parameters.

A question yields batches of cells and is sent their results; what it id_part next may follow from
these alone, so that the same command asks the same cells again, all of them cached.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from sweep.execution.inputs import Inputs
from sweep.execution.notes import count
from sweep.grid.grid import Cell, Grid
from sweep.grid.request import Request
from sweep.search.cell_results import CellResults
from sweep.stats.cell_columns import AXES


class Batch(NamedTuple):
    """Cells to run next."""

    grid: Grid
    what: str = ""  # what they are for; empty for the grid that was asked for


Batches = Generator[Batch, CellResults, Grid]
"""Yields batches, is sent the results so far, returns all cells in the order of the rows."""
Search = Generator[list[Cell], CellResults, None]
"""One of several searches that run side by side."""


class Strategy(Protocol):
    """Something that cells answer."""

    @property
    def request(self) -> Request:
        """Request that the question comes from."""
        ...

    @property
    def id_part(self) -> object:
        """Part of the sweep's id besides its first cells; None for these alone."""
        ...

    def batches(self, inputs: Inputs) -> Batches:
        """Ask, until there is an answer."""
        ...

    def tables(self) -> Mapping[str, pa.Table]:
        """Return what was found besides the cells, by the name of its file."""
        ...


@dataclass(frozen=True)
class WholeGrid:
    """A grid whose cells are all known."""

    grid: Grid
    id_part = None

    @property
    def request(self) -> Request:
        """Request that the question comes from."""
        return self.grid.request

    def batches(self, inputs: Inputs) -> Batches:
        """Ask for all cells at once."""
        yield Batch(self.grid)
        return self.grid

    def tables(self) -> Mapping[str, pa.Table]:
        """Nothing was found besides the cells."""
        return {}


def _grid_of(request: Request, cells: Sequence[Cell]) -> Grid:
    """Make a grid of cells that a search came to."""
    return Grid(request, tuple(cells), tuple(key for key in request.axes if key not in AXES))


def side_by_side(
    request: Request, searches: Sequence[Search], words: str, order: Callable[[Cell], Any]
) -> Batches:
    """Run searches together: what all of them want next is a batch.

    The rows of all cells stand in the `order` of a key.
    """
    answers = None
    wanted = [next(search, []) for search in searches]
    while any(wanted):
        what = f"{words}, {count(sum(map(bool, wanted)), 'searches')}"
        answers = yield Batch(_grid_of(request, [*chain.from_iterable(wanted)]), what)
        wanted = [
            _next(search, answers) if cells else []
            for search, cells in zip(searches, wanted, strict=True)
        ]
    return _grid_of(request, sorted(answers.cells() if answers else (), key=order))


def _next(search: Search, answers: CellResults) -> list[Cell]:
    try:
        return search.send(answers)
    except StopIteration:
        return []
