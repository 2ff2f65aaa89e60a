"""Disk cache of computed arrays, found by content digest and shared by all processes of a user.

It lies beside the compiled kernels (`sim.base.kernel_cache.cache_dir`), in a folder of the module
that computes the arrays. The folder's name carries the digest of that module's sources; a file's
name carries the digest of the inputs. So other sources or inputs are a cache miss, and a hit has
the bits that a computation would give. A file is written in one step and holds its own digest and
checksum: a damaged file is computed again. Deleting the folder costs time, and nothing else. A
module's files are limited to MAX_BYTES; the oldest go first.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sim.base import files, sources
from sim.base.kernel_cache import cache_dir, exclusive_lock

Arrays = dict[str, NDArray[Any]]
"""Content of a cache entry: arrays of numbers by name."""

Part = NDArray[Any] | bytes | str | int | float | None
"""One of the values that a digest is over."""

_MARK = b"kept 1\n"
_SHA = 32  # bytes
_SUFFIX = ".kept"

MAX_BYTES = 2 * 1024**3
"""Limit on the files of a module, those of its earlier versions included."""

_TRIM_PREFIX = "00"
"""Writing a file whose name begins so, one in 256, also checks the total size."""


def digest(*parts: Part) -> bytes:
    """Digest values: their types, shapes and bits, and their order."""
    kinds, contents = [], []
    for part in parts:
        if isinstance(part, np.ndarray):
            kinds.append(f"{part.dtype.str}{part.shape}")
            contents.append(part.tobytes())
        else:
            content = part if isinstance(part, bytes) else repr(part).encode()
            kinds.append(f"{type(part).__name__}{len(content)}")
            contents.append(content)
    head = ";".join(kinds).encode()
    return hashlib.sha256(b"".join([f"{len(head)};".encode(), head, *contents])).digest()


def get_or_compute(
    module: str, inputs: Sequence[bytes], compute: Callable[[int], Arrays]
) -> list[Arrays]:
    """Return the cached arrays of each input; compute and store the missing ones.

    Missing entries are computed in parallel, by as many threads as this process may use, and never
    by two processes at once. An entry that another process is computing is waited for, after all
    others are done.

    Parameters
    ----------
    module : str
        The module that computes, ``__name__``: every source that the arrays depend on must be
        among its imports.
    inputs : sequence of bytes
        `digest` of everything else that each entry depends on.
    compute : callable
        Takes an index of `inputs`; returns arrays of numbers by name. May be called from several
        threads at once, and not at all.

    Returns
    -------
    list of dict of str to ndarray
        For each input the same bits as `compute` returns, read-only.
    """
    if not _ENABLED:
        return [_freeze(arrays) for arrays in _map_parallel(compute, range(len(inputs)))]
    folder = _ModuleFolder(module)
    names = [folder.name(key) for key in inputs]
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        first.setdefault(name, i)
    entries = {name: folder.read(name) for name in first}
    for waits in (False, True):
        missing = [name for name, arrays in entries.items() if arrays is None]

        def store(name: str, waits: bool = waits) -> Arrays | None:
            return folder.store(name, lambda: compute(first[name]), waits)

        entries |= zip(missing, _map_parallel(store, missing), strict=True)
    return [_freeze(entries[name] or {}) for name in names]


@contextlib.contextmanager
def disabled() -> Iterator[None]:
    """Disable the disk cache inside this context: its savings are measured without it."""
    global _ENABLED
    before, _ENABLED = _ENABLED, False
    try:
        yield
    finally:
        _ENABLED = before


_ENABLED = True


def n_threads() -> int:
    """Count the threads that this process may use: OMP_NUM_THREADS, else its CPU affinity.

    Ray sets OMP_NUM_THREADS to the number of CPUs of a task.
    """
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if limit.isdecimal() and int(limit):
        return int(limit)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


S = TypeVar("S")
T = TypeVar("T")


def _map_parallel(function: Callable[[S], T], items: Sequence[S]) -> list[T]:
    n = min(n_threads(), len(items))
    if n <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(n) as pool:
        try:
            return list(pool.map(function, items))
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


class _ModuleFolder:
    """The cache folder of a module, at its present version."""

    def __init__(self, module: str) -> None:
        version = digest(sources.digest(module), np.__version__)
        self.folder = cache_dir() / f"{module.rpartition('.')[2]}-{version.hex()[:16]}"
        self._version = version

    def name(self, key: bytes) -> str:
        return digest(self._version, key).hex()

    def file(self, name: str) -> Path:
        return self.folder / name[:2] / f"{name}{_SUFFIX}"

    def read(self, name: str) -> Arrays | None:
        """Read an entry; None if it is missing or damaged."""
        try:
            content = self.file(name).read_bytes()
        except OSError:
            return None
        return _deserialize(content, name)

    def store(self, name: str, compute: Callable[[], Arrays], waits: bool) -> Arrays | None:
        """Compute and store an entry; None if another process computes it and `waits` is False."""
        with exclusive_lock(name, waits=waits) as is_locked:
            if not is_locked:
                return None
            arrays = self.read(name)
            if arrays is None:
                arrays = compute()
                with contextlib.suppress(OSError):  # an entry that can't be stored is recomputed
                    files.write_bytes(self.file(name), _serialize(arrays, name))
                    if name.startswith(_TRIM_PREFIX):
                        self.trim()
            return arrays

    def trim(self) -> None:
        """Delete the module's oldest files, of any version, once they exceed MAX_BYTES."""
        folders = self.folder.parent.glob(f"{self.folder.name.rpartition('-')[0]}-*")
        paths = [file for folder in folders for file in folder.glob(f"??/*{_SUFFIX}")]
        by_age = sorted((file.stat().st_mtime_ns, file.stat().st_size, file) for file in paths)
        excess = sum(size for _, size, _ in by_age) - MAX_BYTES
        for _, size, file in by_age if excess > 0 else ():
            if excess <= -MAX_BYTES // 4:
                break
            file.unlink(missing_ok=True)
            excess -= size


def _freeze(arrays: Arrays) -> Arrays:
    """Make arrays read-only and contiguous, as those are that come from disk."""
    for key, array in arrays.items():
        arrays[key] = np.asarray(array, order="C")
        arrays[key].setflags(write=False)
    return arrays


def _serialize(arrays: Arrays, name: str) -> bytes:
    contiguous = {key: np.asarray(array, order="C") for key, array in arrays.items()}
    layout = [[key, array.dtype.str, array.shape] for key, array in contiguous.items()]
    head = json.dumps([name, layout]).encode() + b"\n"
    body = head + b"".join(array.tobytes() for array in contiguous.values())
    return _MARK + hashlib.sha256(body).digest() + body


def _deserialize(content: bytes, name: str) -> Arrays | None:
    body0 = len(_MARK) + _SHA
    if content[:body0] != _MARK + hashlib.sha256(memoryview(content)[body0:]).digest():
        return None
    head_end = content.index(b"\n", body0) + 1
    stored_name, layout = json.loads(content[body0:head_end])
    if stored_name != name:
        return None
    arrays, offset = Arrays(), head_end
    for key, code, shape in layout:
        n = int(np.prod(shape, dtype=np.int64))
        arrays[key] = np.frombuffer(content, np.dtype(code), n, offset).reshape(shape)
        offset += arrays[key].nbytes
    return arrays
