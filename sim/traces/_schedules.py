"""When a schedule runs: cron expressions, and the words that Airflow has for some."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from sim.base.arrays import F8

WORDS: Final = {
    "hourly": "0 * * * *",
    "daily": "0 0 * * *",
    "weekly": "0 0 * * 0",
    "monthly": "0 0 1 * *",
    "yearly": "0 0 1 1 *",
}
ONCE: Final = "once"

_EVERY = re.compile(r"([1-9][0-9]*)(m|h|d)")
_UNIT_S = {"m": 60.0, "h": 3600.0, "d": 86_400.0}


def is_schedule(text: str) -> bool:
    """Tell whether `run_times` knows a schedule."""
    from croniter import croniter

    plain = text.removeprefix("@")
    return (
        plain in WORDS
        or plain == ONCE
        or _EVERY.fullmatch(plain) is not None
        or croniter.is_valid(plain)
    )


def run_times(schedule: str, begin: datetime, end_s: float) -> F8:
    """Return the times in [0, end_s) at which a schedule runs, s from `begin` (UTC)."""
    from croniter import croniter_range

    plain = schedule.removeprefix("@")
    if plain == ONCE:
        return np.empty(0)
    if every := _EVERY.fullmatch(plain):
        return np.arange(0.0, end_s, int(every[1]) * _UNIT_S[every[2]])
    end = begin + timedelta(seconds=end_s)
    first = begin.astimezone(UTC)
    times = croniter_range(first, end, WORDS.get(plain, plain), exclude_ends=False)
    found = np.array([(time - first).total_seconds() for time in times], np.float64)
    return found[found < end_s]
