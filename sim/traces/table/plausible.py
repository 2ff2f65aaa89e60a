"""Checks of a table's clocks and units: numbers that can't be in the unit they are read in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.traces.table.columns import Columns
from sim.traces.table.forms import SPREADSHEET_DAYS
from sim.traces.table.times import Instants, seconds_after
from sim.traces.table.units import Unit

_SMALLEST = {"ns": 1e17, "us": 1e14, "ms": 1e11}
"""Seconds from which on a time since 1970 is rather in this unit: 1e11 s is the year 5138."""
_NAMES = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_RATIOS = {"ms": 1e3, "us": 1e6, "ns": 1e9, "min": 1 / 60, "h": 1 / 3600}
"""Run time as it is read over the time from start to end, if it is in this unit instead of s."""
_MEMORY = {"B": 2.0**28, "KiB": 2.0**18, "MiB": 2.0**8}
"""Memory of a CPU from which on it is rather in this unit than in GiB."""
_CPUS_OF_A_NODE = 64.0
_TOLERANCE = 0.01
_YEAR_S = 365.2425 * 86_400
_MOST_DAYS = 3660.0


def check_digits(
    path: str | os.PathLike[str],
    times: Mapping[str, Instants],
    name_of: Columns,
    units: Mapping[str, Unit],
) -> None:
    """Refuse thirteen, sixteen or nineteen digits as seconds, unless a unit is given."""
    sizes = {c: np.abs(_absolute(column)) for c, column in times.items() if not units[c].is_given}
    guesses = {c: _guess(float(np.median(size))) for c, size in sizes.items() if len(size)}
    wrong = {column: unit for column, unit in guesses.items() if unit}
    if not wrong:
        return
    column, unit = next(iter(wrong.items()))
    value = sizes[column][0]
    same = len({*wrong.values()}) == 1 and len(wrong) == len(guesses)
    listed = ",".join(f"{c}:{u}" for c, u in wrong.items())
    option = f"trace.unit={unit}" if same else f"'trace.unit={{{listed}}}'"
    text = (
        f"{name_of[column]} has times like {value:.0f}: as seconds since 1970 that is the year "
        f"{1970 + value / _YEAR_S:,.0f}; it looks like {_NAMES[unit]}: give {option}, or "
        "trace.unit=s if they are seconds"
    )
    raise InputError(text, file=path, rule="implausible unit")


def check_days(
    path: str | os.PathLike[str],
    times: Mapping[str, Instants],
    name_of: Columns,
    units: Mapping[str, Unit],
) -> None:
    """Refuse a spreadsheet's days since 1900 as seconds, unless a unit is given."""
    if any(units[column].is_given for column in times):
        return
    values = np.concatenate([_absolute(column) for column in times.values()])
    first, last = SPREADSHEET_DAYS
    if not len(values) or not ((values >= first) & (values <= last)).all():
        return
    if (values == np.rint(values)).all() or np.ptp(values) > _MOST_DAYS:
        return
    text = (
        f"{name_of['submit_s']} has times like {values[0]:.15g}: they look like a spreadsheet's "
        "days since 1900: save them as dates, like 2026-03-01 09:30:00 (or give trace.unit=s if "
        "they are seconds)"
    )
    raise InputError(text, file=path, rule="implausible unit")


def check_runs(
    path: str | os.PathLike[str],
    columns: Mapping[str, Any],
    name_of: Columns,
    units: Mapping[str, Unit],
) -> None:
    """Refuse run times that are in another unit than start and end."""
    if not {"start_s", "end_s", "run_s"} <= columns.keys() or units["run_s"].is_given:
        return
    between_s = columns["end_s"] - columns["start_s"]
    known = (between_s > 0) & (columns["run_s"] > 0)
    if not known.any():
        return
    ratio = float(np.median(columns["run_s"][known] / between_s[known]))
    for unit, expected in _RATIOS.items():
        in_unit = abs(ratio / expected - 1) < _TOLERANCE
        if in_unit or (unit in _NAMES and abs(ratio * expected - 1) < _TOLERANCE):
            times = [c for c in ("submit_s", "eligible_s", "start_s", "end_s") if c in columns]
            listed = ",".join(f"{c}:{unit}" for c in (["run_s"] if in_unit else times))
            text = (
                f"{name_of['run_s']} is {ratio:.4g} times the time from {name_of['start_s']} to "
                f"{name_of['end_s']}: one looks like another unit than seconds: give "
                f"'trace.unit={{{listed}}}', or 'trace.unit={{run_s:s}}' if all are seconds"
            )
            raise InputError(text, file=path, rule="implausible unit")


def check_memory(
    path: str | os.PathLike[str], columns: Mapping[str, Any], name_of: Columns, unit: Unit
) -> None:
    """Refuse memory that no machine has for each of its CPUs, unless its unit is given."""
    if unit.is_given:
        return
    cpus = columns.get("cpus", np.full(1, np.nan))
    nodes = np.fmax(columns.get("nodes", np.ones(1)), 1.0)
    share = columns["mem"] / np.where(cpus > 0, cpus, _CPUS_OF_A_NODE * nodes)
    share = share[share > 0]
    typical = float(np.median(share)) if len(share) else 0.0
    guess = next((name for name, low in _MEMORY.items() if typical >= low), "")
    if guess:
        text = (
            f"{name_of['mem']} is in GiB, and has {typical:,.6g} for each CPU: it looks like "
            f"{guess}: give 'trace.unit={{mem:{guess}}}', or 'trace.unit={{mem:GiB}}' if it is GiB"
        )
        raise InputError(text, file=path, rule="implausible unit")


def _absolute(column: Instants) -> F8:
    """Return the known times, s since the clock's zero."""
    seconds = seconds_after(column, 0)
    return seconds[~np.isnan(seconds)]


def _guess(size_s: float) -> str:
    """Return the unit that a time since 1970 is rather in; empty for s."""
    return next((unit for unit, low_s in _SMALLEST.items() if size_s >= low_s), "")
