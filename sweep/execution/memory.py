"""Memory that is free again but that this process still holds."""

from __future__ import annotations

import contextlib
import ctypes
import gc

import pyarrow as pa


def give_back() -> None:
    """Give it to the machine, as far as the system's allocator lets that be asked for."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # glibc's
        ctypes.CDLL(None).malloc_trim(0)
