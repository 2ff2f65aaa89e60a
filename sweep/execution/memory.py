"""Memory that is free again but that this process still holds."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Iterator

import pyarrow as pa

_MMAP_THRESHOLD = -3  # of glibc's mallopt
_LARGE = 2**20
_SELDOM = 1000


def keep_no_large() -> None:
    """Let what is large go back to the machine as soon as it is freed.

    By itself glibc keeps pieces of up to 32 MB, once one was freed, for who asks next. It is of the
    whole process, so the command line's: who calls `sweep.run` has a process of their own.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE)


@contextlib.contextmanager
def collecting_seldom() -> Iterator[None]:
    """Look less often for what only holds itself, among all that this process holds.

    Cells on their way are millions of objects, to a driver of thousands of slots, and each look at
    all of them takes a second. What is young is looked through as before.
    """
    before = gc.get_threshold()
    gc.set_threshold(*before[:2], _SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def give_back() -> None:
    """Give it to the machine, as far as the system's allocator lets that be asked for."""
    gc.collect()
    pa.default_memory_pool().release_unused()  # of the system's, all that there is
