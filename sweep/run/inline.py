"""Cells in this process, one after the other: what a debugger wants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sweep.run.cell import run_cell
from sweep.run.on_ray import warming

if TYPE_CHECKING:
    from sweep.run.cell import CellResult, Simulate
    from sweep.run.runner import Work, Workloads


class InlineRunner:
    """Runs cells without Ray."""

    slots = 1

    def __init__(self, simulate: Simulate | None = None) -> None:
        self._simulate = simulate

    def run(self, work: Sequence[Work], workloads: Workloads) -> Iterator[CellResult | str]:
        """Yield each cell's outcome in the order of the work."""
        if self._simulate is None:
            few_jobs, specs = warming.sample(work, workloads)
            if few_jobs is not None and warming.missing((), few_jobs, specs):
                yield warming.COMPILING
        for one in work:
            yield run_cell(workloads.workload(one.input), one.spec, self._simulate)

    def close(self) -> None:
        """Nothing was started."""
