"""Cells that several sweeps need at the same time: each is computed by one of them."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from sweep.execution import compute, notes
from sweep.execution.compute import Runner
from sweep.execution.plan import Planned, Prepared
from sweep.store.claims import Claims
from sweep.store.index import as_keys
from sweep.store.journal import Journal

if TYPE_CHECKING:
    from sweep.store.cell import CellError

T = TypeVar("T")
LOOK_EVERY_S = 1.0
AT_ONCE = 25_000
"""Cells that are claimed at once."""


def run(
    prepared: Prepared, cells: Iterable[Planned], n_cells: int, journal: Journal, runner: Runner
) -> dict[str, CellError]:
    """Run cells as `compute.run` does, but those that another sweep is at, which are waited for.

    Cells are claimed as they are drawn. What the other gives up, or fails, is run here.
    """
    errors: dict[str, CellError] = {}
    limit = prepared.grid.request.settings.max_failures
    left, has_said = iter(cells), False
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
                    return errors | compute.skipped((cell.key for cell in rest), limit)
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
        self._in_work: set[str] = set()  # keys
        self.waiting: list[Planned] = []  # claimed, and not given yet
        self.others: list[Planned] = []

    def among(self, cells: Iterator[Planned]) -> Iterator[Planned]:
        """Claim cells, many at once, and give those that are neither another's nor kept."""
        cache = self._prepared.cache
        while some := list(itertools.islice(cells, max(AT_ONCE, len(self._in_work) // 4))):
            keys = [cell.key for cell in some]
            wanted, in_work = (as_keys(bytes.fromhex("".join(k))) for k in (keys, self._in_work))
            mine = self._claims.take(wanted, in_work)
            kept = cache.look_again(wanted)  # between the plan and the claim
            _take_over(self._prepared, itertools.compress(keys, kept))
            for at in np.flatnonzero(~kept).tolist():
                (self.waiting if mine[at] else self.others).append(some[at])
                if mine[at]:
                    self._in_work.add(keys[at])
            del some, keys, wanted, mine, kept  # before the next are drawn
            yield from each_once(self.waiting)

    def over(self, cell: Planned) -> None:
        """Give up the claim of a cell."""
        self._in_work.remove(cell.key)


def each_once(cells: list[T]) -> Iterator[T]:
    """Give each, and keep none that was given."""
    cells.reverse()
    while cells:
        yield cells.pop()


def _take_over(prepared: Prepared, keys: Iterable[str]) -> None:
    """Take the metrics of cells that somebody else has kept."""
    for key in keys:
        metrics = prepared.cache.metrics(key)
        if metrics is not None:
            prepared.metrics[key] = metrics
