"""The one loop: a question's batches of cells run one after the other, each into the cache.

What is known before the first cell runs names the sweep: its first batch, and what is asked. One
journal holds all rounds; a run that was killed goes on with the round in which it was.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from sim.base.errors import InputError
from sim.base.masking import mask
from sweep.execution import compute, notes, origin, plan
from sweep.execution.cell_metrics import Flags
from sweep.execution.compute import Runner
from sweep.execution.inputs import Inputs
from sweep.execution.plan import PreparedGrid
from sweep.execution.sweep_id import sweep_name
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Grid
from sweep.search.cell_results import CellResults
from sweep.search.strategy import Batch, Strategy
from sweep.store import sync
from sweep.store.cache import Cache
from sweep.store.cell import CellError
from sweep.store.folder import SweepFolder
from sweep.store.index import Keys
from sweep.store.journal import Journal


@dataclass(frozen=True)
class CompletedSweep:
    """All cells that a question took, run or failed."""

    prepared: PreparedGrid
    cached: Flags  # of each row, whether it was computed before
    errors: dict[str, CellError]  # by key


class SweepLoop:
    """The batches of a question, of which the first is prepared.

    Without a runner cells are looked up alone, for who only wants to know which they were.
    """

    def __init__(
        self,
        question: Strategy,
        runner: Runner | None = None,
        before_cells: Callable[[], object] = lambda: None,
    ) -> None:
        self._results = question.request.settings.results
        self._runner, self._before_cells = runner, before_cells
        self._inputs = Inputs(self._results, convert=None if runner is None else runner.convert)
        self._cache = Cache(self._results)
        self._batches = question.batches(self._inputs)
        self._batch = next(self._batches)
        self.sweep = ""
        self.first = self._prepare(self._batch.grid)
        self.sweep = _id(question, self.first)
        self.first.sweep = self.sweep
        self.folder = SweepFolder.for_sweep(self._results, self.sweep)
        self.journal = Journal(self._results, self.sweep)
        self.n_run = 0  # cells run by this process
        self._limit = question.request.settings.max_failures
        self._seen: list[tuple[Keys, Flags]] = []  # a round each: keys, and whether computed before
        self._must_close = False  # cells of a round that failed may be left on their way

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the sweep for this process; what another one did meanwhile is looked for."""
        waited = False

        def on_wait() -> None:
            nonlocal waited
            waited = True
            notes.note(f"another process runs {self.sweep} in {self._results}; waiting for it")

        with self.journal.locked(on_wait):
            if waited:
                sync.fetch(self._results)
                self.first = self._prepare(self._batch.grid)
            yield

    def settle(self) -> CompletedSweep:
        """Run batch after batch until the question is answered; the sweep is held."""
        answers = CellResults()
        begun = self._begun()
        batch, prepared = self._batch, self.first
        while True:
            number = len(self._seen) + 1
            cached = prepared.is_cached()
            if number in begun:  # what a killed run has computed since counts as done
                cached &= np.isin(np.arange(len(cached)), begun[number])
            self._seen.append((prepared.keys, cached))
            self._run(batch, prepared, cached, answers)
            answers.add(prepared)
            try:
                batch = self._batches.send(answers)
            except StopIteration as over:
                whole: Grid = over.value
                break
            prepared = self._prepare(batch.grid)
        if whole.cells is batch.grid.cells:
            prepared.grid = whole
        else:
            prepared = self._prepare(whole)
        return CompletedSweep(prepared, self._cached(prepared), answers.errors)

    def begin(self, prepared: PreparedGrid, cached: Flags, n_todo: int = 0) -> None:
        """Note in the journal that a round begins."""
        self.journal.append(
            "begin",
            round=len(self._seen),
            cells=len(prepared.keys),
            todo=n_todo,
            cached=np.flatnonzero(cached).tolist(),
            argv=[mask(word) for word in sys.argv[1:]],
            **origin.request_words(prepared.grid.request),
        )

    def _prepare(self, grid: Grid) -> PreparedGrid:
        return plan.prepare(grid, self._inputs, self._cache, self.sweep)

    def _run(
        self, batch: Batch, prepared: PreparedGrid, cached: Flags, answers: CellResults
    ) -> None:
        rows = prepared.missing_rows(answers.errors)
        if not len(rows):
            return
        if self._runner is None:
            n = notes.count(len(rows), "cells")
            raise InputError(f"not there: {n}")
        if self._limit is not None and len(answers.errors) >= self._limit:
            keys = (cell.key for cell in prepared.by_workload(rows))
            answers.errors |= compute.skipped(keys, self._limit)
            return
        if self._must_close:
            self._runner.close()
        compute.read_traces(prepared)
        if batch.purpose:
            n = notes.count(len(rows), "cells")
            notes.note(f"{self.sweep}, round {len(self._seen)}: {batch.purpose}: {n} to run")
        else:
            notes.grid(prepared, len(rows))
        if batch.purpose and not self.n_run:
            notes.traces(prepared)
        self.begin(prepared, cached, len(rows))
        self._before_cells()
        if self.journal.has_company():  # who goes another way through like cells meets few of them
            chance = np.random.default_rng(list(self.sweep.encode()))
            rows = chance.permutation(rows)
        cells = prepared.by_workload(rows)
        errors = compute.run(prepared, cells, len(rows), self.journal, self._runner)
        self.n_run += len(rows)
        self._must_close = bool(errors)
        answers.errors |= errors

    def _cached(self, prepared: PreparedGrid) -> Flags:
        """Tell of each row whether it was computed before the round in which it came first."""
        if len(self._seen) == 1 and self._seen[0][0] is prepared.keys:
            return self._seen[0][1]
        before: dict[bytes, bool] = {}
        for keys, cached in self._seen:
            for key, was_cached in zip(keys.tolist(), cached.tolist(), strict=True):
                before.setdefault(key, was_cached)
        return np.array([before[key] for key in prepared.keys.tolist()], bool)

    def _begun(self) -> dict[int, list[int]]:
        """Return the rows cached as each round of the attempt began that a kill left open.

        Of several attempts in a row, killed again and again, those of the first.
        """
        begun: dict[int, list[int]] = {}
        for event in self.journal.milestones():
            if event["event"] == "begin":
                begun.setdefault(event.get("round", 1), event["cached"])
            elif event["event"] == "end":
                begun = {}
        return begun


def _id(question: Strategy, first: PreparedGrid) -> str:
    """Name a sweep by its first cells, and by what else is asked than these."""
    if question.id_part is None:
        return first.sweep
    seeds = list(question.request.axes["seed"])
    content = canonical([first.sweep, repr(question.id_part), seeds])
    return f"{sweep_name(question.request)}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"
