"""Times as a table has them: numbers of seconds, dates and times, or spans of hours and minutes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8
from sim.base.reading import Field

NUMBER = r"-?\d{1,15}(\.\d{1,18})?([eE][+-]?\d{1,2})?"
DATE = (
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
    r"([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?( ?(Z|UTC|[+-]\d\d:?\d\d))?)?"
)
_SPAN = r"(\d{1,6}-)?\d{1,6}:[0-5]\d:[0-5]\d(\.\d{1,9})?"
SECONDS = Field(form=f"^({NUMBER})$", example="86400")
DATES = Field(form=f"^({DATE})$", example="2026-03-01 09:30:00")
EITHER = Field(form=f"^({NUMBER}|{DATE})$", example="86400 or 2026-03-01 09:30:00")
SPANS = Field(form=f"^({NUMBER}|{_SPAN})$", example="86400 or 1-00:00:00")
_PARTS = (
    r"^(?P<date>\d{4}-\d\d-\d\d)(?:[T ](?P<h>\d\d):(?P<m>\d\d)(?::(?P<s>\d\d(?:\.\d+)?))?)?"
    r"(?: ?(?:Z|UTC|(?P<zone>[+-]\d\d):?(?P<zone_m>\d\d)))?$"
)
_SPAN_PARTS = r"^(?:(?P<d>\d+)-)?(?P<h>\d+):(?P<m>\d+):(?P<s>\d+(?:\.\d+)?)$"


def kind_of(columns: Sequence[pa.Array]) -> tuple[Field, bool]:
    """Return the form of columns of times, that of their first value, and True if one differs."""
    dates = [pc.match_substring_regex(texts, DATES.form).drop_null() for texts in columns]
    first = next((column[0].as_py() for column in dates if len(column)), False)
    is_mixed = any(pc.any(pc.not_equal(column, first)).as_py() for column in dates if len(column))
    return DATES if first else SECONDS, bool(is_mixed)


def seconds(texts: pa.Array) -> F8:
    """Return texts of the form `SECONDS` as numbers; NaN for null."""
    numbers: F8 = texts.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


def dates_s(texts: pa.Array) -> F8:
    """Return texts of the form `DATES` in s since 1970, UTC; NaN for null and for 31 February."""
    parts = pc.extract_regex(texts, _PARTS)
    day = pc.strptime(pc.struct_field(parts, "date"), "%Y-%m-%d", "s", error_is_null=True)
    whole = day.cast(pa.int64()).cast(pa.float64()).to_numpy(zero_copy_only=False)
    h, m, s, zone, zone_m = (_part(parts, name) for name in ("h", "m", "s", "zone", "zone_m"))
    is_west = np.asarray(pc.starts_with(pc.struct_field(parts, "zone"), "-").fill_null(False))
    offset_s = zone * 3600.0 + np.where(is_west, -1.0, 1.0) * zone_m * 60.0
    time_s: F8 = whole + h * 3600.0 + m * 60.0 + s - offset_s
    return time_s


def spans_s(texts: pa.Array) -> F8:
    """Return texts of the form `SPANS`, s; NaN for null."""
    parts = pc.extract_regex(texts, _SPAN_PARTS)
    is_span = parts.is_valid()
    d, h, m, s = (_part(parts, name) for name in ("d", "h", "m", "s"))
    plain = seconds(pc.if_else(is_span, pa.scalar(None, pa.string()), texts))
    return np.where(np.asarray(is_span), d * 86400.0 + h * 3600.0 + m * 60.0 + s, plain)


def _part(parts: pa.Array, name: str) -> F8:
    """Return a part as a number; 0 where it is missing."""
    texts = pc.struct_field(parts, name)
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    return np.nan_to_num(seconds(pc.utf8_ltrim(texts, "+")))
