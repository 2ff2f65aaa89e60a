"""Cells that several sweeps need at the same time: each is computed by one of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sweep.execution import compute, notes, plan
from sweep.execution.compute import Runner
from sweep.execution.notes import SoFar
from sweep.execution.plan import Planned, Prepared
from sweep.store.claims import Claims
from sweep.store.index import as_keys
from sweep.store.journal import Journal

if TYPE_CHECKING:
    from sweep.store.cell import CellError, CellSpec

Specs = Sequence[tuple[Planned, "CellSpec"]]
LOOK_EVERY_S = 1.0


def run(
    prepared: Prepared,
    specs: Specs,
    journal: Journal,
    runner: Runner,
    so_far: SoFar | None = None,
) -> dict[str, CellError]:
    """Run cells as `compute.run` does, but those that another sweep is at, which are waited for.

    What the other gives up, or fails, is run here.
    """
    errors: dict[str, CellError] = {}
    with contextlib.closing(Claims(prepared.cache.place)) as claims:
        left, has_said = specs, False
        while left:
            mine = claims.take(as_keys(b"".join(plan.claimed_as(prepared, c) for c, _ in left)))
            left = _settled(prepared, left)
            keys = as_keys(b"".join(bytes.fromhex(cell.key) for cell, _ in left))
            # what was kept between the plan and the claim
            kept = prepared.cache.look_again(keys)
            _take_over(prepared, [cell.key for (cell, _), k in zip(left, kept, strict=True) if k])
            now = [one for one, m, k in zip(left, mine, kept, strict=True) if m and not k]
            left = [one for one, m, k in zip(left, mine, kept, strict=True) if not (m or k)]
            if now:
                errors |= compute.run(prepared, now, journal, runner, so_far)
                limit = prepared.grid.request.settings.max_failures
                if limit is not None and len(errors) >= limit:
                    return errors | compute.skipped(
                        (prepared.planned[cell.row].key for cell, _ in left), limit
                    )
            elif left:
                if not has_said:
                    n = notes.count(len(left), "cells")
                    notes.note(f"another sweep computes {n} of these; waiting for them")
                    has_said = True
                time.sleep(LOOK_EVERY_S)
    return errors


def _settled(prepared: Prepared, specs: Specs) -> Specs:
    """Give cells the keys of their contents where this sweep or another made their workloads."""
    if prepared.late:
        prepared.inputs.look_again()
        plan.settle(prepared)
    keys = prepared.keys[[cell.row for cell, _ in specs]].tobytes()
    if keys == b"".join(bytes.fromhex(cell.key) for cell, _ in specs):
        return specs
    cells = [prepared.planned[cell.row] for cell, _ in specs]
    return [
        (cell, replace(spec, key=cell.key)) for cell, (_, spec) in zip(cells, specs, strict=True)
    ]


def _take_over(prepared: Prepared, keys: Sequence[str]) -> None:
    """Take the metrics of cells that somebody else has kept."""
    for key in keys:
        metrics = prepared.cache.metrics(key)
        if metrics is not None:
            prepared.metrics[key] = metrics
