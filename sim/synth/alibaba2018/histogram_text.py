"""Histograms as JSON, short enough to read and to diff; and back, checked."""

from __future__ import annotations

import os
import textwrap
from typing import Any

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.synth.alibaba2018.histograms import Conditional, Grid, Histogram

MOST = 2**31 - 1
PathLike = str | os.PathLike[str]


def show(table: Histogram) -> str:
    """Write a histogram."""
    counts = ", ".join(map(str, table.counts.tolist()))
    return f'{{"values": [{wrap(numbers(table.values))}],\n "counts": [{wrap(counts)}]}}'


def show_cells(table: Conditional) -> str:
    """Write one histogram for each condition."""
    cells = zip(table.lower.tolist(), table.cells, strict=True)
    return "{\n" + ",\n".join(f'"{low}": {show(cell)}' for low, cell in cells) + "}"


def show_grid(table: Grid) -> str:
    """Write one histogram for each condition, and second condition."""
    rows = zip(table.lower.tolist(), table.rows, strict=True)
    return "{\n" + ",\n".join(f'"{low}": {show_cells(row)}' for low, row in rows) + "}"


def numbers(values: F8) -> str:
    """Write numbers, whole ones without a point."""
    return ", ".join(f"{v:.0f}" if v == int(v) else repr(float(v)) for v in values)


def wrap(text: str) -> str:
    """Break a long line."""
    return "\n".join(textwrap.wrap(text, 100)) if len(text) > 80 else text


def histogram(raw: Any, name: str, path: PathLike, least: int | None = None) -> Histogram:
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
    for wrong, what in broken:
        if wrong:
            raise InputError(f"table {name!r} needs {what}", file=path, rule="bad table")
    return Histogram(values, counts.astype(np.int64))


def conditional(raw: Any, name: str, path: PathLike, least: int = 1) -> Conditional:
    """Read one histogram of whole values from `least` for each condition."""
    lower = _conditions(raw, name, path)
    return Conditional(
        lower,
        tuple(histogram(cell, f"{name} given {key}", path, least) for key, cell in raw.items()),
    )


def grid(raw: Any, name: str, path: PathLike, least: int = 0) -> Grid:
    """Read one histogram of whole values from `least` for each condition, and second condition."""
    lower = _conditions(raw, name, path)
    return Grid(
        lower,
        tuple(conditional(row, f"{name} given {key}", path, least) for key, row in raw.items()),
    )


def _conditions(raw: Any, name: str, path: PathLike) -> I8:
    try:
        lower = np.array([int(key) for key in raw], dtype=np.int64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"table {name!r} must hold one table for each whole number it depends on", file=path
        ) from error
    if not isinstance(raw, dict) or not len(lower) or (np.diff(lower) <= 0).any():
        raise InputError(f"the conditions of table {name!r} must be ascending", file=path)
    return lower
