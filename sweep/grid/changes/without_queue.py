"""No jobs of a queue, or of several."""

from __future__ import annotations

from typing import Any

from sim.base.errors import InputError
from sweep.grid.changes import Change, Config, with_transform

ORDER = 1


def check(change: Change) -> None:
    """Refuse what is no name."""
    if not all(isinstance(name, str | int) for name in _names(change.value)):
        raise InputError(f"{change.text}: give a queue, or several as [a,b]", rule="wrong type")


def apply(parts: Config, change: Change) -> Config:
    """Drop the jobs."""
    return with_transform(
        parts, "without_queue", {"queue": [str(name) for name in _names(change.value)]}
    )


def phrase(change: Change) -> str:
    """Write ``no jobs of queue wide``."""
    names = [str(name) for name in _names(change.value)]
    return f"no jobs of {'queue' if len(names) == 1 else 'queues'} {', '.join(names)}"


def _names(value: Any) -> list[Any]:
    return [*value] if isinstance(value, list | tuple) else [value]
