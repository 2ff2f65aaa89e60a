"""Factory of a request's cells at any capacity, seeds and parameters."""

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
    """Factory of cells that resolves each configuration once."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._resolver = Resolver(has_files=not request.is_recorded)
        self.is_fixed = False  # True: no seed changes any of the cells of the last grid

    def grid(self, axes: Mapping[str, Sequence[Any]], *, is_strict: bool = False) -> list[Cell]:
        """Return the cells of other axes.

        Unless `is_strict`, a parameter that only some of the policies have is not an error.
        """
        request = dataclasses.replace(self._request, axes={k: tuple(v) for k, v in axes.items()})
        if not is_strict:
            request = dataclasses.replace(request, named=frozenset({"policy"}), baseline=None)
        built = grid.build(request, self._resolver)
        self.is_fixed = built.is_fixed
        return list(built.cells)

    def cells(self, template: Cell, seeds: Sequence[int], **labels: Any) -> list[Cell]:
        """Return a copy of the template cell for each seed, with other labels."""
        all_labels = template.labels | labels
        return self.grid(
            {key: (all_labels.get(key),) for key in self._request.axes} | {"seed": seeds}
        )


def search_key(cell: Cell, *exclude: str) -> str:
    """Return the key of a cell's search: its labels without the seed and those in `exclude`."""
    return canonical({k: v for k, v in cell.labels.items() if k not in ("seed", *exclude)})


def settings_text(labels: Mapping[str, Any], exclude: Sequence[str]) -> str:
    """Write a cell's labels but those in `exclude`, such as ``policy.queues=3``."""
    settings = {k: v for k, v in labels.items() if k not in exclude and v is not None}
    return ", ".join(f"{key}={text(value)}" for key, value in settings.items())
