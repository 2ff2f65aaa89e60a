"""Histograms and arrays as text in a file of tables, short enough to read and to diff; and back."""

from __future__ import annotations

import json
import os
import textwrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.synth.fitted.tables import Conditional, Grid, Histogram

MOST = 2**31 - 1
PathLike = str | os.PathLike[str]
Table = Histogram | Conditional | Grid


def show(table: Table) -> str:
    """Write a histogram, or one for each condition, and second condition."""
    if isinstance(table, Histogram):
        counts = ", ".join(map(str, table.counts.tolist()))
        return f'{{"values": [{wrap(numbers(table.values))}],\n "counts": [{wrap(counts)}]}}'
    inner = zip(table.lower.tolist(), inside(table), strict=True)
    return in_braces(*(f'"{low}": {show(part)}' for low, part in inner))


def inside(table: Conditional | Grid) -> tuple[Table, ...]:
    """Return the tables of each condition."""
    return table.rows if isinstance(table, Grid) else table.cells


def in_braces(*parts: str) -> str:
    """Write an object, a line or more for each of its parts."""
    return "{\n" + ",\n".join(parts) + "}"


def long_json(content: Any) -> str:
    """Write JSON over as many lines as it takes."""
    return json.dumps(content, indent=1, ensure_ascii=False)


def numbers(values: F8) -> str:
    """Write numbers, whole ones without a point."""
    return ", ".join(f"{v:.0f}" if v == int(v) else repr(float(v)) for v in values)


def rows(matrix: NDArray[Any]) -> str:
    """Write a matrix, row by row."""
    return "[" + ",\n ".join(wrap(json.dumps(row)) for row in matrix.tolist()) + "]"


def wrap(text: str) -> str:
    """Break a long line."""
    return "\n".join(textwrap.wrap(text, 100)) if len(text) > 80 else text


def read_histogram(raw: Any, name: str, path: PathLike, least: int | None = None) -> Histogram:
    """Read a histogram; of whole values from `least`, or, without it, of values of at least 0."""
    try:
        values = np.asarray(raw["values"], dtype=np.float64)
        counts = np.asarray(raw["counts"], dtype=np.float64)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"table {name!r} must be {{values: [numbers], counts: [whole numbers]}}", file=path
        ) from error
    low = 0 if least is None else least
    broken = (
        (values.ndim != 1 or values.shape != counts.shape or not len(values), "one count a value"),
        (not np.isfinite(values).all() or (np.diff(values) <= 0).any(), "finite, ascending values"),
        (not ((counts >= 1) & (counts % 1 == 0)).all(), "whole counts of at least 1"),
        (not counts.sum() < 2**53, "counts that add up to less than 2^53"),
        (least is None and (values < 0).any(), "values of at least 0"),
        (
            least is not None
            and not ((values >= low) & (values <= MOST) & (values % 1 == 0)).all(),
            f"whole values from {low} to {MOST}",
        ),
    )
    for is_broken, needed in broken:
        if is_broken:
            raise InputError(f"table {name!r} needs {needed}", file=path, rule="bad table")
    return Histogram(values, counts.astype(np.int64))


def array(raw: Any, n_axes: int) -> F8:
    """Read finite numbers."""
    read = np.asarray(raw, dtype=np.float64)
    if read.ndim != n_axes or not np.isfinite(read).all():
        raise ValueError("a list of finite numbers was expected")
    return read
