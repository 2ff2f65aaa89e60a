"""The rules that any column of any table is held to: what `sim.workload.validate` is made of."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sim.base.arrays import Mask
from sim.base.errors import InputError
from sim.workload.record import Tables
from sim.workload.schema import Column
from sim.workload.tables import names, values

MOST_S = 1e12
"""The longest time, s: doubles tell tenths of a millisecond there, and no sum overflows."""


def check_column(workload: Tables, name: str, table: pa.Table, column: Column) -> None:
    """Hold a column of the table called `name` to its range, its choices and the rows there are."""
    if column.choices:
        for choice in names(table, column.name):
            if choice not in column.choices:
                row = pc.index(table[column.name].chunk(0).cast(pa.string()), choice).as_py()
                fail(
                    workload,
                    name,
                    row,
                    f"{column.name} is {choice!r}; valid: {', '.join(column.choices)}",
                    "unknown kind",
                )
    elif pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        array = table[column.name].chunk(0)
        numbers = array.fill_null(0).to_numpy() if array.null_count else array.to_numpy()
        check_number(name, column, numbers, workload)
    target = _rows(workload).get(column.unit)
    if target is not None:
        row = first(values(table, column.name) >= target)
        if row is not None:
            what = column.unit.removeprefix("row of ")
            fail(
                workload,
                name,
                row,
                f"{column.name} is {values(table, column.name)[row]}, "
                f"but the last row of {what} is {target - 1}",
                "row out of range",
            )


def _rows(workload: Tables) -> dict[str, int]:
    return {
        "row of jobs": workload.n_jobs,
        "row of stages": workload.n_stages,
        "row of tasks": workload.n_tasks,
    }


def check_number(
    name: str, column: Column, numbers: NDArray[Any], workload: Tables | None = None
) -> None:
    """Hold numbers of a column to its range."""
    low, high = column.low, MOST_S if column.unit == "s" else np.inf
    if len(numbers) == 0:
        return
    with np.errstate(invalid="ignore"):
        smallest, largest = numbers.min(), numbers.max()
    if np.isfinite(smallest) and np.isfinite(largest) and (low is None or smallest >= low):
        if largest <= high:
            return
        row = first(numbers > high)
        assert row is not None
        text = f"{column.name} is {numbers[row]}; valid: at most {high:g} s, or 30,000 years"
        fail(workload, name, row, text, "number too large")
    allowed = "any finite number" if low is None else f"{low:g} or more, and finite"
    row = first(~np.isfinite(numbers))
    rule = "non-finite number"
    if row is None and low is not None:
        row = first(numbers < low)
        assert row is not None
        rule = "negative number" if numbers[row] < 0 else "number too small"
    assert row is not None
    fail(workload, name, row, f"{column.name} is {numbers[row]}; valid: {allowed}", rule)


def first(broken: Mask) -> int | None:
    """Return the first row that is broken, None if none is."""
    if not broken.any():
        return None
    return int(np.argmax(broken))


def fail(workload: Tables | None, table: str, row: int, text: str, rule: str) -> NoReturn:
    """Raise InputError, naming table, row and the job it is of."""
    name = ""
    if workload is not None and table in ("jobs", "stages"):
        job = row if table == "jobs" else int(values(workload.stages, "job")[row])
        if 0 <= job < workload.n_jobs:
            name = f" (job {workload.jobs['job_id'][job].as_py()!r})"
    raise InputError(f"{table} row {row}{name}: {text}", rule=rule)
