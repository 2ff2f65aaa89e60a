"""Variation over time and over space, and load in windows, beside the paper's Tables 4 and 5."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sweep.report.findings import Finding, Finished

TRACES = {
    "slearn_2sigma": "2Sigma",
    "slearn_google2011": "Google 2011",
    "slearn_google2019": "Google 2019",
}
"""Presets, and the traces that they are like."""

SHORT, WALLS = "slearn_google2011_real", "slearn_google2011_walls"
REAL = {
    SHORT: "Google 2011, own trace, 9.8 hours of tasks",
    WALLS: "Google 2011, own trace, wall times of jobs over 29 days",
}

OVER_TIME = {
    "2Sigma": (14, 1.00, 3.10),
    "Google 2011": (3, 0.20, 0.73),
    "Google 2019": (3, 1.35, 1.67),
}
"""Window in days, median and 90th percentile."""

OVER_SPACE = {"2Sigma": (0.18, 0.55), "Google 2011": (0.04, 0.58), "Google 2019": (0.70, 1.33)}
LOAD = {
    "2Sigma": (1.05, 0.13, 2.47),
    "Google 2011": (1.01, 0.29, 1.49),
    "Google 2019": (1.04, 0.09, 0.91),
}
"""Mean, median and 90th percentile in windows of 1000 s."""

WITHIN = 0.1
"""How near a preset is to come to each figure."""


def find(finished: Finished) -> list[Finding]:
    """Average each figure over seeds."""
    found = []
    for (trace,), cells in finished.by("trace").items():
        like = TRACES.get(trace)
        paper = like or "Google 2011"
        days, *time = OVER_TIME[paper]
        printed = {
            **_by_name(f"over_time_{days}d", ("p50", "p90"), time),
            **_by_name("over_space", ("p50", "p90"), OVER_SPACE[paper]),
            **_by_name("load", ("average", "p50", "p90"), LOAD[paper]),
        }
        others = [f"over_time_{n}d_{p}" for n in (3, 7, 14) if n != days for p in ("p50", "p90")]
        for name in [*printed, *(others if trace != SHORT else ()), "thin"]:
            values = [row[name] for row in cells if name in row and _is_number(row[name])]
            if not values or (trace == WALLS and not name.startswith("over")):
                continue
            value = printed.get(name)
            wanted = {}
            if like and value is not None:
                wanted = {"at_least": value * (1 - WITHIN), "at_most": value * (1 + WITHIN)}
            text = "" if value is None else f"{value:g}"
            figure = like or REAL.get(trace, trace)
            what = name.replace("_", " ")
            found.append(Finding.of(figure, what, values, paper=text, **wanted))
    return found


def _by_name(name: str, parts: tuple[str, ...], values: Sequence[float]) -> dict[str, float]:
    return {f"{name}_{part}": value for part, value in zip(parts, values, strict=True)}


def _is_number(value: object) -> bool:
    return isinstance(value, float) and not math.isnan(value)
