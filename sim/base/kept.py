"""Kept by digest: what takes long to make is made once, for all processes of this user.

It lies beside the compiled kernels (`sim.base.kernel_cache.cache_dir`), in a folder of the module
that makes it. The folder's name carries the digest of that module's sources, a file's name that of
what the thing is made from. So whatever differs finds nothing, and what is found is what would be
made, to the bit. A file is written in one step, and says its own digest and checksum: a damaged
one is made anew. Whoever deletes the folder loses time, and nothing else; what a module keeps is
held within MOST_BYTES, the oldest going first.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from sim.base import files, sources
from sim.base.kernel_cache import cache_dir

try:
    import fcntl
except ImportError:  # not a POSIX system: two processes may make the same, each for itself
    fcntl = None  # type: ignore[assignment]

Arrays = dict[str, NDArray[Any]]
"""What is kept: arrays by name, of numbers."""

Part = NDArray[Any] | bytes | str | int | float | None
"""What a digest is over."""

_MARK = b"kept 1\n"
_SHA = 32  # bytes
_SUFFIX = ".kept"

MOST_BYTES = 2 * 1024**3
"""What a module may keep, with all that its earlier versions did."""

_LOOKS = "00"
"""One file in 256, by the begin of its name: whoever writes it looks how much there is."""


def digest(*parts: Part) -> bytes:
    """Digest of some values: of their types, shapes and bits, and of their order."""
    kinds, contents = [], []
    for part in parts:
        if isinstance(part, np.ndarray):
            kinds.append(f"{part.dtype.str}{part.shape}")
            contents.append(part.tobytes())
        else:
            told = part if isinstance(part, bytes) else repr(part).encode()
            kinds.append(f"{type(part).__name__}{len(told)}")
            contents.append(told)
    head = ";".join(kinds).encode()
    return hashlib.sha256(b"".join([f"{len(head)};".encode(), head, *contents])).digest()


def each(module: str, made_from: Sequence[bytes], make: Callable[[int], Arrays]) -> list[Arrays]:
    """Return things of which each is found, or made and kept.

    What is missing is made side by side: by as many threads as this process may use, and by no two
    processes at once. What another one is making is waited for, after all else is made.

    Parameters
    ----------
    module : str
        Who makes them, ``__name__``: all that they come from must be in what it imports.
    made_from : sequence of bytes
        `digest` of all else that each comes from.
    make : callable
        Takes an index of `made_from`; returns arrays of numbers by name. May be called from
        several threads at once, and not at all.

    Returns
    -------
    list of dict of str to ndarray
        For each the same bits as `make` returns, read-only.
    """
    if not _KEEPS:
        return [_frozen(arrays) for arrays in _side_by_side(make, range(len(made_from)))]
    shelf = _Shelf(module)
    names = [shelf.name(one) for one in made_from]
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        first.setdefault(name, i)
    found = {name: shelf.find(name) for name in first}
    if None in found.values():
        with shelf.locks() as locks:
            for waits in (False, True):
                missing = [name for name, arrays in found.items() if arrays is None]

                def made(name: str, waits: bool = waits) -> Arrays | None:
                    return shelf.made(name, lambda: make(first[name]), locks, waits)

                found |= zip(missing, _side_by_side(made, missing), strict=True)
    return [_frozen(found[name] or {}) for name in names]


@contextlib.contextmanager
def nothing() -> Iterator[None]:
    """Keep nothing and find nothing for a while: what the store saves is measured without it."""
    global _KEEPS
    before, _KEEPS = _KEEPS, False
    try:
        yield
    finally:
        _KEEPS = before


_KEEPS = True


def n_threads() -> int:
    """Count the threads that this process may use: OMP_NUM_THREADS, else the CPUs it may run on.

    Ray says with the former how many CPUs a task has.
    """
    said = os.environ.get("OMP_NUM_THREADS", "")
    if said.isdecimal() and int(said):
        return int(said)
    may_use = getattr(os, "sched_getaffinity", None)
    return len(may_use(0)) if may_use else os.cpu_count() or 1


S = TypeVar("S")
T = TypeVar("T")


def _side_by_side(make: Callable[[S], T], which: Sequence[S]) -> list[T]:
    n = min(n_threads(), len(which))
    if n <= 1:
        return [make(i) for i in which]
    with ThreadPoolExecutor(n) as pool:
        try:
            return list(pool.map(make, which))
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


class _Shelf:
    """The folder of a module."""

    def __init__(self, module: str) -> None:
        version = digest(sources.digest(module), np.__version__)
        self.folder = cache_dir() / f"{module.rpartition('.')[2]}-{version.hex()[:16]}"
        self._version = version

    def name(self, made_from: bytes) -> str:
        return digest(self._version, made_from).hex()

    def file(self, name: str) -> Path:
        return self.folder / name[:2] / f"{name}{_SUFFIX}"

    def find(self, name: str) -> Arrays | None:
        """Read what is kept; None if there is none, or it is damaged."""
        try:
            content = self.file(name).read_bytes()
        except OSError:
            return None
        return _unpacked(content, name)

    def made(
        self, name: str, make: Callable[[], Arrays], locks: BinaryIO | None, waits: bool
    ) -> Arrays | None:
        """Make and keep it; None if another process is at it and this one doesn't wait."""
        with _alone(locks, name, waits) as is_mine:
            if not is_mine:
                return None
            arrays = self.find(name)
            if arrays is None:
                arrays = make()
                with contextlib.suppress(OSError):  # whoever can't keep it makes it again
                    files.write_bytes(self.file(name), _packed(arrays, name))
                    if name.startswith(_LOOKS):
                        self.trim()
            return arrays

    def trim(self) -> None:
        """Delete the oldest files of the module, of any version, if there is too much of them."""
        folders = self.folder.parent.glob(f"{self.folder.name.rpartition('-')[0]}-*")
        found = [file for folder in folders for file in folder.glob(f"??/*{_SUFFIX}")]
        about = sorted((file.stat().st_mtime_ns, file.stat().st_size, file) for file in found)
        over = sum(size for _, size, _ in about) - MOST_BYTES
        for _, size, file in about if over > 0 else ():
            if over <= -MOST_BYTES // 4:
                break
            file.unlink(missing_ok=True)
            over -= size

    @contextlib.contextmanager
    def locks(self) -> Iterator[BinaryIO | None]:
        """Open the file of locks; None where there can't be any.

        Once for all threads: who closes it gives up all locks of the process.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = (self.folder / "locks").open("ab")
        except OSError:
            yield None
            return
        with file:
            yield file


@contextlib.contextmanager
def _alone(locks: BinaryIO | None, name: str, waits: bool) -> Iterator[bool]:
    """Tell whether no other process makes the same; wait until none does, or do not.

    A lock is a byte of one file. Without locks everybody makes what is missing.
    """
    byte = int(name[:12], 16)
    if fcntl is None or locks is None:
        yield True
        return
    try:
        fcntl.lockf(locks, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        yield waits
        return
    except OSError:  # no locks on this disk, or threads of two processes that wait crosswise
        yield True
        return
    try:
        yield True
    finally:
        fcntl.lockf(locks, fcntl.LOCK_UN, 1, byte)


def _frozen(arrays: Arrays) -> Arrays:
    """Make arrays read-only and contiguous, as those are that are read."""
    for key, array in arrays.items():
        arrays[key] = np.asarray(array, order="C")
        arrays[key].setflags(write=False)
    return arrays


def _packed(arrays: Arrays, name: str) -> bytes:
    whole = {key: np.asarray(array, order="C") for key, array in arrays.items()}
    layout = [[key, array.dtype.str, array.shape] for key, array in whole.items()]
    head = json.dumps([name, layout]).encode() + b"\n"
    body = head + b"".join(array.tobytes() for array in whole.values())
    return _MARK + hashlib.sha256(body).digest() + body


def _unpacked(content: bytes, name: str) -> Arrays | None:
    at = len(_MARK) + _SHA
    if content[:at] != _MARK + hashlib.sha256(memoryview(content)[at:]).digest():
        return None
    head_end = content.index(b"\n", at) + 1
    named, layout = json.loads(content[at:head_end])
    if named != name:
        return None
    arrays, at = Arrays(), head_end
    for key, code, shape in layout:
        n = int(np.prod(shape, dtype=np.int64))
        arrays[key] = np.frombuffer(content, np.dtype(code), n, at).reshape(shape)
        at += arrays[key].nbytes
    return arrays
