"""Spans, counts and amounts of memory of a table, from texts or numbers."""

from __future__ import annotations

import contextlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8, Mask
from sim.traces.table.forms import CLOCK, MISSING, NUMBER
from sim.traces.table.times import is_number, scaled, to_numbers
from sim.traces.table.units import GIB

_CLOCK_PARTS = r"^(?:(?P<d>\d+)(?:-| days?,? ))?(?P<h>\d+):(?P<m>\d+):(?P<s>\d+(?:\.\d+)?)$"
_WORD_PARTS = (
    r"^(?:(?P<d>[\d.]+) ?(?:d|days?),? ?)?(?:(?P<h>[\d.]+) ?(?:h|hrs?|hours?),? ?)?"
    r"(?:(?P<m>[\d.]+) ?(?:m|mins?|minutes?),? ?)?(?:(?P<s>[\d.]+) ?(?:s|secs?|seconds?),? ?)?"
    r"(?:(?P<ms>[\d.]+) ?(?:ms|milliseconds?))?$"
)
_MEMORY_PARTS = r"^(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?) ?(?P<unit>(?i:[kmgtp]?))(?i:i?b?)$"
_FACTORS = {
    "K": GIB["KiB"], "M": GIB["MiB"], "G": 1.0, "T": GIB["TiB"], "P": 2.0**20,
}  # fmt: skip


def spans_s(column: pa.Array, unit: str) -> F8:
    """Return spans in s; plain numbers are in a unit. NaN for unknown ones, and for no limit."""
    if pa.types.is_duration(column.type):
        return scaled(_plain(column.cast(pa.int64())), column.type.unit)
    if not pa.types.is_string(column.type):
        return scaled(_plain(column), unit)
    if is_number(column):
        with contextlib.suppress(pa.ArrowInvalid):
            return scaled(_plain(column.cast(pa.float64())), unit)
    is_clock = _matches(column, f"^{CLOCK}$")
    if is_clock.all():
        return _sum_of_parts(pc.extract_regex(column, _CLOCK_PARTS))
    is_plain = _matches(column, f"^({NUMBER})$")
    is_words = ~is_clock & ~is_plain & ~_matches(column, f"^{MISSING}$")
    spans = np.full(len(column), np.nan)
    spans[is_plain] = scaled(_plain(column.filter(pa.array(is_plain)).cast(pa.float64())), unit)
    for rows, pattern in ((is_clock, _CLOCK_PARTS), (is_words, _WORD_PARTS)):
        spans[rows] = _sum_of_parts(pc.extract_regex(column.filter(pa.array(rows)), pattern))
    return spans


def numbers(column: pa.Array) -> F8:
    """Return counts or other numbers; NaN for unknown ones."""
    if pa.types.is_string(column.type):
        values = to_numbers(column)
        return _plain(values) if isinstance(values, pa.Array) else values
    return _plain(column)


def memory_gib(column: pa.Array, unit: str) -> F8:
    """Return amounts of memory in GiB; plain numbers are in a unit. NaN for unknown ones."""
    if not pa.types.is_string(column.type):
        return _plain(column) * GIB[unit]
    if is_number(column):
        with contextlib.suppress(pa.ArrowInvalid):
            return _plain(column.cast(pa.float64())) * GIB[unit]
    parts = pc.extract_regex(column, _MEMORY_PARTS)
    letters = pc.utf8_upper(pc.struct_field(parts, "unit")).fill_null("").dictionary_encode()
    factors = np.array([_FACTORS.get(x, GIB["B"]) for x in letters.dictionary.to_pylist()])
    factor = factors[letters.indices.to_numpy(zero_copy_only=False)]
    factor = np.where(have_units(column), factor, GIB[unit])
    return _plain(pc.struct_field(parts, "number").cast(pa.float64())) * factor


def have_units(column: pa.Array) -> Mask:
    """Mark amounts of memory that are texts with a unit."""
    if not pa.types.is_string(column.type):
        return np.zeros(len(column), dtype=bool)
    return _matches(column, "(?i)[kmgtpb]")


def _matches(texts: pa.Array, pattern: str) -> Mask:
    """Mark the texts that match; null does not."""
    matches = pc.match_substring_regex(texts, pattern).fill_null(False)
    return np.asarray(matches, dtype=bool)


def _sum_of_parts(parts: pa.Array) -> F8:
    """Return days, hours, minutes, seconds and ms together, s."""
    total = np.where(np.asarray(parts.is_valid()), 0.0, np.nan)
    for name, size_s in (("d", 86_400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0), ("ms", 1e-3)):
        if parts.type.get_field_index(name) >= 0:
            texts = pc.struct_field(parts, name)
            texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
            total += np.nan_to_num(_plain(texts.cast(pa.float64()))) * size_s
    return total


def _plain(column: pa.Array) -> F8:
    values: F8 = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values.copy() if not values.flags.writeable else values
