"""Where cells run: in this process, or as Ray tasks.

A runner takes work and gives outcomes, in whatever order they come. It decides nothing about
what to keep: the driver stores, counts and stops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sweep.run.cell import run_cell
from sweep.run.task import COMPILING, kernels_are_compiled

if TYPE_CHECKING:
    from sim.workload.workload import Workload
    from sweep.run.cell import Simulate
    from sweep.store.cell import CellResult, CellSpec


@dataclass(frozen=True)
class Work:
    """A cell to run."""

    spec: CellSpec  # the cell
    input: str  # name of its workload


class Workloads(Protocol):
    """Where a runner gets workloads by name."""

    def workload(self, name: str) -> Workload:
        """Return one, loading it if need be."""
        ...

    def release(self, name: str) -> None:
        """Forget this process's copy of one."""
        ...


class Runner(Protocol):
    """Runs cells somewhere."""

    def run(self, work: Sequence[Work], workloads: Workloads) -> Iterator[CellResult | str]:
        """Yield the outcome of each cell once, as it comes.

        When none came for a while, a text: what is going on, empty if cells are simply running.
        May be called again once all have come; `close` it first if they have not.
        """
        ...

    def close(self) -> None:
        """Stop what was started, if anything was; `run` would start it again."""
        ...


class InlineRunner:
    """Runs cells in this process, one after the other: what a debugger wants."""

    def __init__(self, simulate: Simulate | None = None) -> None:
        self._simulate = simulate

    def run(self, work: Sequence[Work], workloads: Workloads) -> Iterator[CellResult | str]:
        """Yield each cell's outcome in the order of the work."""
        if self._simulate is None and not kernels_are_compiled():
            yield COMPILING
        for cell in work:
            yield run_cell(workloads.workload(cell.input), cell.spec, self._simulate)

    def close(self) -> None:
        """Nothing was started."""
