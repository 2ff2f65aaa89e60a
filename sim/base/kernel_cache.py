"""Where compiled kernels are kept, and what tells one version of a kernel from another.

numba's own cache notices a change in the file of a function, but not in the files it calls into,
and reuses unchecked code when bounds checks are asked for later. So what is kept of a kernel lies
in a folder of its module, whose name carries a digest of what the module and all modules of the
project that it imports mean, numba's version and the bounds-check flag. Comments and docstrings
mean nothing, and neither does it matter where the project lies: copies of it share the folder.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a POSIX system: two processes may compile the same, each for itself
    fcntl = None  # type: ignore[assignment]

CHECKED = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
"""Whether this process compiles kernels with bounds checks (NUMBA_BOUNDSCHECK=1)."""
_OWN = ("sim.", "policies.")
"""What modules of the project that hold kernels begin with."""


@cache
def cache_dir() -> Path:
    """Folder of all compiled kernels of this user.

    NUMBA_CACHE_DIR, or one in XDG_CACHE_HOME, or in ``~/.cache``, or, where that can't be written,
    in the folder for temporary files. Give it to workers as NUMBA_CACHE_DIR.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    uid = os.getuid() if hasattr(os, "getuid") else 0
    for folder in (
        Path(given) if given else home / "cluster-sweep",
        Path(tempfile.gettempdir()) / f"cluster-sweep-{uid}",
    ):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix="cluster-sweep-"))


def folder_of(module: str) -> Path:
    """Folder in `cache_dir` of the compiled kernels of a module, as it is now."""
    return cache_dir() / f"{module.rpartition('.')[2]}-{digest(module)}"


@cache
def digest(module: str) -> str:
    """Digest of all that goes into the compiled kernels of a module."""
    h = hashlib.sha256()
    for name in sorted(_closure(module)):
        h.update(f"{name}\0{_meaning(name)[0]}\0".encode())
    flags = (version("numba"), str(CHECKED), sys.version)
    h.update("\0".join(flags).encode())
    return h.hexdigest()[:16]


def _closure(module: str) -> set[str]:
    """Return a module and the modules of the project that it imports, and they."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _meaning(name)[1]
    return found


@cache
def _meaning(module: str) -> tuple[str, tuple[str, ...]]:
    """Return the digest of a module's source without its words, and what it imports."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return module, ()
    tree = ast.parse(Path(spec.origin).read_bytes())
    imported: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            if ast.get_docstring(node, clean=False) is not None:
                del node.body[0]
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported += _modules_in(node)
    names = tuple(name for name in imported if name.startswith(_OWN))
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), names


def _modules_in(node: ast.ImportFrom) -> list[str]:
    """Return the modules that ``from a.b import c`` may mean: a.b, or a.b.c where that is one."""
    module = str(node.module)
    inside = [f"{module}.{alias.name}" for alias in node.names]
    return [name for name in inside if name in sys.modules] or [module]


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other process is where this one is with the same `path`, a file to be made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    except OSError:  # a folder that can't be written is one that nobody compiles into
        yield
        return
    with file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
