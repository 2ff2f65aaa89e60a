"""What is published of the Cosmos cluster (Chung et al., OSDI 2020), and how much it may differ."""

from __future__ import annotations

from typing import Final

JOBS_A_DAY: Final = 40_000
"""§6.3."""

DEPENDENCIES_PER_JOB: Final = 4.0
"""160,000 dependencies a day (§6.3)."""

ORGANISATIONS: Final = 150
USERS: Final = 1300
"""§1: more than 150 organisations, over 1300 users."""

RECURRING: Final = 0.68
"""Of jobs (Observation 1)."""

DEPENDENT: Final = 0.80
"""Jobs that depend on another one (§1: nearly 80 %)."""

BLIND: Final = 0.34
"""Of recurring jobs (Observation 3)."""

HIGH_AD_HOC: Final = 0.33
"""Ad hoc jobs above the average recurring job of their queue (Observation 2)."""

INVERTED_TEMPLATES: Final = 0.21
INVERTED_JOBS: Final = 0.13
"""Templates with a recurring consumer of higher priority; jobs that depend on one of lower."""

VALUE_RATIO: Final = 9.0
"""Value of recurring jobs over that of ad hoc ones (§7.1)."""

PEAK: Final = 0.60
"""Of the cluster that requests take at most (§7.3, Fig. 7)."""

SHIFT_H: Final = (1, 3, 6, 12)
SHIFTABLE: Final = (0.31, 0.27, 0.22, 0.14)
"""Jobs that could run that many hours later (Observation 6)."""

CROSS_TEMPLATES: Final = 0.17
"""Dependencies between templates that cross organisations (Observation 4)."""

WEEK_S: Final = 7 * 86_400.0

TARGETS: Final[dict[str, tuple[float, float, str]]] = {
    "jobs a day / scale": (JOBS_A_DAY, 2000, "§6.3"),
    "dependencies a job": (DEPENDENCIES_PER_JOB, 0.3, "§6.3"),
    "recurring jobs": (RECURRING, 0.015, "Obs. 1"),
    "recurring dependencies": (0.79, 0.03, "Obs. 1"),
    "blind, of recurring jobs": (BLIND, 0.03, "Obs. 3"),
    "inverted templates": (INVERTED_TEMPLATES, 0.03, "Obs. 2"),
    "jobs that depend on lower priority": (INVERTED_JOBS, 0.02, "Obs. 2"),
    "ad hoc jobs above the average recurring": (HIGH_AD_HOC, 0.03, "Obs. 2"),
    "organisations with cross-organisation dependencies": (0.95, 0.051, "Obs. 4"),
    "cross-organisation dependencies": (0.33, 0.04, "Obs. 4"),
    "cross-organisation template dependencies": (CROSS_TEMPLATES, 0.04, "Obs. 4"),
    "jobs in cross-organisation dependencies": (0.28, 0.04, "Obs. 4"),
    "recurring jobs in cross-organisation dependencies": (0.23, 0.04, "Obs. 4"),
    "jobs that depend on another": (DEPENDENT, 0.03, "§1"),
    **{f"shiftable by {h} h": (s, 0.04, "Obs. 6") for h, s in zip(SHIFT_H, SHIFTABLE, strict=True)},
    "dependencies within a week": (0.98, 0.015, "§4.2"),
    "templates less than a week apart": (0.89, 0.03, "§4.2"),
    "value of recurring over ad hoc": (VALUE_RATIO, 0.5, "§7.1"),
    "peak of requests": (PEAK, 0.01, "§7.3"),
    "Zipf exponent of local value": (1.0, 0.05, "§6.3"),
}
"""Wanted, how far off it may be, and where it is from."""

AT_LEAST: Final[dict[str, tuple[float, str]]] = {
    "jobs in the largest component": (0.50, "Obs. 5"),
    "jobs in components of 10 or more": (0.80, "Obs. 5"),
    "templates a day apart or less": (0.50, "§4.5.1"),
}
"""Figures that are published as lower bounds."""


def n_organisations(scale: float) -> int:
    """Return how many organisations there are at a scale: 150 at full scale, 5 at least.

    They shrink like the jobs, so that a queue has as many jobs at once at every scale.
    """
    return max(5, round(ORGANISATIONS * scale))


def queue_shares(organisations: int) -> dict[str, float]:
    """Return the hard share of each organisation's queue, falling like 1 / (rank + 2).

    How uneven they are is not published. The largest of 150 has 8 % and the smallest 0.16 %.
    """
    weight = [1.0 / (rank + 3) for rank in range(organisations)]
    return {f"org-{letters(rank)}": w / sum(weight) for rank, w in enumerate(weight)}


def letters(number: int, width: int = 3) -> str:
    """Return a number as letters, as names with digits are taken for dated ones."""
    text = ""
    for _ in range(width):
        number, digit = divmod(number, 26)
        text = chr(97 + digit) + text
    return text
