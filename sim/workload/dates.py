"""Conversion of dates and times of submission into seconds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from sim.base.errors import InputError


def is_date(value: Any) -> bool:
    """Tell whether a value is a date and time of Python, NumPy or pandas."""
    return isinstance(value, datetime | np.datetime64)


def to_seconds(dates: Sequence[Any]) -> tuple[list[float], str]:
    """Convert dates and times into seconds since the earliest of them.

    Parameters
    ----------
    dates : sequence of datetime.datetime, pandas.Timestamp or numpy.datetime64
        All with a time zone, or all without: then they are taken as UTC.

    Returns
    -------
    seconds : list of float
        To the microsecond.
    zero : str
        What second 0 is, e.g. ``2026-03-01T09:30:00+00:00 (no time zone given: taken as UTC)``.

    Raises
    ------
    InputError
        If a value is no date and time, or if some have a time zone and others none.
    """
    parsed = [_parse(date) for date in dates]
    has_zone = [date.tzinfo is not None for date in parsed]
    if any(has_zone) and not all(has_zone):
        bad = dates[has_zone.index(False)]
        raise InputError(
            f"submit_s: {bad!r} has no time zone but others have one; give all of them one, or "
            "none (then they are taken as UTC)",
            rule="mixed time zones",
        )
    zoned = parsed if all(has_zone) else [date.replace(tzinfo=UTC) for date in parsed]
    first = min(zoned)
    words = "" if all(has_zone) else " (no time zone given: taken as UTC)"
    return [(date - first).total_seconds() for date in zoned], first.isoformat() + words


def _parse(value: Any) -> datetime:
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if not isinstance(value, datetime) or value != value:  # NaT
        raise InputError(
            f"submit_s: {value!r} is no date and time; other jobs have one: give all jobs dates, "
            "or all of them seconds",
            rule="wrong type",
        )
    return value
