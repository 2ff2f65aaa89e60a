"""Rows of a plan's columns that a policy selects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import PolicyError


def rows_of(where: Any, n: int) -> NDArray[Any]:
    """Return the rows that an index, a mask or a slice selects of `n`, int."""
    if isinstance(where, slice):
        return np.arange(n)[where]
    rows = np.atleast_1d(np.asarray(where))
    return np.flatnonzero(rows) if rows.dtype.kind == "b" else rows


def are_plain(rows: NDArray[Any] | int) -> bool:
    """Tell whether the kernel can take `rows` as they are, compiled for one kind of array."""
    if isinstance(rows, int) or rows.dtype != np.int32 or rows.ndim != 1:
        return False
    return rows.flags.c_contiguous and rows.flags.writeable


def misfit(entity: str, name: str, column: NDArray[Any], where: Any, value: Any) -> PolicyError:
    """Return the error that values don't fit the selected rows of a column."""
    try:
        n_rows = len(rows_of(where, len(column)))
        column[where]
    except (ValueError, IndexError) as error:
        return PolicyError(f"{entity} column {name!r}: {error}; there are {len(column)} {entity}s")
    shape = np.shape(value)
    received = f"{shape[0]} values" if len(shape) == 1 else f"an array of shape {shape}"
    return PolicyError(
        f"{entity} column {name!r} was given {received} for {n_rows} {entity}s; give one for each, "
        "or one for all of them"
    )
