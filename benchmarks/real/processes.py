"""Processes of a real scheduler: ahead of other work while they run, and ended for certain."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import NoReturn

NICE = -10


def prefer(pid: int) -> None:
    """Put the session of a process, its leader, ahead of other work, if that is allowed.

    Linux shares CPUs between sessions first, where it groups processes automatically: a nice value
    then counts inside a session alone, and the group has one of its own (sched(7)).
    """
    with contextlib.suppress(PermissionError):  # only root may; lags are then longer on a busy host
        os.setpriority(os.PRIO_PGRP, pid, NICE)
        with contextlib.suppress(FileNotFoundError):
            Path(f"/proc/{pid}/autogroup").write_text(str(NICE), encoding="ascii")


def go_ahead(pids: Iterable[int]) -> bool:
    """Let processes and those that they start run before all other work; tell if that is allowed.

    For daemons that begin sessions of their own (a step of a job in Slurm is one), which `prefer`
    does not reach. They must hardly compute, as nothing else runs meanwhile.
    """
    return _schedule(pids, os.SCHED_RR, 1)


def step_back(pids: Iterable[int]) -> bool:
    """Undo `go_ahead`: ending hundreds of daemons would hold up those beside them for seconds."""
    return _schedule(pids, os.SCHED_OTHER, 0)


def _schedule(pids: Iterable[int], policy: int, priority: int) -> bool:
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").glob("*"):
            try:
                os.sched_setscheduler(int(thread.name), policy, os.sched_param(priority))
            except PermissionError:
                return False  # only root may; lags are then longer on a busy host
            except ProcessLookupError:
                continue
    return True


def wait_until_quiet(mark: str, within_s: float = 60.0) -> None:
    """Wait until processes with a mark use less than a twentieth of a core, or give up."""
    until, before_s = time.monotonic() + within_s, math.inf
    while time.monotonic() < until:
        busy_s = _cpu_s(members(mark))
        if 0 <= busy_s - before_s < 0.05:
            return
        before_s = busy_s
        time.sleep(1.0)


def _cpu_s(pids: Iterable[int]) -> float:
    """Return the CPU time that processes have used, s."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = (
                Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            )
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def end(mark: str) -> None:
    """End the processes that run with a mark, ``NAME=value`` in their environment, and theirs."""
    for number, patience_s in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0)):
        until = time.monotonic() + patience_s
        for process in members(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        while members(mark) and time.monotonic() < until:
            time.sleep(0.1)


def members(mark: str) -> list[int]:
    """Return the processes that run with a mark, and their descendants."""
    children: dict[int, list[int]] = {}
    open_ = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            marked = mark.encode() in (status.parent / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if fields[0] == "Z":
            continue
        children.setdefault(int(fields[1]), []).append(int(status.parent.name))
        if marked:
            open_.append(int(status.parent.name))
    family = set(open_)
    while open_:
        below = [child for child in children.get(open_.pop(), []) if child not in family]
        family.update(below)
        open_ += below
    return sorted(family - {os.getpid()})


def interrupt_on_signals() -> None:
    """Turn the first SIGINT or SIGTERM into KeyboardInterrupt; later ones are ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt


def exit_with(main: Callable[[], int]) -> NoReturn:
    """Run a command and exit with its code, 130 where it was interrupted."""
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
