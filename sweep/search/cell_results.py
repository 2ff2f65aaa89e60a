"""Results of the cells that a question has asked for so far."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import pyarrow as pa

from sim.base.errors import InputError
from sweep.execution import cells_table
from sweep.execution.plan import PreparedGrid
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Cell
from sweep.stats.cell_columns import text
from sweep.store.cell import CellError


class CellResults:
    """Metrics and errors by cell, batch by batch."""

    def __init__(self) -> None:
        self.errors: dict[str, CellError] = {}  # by key
        self._new: list[PreparedGrid] = []  # whose cells nobody has asked for by their labels
        self._last: PreparedGrid | None = None
        self._cells: dict[str, Cell] = {}
        self._keys: dict[str, str] = {}
        self._metrics: dict[str, dict[str, float]] = {}

    def add(self, prepared: PreparedGrid) -> None:
        """Take in a batch whose cells were run, or have failed."""
        self._new.append(prepared)
        self._last = prepared

    def table(self) -> pa.Table:
        """Return the narrow table of the last batch; see `sweep.execution.cells_table`."""
        assert self._last is not None
        return cells_table.narrow(dataclasses.replace(self._last), self.errors)

    def cells(self) -> list[Cell]:
        """Return every cell, each once, in the order in which they were asked for."""
        self._take_in()
        return [*self._cells.values()]

    def key(self, cell: Cell) -> str:
        """Return a cell's key."""
        self._take_in()
        return self._keys[canonical(cell.labels)]

    def failed(self, cell: Cell) -> bool:
        """Tell whether a cell failed."""
        return self.key(cell) in self.errors

    def metric(self, cell: Cell, name: str) -> float:
        """Return a cell's metric: NaN where it failed, or has none of that name."""
        return self._metrics.get(self.key(cell), {}).get(name, math.nan)

    def check_metric(self, asked: str, name: str, cells: Sequence[Cell]) -> None:
        """Refuse a metric of which one of these cells has no value."""
        for cell in cells:
            if math.isnan(self.metric(cell, name)):
                known = [n for n in self._metrics.get(self.key(cell), {}) if n.startswith("jct")]
                raise InputError(
                    f"{asked}={name} has no value for {where(cell)}; "
                    f"{', '.join(known) or 'no metric'} has",
                    rule="metric",
                )

    def _take_in(self) -> None:
        for prepared in self._new:
            for planned in prepared.planned:
                name = canonical(planned.cell.labels)
                self._cells.setdefault(name, planned.cell)
                self._keys[name] = planned.key
            self._metrics |= prepared.metrics
        self._new.clear()


def where(cell: Cell) -> str:
    """Say which cells are meant: all seeds' of a policy on a trace at a capacity."""
    labels = cell.labels
    return f"{labels['policy']} on {labels['trace']} at capacity {text(labels['capacity'])}"
