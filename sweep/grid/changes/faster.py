"""Machines so many times as fast; requested times stay as they are."""

from __future__ import annotations

from sim.base.parameters import Positive
from sim.base.parameters import check as check_value
from sweep.grid.changes import Change, Config, times, with_transform

ORDER = 4


def check(change: Change) -> None:
    """Refuse what is no factor."""
    check_value(change.full_key, change.value, Positive)


def apply(parts: Config, change: Change) -> Config:
    """Divide durations."""
    return with_transform(parts, "faster", {"factor": float(change.value)})


def phrase(change: Change) -> str:
    """Write ``1.5 times as fast machines``."""
    return f"{times(change.value)} as fast machines"
