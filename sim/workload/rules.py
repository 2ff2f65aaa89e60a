"""Validation rules for single columns of any table, used by `sim.workload.validate`."""

from __future__ import annotations

from collections.abc import Callable
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

MAX_S = 1e12
"""The longest time, s: doubles tell tenths of a millisecond there, and no sum overflows."""


def check_column(workload: Tables, name: str, table: pa.Table, column: Column) -> None:
    """Validate a column of the table `name`: its range, its choices, or its row numbers."""
    if column.choices:
        for choice in names(table, column.name):
            if choice not in column.choices:
                row = pc.index(table[column.name].chunk(0).cast(pa.string()), choice).as_py()
                text = f"{column.name} is {choice!r}; valid: {', '.join(column.choices)}"
                fail(workload, name, row, text, "unknown kind")
    elif pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        array = table[column.name].chunk(0)
        numbers = array.fill_null(0).to_numpy() if array.null_count else array.to_numpy()
        check_number(name, column, numbers, workload)
    target = _rows(workload).get(column.unit)
    if target is not None:
        rows, referenced = values(table, column.name), column.unit.removeprefix("row of ")
        last = f"but the last row of {referenced} is {target - 1}"
        refuse(
            workload, name, rows >= target,
            lambda i: f"{column.name} is {rows[i]}, {last}", "row out of range",
        )  # fmt: skip


def _rows(workload: Tables) -> dict[str, int]:
    return {
        "row of jobs": workload.n_jobs,
        "row of stages": workload.n_stages,
        "row of tasks": workload.n_tasks,
    }


def check_number(
    name: str, column: Column, numbers: NDArray[Any], workload: Tables | None = None
) -> None:
    """Validate the numbers of a column against its range."""
    if len(numbers) == 0:
        return
    low, high = column.low, MAX_S if column.unit == "s" else np.inf
    with np.errstate(invalid="ignore"):
        smallest, largest = numbers.min(), numbers.max()
    if np.isfinite(smallest) and np.isfinite(largest) and (low is None or smallest >= low):
        valid = f"valid: at most {high:g} s, or 30,000 years"
        refuse(
            workload, name, numbers > high,
            lambda i: f"{column.name} is {numbers[i]}; {valid}", "number too large",
        )  # fmt: skip
        return
    allowed = "any finite number" if low is None else f"{low:g} or more, and finite"

    def text(i: int) -> str:
        return f"{column.name} is {numbers[i]}; valid: {allowed}"

    refuse(workload, name, ~np.isfinite(numbers), text, "non-finite number")
    below = numbers < low
    rule = "negative number" if numbers[np.argmax(below)] < 0 else "number too small"
    refuse(workload, name, below, text, rule)


def refuse(
    workload: Tables | None, table: str, broken: Mask, text: Callable[[int], str], rule: str
) -> None:
    """Raise InputError for the first row in `broken`, if any, with the message `text(row)`."""
    if broken.any():
        row = int(np.argmax(broken))
        fail(workload, table, row, text(row), rule)


def fail(workload: Tables | None, table: str, row: int, text: str, rule: str) -> NoReturn:
    """Raise InputError with table, row and, if known, the job."""
    name = ""
    if workload is not None and table in ("jobs", "stages"):
        job = row if table == "jobs" else int(values(workload.stages, "job")[row])
        if 0 <= job < workload.n_jobs:
            name = f" (job {workload.jobs['job_id'][job].as_py()!r})"
    raise InputError(f"{table} row {row}{name}: {text}", rule=rule)
