"""Cells of a request at whatever capacity, seeds and parameters a search comes to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from sweep.grid import grid
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Cell, Resolver
from sweep.grid.request import Request
from sweep.stats.cell_columns import text


class CellFactory:
    """Makes cells of a request, each configuration resolved once."""

    def __init__(self, request: Request) -> None:
        self._request, self._resolver = request, Resolver()

    def grid(self, axes: Mapping[str, Sequence[Any]], *, is_strict: bool = False) -> list[Cell]:
        """Return the cells of other axes.

        Unless it is strict a policy's parameter is not refused where another policy has it.
        """
        asked = dataclasses.replace(self._request, axes={k: tuple(v) for k, v in axes.items()})
        if not is_strict:
            asked = dataclasses.replace(asked, named=frozenset({"policy"}), baseline=None)
        return list(grid.build(asked, self._resolver).cells)

    def cells(self, like: Cell, seeds: Sequence[int], **labels: Any) -> list[Cell]:
        """Return the cells of a policy and world with other labels, a seed each."""
        known = like.labels | labels
        return self.grid({key: (known.get(key),) for key in self._request.axes} | {"seed": seeds})


def search_key(cell: Cell, *apart: str) -> str:
    """Tell a cell's policy and world from all others, whatever its seed and the labels `apart`."""
    return canonical({k: v for k, v in cell.labels.items() if k not in ("seed", *apart)})


def settings_text(labels: Mapping[str, Any], without: Sequence[str]) -> str:
    """Write what else is swept of a cell, such as ``policy.queues=3``."""
    others = {k: v for k, v in labels.items() if k not in without and v is not None}
    return ", ".join(f"{key}={text(value)}" for key, value in others.items())
