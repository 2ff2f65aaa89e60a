"""How much memory this process may still take, and whether that is enough for what is asked."""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path

from sim.base.errors import InputError

_MEMINFO = Path("/proc/meminfo")
_STATM = Path("/proc/self/statm")
_CGROUP = Path("/sys/fs/cgroup")
NEGLIGIBLE_BYTES = 1e8
"""So few bytes are always there, and nothing is asked."""
_GB = 1e9
COPIES = 4
"""Of a table: as read, put in order, as columns, and where workers read it."""


def check_memory(n_bytes: float, subject: str, way_out: str) -> None:
    """Refuse `what` if this machine has no `n_bytes` of memory to spare.

    Raises
    ------
    InputError
        That names both numbers, and `way_out`.
    """
    if n_bytes <= NEGLIGIBLE_BYTES:
        return
    there = available_bytes()
    if n_bytes > there:
        raise InputError(
            f"{subject} would take about {n_bytes / _GB:,.1f} GB of memory, and this machine has "
            f"{there / _GB:,.1f} GB to spare; {way_out}",
            rule="out of memory",
        )


class MemoryGuard:
    """Refuses a file while it is read, if it takes more memory than it may.

    That is a part of what is free at the beginning: what was read is there some `copies` times
    until it is simulated.
    """

    def __init__(self, path: str | os.PathLike[str], copies: float = COPIES) -> None:
        self._path = path
        self._copies = copies
        self._begun_bytes = _own_bytes()
        self._free_bytes = available_bytes()

    def check(self, line: int | None = None) -> None:
        """Refuse the file, at a line, if this process has grown too much since the beginning.

        Raises
        ------
        InputError
            That names how much was taken, how much may be, and the way out.
        """
        taken = _own_bytes() - self._begun_bytes
        if taken > max(NEGLIGIBLE_BYTES, self._free_bytes / self._copies):
            raise InputError(
                f"what was read so far takes {taken / _GB:,.1f} GB of memory, and it is there "
                f"{self._copies:g} times until it is simulated; {self._free_bytes / _GB:,.1f} GB "
                "were free: take a part of it, or a larger machine",
                file=self._path,
                line=line,
                rule="too large",
            )


def available_bytes() -> int:
    """Return what the machine has left, or the container or process where that is less; bytes.

    Where none can be told (not Linux), all of the machine's memory counts.
    """
    limits = (_left_of_container(), _left_of_process())
    return min([_left_of_machine(), *(left for left in limits if left is not None)])


def _left_of_machine() -> int:
    with contextlib.suppress(OSError):
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _left_of_process() -> int | None:
    """Return what is left below a limit on this process's addresses; None without one."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    pages = _pages()
    if limit == resource.RLIM_INFINITY or pages is None:
        return None
    return max(0, limit - pages[0])


def _own_bytes() -> int:
    """Return how much memory this process has; 0 where that can't be told."""
    pages = _pages()
    return 0 if pages is None else pages[1]


def _pages() -> tuple[int, int] | None:
    """Return this process's addresses and memory, in bytes."""
    with contextlib.suppress(OSError, ValueError):
        addresses, resident, *_ = _STATM.read_text().split()
        size = os.sysconf("SC_PAGE_SIZE")
        return int(addresses) * size, int(resident) * size
    return None


def _left_of_container() -> int | None:
    """Return what is left below a limit of control groups (version 2); None without one."""
    with contextlib.suppress(OSError, ValueError):
        limit = int((_CGROUP / "memory.max").read_text())  # a word where there is none
        used = int((_CGROUP / "memory.current").read_text())
        stat = (_CGROUP / "memory.stat").read_text().split()
        cache = dict(zip(stat[::2], stat[1::2], strict=False))
        return max(0, limit - used + int(cache.get("inactive_file", 0)))
    return None
