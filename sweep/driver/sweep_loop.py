"""Sweep loop: runs a strategy's batches of cells one after the other, each into the cache.

The sweep's id follows from its first batch and the request, before the first cell runs. One journal
holds all rounds; a run that was killed resumes in its last round.
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
from sweep.execution import compute, notes, origin, plan, unread_logs
from sweep.execution.cell_metrics import Flags
from sweep.execution.cell_results import CellResults
from sweep.execution.compute import Runner
from sweep.execution.inputs import Inputs
from sweep.execution.plan import PreparedGrid
from sweep.execution.strategy import Batch, Strategy
from sweep.execution.sweep_id import sweep_name
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Grid
from sweep.store import garbage, sync
from sweep.store.cache import Cache
from sweep.store.cell import CellError
from sweep.store.folder import SweepFolder
from sweep.store.index import Keys
from sweep.store.journal import Journal


@dataclass(frozen=True)
class CompletedSweep:
    """All cells of a strategy, run or failed."""

    prepared: PreparedGrid
    cached: Flags  # flag of each row: computed before this sweep
    errors: dict[str, CellError]  # by key


class SweepLoop:
    """Loop over the batches of a strategy, of which the first is prepared at once.

    Without a runner, cells are looked up in the cache and never run.
    """

    def __init__(
        self,
        strategy: Strategy,
        runner: Runner | None = None,
        before_cells: Callable[[], object] = lambda: None,
    ) -> None:
        self._results = strategy.request.settings.results
        self._runner, self._before_cells = runner, before_cells
        self._inputs = Inputs(self._results, convert=None if runner is None else runner.convert)
        self._cache = Cache(self._results)
        self._batches = strategy.batches(self._inputs)
        self._batch = next(self._batches)
        self._n_collections = garbage.collections(self._results)
        self.sweep = ""
        self.first = self._prepare(self._batch.grid)
        self.sweep = _sweep_id(strategy, self.first)
        self.first.sweep = self.sweep
        self.folder = SweepFolder.for_sweep(self._results, self.sweep)
        self.journal = Journal(self._results, self.sweep)
        self.n_run = 0  # cells run by this process
        self._limit = strategy.request.settings.max_failures
        self._seen: list[tuple[Keys, Flags]] = []  # by round: keys, flags of cells known before
        self._must_close = False  # after failures, tasks of the round may still run

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the sweep's lease.

        Refresh the first batch if another process held it, or if cells were deleted meanwhile.
        """
        waited = False

        def on_wait() -> None:
            nonlocal waited
            waited = True
            notes.note(f"another process runs {self.sweep} in {self._results}; waiting")

        with self.journal.locked(on_wait):
            garbage.wait_for_collection(
                self._results, lambda: notes.note("`gc` deletes cells that no sweep needs; waiting")
            )
            if waited or garbage.collections(self._results) != self._n_collections:
                sync.fetch(self._results)
                self.first = self._prepare(self._batch.grid)
            yield

    def run(self) -> CompletedSweep:
        """Run batch after batch until the strategy ends; the caller holds the lease."""
        answers = CellResults()
        open_rounds = self._open_rounds()
        batch, prepared = self._batch, self.first
        while True:
            number = len(self._seen) + 1
            cached = prepared.is_cached()
            if number in open_rounds:  # cells that a killed run has computed count as run
                cached &= np.isin(np.arange(len(cached)), open_rounds[number])
            self._seen.append((prepared.keys, cached))
            self._run_batch(batch, prepared, cached, answers)
            answers.add(prepared)
            try:
                batch = self._batches.send(answers)
            except StopIteration as end:
                whole: Grid = end.value
                break
            prepared = self._prepare(batch.grid)
        if whole.cells is batch.grid.cells:
            prepared.grid = whole
        else:
            prepared = self._prepare(whole)
        return CompletedSweep(prepared, self._computed_before(prepared), answers.errors)

    def note_round(self, prepared: PreparedGrid, cached: Flags, n_todo: int = 0) -> None:
        """Write the start of a round to the journal."""
        self.journal.note_status(round=len(self._seen), left_s=None, activity="")
        self.journal.append(
            "begin",
            round=len(self._seen),
            cells=len(prepared.keys),
            todo=n_todo,
            cached=np.flatnonzero(cached).tolist(),
            argv=[mask(word) for word in sys.argv[1:]],
            question=mask(prepared.grid.request.question or ""),
            **origin.request_words(prepared.grid.request),
            **origin.request_location(prepared.grid.request),
        )

    def _prepare(self, grid: Grid) -> PreparedGrid:
        return plan.prepare(grid, self._inputs, self._cache, self.sweep)

    def _run_batch(
        self, batch: Batch, prepared: PreparedGrid, cached: Flags, answers: CellResults
    ) -> None:
        rows = prepared.missing_rows(answers.errors)
        if not len(rows):
            if self._runner is not None:
                unread_logs.check(prepared)
            return
        if self._runner is None:
            n = notes.count(len(rows), "cells")
            raise InputError(f"not cached: {n}")
        if self._limit is not None and len(answers.errors) >= self._limit:
            keys = (cell.key for cell in prepared.by_workload(rows))
            answers.errors |= compute.skipped(keys, self._limit)
            return
        if self._must_close:
            self._runner.close()
        compute.read_traces(prepared)
        unread_logs.check(prepared)
        if batch.purpose:
            n = notes.count(len(rows), "cells")
            notes.note(f"{self.sweep}, round {len(self._seen)}: {batch.purpose}: {n} to run")
        else:
            notes.grid(prepared, len(rows))
        if batch.purpose and not self.n_run:
            notes.traces(prepared)
        self.note_round(prepared, cached, len(rows))
        self._before_cells()
        if self.journal.has_company():  # in another order two sweeps rarely run the same cell
            rng = np.random.default_rng(list(self.sweep.encode()))
            rows = rng.permutation(rows)
        cells = prepared.by_workload(rows)
        errors = compute.run(prepared, cells, len(rows), self.journal, self._runner)
        self.n_run += len(rows)
        self._must_close = bool(errors)
        answers.errors |= errors

    def _computed_before(self, prepared: PreparedGrid) -> Flags:
        """Flag the rows whose cells were computed before the round in which they first came."""
        if len(self._seen) == 1 and self._seen[0][0] is prepared.keys:
            return self._seen[0][1]
        before: dict[bytes, bool] = {}
        for keys, cached in self._seen:
            for key, was_cached in zip(keys.tolist(), cached.tolist(), strict=True):
                before.setdefault(key, was_cached)
        return np.array([before[key] for key in prepared.keys.tolist()], bool)

    def _open_rounds(self) -> dict[int, list[int]]:
        """Return, by round, the rows that were cached when the killed attempt began.

        Of several attempts in a row, killed again and again, that of the first one.
        """
        rounds: dict[int, list[int]] = {}
        for event in self.journal.milestones():
            if event["event"] == "begin":
                rounds.setdefault(event.get("round", 1), event["cached"])
            elif event["event"] == "end":
                rounds = {}
        return rounds


def _sweep_id(strategy: Strategy, first: PreparedGrid) -> str:
    """Return the id of a sweep, from its first cells and the rest of its request."""
    if strategy.id_part is None:
        return first.sweep
    seeds = list(strategy.request.axes["seed"])
    content = canonical([first.sweep, repr(strategy.id_part), seeds])
    return f"{sweep_name(strategy.request)}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"
