"""Cells of a request at whatever capacity, seeds and parameters a search comes to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from sweep.grid import grid
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Cell, Resolver
from sweep.grid.request import Request


class Points:
    """Makes the cells of a request's policies and worlds, each configuration resolved once."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._resolver = Resolver()
        self._made: dict[str, dict[str, list[Cell]]] = {}

    def prototypes(self) -> list[Cell]:
        """Return a cell of each policy and world, of whatever capacity and seed."""
        axes = self._request.axes
        found = self._grid({"capacity": axes["capacity"][-1:], "seed": axes["seed"][:1]})
        return [cells[0] for cells in found.values()]

    def cells(self, like: Cell, capacity: float, seeds: Sequence[int]) -> list[Cell]:
        """Return the cells of a policy and world at a capacity, a seed each."""
        return self._grid({"capacity": (capacity,), "seed": tuple(seeds)})[place(like)]

    def _grid(self, axes: Mapping[str, tuple[Any, ...]]) -> dict[str, list[Cell]]:
        """Return the cells of a grid by what they are besides capacity and seed."""
        name = canonical(axes)
        if name not in self._made:
            asked = dataclasses.replace(self._request, axes={**self._request.axes, **axes})
            found: dict[str, list[Cell]] = {}
            for cell in grid.build(asked, self._resolver).cells:
                found.setdefault(place(cell), []).append(cell)
            self._made[name] = found
        return self._made[name]


def place(cell: Cell) -> str:
    """Tell a cell's policy and world, with what is swept of them, from all others."""
    return canonical({k: v for k, v in cell.labels.items() if k not in ("capacity", "seed")})
