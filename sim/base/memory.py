"""Whether there is memory for what is asked, before any of it is taken."""

from __future__ import annotations

import os
from pathlib import Path

from sim.base.errors import InputError

MEMINFO = Path("/proc/meminfo")
LITTLE = 1e8
"""So few bytes are always there, and nothing is asked."""
_GB = 1e9


def check_memory(n_bytes: float, what: str, way_out: str) -> None:
    """Refuse `what` if this machine has no `n_bytes` of memory to spare.

    Raises
    ------
    InputError
        That names both numbers, and `way_out`.
    """
    if n_bytes <= LITTLE:
        return
    there = available_bytes()
    if n_bytes > there:
        raise InputError(
            f"{what} would take about {n_bytes / _GB:,.1f} GB of memory, and this machine has "
            f"{there / _GB:,.1f} GB to spare; {way_out}",
            rule="out of memory",
        )


def available_bytes() -> float:
    """Return how much memory can still be taken; all there is where the system does not say."""
    try:
        for line in MEMINFO.read_text().splitlines():
            name, _, amount = line.partition(":")
            if name == "MemAvailable":
                return 1024.0 * float(amount.split()[0])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError, AttributeError):  # on Windows there is no sysconf
        return float("inf")
