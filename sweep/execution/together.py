"""Cells that several sweeps need at the same time: each is computed by one of them."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from sweep.execution import compute, notes, plan
from sweep.execution.compute import Runner
from sweep.execution.plan import Planned, Prepared
from sweep.store.claims import Claims
from sweep.store.index import as_keys
from sweep.store.journal import Journal

if TYPE_CHECKING:
    from sweep.store.cell import CellError, CellSpec

Spec = tuple[Planned, "CellSpec"]
T = TypeVar("T")
LOOK_EVERY_S = 1.0
AT_ONCE = 25_000
"""Cells that are claimed at once."""


def run(
    prepared: Prepared, specs: Iterable[Spec], n_cells: int, journal: Journal, runner: Runner
) -> dict[str, CellError]:
    """Run cells as `compute.run` does, but those that another sweep is at, which are waited for.

    Cells are claimed as they are drawn. What the other gives up, or fails, is run here.
    """
    errors: dict[str, CellError] = {}
    limit = prepared.grid.request.settings.max_failures
    left, has_said = iter(specs), False
    with contextlib.closing(Claims(prepared.cache.place)) as claims:
        while True:
            journal.confirm()
            mine = _Mine(prepared, claims)
            drawn = mine.among(left)
            first = list(itertools.islice(drawn, 1))
            if first:
                some = itertools.chain(first, drawn)
                errors |= compute.run(prepared, some, n_cells, journal, runner, mine.over)
                if limit is not None and len(errors) >= limit:
                    rest = itertools.chain(mine.waiting, mine.others, left)
                    keys = (prepared.planned[cell.row].key for cell, _ in rest)
                    return errors | compute.skipped(keys, limit)
            if not mine.others:
                return errors
            if not first:
                if not has_said:
                    n = notes.count(len(mine.others), "cells")
                    notes.note(f"another sweep computes {n} of these; waiting for them")
                    has_said = True
                time.sleep(LOOK_EVERY_S)
            left, n_cells = iter(mine.others), len(mine.others)


class _Mine:
    """The cells that are this sweep's to compute, claimed as they are drawn, and the others."""

    def __init__(self, prepared: Prepared, claims: Claims) -> None:
        self._prepared = prepared
        self._claims = claims
        # of what is in work, by row: as what it is claimed, and its key
        self._in_work: dict[int, tuple[bytes, str]] = {}
        self._keys: set[str] = set()
        self.waiting: list[Spec] = []  # claimed, and not given yet
        self.others: list[Spec] = []

    def among(self, specs: Iterator[Spec]) -> Iterator[Spec]:
        """Claim cells, many at once, and give those that are neither another's nor kept."""
        cache = self._prepared.cache
        while some := list(itertools.islice(specs, max(AT_ONCE, len(self._in_work) // 4))):
            names = [plan.claimed_as(self._prepared, cell) for cell, _ in some]
            still = as_keys(b"".join(name for name, _ in self._in_work.values()))
            mine = self._claims.take(as_keys(b"".join(names)), still)
            some = _settled(self._prepared, some)
            # what was kept between the plan and the claim
            keys = [cell.key for cell, _ in some]
            kept = cache.look_again(as_keys(bytes.fromhex("".join(keys))))
            _take_over(self._prepared, itertools.compress(keys, kept))
            for at in np.flatnonzero(~kept).tolist():
                if mine[at] and keys[at] not in self._keys:  # recipes may differ, and contents not
                    self._in_work[some[at][0].row] = (names[at], keys[at])
                    self._keys.add(keys[at])
                    self.waiting.append(some[at])
                else:
                    self.others.append(some[at])
            del some, names, mine, keys, kept  # before the next are drawn
            yield from each_once(self.waiting)

    def over(self, cell: Planned) -> None:
        """Give up the claim of a cell."""
        _, key = self._in_work.pop(cell.row)
        self._keys.remove(key)


def each_once(cells: list[T]) -> Iterator[T]:
    """Give each, and keep none that was given."""
    cells.reverse()
    while cells:
        yield cells.pop()


def _settled(prepared: Prepared, specs: list[Spec]) -> list[Spec]:
    """Give cells the keys of their contents where this sweep or another made their workloads."""
    if prepared.late:
        prepared.inputs.look_again()
        plan.settle(prepared)
    keys = prepared.keys[[cell.row for cell, _ in specs]].tobytes()
    if keys == b"".join(bytes.fromhex(cell.key) for cell, _ in specs):
        return specs
    cells = [prepared.planned[cell.row] for cell, _ in specs]
    return [
        (cell, spec._replace(key=cell.key)) for cell, (_, spec) in zip(cells, specs, strict=True)
    ]


def _take_over(prepared: Prepared, keys: Iterable[str]) -> None:
    """Take the metrics of cells that somebody else has kept."""
    for key in keys:
        metrics = prepared.cache.metrics(key)
        if metrics is not None:
            prepared.metrics[key] = metrics
