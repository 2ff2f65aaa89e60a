"""Seal of a candidate's process: no files, no network, no other processes, limited time and memory.

Four walls, of which each holds by itself:

- *nothing to read*: the process has no truth, no test seed and no other candidate in its memory,
  and no open file but its two pipes and one with counters (`sweep.questions.evaluate.nursery`);
- *system calls* (Linux on x86-64 and AArch64): a seccomp filter allows those that compute, and
  read and write open files. All others fail with EPERM: open, socket, connect, fork, exec, kill,
  ptrace. No code in the process can take it away again;
- *limits* (POSIX): CPU time, address space, and of others than root no new process and no file;
- *Python's audit hook* (everywhere) refuses files, sockets and processes by name, which gives the
  error a line in the candidate. Where there is no filter, code that calls C by itself goes past it.

A process of root becomes that of nobody first.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import resource
import struct
import sys
from typing import Any

_NOBODY = 65534
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER, _DUMPABLE = 38, 22, 2, 4
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | 1, 0x80000000
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_AT_ARCH, _AT_NUMBER = 4, 0

# by name: x86-64, AArch64; -1 where it does not exist
_ALLOWED = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "poll": (7, -1),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "readv": (19, 65),
    "writev": (20, 66),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "nanosleep": (35, 101),
    "getpid": (39, 172),
    "exit": (60, 93),
    "getcwd": (79, 17),
    "gettimeofday": (96, 169),
    "getrusage": (98, 165),
    "sysinfo": (99, 179),
    "times": (100, 153),
    "getuid": (102, 174),
    "getgid": (104, 176),
    "geteuid": (107, 175),
    "getegid": (108, 177),
    "getppid": (110, 173),
    "sigaltstack": (131, 132),
    "gettid": (186, 178),
    "futex": (202, 98),
    "sched_getaffinity": (204, 123),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "ppoll": (271, 73),
    "set_robust_list": (273, 99),
    "getrandom": (318, 278),
    "membarrier": (324, 283),
    "rseq": (334, 293),
}
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_REFUSED_EVENTS = (
    *("open", "socket.", "subprocess.", "os.", "shutil.", "pty.", "ctypes.dlopen"),
    *("glob.", "tempfile.", "urllib.", "http.", "ftplib.", "smtplib.", "sqlite3.", "signal."),
    *("fcntl.", "resource.", "syslog.", "webbrowser."),
)


def seal(cpu_s: float, memory_mb: float) -> bool:
    """Close the process; return False where system calls can't be filtered."""
    _become_nobody()
    seconds = max(1, math.ceil(cpu_s))
    _limit(resource.RLIMIT_CPU, seconds)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_NPROC, 0)
    _limit(resource.RLIMIT_AS, _address_space() + int(memory_mb * 2**20))
    is_filtered = _filter()
    sys.addaudithook(_refuse)
    return is_filtered


def _become_nobody() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    at_most = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (at_most, at_most))


def _address_space() -> int:
    """Return the address space that the process has now, bytes."""
    try:
        with open("/proc/self/statm") as file:  # noqa: PTH123 - Path is slower, in each process
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 2**33


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse what a candidate has no business with (an audit hook)."""
    if event.startswith(_REFUSED_EVENTS):
        shown = ", ".join(repr(argument)[:80] for argument in arguments[:1])
        raise PermissionError(f"a candidate has no files, network or processes: {event}({shown})")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def _filter() -> bool:
    """Allow only the system calls in `_ALLOWED`, for good; return False where that can't be."""
    if sys.platform != "linux" or platform.machine() not in _ARCHITECTURES:
        return False
    column, architecture = _ARCHITECTURES[platform.machine()]
    numbers = sorted(pair[column] for pair in _ALLOWED.values() if pair[column] >= 0)
    n = len(numbers)
    program = [(_LOAD, 0, 0, _AT_ARCH), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL)]
    program += [(_LOAD, 0, 0, _AT_NUMBER)]
    program += [(_EQUAL, n - i, 0, number) for i, number in enumerate(numbers)]
    program += [(_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    code = b"".join(struct.pack("<HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    address = ctypes.cast(buffer, ctypes.c_void_p)
    filters = _Program(len(program), address)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return False
    return bool(libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(filters), 0, 0) == 0)
