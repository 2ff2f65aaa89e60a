"""Values of a table that mean another: ``>24`` CPUs, ``-1`` for unknown, a state's own word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.errors import InputError, unknown
from sim.traces.table.columns import COLUMNS

Replace: TypeAlias = Mapping[str, Mapping[Any, Any]]
"""By column: what each of some values means; None is unknown."""


def check_replace(replace: Replace) -> None:
    """Refuse an unknown column.

    Raises
    ------
    InputError
        Names the most similar one.
    """
    for column in replace:
        if column not in COLUMNS:
            raise InputError(
                f"replace: {unknown('column', column, COLUMNS)}", rule="unknown column"
            )


def texts_of(replace: Replace, column: str) -> list[str]:
    """Return the values of a column that are replaced, as texts."""
    return [str(value) for value in replace.get(column, {})]


def replaced(
    columns: Mapping[str, pa.Array], replace: Replace, counts: dict[str, int]
) -> dict[str, pa.Array]:
    """Return the columns with their values replaced; count by value how many were."""
    result = dict(columns)
    for column in replace.keys() & columns.keys():
        for value, meaning in replace[column].items():
            array = result[column]
            rows = _equal(array, value)
            if rows is None or not rows.any():
                continue
            rule = f"{column} {value}: {'unknown' if meaning is None else meaning}"
            counts[rule] = counts.get(rule, 0) + int(rows.sum())
            result[column] = pc.if_else(pa.array(rows), _scalar(meaning, array.type), array)
    return result


def _equal(array: pa.Array, value: Any) -> Any:
    """Mark the elements equal to a value; None if the array can't hold it."""
    try:
        scalar = pa.scalar(str(value) if pa.types.is_string(array.type) else float(value))
        equal = pc.equal(array, scalar)
    except (ValueError, TypeError, pa.ArrowException):
        return None
    return np.asarray(equal.fill_null(False), dtype=bool)


def _scalar(meaning: Any, kind: pa.DataType) -> pa.Scalar:
    if meaning is None:
        return pa.scalar(None, kind)
    try:
        return pa.scalar(str(meaning) if pa.types.is_string(kind) else float(meaning)).cast(kind)
    except (ValueError, TypeError, pa.ArrowException):
        text = f"replace: {meaning!r} can't stand in a column of {kind}"
        raise InputError(text, rule="wrong type") from None
