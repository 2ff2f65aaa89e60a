"""What a module's results come from: a digest of it and of all modules of the project it imports.

Comments and docstrings mean nothing, and neither does it matter where the project lies: copies of
it have the same digests. An import counts wherever it stands.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

_OWN = ("sim", "policies")
"""Packages of the project, but for those that only sweeps need."""


@cache
def digest(module: str) -> str:
    """Digest of what a module and the modules of the project that it imports mean, 64 digits."""
    h = hashlib.sha256()
    for name in sorted(closure(module)):
        h.update(f"{name}\0{_meaning(name)[0]}\0".encode())
    return h.hexdigest()


def closure(module: str) -> set[str]:
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
        elif isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported += _modules_in(node, spec)
    names = tuple(filter(_is_own, imported))
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), names


def _modules_in(node: ast.ImportFrom, of: ModuleSpec) -> Iterator[str]:
    """Give the modules that ``from a.b import c`` may mean: a.b, or a.b.c where that is one."""
    base = node.module or ""
    if node.level:  # from where the module lies
        inside = of.name.split(".") if of.submodule_search_locations else of.name.split(".")[:-1]
        base = ".".join([*inside[: len(inside) - node.level + 1], *([base] if base else [])])
    if not _is_own(base):
        return
    for alias in node.names:
        yield f"{base}.{alias.name}" if _is_module_of(base, alias.name) else base


def _is_own(module: str) -> bool:
    return module.partition(".")[0] in _OWN


@cache
def _is_module_of(package: str, name: str) -> bool:
    """Tell from the files, as a module may not have been loaded yet."""
    spec = find_spec(package)
    places = (spec and spec.submodule_search_locations) or ()
    files = (
        Path(place, *end) for place in places for end in ((f"{name}.py",), (name, "__init__.py"))
    )
    return any(file.is_file() for file in files)
