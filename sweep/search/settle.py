"""From a request with a goal to all the cells it took, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa

from sweep.execution.compute import Runner
from sweep.execution.notes import count
from sweep.execution.plan import Prepared
from sweep.grid.goals import Target
from sweep.grid.request import Request
from sweep.search import settings
from sweep.search.parameters import Searches
from sweep.search.rounds import Rounds
from sweep.search.targets import Targets
from sweep.store.cell import CellError


@dataclass(frozen=True)
class Settled:
    """A search that is over."""

    prepared: Prepared  # all its cells, as one sweep
    cached: list[bool]  # of each, whether it was there before
    errors: dict[str, CellError]
    n_run: int  # cells run by this process
    tables: Mapping[str, pa.Table]  # what was found, by the name of its file


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
        self._of = Targets(self._rounds) if is_target else Searches(self._rounds)
        self._next = [next(search, []) for search in self._of.searches]
        self.first = list(chain.from_iterable(self._next))  # its first cells

    def held(self) -> AbstractContextManager[object]:
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
        """Run rounds until all is found, what all searches want next in each; the sweep is held."""
        rounds, searches = self._rounds, self._of.searches
        while any(self._next):
            n_going = sum(map(bool, self._next))
            what = f"{self._of.words}, {count(n_going, 'searches')}"
            rounds.run(list(chain.from_iterable(self._next)), what)
            self._next = [
                next(search, []) if wanted else []
                for search, wanted in zip(searches, self._next, strict=True)
            ]
        prepared, cached = rounds.whole(self._of.order)
        return Settled(prepared, cached, rounds.errors, rounds.n_run, self._tables())

    def _tables(self) -> Mapping[str, pa.Table]:
        return self._of.tables() if isinstance(self._of, Targets) else settings.tables(self._of)
