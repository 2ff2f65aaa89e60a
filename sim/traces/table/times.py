"""Times of a table: numbers, or dates and times, with or without a zone.

A time is kept as a day and the seconds since its begin, so that times of any epoch lose nothing
before a zero near them is taken away.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8, I8, Mask
from sim.traces.table.forms import DATE, MISSING, NUMBER, ZONES
from sim.traces.table.units import PER_DAY, SECONDS

DAY_S = 86_400
_NS_A_DAY = DAY_S * 10**9
_MAX_DAY = 2.0**52
_PARTS = (
    r"^(?P<date>\d{4}[-/]\d\d[-/]\d\d)"
    r"(?:[T ](?P<h>\d\d):(?P<m>\d\d)(?::(?P<s>\d\d(?:[.,]\d+)?))?)?(?: ?(?P<zone>[A-Z+-].*))?$"
)


@dataclass(frozen=True, eq=False)
class Instants:
    """Points in time: whole days since 1970 and s since the begin of the day; NaN if unknown.

    `offset_s` is that of the zone, s, NaN where a text has none; numbers count as UTC.
    """

    day: I8
    second: F8
    offset_s: F8

    @property
    def known(self) -> Mask:
        """Mark the times that are known."""
        return ~np.isnan(self.second)

    @property
    def without_zone(self) -> Mask:
        """Mark the known times without a zone."""
        return self.known & np.isnan(self.offset_s)


def clock_of(texts: pa.Array) -> tuple[bool, bool]:
    """Return True if some of the texts are numbers, and True if some are dates."""
    if texts.null_count == len(texts):
        return False, False
    if is_number(texts):
        with contextlib.suppress(pa.ArrowInvalid):
            texts.cast(pa.float64())
            return True, False
    elif _fast_dates(texts) is not None:
        return False, True
    known = pc.filter(texts, pc.invert(pc.match_substring_regex(texts, f"^{MISSING}$")))
    is_date = np.asarray(pc.match_substring_regex(known, f"^{DATE}$").drop_null())
    return bool((~is_date).any()), bool(is_date.any())


def is_number(texts: pa.Array) -> bool:
    """Tell whether the first known text is a number: a cast of others takes long to fail."""
    position = texts.is_valid().index(pa.scalar(True)).as_py()
    return position >= 0 and re.fullmatch(NUMBER, texts[position].as_py()) is not None


def to_instants(column: pa.Array, unit: str, *, is_dates: bool) -> Instants:
    """Convert texts, numbers in a unit or timestamps; texts are of the form of dates or numbers."""
    if pa.types.is_timestamp(column.type):
        return _from_ticks(column, column.type.unit, has_zone=column.type.tz is not None)
    if pa.types.is_string(column.type):
        return _from_dates(column) if is_dates else _from_numbers(to_numbers(column), unit)
    if pa.types.is_integer(column.type):
        return _from_numbers(column, unit)
    return _from_numbers(column.to_numpy(zero_copy_only=False), unit)


def to_numbers(texts: pa.Array) -> Any:
    """Return texts of numbers as float64, or as an integer array if floats would round them.

    Words are unknown: NaN, or null.
    """
    try:
        numbers = texts.cast(pa.float64())
    except pa.ArrowInvalid:
        matches = pc.match_substring_regex(texts, f"^({NUMBER})$")
        texts = pc.if_else(matches, texts, pa.scalar(None, pa.string()))
        numbers = texts.cast(pa.float64())
    values: F8 = numbers.to_numpy(zero_copy_only=False)
    if (np.abs(values[~np.isnan(values)]) >= 2.0**53).any():
        try:
            return texts.cast(pa.int64())
        except pa.ArrowInvalid:
            pass
    return values


def scaled(numbers: F8, unit: str) -> F8:
    """Convert numbers in a unit to s, rounded once."""
    if PER_DAY[unit] >= DAY_S:
        return numbers / (PER_DAY[unit] // DAY_S)
    return numbers * SECONDS[unit]


def first_day(*columns: Instants) -> int:
    """Return the first day of all known times, 0 if none is known."""
    firsts = [int(column.day[column.known].min()) for column in columns if column.known.any()]
    return min(firsts, default=0)


def seconds_after(instants: Instants, day: int) -> F8:
    """Return the times in s after the begin of a day, UTC; NaN if unknown."""
    seconds: F8 = (instants.day - day) * float(DAY_S) + instants.second
    return seconds - np.nan_to_num(instants.offset_s)


def _from_numbers(numbers: Any, unit: str) -> Instants:
    if isinstance(numbers, pa.Array):
        return _from_ticks(numbers, unit, has_zone=True)
    per_day = PER_DAY[unit]
    days = np.clip(np.floor(np.nan_to_num(numbers) / per_day), -_MAX_DAY, _MAX_DAY)
    rest = numbers - days * per_day
    return Instants(days.astype(np.int64), scaled(rest, unit), _constant(0.0, len(rest)))


def _from_ticks(column: pa.Array, unit: str, *, has_zone: bool) -> Instants:
    """Convert whole numbers in a unit."""
    is_unknown = np.asarray(column.is_null())
    ticks = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    day, rest = np.divmod(ticks, PER_DAY[unit])
    second = np.where(is_unknown, np.nan, scaled(rest.astype(np.float64), unit))
    return Instants(day, second, _constant(0.0 if has_zone else np.nan, len(day)))


def _fast_dates(texts: pa.Array) -> tuple[I8, Mask, bool] | None:
    """Return ns since 1970 of texts that all have a zone or all have none; None for others."""
    for zone in (None, "UTC"):
        try:
            ns = texts.cast(pa.timestamp("ns", zone)).cast(pa.int64())
        except pa.ArrowInvalid:
            continue
        known = np.asarray(texts.is_valid())
        return ns.fill_null(0).to_numpy(zero_copy_only=False), known, zone is not None
    return None


def _from_dates(texts: pa.Array) -> Instants:
    fast = _fast_dates(texts)
    if fast is not None:
        ns, known, has_zone = fast
        day, rest = np.divmod(ns, _NS_A_DAY)
        second = np.where(known, rest / 1e9, np.nan)
        return Instants(day, second, _constant(0.0 if has_zone else np.nan, len(day)))
    parts = pc.extract_regex(texts, _PARTS)
    date = pc.replace_substring(pc.struct_field(parts, "date"), "/", "-")
    begin = pc.strptime(date, "%Y-%m-%d", "s", error_is_null=True).cast(pa.int64())
    known = np.asarray(begin.is_valid())
    day = begin.fill_null(0).to_numpy(zero_copy_only=False) // DAY_S
    h, m, s = (_part(parts, name) for name in ("h", "m", "s"))
    second = np.where(known, h * 3600.0 + m * 60.0 + s, np.nan)
    return Instants(day, second, _offsets_s(pc.struct_field(parts, "zone")))


def _offsets_s(zones: pa.Array) -> F8:
    """Return the offset of each zone, such as ``+01:00`` or ``CET``, s; NaN for none."""
    coded = zones.dictionary_encode()
    offsets = [np.nan if not zone else offset_s(zone) for zone in coded.dictionary.to_pylist()]
    codes = coded.indices.fill_null(len(offsets)).to_numpy(zero_copy_only=False)
    result: F8 = np.array([*offsets, np.nan])[codes]
    return result


def offset_s(zone: str) -> float:
    """Return the offset of a zone, such as ``+01:00``, ``+01``, ``+0100`` or ``CET``, s."""
    if zone in ZONES:
        return ZONES[zone] * 3600.0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    size = int(digits[:2]) * 3600.0 + int(digits[2:]) * 60.0
    return -size if zone[0] == "-" else size


def _constant(value: float, n: int) -> F8:
    """Return an array of one value, which takes no memory."""
    return np.broadcast_to(np.float64(value), (n,))


def _part(parts: pa.Array, name: str) -> F8:
    """Return a part as a number; 0 where it is missing."""
    texts = pc.replace_substring(pc.struct_field(parts, name), ",", ".")
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    numbers: F8 = texts.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.nan_to_num(numbers)
