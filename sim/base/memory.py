"""How much memory this process may still take."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


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
