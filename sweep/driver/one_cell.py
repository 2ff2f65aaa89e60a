"""Plan of one cell of a finished sweep, from its labels: for a grid and a search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.base.errors import InputError
from sweep.execution import plan
from sweep.execution.plan import PlannedCell, PreparedGrid
from sweep.grid.cell_factory import CellFactory
from sweep.grid.grid import Grid
from sweep.grid.request import Request
from sweep.stats.cell_columns import AXES, text


def plan_cell(request: Request, labels: Mapping[str, Any]) -> tuple[PreparedGrid, PlannedCell]:
    """Plan the cell of some labels among those that a request gives.

    Raises InputError where the request does not include them any more.
    """
    axes = {key: (_value(request, key, labels.get(key)),) for key in request.axes}
    cells = CellFactory(request).grid(axes)
    swept = tuple(key for key in request.axes if key not in AXES)
    prepared = plan.prepare(Grid(request, tuple(cells), swept))
    (planned,) = prepared.planned
    return prepared, planned


def _value(request: Request, key: str, label: Any) -> Any:
    """Return the value of an axis with this label; in a search it may be any value."""
    values = request.axes[key]
    matches = [value for value in values if text(value) == text(label)]
    if matches or label is None or request.chooses_cells or (key == "seed" and request.precision):
        return matches[0] if matches else label
    raise InputError(
        f"{key}={text(label)} is not among {', '.join(map(text, values[:8]))}, the values of the "
        "sweep's configuration now; did an experiment's file change?"
    )
