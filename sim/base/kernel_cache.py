"""Where compiled kernels are kept, and what tells one version of a kernel from another.

numba's own cache notices a change in the file of a function, but not in the files it calls into,
and reuses what was compiled without bounds checks, or optimised less, when it should not. So what
is kept of a kernel lies in a folder of its module, whose name carries a digest of what the module
and all modules of the project that it imports mean (`sim.base.sources`), the versions of what
compiles it, the bounds-check flag and the level of optimisation.

numba checks nothing of what it reads: a flipped bit gives other machine code. So each compiled
kernel is one file that ends in its SHA-256. It is replaced in one step, so that content and
checksum are never of two versions, as they could be in files beside each other.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from sim.base import files, sources

try:
    import fcntl
except ImportError:  # not a POSIX system: two processes may compile the same, each for itself
    fcntl = None  # type: ignore[assignment]

CHECKED = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
"""Whether this process compiles kernels with bounds checks (NUMBA_BOUNDSCHECK=1)."""

LEVEL = os.environ.get("NUMBA_OPT", "3")
"""How much is optimised: 1 compiles a third sooner, to the same bits (NUMBA_OPT=1)."""

_SHA = 32  # bytes


@cache
def cache_dir() -> Path:
    """Folder of all compiled kernels of this user, who alone may look into it or write there.

    NUMBA_CACHE_DIR, or one in XDG_CACHE_HOME, or in ``~/.cache``, or, where that can't be written
    or is another user's, in the folder for temporary files. Give it to workers as NUMBA_CACHE_DIR.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    uid = os.getuid() if hasattr(os, "getuid") else 0
    for folder in (
        Path(given) if given else home / "cluster-sweep",
        Path(tempfile.gettempdir()) / f"cluster-sweep-{uid}",
    ):
        if make_private(folder):
            return folder
    return Path(tempfile.mkdtemp(prefix="cluster-sweep-"))


def make_private(folder: Path) -> bool:
    """Make a folder that is this user's alone; return whether it now is.

    numba keeps pickles, which run what they hold when they are read: what anybody else could have
    put there is not used.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid"):
            if {folder.lstat().st_uid, folder.stat().st_uid} != {os.getuid()}:
                said = f"{folder} is another user's: compiled kernels are not kept there"
                print(said, file=sys.stderr)
                return False
            if folder.stat().st_mode & 0o077:
                folder.chmod(0o700)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def module_folder(module: str) -> Path:
    """Folder in `cache_dir` of the compiled kernels of a module, as it is now."""
    return cache_dir() / f"{module.rpartition('.')[2]}-{digest(module)}"


def file_stem(module: str, name: str, features: Iterable[str] = ()) -> str:
    """Begin of the names of a kernel's files: module, function and features, for people."""
    variant = "-".join(sorted(features)).lower() or "plain"
    return f"{module.rpartition('.')[2]}.{name}-{variant}"


@cache
def digest(module: str) -> str:
    """Digest of all that goes into the compiled kernels of a module."""
    goes_in = (sources.digest(module), *_versions(), str(CHECKED), LEVEL, sys.version)
    return hashlib.sha256("\0".join(goes_in).encode()).hexdigest()[:16]


@cache
def _versions() -> tuple[str, ...]:
    return tuple(version(package) for package in ("numba", "llvmlite", "numpy"))


def write_checked(file: Path, content: bytes) -> None:
    """Replace a file in one step by `content` and its checksum, which readers of pickles skip."""
    files.write_bytes(file, content + _checksum(file, content))


def verify(file: Path) -> None:
    """Raise ValueError if a file holds anything else than what `write_checked` wrote.

    The checksum is also over the names of the file and its folder: the whole file of another
    kernel or version is none of this one.
    """
    whole = memoryview(file.read_bytes())
    if whole[-_SHA:] != _checksum(file, whole[:-_SHA]):
        raise ValueError(f"the checksum of its {len(whole):,} bytes is wrong")


def is_intact(file: Path) -> bool:
    """Tell whether a file is there and its checksum right."""
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
def exclusive_lock(path: Path) -> Iterator[None]:
    """Wait until no other process is where this one is with the same `path`, a file to be made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    except OSError:  # a folder that can't be written is one that nobody compiles into
        yield
        return
    with file:
        if fcntl is not None:
            with suppress(OSError):  # no locks on this disk: two may compile the same
                fcntl.flock(file, fcntl.LOCK_EX)
        yield
