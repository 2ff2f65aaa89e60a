"""Cells in this process, one after the other: what a debugger wants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sweep.run.cell import run_cell
from sweep.run.task import COMPILING, kernels_are_compiled

if TYPE_CHECKING:
    from sweep.run.cell import Simulate
    from sweep.run.runner import Work, Workloads
    from sweep.store.cell import CellResult


class InlineRunner:
    """Runs cells without Ray."""

    slots = 1

    def __init__(self, simulate: Simulate | None = None) -> None:
        self._simulate = simulate

    def run(self, work: Sequence[Work], workloads: Workloads) -> Iterator[CellResult | str]:
        """Yield each cell's outcome in the order of the work."""
        if self._simulate is None and not kernels_are_compiled():
            yield COMPILING
        for one in work:
            yield run_cell(workloads.workload(one.input), one.spec, self._simulate)

    def close(self) -> None:
        """Nothing was started."""
