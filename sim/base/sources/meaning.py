"""What a module's text means: a digest without comments, and what it asks of other modules.

Parsing takes longer than all else of a plan: meanings that were found out lie in the user's cache
by content, a small file each, and serve every sweep and worker of the machine.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import hashlib
import inspect
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import sim.base.plugins
from sim.base import files
from sim.base.sources.modules import Module

_BUILT_IN = ("__import__", "exec", "eval")
BY_NAME = (
    *_BUILT_IN,
    *("importlib", "imp", "runpy", "sys.modules", "pkgutil.resolve_name", "pydoc.locate"),
    *(f"{sim.base.plugins.__name__}.{name}" for name in ("Plugins", "import_own")),
)
"""What imports a module that the text need not name; with anything below it."""

_NO_IMPORT = ("importlib.metadata", "importlib.resources")

_TAKES_A_NAME = ("__import__", "importlib.import_module")
_OF_THE_USERS_OWN = "module"
"""The argument by which registries are told of a module to import first."""

Use = tuple[str, str | None]
"""A name, dotted from the top, and the text that it is called with first (None for no such)."""

Bound = dict[str, list[str]]


def _imports_of(tree: ast.Module, module: Module) -> tuple[Bound, list[str]]:
    """Find what import statements bind, by name, and what they and calls that import load."""
    binds: Bound = {}
    loads = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                loads.append(alias.name)
                bound = alias.name if alias.asname else alias.name.partition(".")[0]
                binds.setdefault(alias.asname or bound, []).append(bound)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, module)
            for alias in node.names:
                loads.append(f"{base}.{alias.name}")
                # a star binds names that are not known here: it is a use of the module itself
                bound = base if alias.name == "*" else f"{base}.{alias.name}"
                binds.setdefault(alias.asname or alias.name, []).append(bound)
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    loads += [name for call in calls for name in _named(call, binds)]
    return {name: list(dict.fromkeys(bound)) for name, bound in binds.items()}, loads


def _base(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    parents = module.package.split(".")
    parents = parents[: len(parents) - node.level + 1]
    return ".".join([*parents, *([node.module] if node.module else [])])


def _uses_of(node: ast.AST, binds: Bound) -> Iterator[Use]:
    """Find imported names that code mentions, with the attributes that follow them."""
    names = _names(node.func if isinstance(node, ast.Call) else node, binds)
    first = _first_text(node)
    yield from ((name, first) for name in names)
    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
        yield from ((name, None) for name in binds["*"])
    if isinstance(node, ast.Call) and names:
        children: Iterable[ast.AST] = (*node.args, *node.keywords)
    else:
        children = () if names else ast.iter_child_nodes(node)
    for child in children:
        yield from _uses_of(child, binds)


def _first_text(node: ast.AST) -> str | None:
    """Return the first argument of a call, if it is a text that stands there."""
    first = node.args[0] if isinstance(node, ast.Call) and node.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _names(node: ast.AST, binds: Bound) -> list[str]:
    """Dotted names that an expression may mean, if it is an imported name with attributes."""
    attributes = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return []
    roots = binds.get(node.id) or [name for name in _BUILT_IN if name == node.id]
    return [".".join([root, *reversed(attributes)]) for root in roots]


def _is_by_name(use: Use) -> bool:
    """Tell whether a use may import a module that its text does not name."""
    name, text = use

    def is_in(places: tuple[str, ...]) -> bool:
        return any(f"{name}.".startswith(f"{place}.") for place in places)

    says_which = name in _TAKES_A_NAME and text is not None and not text.startswith(".")
    return is_in(BY_NAME) and not is_in(_NO_IMPORT) and not says_which


def _named(call: ast.Call, binds: Bound) -> Iterator[str]:
    """Give the modules that the texts in a call may name."""
    first = _first_text(call)
    if first is not None and {*_names(call.func, binds)} & {*_TAKES_A_NAME}:
        yield first
    for given in call.keywords:
        is_text = isinstance(given.value, ast.Constant) and isinstance(given.value.value, str)
        if given.arg == _OF_THE_USERS_OWN and is_text:
            yield given.value.value  # type: ignore[attr-defined]


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Meaning:
    """What matters of a module."""

    digest: str  # SHA-256 of the code without comments, docstrings and imports for type checkers
    imports: list[str] = field(default_factory=list)  # modules, or names in them, loaded anywhere
    uses: list[Use] = field(default_factory=list)  # imported names mentioned, with attributes
    binds: Bound = field(default_factory=dict)  # what imports bind names to
    homes: dict[str, str] = field(default_factory=dict)  # where a lazy module finds its names
    is_lazy: bool = False  # whether it has a ``__getattr__``
    finders: list[str] = field(default_factory=list)  # functions that import modules by name
    by_name: bool = False  # whether anything in it does


def of(module: Module, content: bytes) -> Meaning:
    """Find out what the content of a module's file means."""
    tree = ast.parse(content, filename=str(module.file))
    keeps_texts = b"__doc__" in content or b"getdoc" in content
    for node in ast.walk(tree):
        _strip(node, keeps_texts)
    digest = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    binds, imports = _imports_of(tree, module)
    uses = dict.fromkeys(_uses_of(tree, binds))
    return Meaning(
        digest=digest,
        imports=list(dict.fromkeys(imports)),
        uses=[use for use in uses if not _is_by_name(use)],
        binds=binds,
        homes=_homes(tree),
        is_lazy="__getattr__" in {getattr(node, "name", "") for node in tree.body},
        finders=_finders(tree, binds),
        by_name=any(map(_is_by_name, uses)),
    )


