"""Goal of a strategy, read from a command line: more than the axes of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class Goal:
    """Base of goals; its ``repr`` is part of the sweep's id."""

    sweep_name: ClassVar[str] = ""
    """Name of sweeps that have no other; empty: after the experiment."""
    chooses_cells: ClassVar[bool] = True
    """True if cells are other than those of the axes, or results decide which follow these."""
    needs_jobs: ClassVar[bool] = False
    """True if the strategy makes all its files from the jobs of cells."""

    def record(self) -> dict[str, Any]:
        """Return its entries of ``config.yaml``."""
        return {}
