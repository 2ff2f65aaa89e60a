"""Units of a table's numbers: as chosen, as a column's own name says, or seconds and GiB."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sim.base.errors import InputError, unknown
from sim.traces.table.columns import COLUMNS, Columns

TimeUnit = Literal["s", "ms", "us", "ns", "min", "h"]
Units: TypeAlias = TimeUnit | Mapping[str, str] | None
"""A unit of all plain numbers of time, or units by column."""

SECONDS: Mapping[str, float] = {
    "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0,
}  # fmt: skip
GIB: Mapping[str, float] = {
    "B": 2.0**-30, "KiB": 2.0**-20, "MiB": 2.0**-10, "GiB": 1.0, "TiB": 2.0**10,
}  # fmt: skip
PARTS: Mapping[str, float] = {"1": 1.0, "percent": 1e-2, "milli": 1e-3}
"""Units of ``cpus`` and ``gpus``: whole ones, hundredths, or thousandths."""
_SIZES: Mapping[str, Mapping[str, float]] = {
    "time": SECONDS, "span": SECONDS, "memory": GIB, "amount": PARTS,
}  # fmt: skip
"""Units of each kind of column that has any."""
_DEFAULT = {"time": "s", "span": "s", "memory": "GiB", "amount": "1"}
PER_DAY: Mapping[str, int] = {
    "s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9,
    "min": 1440, "h": 24,
}  # fmt: skip

_WORDS = {
    "s": r"s|secs?|seconds?",
    "ms": r"ms|msecs?|millis|milliseconds?",
    "us": r"us|usecs?|micros|microseconds?",
    "ns": r"ns|nsecs?|nanos|nanoseconds?",
    "min": r"mins?|minutes?",
    "h": r"h|hrs?|hours?",
}
_MEMORY_WORDS = {
    "B": r"b|bytes?",
    "KiB": r"ki?b",
    "MiB": r"mi?b",
    "GiB": r"gi?b",
    "TiB": r"ti?b",
}
_PART_WORDS = {"milli": r"milli(?:s|[cg]pus?|cores?)?|m(?:[cg]pus?|cores?)"}
_WORDS_OF: Mapping[str, Mapping[str, str]] = {
    "time": _WORDS, "span": _WORDS, "memory": _MEMORY_WORDS, "amount": _PART_WORDS,
}  # fmt: skip
_BEFORE = r"(?:[_\s.(\[-]|(?<=[a-z0-9])(?=[A-Z]))"


@dataclass(frozen=True)
class Unit:
    """Unit of a column, and True if the user or the column's name gives it."""

    name: str
    is_given: bool


def units_of(name_of: Columns, units: Units) -> dict[str, Unit]:
    """Return the unit of each column of times, spans, memory and amounts.

    A unit for a column goes before that of its own name (``start_ms``), which goes before a unit
    for all. The names of this format, such as ``submit_s``, say nothing: files have them with
    milliseconds, too.

    Raises
    ------
    InputError
        If there is no such column or unit.
    """
    by_column = units if isinstance(units, Mapping) else {}
    for column, unit in by_column.items():
        known = [c for c, kind in COLUMNS.items() if kind in _SIZES]
        if column not in known:
            raise InputError(f"unit: {unknown('column', column, known)}", rule="unknown column")
        valid = _SIZES[COLUMNS[column]]
        if unit not in valid:
            text = unknown("unit", unit, valid)
            raise InputError(f"unit of {column}: {text}", rule="unknown unit")
    result = {}
    for column, name in name_of.items():
        kind = COLUMNS[column]
        if kind not in _SIZES:
            continue
        own = None if name == column else _suffix(name, _WORDS_OF[kind])
        general = units if isinstance(units, str) and _SIZES[kind] is SECONDS else None
        unit_name = by_column.get(column) or own or general
        result[column] = Unit(unit_name or _DEFAULT[kind], unit_name is not None)
    return result


def _suffix(name: str, words: Mapping[str, str]) -> str | None:
    """Return the unit that a column's name ends in."""
    for unit, pattern in words.items():
        if re.search(rf"{_BEFORE}(?i:{pattern})[)\]]?$", name):
            return unit
    return None
