"""Expected starts in words: the intervals, and how far such intervals covered the past."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def answer(record: Mapping[str, Any], n_waiting: int) -> list[str]:
    """Write what was expected, and how far to trust it."""
    lines = []
    if record.get("now"):
        verb = "jobs wait" if n_waiting != 1 else "job waits"
        lines.append(
            f"{n_waiting:,} {verb} at {record['now']}; starts are the median of {record['draws']} "
            "draws, with an interval of 80 %."
        )
    return [*lines, trust(record)]


def trust(record: Mapping[str, Any]) -> str:
    """Write how far such intervals covered the past."""
    if not record["forecasts"]:
        return (
            "Nobody knows how far to trust them: at no past moment of the log did jobs wait whose "
            "starts are known."
        )
    arrivals = "jobs that come as before" if record["arrivals"] else "no job that comes"
    text = (
        f"Of {record['forecasts']:,} such starts at {record['moments']} past moments of the log, "
        f"with {arrivals}, {_percent(record['covered_drawn'])} lay within the intervals as drawn"
    )
    if record["covered"] is None:
        return f"{text}; they are too few to calibrate by."
    return (
        f"{text}; calibrated by the first half of the moments, {_percent(record['covered'])} of "
        f"the {record['tested_on']:,} of the second half (wanted: 80 %), whose expected start was "
        f"off by {_percent(record['error'])} of the time left."
    )


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"
