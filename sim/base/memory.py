"""Available memory, and refusal of inputs that need more."""

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
"""Up to this size no check is made: such an amount is always available."""
_GB = 1e9
COPIES = 4
"""Copies of a table: as read, sorted, as columns, and in the memory that workers share."""


def check_memory(n_bytes: float, subject: str, way_out: str) -> None:
    """Refuse `subject` if less than `n_bytes` of memory is available.

    Raises
    ------
    InputError
        With the needed and the available memory, and `way_out`.
    """
    if n_bytes <= NEGLIGIBLE_BYTES:
        return
    available = available_bytes()
    if n_bytes > available:
        raise InputError(
            f"{subject} would take about {n_bytes / _GB:,.1f} GB of memory, and this machine has "
            f"{available / _GB:,.1f} GB to spare; {way_out}",
            rule="out of memory",
        )


class MemoryGuard:
    """Memory limit for reading a file: the memory free at the start over `copies`.

    The content exists in up to `copies` copies before it is simulated.
    """

    def __init__(self, path: str | os.PathLike[str], copies: float = COPIES) -> None:
        self._path = path
        self._copies = copies
        self._start_bytes = _resident_bytes()
        self._free_bytes = available_bytes()

    def check(self, line: int | None = None) -> None:
        """Refuse the file, at a line, if this process has grown beyond the limit.

        Raises
        ------
        InputError
            With the memory used, the memory that was free, and the way out.
        """
        used = _resident_bytes() - self._start_bytes
        if used > max(NEGLIGIBLE_BYTES, self._free_bytes / self._copies):
            raise InputError(
                f"the part read so far takes {used / _GB:,.1f} GB of memory, and a simulation "
                f"needs {self._copies:g} copies of it; {self._free_bytes / _GB:,.1f} GB were free: "
                "take a part of the file, or a larger machine",
                file=self._path,
                line=line,
                rule="too large",
            )


def available_bytes() -> int:
    """Return the memory available to this process: of the machine, container or process limit.

    On systems other than Linux this is all of the machine's memory.
    """
    limits = (_container_bytes(), _process_bytes())
    return min([_machine_bytes(), *(limit for limit in limits if limit is not None)])


def _machine_bytes() -> int:
    with contextlib.suppress(OSError):
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _process_bytes() -> int | None:
    """Return the space below this process's limit on addresses; None without a limit."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    pages = _pages()
    if limit == resource.RLIM_INFINITY or pages is None:
        return None
    return max(0, limit - pages[0])


def _resident_bytes() -> int:
    """Return the resident memory of this process; 0 if unknown."""
    pages = _pages()
    return 0 if pages is None else pages[1]


def _pages() -> tuple[int, int] | None:
    """Return this process's address space and resident memory, in bytes."""
    with contextlib.suppress(OSError, ValueError):
        addresses, resident, *_ = _STATM.read_text().split()
        size = os.sysconf("SC_PAGE_SIZE")
        return int(addresses) * size, int(resident) * size
    return None


def _container_bytes() -> int | None:
    """Return the memory below a control group limit (version 2); None without a limit."""
    with contextlib.suppress(OSError, ValueError):
        limit = int((_CGROUP / "memory.max").read_text())  # "max" without a limit
        used = int((_CGROUP / "memory.current").read_text())
        stat = (_CGROUP / "memory.stat").read_text().split()
        cache = dict(zip(stat[::2], stat[1::2], strict=False))
        return max(0, limit - used + int(cache.get("inactive_file", 0)))
    return None
