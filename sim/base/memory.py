"""How much memory this process may still take, and whether that is enough for what is asked."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from sim.base.errors import InputError

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")
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


def available_bytes() -> int:
    """Return what the machine has left, or the container where that is less; bytes.

    Where neither can be told (not Linux), all of the machine's memory counts.
    """
    machine = _left_of_machine()
    container = _left_of_container()
    return machine if container is None else min(machine, container)


def _left_of_machine() -> int:
    with contextlib.suppress(OSError):
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _left_of_container() -> int | None:
    """Return what is left below a limit of control groups (version 2); None without one."""
    with contextlib.suppress(OSError, ValueError):
        limit = int((_CGROUP / "memory.max").read_text())  # a word where there is none
        used = int((_CGROUP / "memory.current").read_text())
        stat = (_CGROUP / "memory.stat").read_text().split()
        cache = dict(zip(stat[::2], stat[1::2], strict=False))
        return max(0, limit - used + int(cache.get("inactive_file", 0)))
    return None