def _strip(node: ast.AST, keeps_texts: bool) -> None:
    """Take out of a block what does nothing: bare texts, and what only type checkers see."""
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return
    if isinstance(node, ast.If) and _is_type_checking(node.test):
        node.body = []
    elif not keeps_texts:
        node.body = [one for one in body if not _is_text(one)]  # type: ignore[attr-defined]


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return bool(name == "TYPE_CHECKING")


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _homes(tree: ast.Module) -> dict[str, str]:
    """Join the top-level tables of texts by text."""
    homes = {}
    for node in tree.body:
        table = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(table, ast.Dict):
            for key, value in zip(table.keys, table.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                    homes[str(key.value)] = str(value.value)
    return homes


def _finders(tree: ast.Module, binds: Bound) -> list[str]:
    """Name the functions and objects that import by name, or mention one that does."""
    said, found = {}, set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(map(_is_by_name, _uses_of(node.value, binds))):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, _DEFINITIONS):
            said[node.name] = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            if any(map(_is_by_name, _uses_of(node, binds))):
                found.add(node.name)
    while more := {name for name, names in said.items() if name not in found and names & found}:
        found |= more
    return sorted(found)


@cache
def known(module: Module, content: bytes) -> Meaning:
    """Return what a module's content means, from memory if it was ever found out."""
    file = _file(module, content)
    record = files.read_checked_json(file)
    if record is not None:
        return Meaning(**{**record, "uses": [tuple(use) for use in record["uses"]]})
    meaning = of(module, content)
    about = dataclasses.asdict(meaning)
    with contextlib.suppress(OSError):  # whoever can't keep it finds it out again
        files.write_checked_json(file, about)
    return meaning


def folder() -> Path:
    """Where meanings are kept."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "cluster-sweep" / f"meanings-{_version()[:16]}"


@cache
def _version() -> str:
    """Digest of what finds meanings out, and of the Python that parses."""
    return hashlib.sha256(
        f"{inspect.getsource(sys.modules[__name__])}{sys.version}".encode()
    ).hexdigest()


def _file(module: Module, content: bytes) -> Path:
    package = f"{module.name}\0{module.is_package}\0".encode()  # what relative imports start from
    return folder() / f"{hashlib.sha256(package + content).hexdigest()}.json"
