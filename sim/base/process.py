"""Process identity, unique across machines, reboots and reused process numbers."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple


class Process(NamedTuple):
    """A process; its number is meaningful only within its machine and namespace."""

    machine: str  # digest of the machine's id, its boot's and the namespace of process numbers
    pid: int
    start: int  # start in the kernel's ticks since the boot, as process numbers are reused

    def __str__(self) -> str:
        return f"{self.machine}-{self.pid}-{self.start}"


def current() -> Process:
    """Return this process; another one after a fork."""
    return _process(os.getpid())


@lru_cache(maxsize=1)
def _process(pid: int) -> Process:
    return Process(_machine(), pid, _start(pid) or 0)


def has_ended(process: Process) -> bool | None:
    """Check that a process has ended; None if it is not visible from here."""
    if process.machine != _machine():
        return None
    return _start(process.pid) != process.start


@lru_cache(maxsize=1)
def _machine() -> str:
    parts = [os.uname().nodename]
    for file in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
        try:
            parts.append(Path(file).read_text(encoding="utf-8").strip())
        except OSError:
            parts.append("")
    try:
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    except OSError:
        parts.append("")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _start(pid: int) -> int | None:
    """Return the start of a process; 0 if it exists but its start is unknown, None if it ended."""
    try:
        # the name, in brackets, may hold anything
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        return 0
    return 0
