"""From a request with a goal to all the cells it took, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from sweep.execution.compute import Runner
from sweep.execution.plan import Prepared
from sweep.grid.goals import Target
from sweep.grid.grid import Cell
from sweep.grid.request import Request
from sweep.search import settings
from sweep.search.parameters import Searches
from sweep.search.rounds import Rounds
from sweep.search.targets import Targets
from sweep.store.cell import CellError
from sweep.store.folder import IMPORTANCE, SETTINGS, TARGETS


class Kind(Protocol):
    """A kind of search."""

    def first(self) -> list[Cell]:
        """Return the cells of its first round."""
        ...

    def settle(self) -> None:
        """Run rounds until all is found."""
        ...

    def order(self, cell: Cell) -> Any:
        """Give a cell's place among the rows."""
        ...


@dataclass(frozen=True)
class Settled:
    """A search that is over."""

    prepared: Prepared  # all its cells, as one sweep
    cached: list[bool]  # of each, whether it was there before
    errors: dict[str, CellError]
    n_run: int  # cells run by this process
    tables: dict[str, pa.Table]  # what was found, by the name of its file


class Pursuit:
    """The search that a request with a goal stands for; see `Rounds` for the arguments."""

    def __init__(
        self,
        request: Request,
        runner: Runner | None = None,
        before_cells: Callable[[], object] = lambda: None,
    ) -> None:
        self._rounds = Rounds(request, runner, before_cells)
        is_target = isinstance(request.goal, Target)
        self._of: Kind = Targets(self._rounds) if is_target else Searches(self._rounds)
        self.first = self._of.first()  # its first cells

    def held(self) -> AbstractContextManager[None]:
        """Hold the sweep for this process."""
        return self._rounds.begin(self.first)

    @property
    def where(self) -> tuple[Path, str]:
        """The folder of all results, and the sweep's id, once it is held."""
        return self._rounds.request.settings.results, self._rounds.sweep

    def begin(self) -> Prepared:
        """Prepare its first cells."""
        with self.held():
            return self._rounds.prepare(self.first)

    def settle(self) -> Settled:
        """Run rounds until all is found; the sweep is held."""
        self._of.settle()
        prepared, cached = self._rounds.whole(self._of.order)
        tables = self._tables()
        return Settled(prepared, cached, self._rounds.errors, self._rounds.n_run, tables)

    def _tables(self) -> dict[str, pa.Table]:
        if isinstance(self._of, Targets):
            return {TARGETS: self._of.table()}
        assert isinstance(self._of, Searches)
        return {
            SETTINGS: settings.table(self._of, self._of.scores),
            IMPORTANCE: settings.importance(self._of),
        }
