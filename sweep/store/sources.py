"""Digests of the sources that a cell's numbers come from.

A cell depends on the whole of ``sim`` and on its own policy: the policy's module and, of what
that imports, everything inside ``policies`` or beside a user's module. So it does on the module of
a user's own measure. A change elsewhere keeps cached cells valid.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import policies
import sim
from sim.measures import NO_POLICY

_HERE = Path(__file__).resolve().parents[1]


_NO_NUMBERS = ("__main__.py", "cli.py", "verbs", "html", "describe")
"""What of ``sim`` only talks to people."""


def of_cell(policy_name: str, measure_module: str | None = None) -> str:
    """Digest of all that the numbers of a cell under a policy come from."""
    own = "" if measure_module is None else f"-{measure(measure_module)}"
    return f"{simulator()}-{policy(policy_name)}{own}"


@cache
def simulator() -> str:
    """SHA-256 over the files of ``sim``, its tables too, and over what runs a cell."""
    root = Path(str(sim.__file__)).resolve().parent
    files = {file.relative_to(root).as_posix(): file for file in _files(root)}
    files = {n: file for n, file in files.items() if n.partition("/")[0] not in _NO_NUMBERS}
    return _digest({**files, "sweep/run/cell.py": _HERE / "run" / "cell.py"})


@cache
def policy(name: str) -> str:
    """SHA-256 over the sources of the registered policy `name`; of nothing for `NO_POLICY`."""
    if name == NO_POLICY:
        return _digest({})
    classes = policies.spec(name).__mro__
    modules = _closure(cls.__module__ for cls in classes if cls is not object)
    if any(_imports_by_name(file) for module, file in modules.items() if module != _REGISTRY):
        root = Path(str(policies.__file__)).resolve().parent
        modules |= {str(file.relative_to(root)): file for file in _files(root)}
    return _digest(modules)


@cache
def measure(module: str) -> str:
    """SHA-256 over the sources of a measure of the user's own."""
    return _digest(_closure([module]))


_REGISTRY = "policies.registry"


def _files(root: Path) -> Iterator[Path]:
    for file in sorted(root.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".pyc":
            yield file


def _digest(files: dict[str, Path]) -> str:
    total = hashlib.sha256()
    for name, file in sorted(files.items()):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        total.update(f"{name}\0{content}\n".encode())
    return total.hexdigest()


def _closure(modules: Iterable[str]) -> dict[str, Path]:
    """Find the modules reached by import statements that are policies' or the user's."""
    waiting, found = list(modules), dict[str, Path]()
    while waiting:
        name = waiting.pop()
        file = None if name in found else _own_file(name)
        if file is not None:
            found[name] = file
            waiting.extend(_imports(name, file))
    return found


def _own_file(name: str) -> Path | None:
    """File of a module of ``policies`` or of the user's, None for anything else."""
    top = name.partition(".")[0]
    if top in ("sim", "sweep") or top in sys.stdlib_module_names:
        return None
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    file = Path(spec.origin).resolve()
    if top != "policies" and ("site-packages" in file.parts or "dist-packages" in file.parts):
        return None
    return file


def _imports(name: str, file: Path) -> Iterator[str]:
    """Names that a module's import statements may mean, wherever in it they stand."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    if "." in name:
        yield name.rpartition(".")[0]
    for node in ast.walk(_parsed(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                parents = parents[: len(parents) - node.level + 1]
                base = ".".join([*parents, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _imports_by_name(file: Path) -> bool:
    """Tell whether a module imports others in a way that its text doesn't show."""
    names = {node.id for node in ast.walk(_parsed(file)) if isinstance(node, ast.Name)}
    return bool(names & {"importlib", "__import__"})


def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_bytes(), filename=str(file))
