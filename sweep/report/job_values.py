"""Values of a quantity over the jobs of cells, read from the cache."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.base.errors import InputError, unknown
from sweep.stats.arrange import arrange
from sweep.store.cache import Cache
from sweep.store.cell import CellResult


def panels(
    cells: pa.Table,
    cache: Cache,
    quantity: str,
    capacity: float,
    labels: Collection[str],
    swept: Sequence[str],
) -> list[tuple[str, dict[str, F8]]]:
    """Read a quantity of all jobs at one capacity, the seeds together.

    Returns
    -------
    list of (title, dict of policy label to (J,) float64)
        One entry a trace and setting, in the order of the sweep; NaN for a job without a value.

    Raises
    ------
    InputError
        If a cell is no longer cached, or its evaluator keeps no such column.
    """
    arranged = arrange(cells, swept, None)
    names = [column.label for column in arranged.columns.values()]
    blocks: list[tuple[str, dict[str, F8]]] = []
    for (trace, settings), members in arranged.blocks.items():
        title = ", ".join((trace, *(f"{key}={value}" for key, value in settings)))
        rows = members[(arranged.capacity[members] == capacity) & ~arranged.failed[members]]
        parts: dict[str, list[F8]] = {}
        for row in rows.tolist():
            label = names[arranged.column_index[row]]
            if label in labels:
                values = _values(cache.get(arranged.key(row)), quantity)
                parts.setdefault(label, []).append(values)
        blocks.append((title, {label: np.concatenate(part) for label, part in parts.items()}))
    return blocks


def _values(result: CellResult | None, quantity: str) -> F8:
    jobs = None if result is None else result.jobs
    jct = None if result is None else result.jct_s()
    if jobs is None or jct is None:
        raise InputError(
            "jobs of this sweep are no longer in the cache: run its command again first",
            rule="not cached",
        )
    if quantity == "jct_s":
        return jct
    if quantity == "wait_s" and "start_s" in jobs.column_names:
        wait: F8 = jobs["start_s"].to_numpy() - jobs["submit_s"].to_numpy()
        wait[np.isnan(jct)] = np.nan
        return wait
    known = ["jct_s", *_number_columns(jobs)]
    if quantity not in known:
        missing = " (a table of jobs needs start_s for it)" if quantity == "wait_s" else ""
        raise InputError(
            f"{unknown('quantity of these cells', quantity, known)}{missing}",
            rule="no such column",
        )
    column = jobs[quantity]
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    values: F8 = column.to_numpy().astype(np.float64)
    return values


def _number_columns(jobs: pa.Table) -> list[str]:
    """Return the columns of numbers and flags."""
    return [
        field.name
        for field in jobs.schema
        if pa.types.is_integer(field.type)
        or pa.types.is_floating(field.type)
        or pa.types.is_boolean(field.type)
    ]
