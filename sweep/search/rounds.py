"""Cells asked for round by round: run side by side, kept in the cache, one journal for them all."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from sim.base.errors import InputError
from sim.base.masking import mask
from sweep.execution import compute, notes, origin, plan, together
from sweep.execution.compute import Runner
from sweep.execution.inputs import Inputs
from sweep.execution.plan import Planned, Prepared
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Cell, Grid
from sweep.grid.request import Request
from sweep.stats.arrange import AXES, text
from sweep.store.cache import Cache
from sweep.store.cell import CellError
from sweep.store.journal import Journal


@dataclass
class Rounds:
    """The cells that a search has asked for so far."""

    request: Request  # with its goal
    runner: Runner | None  # None refuses to run any, for who only wants to know which they were
    before_cells: Callable[[], object] = lambda: None
    errors: dict[str, CellError] = field(default_factory=dict)
    n_run: int = 0  # cells run by this process
    sweep: str = ""  # its id, once the first cells are known
    _planned: dict[str, Planned] = field(default_factory=dict)
    _was_cached: dict[str, bool] = field(default_factory=dict)
    _metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    _number: int = 0

    def __post_init__(self) -> None:
        convert = self.runner.convert if self.runner is not None else None
        self.inputs = Inputs(self.request.settings.results, convert=convert)
        self._cache = Cache(self.request.settings.results)

    def begin(self, cells: Sequence[Cell]) -> AbstractContextManager[object]:
        """Name the sweep by what is asked for and by its first cells; hold it for this process."""
        prepared = self.prepare(cells)
        seeds = list(self.request.axes["seed"])
        content = canonical([prepared.sweep, repr(self.request.goal), seeds])
        digest = hashlib.sha256(content.encode()).hexdigest()
        self.sweep = f"{prepared.sweep.rpartition('-')[0]}-{digest[:8]}"
        if self.runner is None:
            return contextlib.nullcontext()
        return self.journal.locked(
            lambda: notes.note(f"another process runs {self.sweep}; waiting for it")
        )

    @property
    def journal(self) -> Journal:
        """What happened when."""
        return Journal(self.request.settings.results, self.sweep)

    def run(self, cells: Sequence[Cell], what: str) -> None:
        """Have the numbers of these cells; `what` says in a line what they are for."""
        self._number += 1
        prepared = self.prepare(cells)
        todo = {cell.key for cell in prepared.in_order(prepared.rows_to_do(self.errors))}
        known = self._begun().get(self._number)
        new = {canonical(each.cell.labels): each for each in prepared.planned}
        new = {name: each for name, each in new.items() if name not in self._planned}
        had = prepared.metrics.keys() - self._metrics.keys()
        cached = sorted(each.key for each in new.values() if each.key in had)
        self._planned |= new
        for each in new.values():
            self._was_cached.setdefault(each.key, each.key in (cached if known is None else known))
        limit = self.request.settings.max_failures
        if todo and limit is not None and len(self.errors) >= limit:
            self.errors |= {key: _skipped(limit) for key in todo}
        elif todo:
            self._run(prepared, todo, cached, what)
        self._metrics |= prepared.metrics

    def metric(self, cell: Cell, name: str) -> float:
        """Return a cell's metric: NaN where it failed, or has none of that name."""
        return self._metrics.get(self.key(cell), {}).get(name, math.nan)

    def failed(self, cell: Cell) -> bool:
        """Tell whether a cell failed."""
        return self.key(cell) in self.errors

    def key(self, cell: Cell) -> str:
        """Return a cell's key."""
        return self._planned[canonical(cell.labels)].key

    def check_metric(self, asked: str, name: str, cells: Sequence[Cell]) -> None:
        """Refuse a metric of which one of these cells has no value."""
        for cell in cells:
            if math.isnan(self.metric(cell, name)):
                known = [n for n in self._metrics.get(self.key(cell), {}) if n.startswith("jct")]
                raise InputError(
                    f"{asked}={name} has no value for {where(cell)}; "
                    f"{', '.join(known) or 'no metric'} has",
                    rule="metric",
                )

    def whole(self, order: Callable[[Cell], Any]) -> tuple[Prepared, list[bool]]:
        """Return all cells in order as one sweep, and of each whether it was computed before."""
        cells = sorted((each.cell for each in self._planned.values()), key=order)
        prepared = self.prepare(cells)
        return prepared, [self._was_cached[each.key] for each in prepared.planned]

    def prepare(self, cells: Sequence[Cell]) -> Prepared:
        """Find these cells' keys, and what is cached of them."""
        swept = tuple(key for key in self.request.axes if key not in AXES)
        prepared = plan.prepare(Grid(self.request, tuple(cells), swept), self.inputs, self._cache)
        return dataclasses.replace(prepared, sweep=self.sweep) if self.sweep else prepared

    def _run(self, prepared: Prepared, todo: set[str], cached: Sequence[str], what: str) -> None:
        if self.runner is None:
            raise InputError(
                f"{len(todo)} cells of {self.sweep} are not kept any more; run the sweep again"
            )
        compute.read_traces(prepared)
        cells = prepared.in_order(prepared.rows_to_do(self.errors))
        if not self.n_run:
            notes.traces(prepared)
        notes.note(f"{self.sweep}, round {self._number}: {what}: {len(todo)} cells to run")
        self.journal.append(
            "begin",
            round=self._number,
            cells=len(prepared.planned),
            todo=len(todo),
            cached=list(cached),
            argv=[mask(word) for word in sys.argv[1:]],
            **origin.words_of(self.request),
        )
        self.before_cells()
        errors = together.run(prepared, cells, len(todo), self.journal, self.runner)
        self.n_run += len(todo)
        self.errors |= errors
        if errors:
            self.runner.close()  # cells may be left on their way

    def _begun(self) -> dict[int, list[str]]:
        """Return what was cached when each round of the attempt began that a kill left open."""
        begun: dict[int, list[str]] = {}
        for event in self.journal.milestones():
            if event["event"] == "begin" and "round" in event:
                begun.setdefault(event["round"], event["cached"])
            elif event["event"] == "end":
                begun = {}
        return begun


def where(cell: Cell) -> str:
    """Say which cells are meant: all seeds' of a policy on a trace at a capacity."""
    labels = cell.labels
    return f"{labels['policy']} on {labels['trace']} at capacity {text(labels['capacity'])}"


def _skipped(limit: int) -> CellError:
    message = f"not run: {limit} cells had failed before (max_failures={limit})"
    return {"stage": "skipped", "type": "Skipped", "message": message, "traceback": ""}
