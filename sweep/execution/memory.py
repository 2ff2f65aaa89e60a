"""Return freed memory to the operating system."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Iterator

import pyarrow as pa

_MMAP_THRESHOLD = -3  # of glibc's mallopt
_LARGE = 2**20
_FULL_COLLECTION_RATIO = 1000


def return_large_blocks() -> None:
    """Return large blocks to the operating system as soon as they are freed.

    By default glibc keeps blocks of up to 32 MB, once one was freed, for later allocations. The
    setting holds for the whole process, so only the command line makes it: a script that calls
    `sweep.run` has a process of its own.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE)


@contextlib.contextmanager
def rare_full_collections() -> Iterator[None]:
    """Run full garbage collections less often inside this context.

    With thousands of slots, the cells in flight are millions of objects, and each full collection
    takes a second. Young objects are collected as before.
    """
    before = gc.get_threshold()
    gc.set_threshold(*before[:2], _FULL_COLLECTION_RATIO)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def return_memory() -> None:
    """Return free memory to the operating system, as far as the allocator allows it."""
    gc.collect()
    pa.default_memory_pool().release_unused()  # of the system's allocator: all pools
