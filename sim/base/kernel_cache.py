"""Cache folders of compiled kernels, versioned by digest, and checksums of their files.

numba's own cache notices a change in the file of a function, but not in the files it calls into,
and reuses code compiled without bounds checks, or with less optimisation, when it should not. So a
compiled kernel lies in a folder of its module. The folder's name carries a digest of the meaning
of the module and of all modules of the project that it imports (`sim.base.sources`), the versions
of the compilers, the bounds-check flag and the level of optimisation.

A wheel brings folders of the same names (`shipped_folder`), with the kernels of common runs
compiled for any processor of their kind. They are used where the user's folder lacks a kernel.

numba does not verify the files that it reads: a flipped bit gives other machine code. So each
compiled kernel is one file that ends in its SHA-256. It is replaced in one step, so that content
and checksum are never of two versions, as they could be in two files.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path

from sim.base import files, sources

try:
    import fcntl
except ImportError:  # not a POSIX system: two processes may compute the same, each for itself
    fcntl = None  # type: ignore[assignment]

CHECKED = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
"""True if this process compiles kernels with bounds checks (NUMBA_BOUNDSCHECK=1)."""

LEVEL = os.environ.get("NUMBA_OPT", "3")
"""Level of optimisation: 1 compiles in a third less time, to the same bits (NUMBA_OPT=1)."""

SHIPPED = Path(__file__).parent / "compiled"
"""Folder of the kernels that the wheel brings; a checkout has none."""

_SHA = 32  # bytes


@cache
def cache_dir() -> Path:
    """Return the folder of all compiled kernels of this user, private to the user.

    It is NUMBA_CACHE_DIR, or a folder in XDG_CACHE_HOME or ``~/.cache``. If that can't be written
    or belongs to another user, it lies in the folder for temporary files. Pass it to workers as
    NUMBA_CACHE_DIR.
    """
    configured = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    uid = os.getuid() if hasattr(os, "getuid") else 0
    for folder in (
        Path(configured) if configured else home / "cluster-sweep",
        Path(tempfile.gettempdir()) / f"cluster-sweep-{uid}",
    ):
        if make_private(folder):
            return folder
    return Path(tempfile.mkdtemp(prefix="cluster-sweep-"))


def make_private(folder: Path) -> bool:
    """Create a folder that only this user can access; return False if that fails.

    numba stores pickles, and reading a pickle can run code: a file that another user could have
    put there is never read.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid"):
            if {folder.lstat().st_uid, folder.stat().st_uid} != {os.getuid()}:
                message = f"{folder} belongs to another user: compiled kernels are not cached there"
                print(message, file=sys.stderr)
                return False
            if folder.stat().st_mode & 0o077:
                folder.chmod(0o700)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def module_folder(module: str) -> Path:
    """Return the folder of a module's compiled kernels, at its present version."""
    return cache_dir() / f"{module.rpartition('.')[2]}-{digest(module)}"


def shipped_folder(module: str) -> Path:
    """Return the folder of a module's kernels that the wheel brings, if it has this version."""
    return SHIPPED / module_folder(module).name


def file_stem(module: str, name: str, features: Iterable[str] = ()) -> str:
    """Return the readable start of a kernel's file names: module, function and features."""
    variant = "-".join(sorted(features)).lower() or "plain"
    return f"{module.rpartition('.')[2]}.{name}-{variant}"


@cache
def digest(module: str) -> str:
    """Digest everything that a module's compiled kernels depend on."""
    inputs = (sources.digest(module), *_versions(), *_platform(), str(CHECKED), LEVEL)
    return hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:16]


@cache
def _versions() -> tuple[str, ...]:
    """Return the versions of the compilers, and NumPy's up to patches, which change no layout."""
    numpy = ".".join(version("numpy").split(".")[:2])
    return (version("numba"), version("llvmlite"), numpy)


def _platform() -> tuple[str, ...]:
    """Return the kinds of system and processor, and Python's version up to patches."""
    tag = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    return (sys.platform, platform.machine(), tag)


def write_checked(file: Path, content: bytes) -> None:
    """Replace a file in one step by `content` and its checksum, which unpickling ignores."""
    files.write_bytes(file, content + _checksum(file, content))


def verify(file: Path) -> None:
    """Raise ValueError if a file differs from what `write_checked` wrote.

    The checksum also covers the names of the file and its folder: an intact file of another kernel
    or version is refused.
    """
    content = memoryview(file.read_bytes())
    if content[-_SHA:] != _checksum(file, content[:-_SHA]):
        raise ValueError(f"the checksum of its {len(content):,} bytes is wrong")


def is_intact(file: Path) -> bool:
    """Check that a file exists and its checksum is right."""
    try:
        verify(file)
    except (OSError, ValueError):
        return False
    return True


def _checksum(file: Path, content: bytes | memoryview) -> bytes:
    h = hashlib.sha256(f"{file.parent.name}/{file.name}\0".encode())
    h.update(content)
    return h.digest()


@contextmanager
def exclusive_lock(name: str, *, waits: bool = True) -> Iterator[bool]:
    """Lock a name in the cache; yield False if another process holds it and `waits` is False.

    A lock is one byte of one file, so that no file is left for each of 10⁵ names. On a disk without
    locks, or in a deadlock between threads of two processes, each computes what is missing, and
    only loses time.
    """
    file = _lock_file()
    byte = int.from_bytes(hashlib.sha256(name.encode()).digest()[:6])
    if fcntl is None or file is None:
        yield True
        return
    try:
        fcntl.lockf(file, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        yield waits
        return
    except OSError:
        yield True
        return
    try:
        yield True
    finally:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)


@cache
def _lock_file() -> int | None:
    """Open the lock file and never close it: that would release every lock of the process."""
    try:
        return os.open(cache_dir() / "locks", os.O_CREAT | os.O_RDWR, 0o600)
    except OSError:
        return None
