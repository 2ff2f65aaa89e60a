"""Results of the cells that a search has requested so far."""

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
        self._pending: list[PreparedGrid] = []  # batches not indexed by label yet
        self._latest: PreparedGrid | None = None
        self._cells: dict[str, Cell] = {}
        self._keys: dict[str, str] = {}
        self._metrics: dict[str, dict[str, float]] = {}

    def add(self, prepared: PreparedGrid) -> None:
        """Add a batch of finished or failed cells."""
        self._pending.append(prepared)
        self._latest = prepared

    def table(self) -> pa.Table:
        """Return the narrow table of the last batch; see `sweep.execution.cells_table`."""
        assert self._latest is not None
        return cells_table.narrow(dataclasses.replace(self._latest), self.errors)

    def cells(self) -> list[Cell]:
        """Return the distinct cells in the order of their requests."""
        self._index_new()
        return [*self._cells.values()]

    def key(self, cell: Cell) -> str:
        """Return a cell's key."""
        self._index_new()
        return self._keys[canonical(cell.labels)]

    def failed(self, cell: Cell) -> bool:
        """Tell whether a cell failed."""
        return self.key(cell) in self.errors

    def metric(self, cell: Cell, name: str) -> float:
        """Return a cell's metric: NaN if it failed, or has no such metric."""
        return self._metrics.get(self.key(cell), {}).get(name, math.nan)

    def check_metric(self, option: str, name: str, cells: Sequence[Cell]) -> None:
        """Reject a metric for which one of these cells has no value."""
        for cell in cells:
            if math.isnan(self.metric(cell, name)):
                available = [
                    n for n in self._metrics.get(self.key(cell), {}) if n.startswith("jct")
                ]
                raise InputError(
                    f"{option}={name} has no value for {cell_text(cell)}; "
                    f"metrics with a value: {', '.join(available) or 'none'}",
                    rule="metric",
                )

    def _index_new(self) -> None:
        for prepared in self._pending:
            for planned in prepared.planned:
                name = canonical(planned.cell.labels)
                self._cells.setdefault(name, planned.cell)
                self._keys[name] = planned.key
            self._metrics |= prepared.metrics
        self._pending.clear()


def cell_text(cell: Cell) -> str:
    """Describe a cell without its seed: policy, trace and capacity."""
    labels = cell.labels
    return f"{labels['policy']} on {labels['trace']} at capacity {text(labels['capacity'])}"
