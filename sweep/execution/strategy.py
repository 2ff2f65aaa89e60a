"""Strategies that choose the cells to run: a grid, adaptive seeds, a target, a parameter search.

A strategy is a generator: it yields batches of cells and is sent their results. Its next batch may
depend on these only, so that the same command requests the same cells again, all of them cached.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from sweep.execution.cell_results import CellResults
from sweep.execution.inputs import Inputs
from sweep.execution.notes import count
from sweep.grid.grid import Cell, Grid
from sweep.grid.request import Request
from sweep.stats.cell_columns import AXES

ONE_SEED = "no seed changes anything here, as the workload is fixed and no policy draws"


class Batch(NamedTuple):
    """Cells to run next."""

    grid: Grid
    purpose: str = ""  # for messages; empty for a grid
    for_files: tuple[str, ...] = ()  # if its cells are no rows: what they are run for


Batches = Generator[Batch, CellResults, Grid]
"""Yields batches, is sent the results so far, returns all cells in the order of the rows."""
Search = Generator[list[Cell], CellResults, None]
"""One of several searches that run side by side."""


class Strategy(Protocol):
    """Interface of a strategy."""

    @property
    def request(self) -> Request:
        """Request that the strategy serves."""
        ...

    @property
    def id_part(self) -> object:
        """Part of the sweep's id besides its first cells; None if there is no other."""
        ...

    def batches(self, inputs: Inputs) -> Batches:
        """Yield batches until the strategy is finished."""
        ...

    def tables(self) -> Mapping[str, pa.Table | Mapping[str, Any]]:
        """Return the results besides the cells, tables and JSON, by file name."""
        ...


@dataclass(frozen=True)
class WholeGrid:
    """A grid whose cells are all known."""

    grid: Grid
    id_part = None

    @property
    def request(self) -> Request:
        """Request of the grid."""
        return self.grid.request

    def batches(self, inputs: Inputs) -> Batches:
        """Yield all cells as one batch."""
        yield Batch(self.grid)
        return self.grid

    def tables(self) -> Mapping[str, pa.Table]:
        """Nothing was found besides the cells."""
        return {}


def _grid_of(request: Request, cells: Sequence[Cell], *, is_fixed: bool = False) -> Grid:
    """Wrap a search's cells as a grid."""
    swept = tuple(key for key in request.axes if key not in AXES)
    return Grid(request, tuple(cells), swept, is_fixed)


def side_by_side(
    request: Request,
    searches: Sequence[Search],
    words: str,
    sort_key: Callable[[Cell], Any],
    *,
    is_fixed: bool = False,
    for_files: tuple[str, ...] = (),
    standing: Callable[[], str] = str,
) -> Batches:
    """Run searches together: the next cells of all of them are a batch.

    The final rows are sorted by `sort_key`; `for_files` is as in `Batch`. `standing` says what the
    searches know before each batch, and is empty before the first.
    """
    results = None
    next_cells = [next(search, []) for search in searches]
    while any(next_cells):
        purpose = f"{words}, {count(sum(map(bool, next_cells)), 'searches')}"
        purpose += f"; {known}" if (known := standing()) else ""
        cells = [*chain.from_iterable(next_cells)]
        results = yield Batch(_grid_of(request, cells, is_fixed=is_fixed), purpose, for_files)
        next_cells = [
            _next(search, results) if cells else []
            for search, cells in zip(searches, next_cells, strict=True)
        ]
    final = sorted(results.cells() if results else (), key=sort_key)
    return _grid_of(request, final, is_fixed=is_fixed)


def _next(search: Search, results: CellResults) -> list[Cell]:
    try:
        return search.send(results)
    except StopIteration:
        return []
