"""One cell of a sweep that is over, planned by its labels: of a grid and of a search alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.base.errors import InputError
from sweep.execution import plan
from sweep.execution.plan import PlannedCell, PreparedGrid
from sweep.grid.grid import Grid
from sweep.grid.request import Request
from sweep.search.cell_factory import CellFactory
from sweep.stats.cell_columns import AXES, text


def plan_cell(asked: Request, labels: Mapping[str, Any]) -> tuple[PreparedGrid, PlannedCell]:
    """Plan the cell of some labels among those that a request gives.

    Raises InputError where the request does not have them any more.
    """
    axes = {key: (_value(asked, key, labels.get(key)),) for key in asked.axes}
    cells = CellFactory(asked).grid(axes)
    swept = tuple(key for key in asked.axes if key not in AXES)
    prepared = plan.prepare(Grid(asked, tuple(cells), swept))
    (planned,) = prepared.planned
    return prepared, planned


def _value(asked: Request, key: str, label: Any) -> Any:
    """Return the value of an axis that a label stands for; of a search it may be any."""
    values = asked.axes[key]
    same = [value for value in values if text(value) == text(label)]
    if same or label is None or asked.goal is not None or (key == "seed" and asked.precision):
        return same[0] if same else label
    raise InputError(
        f"{key}={text(label)} is not among {', '.join(map(text, values[:8]))}, which the sweep's "
        "configuration gives now; did an experiment's file change?"
    )
