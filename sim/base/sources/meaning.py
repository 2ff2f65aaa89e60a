"""Parsed meaning of a module: a digest without comments, and the names it uses of other modules.

Parsing takes longer than everything else. So meanings are cached on disk by content, a small file
each, in the user's cache, for every run, sweep and worker of the machine.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from sim.base import files
from sim.base.sources.modules import Module

_BUILT_IN = ("__import__", "exec", "eval")
BY_NAME = (
    *_BUILT_IN,
    *("importlib", "imp", "runpy", "sys.modules", "pkgutil.resolve_name", "pydoc.locate"),
    *("sim.base.plugins.Plugins", "sim.base.plugins.import_user_module"),
    "sim.base.entry_points.load",
)
"""Functions and modules (with everything below) that import a module by a computed name."""

_NO_IMPORT = ("importlib.metadata", "importlib.resources")

_IMPORT_CALLS = ("__import__", "importlib.import_module")
_MODULE_ARGUMENT = "module"
"""Argument that names a user's module which a registry imports first."""

FOUND, REGISTERED, LOADED = "MODULES_FOUND", "MODULES_REGISTERED", "MODULES_LOADED"
INSTALLED = "MODULES_INSTALLED"
"""Constants by which a module that imports by name declares what: of the packages in MODULES_FOUND
it imports a module by the module's name; in MODULES_REGISTERED each module registers names
(``@register("fifo")``); of MODULES_LOADED it imports every module when it is itself imported.
MODULES_INSTALLED names a kind of `sim.base.entry_points`, whose entries it imports by name, or
all, if it declares MODULES_LOADED too."""

SET, ANY = "MODULES_SET", "*"
"""Constant by which a module declares kernels that are imported late: a dict of attribute to
modules, without whose assignment outside the room none of these is. ANY stands for all of them."""

LATE = "sim.base.jit.late"
"""Function that names a kernel, which is imported when a variant needs it."""

Use = tuple[str, str | None]
"""A fully dotted name, and the literal string that is its call's first argument (else None)."""

Bound = dict[str, list[str]]


@dataclass(frozen=True)
class Meaning:
    """Digest of a module's code, and the names that it imports, binds and uses."""

    digest: str  # SHA-256 of the code without comments, docstrings and imports for type checkers
    imports: list[str] = field(default_factory=list)  # modules, or names in them, imported anywhere
    uses: list[Use] = field(default_factory=list)  # imported names in the code, with attributes
    binds: Bound = field(default_factory=dict)  # names defined in other modules: imported or lazy
    finders: list[str] = field(default_factory=list)  # functions that import modules by name
    declares: dict[str, list[str]] = field(default_factory=dict)  # packages imported from by name
    late: list[str] = field(default_factory=list)  # kernels that it imports late
    by_attribute: Bound = field(default_factory=dict)  # MODULES_SET
    sets: list[str] = field(default_factory=list)  # attributes that it assigns
    by_name: bool = False  # True if the module imports by name without declaring packages


def parse(module: Module, content: bytes) -> Meaning:
    """Parse the content of a module's file into its meaning."""
    tree = ast.parse(content, filename=str(module.file))
    keep_docstrings = b"__doc__" in content or b"getdoc" in content
    for node in ast.walk(tree):
        _strip(node, keep_docstrings)
    digest = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    binds, imports = _imports_of(tree, module)
    by_statement = [(node, [*_uses_of(node, binds)]) for node in tree.body]
    uses = dict.fromkeys(use for _, uses in by_statement for use in uses)
    uses |= dict.fromkeys((name, None) for name in binds.pop("*", ()))
    imports += [text for name, text in uses if name in _IMPORT_CALLS and text is not None]
    homes, declares = _lazy_names(tree), _declared_packages(tree)
    for name, home in homes.items():
        binds.setdefault(name, []).append(f"{home}.{name}")
    return Meaning(
        digest=digest,
        imports=list(dict.fromkeys(imports)),
        uses=[use for use in uses if not _is_by_name(use)],
        binds=binds,
        finders=_finders(by_statement),
        declares=declares,
        late=[text for name, text in uses if name == LATE and text is not None],
        by_attribute=_declared_late(tree),
        sets=sorted({*assigned_attributes(tree)}),
        by_name=not homes and not declares and any(map(_is_by_name, uses)),
    )


def _strip(node: ast.AST, keep_docstrings: bool) -> None:
    """Remove the statements of a block without effect: docstrings, and code for type checkers."""
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return
    if isinstance(node, ast.If) and _last_name(node.test) == "TYPE_CHECKING":
        node.body = []
    elif not keep_docstrings:
        node.body = [  # type: ignore[attr-defined]
            statement
            for statement in body
            if not (isinstance(statement, ast.Expr) and _literal(statement.value) is not None)
        ]


def _last_name(node: ast.AST) -> Any:
    return getattr(node, "attr", getattr(node, "id", None))


def _literal(node: ast.AST | None) -> str | None:
    """Return the value of a string literal; None for any other expression."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _imports_of(tree: ast.Module, module: Module) -> tuple[Bound, list[str]]:
    """Return the names that import statements bind, and the modules that are imported."""
    binds: Bound = {}
    imports = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                imports.append(alias.name)
                bound = alias.name if alias.asname else alias.name.partition(".")[0]
                binds.setdefault(alias.asname or bound, []).append(bound)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, module)
            for alias in node.names:
                imports.append(f"{base}.{alias.name}")
                # a star binds unknown names: it counts as a use of the module itself
                bound = base if alias.name == "*" else f"{base}.{alias.name}"
                binds.setdefault(alias.asname or alias.name, []).append(bound)
        elif isinstance(node, ast.keyword) and node.arg == _MODULE_ARGUMENT:
            text = _literal(node.value)
            imports += [] if text is None else [text]
    return {name: list(dict.fromkeys(bound)) for name, bound in binds.items()}, imports


def _base(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    parents = module.package.split(".")
    parents = parents[: len(parents) - node.level + 1]
    return ".".join([*parents, *([node.module] if node.module else [])])


def _uses_of(statement: ast.stmt, binds: Bound) -> Iterator[Use]:
    """Yield the imported names in a statement, each with the attributes that follow it."""
    counted: set[ast.AST] = set()
    for node in ast.walk(statement):
        call = node if isinstance(node, ast.Call) else None
        target = node if call is None else call.func
        names = [] if node in counted else _names(target, binds)
        if names:
            inner = ast.walk(target)
            counted |= {child for child in inner if isinstance(child, ast.Attribute | ast.Name)}
            first = _literal(call.args[0]) if call is not None and call.args else None
            yield from ((name, first) for name in names)


def _names(node: ast.AST, binds: Bound) -> list[str]:
    """List the dotted names that an expression can refer to, if it is an imported name."""
    attributes = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return []
    roots = binds.get(node.id) or [name for name in _BUILT_IN if name == node.id]
    return [".".join([root, *reversed(attributes)]) for root in roots]


def _is_by_name(use: Use) -> bool:
    """Check that a use can import a module by a computed name."""
    name, text = use

    def is_in(prefixes: tuple[str, ...]) -> bool:
        return any(f"{name}.".startswith(f"{prefix}.") for prefix in prefixes)

    is_literal = name in _IMPORT_CALLS and text is not None and not text.startswith(".")
    return is_in(BY_NAME) and not is_in(_NO_IMPORT) and not is_literal


def _lazy_names(tree: ast.Module) -> dict[str, str]:
    """Return the defining module of each lazily imported name, from a lazy module's tables."""
    if not any("__getattr__" in _defined(node) for node in tree.body):
        return {}
    tables = [getattr(node, "value", None) for node in tree.body]
    return {
        str(key.value): str(value.value)
        for table in tables
        if isinstance(table, ast.Dict)
        for key, value in zip(table.keys, table.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
    }


def _declared_packages(tree: ast.Module) -> dict[str, list[str]]:
    """Read the constants that declare the packages whose modules are imported by name."""
    return {
        name: [text for text in map(_literal, node.value.elts) if text is not None]
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
        for name in _defined(node)
        if name in (FOUND, REGISTERED, LOADED, INSTALLED)
    }


def _declared_late(tree: ast.Module) -> Bound:
    """Read the constant that declares the modules that are imported late, by attribute."""
    return {
        name: [*modules]
        for node in tree.body
        if isinstance(node, ast.Assign) and SET in _defined(node)
        for name, modules in ast.literal_eval(node.value).items()
    }


def assigned_attributes(tree: ast.AST) -> Iterator[str]:
    """Yield the attributes that the code assigns; ANY where it may compute the name of one."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        name = _last_name(node)
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield ANY if name == "__class__" else node.attr
        elif name in ("setattr", "__setattr__"):
            call = parents[node]
            literals = map(_literal, call.args[:2]) if isinstance(call, ast.Call) else ()
            yield from [text for text in literals if text is not None] or [ANY]
        elif name in ("vars", "__dict__"):
            holder = parents[node] if name == "vars" else node
            if not _is_read(holder, parents[holder]):
                yield ANY


def _is_read(names: ast.AST, parent: ast.AST) -> bool:
    """Tell whether code only reads a dict of attributes."""
    match parent:
        case ast.Subscript(ctx=ast.Load()) | ast.Compare() | ast.keyword(arg=None):
            return True
        case ast.Attribute(attr="get" | "items" | "keys" | "values"):
            return True
        case ast.Call(func=ast.Name(id="dict" | "list" | "sorted")):
            return True
        case ast.Dict():
            pairs = zip(parent.keys, parent.values, strict=True)
            return any(key is None and value is names for key, value in pairs)
    return False


def _defined(node: ast.stmt) -> list[str]:
    """List the names that a statement defines: of a function, class or variable."""
    targets = (*getattr(node, "targets", ()), getattr(node, "target", None))
    names = [getattr(target, "id", None) for target in targets]
    return [name for name in (*names, getattr(node, "name", None)) if name is not None]


def _finders(by_statement: Sequence[tuple[ast.stmt, list[Use]]]) -> list[str]:
    """List the functions and objects that import by name, or refer to one that does."""
    new = {
        name
        for node, uses in by_statement
        if any(map(_is_by_name, uses))
        for name in _defined(node)
    }
    finders: set[str] = set()
    while new:
        finders |= new
        new = {
            name
            for node, _ in by_statement
            if any(isinstance(child, ast.Name) and child.id in finders for child in ast.walk(node))
            for name in _defined(node)
        } - finders
    return sorted(finders)


def load_meaning(module: Module, content: bytes) -> Meaning:
    """Return the meaning of a module's content, from the disk cache if possible."""
    file = _file(module, content)
    record = files.read_checked_json(file)
    if record is not None:
        return Meaning(**{**record, "uses": [tuple(use) for use in record["uses"]]})
    meaning = parse(module, content)
    with contextlib.suppress(OSError):  # a meaning that can't be stored is parsed again
        files.write_checked_json(file, dataclasses.asdict(meaning))
    return meaning


def cache_folder() -> Path:
    """Return the folder of the disk cache."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "cluster-sweep" / f"meanings-{_version()[:16]}"


@cache
def _version() -> str:
    """Digest this module's source and the Python version that parses."""
    return hashlib.sha256(Path(__file__).read_bytes() + sys.version.encode()).hexdigest()


def _file(module: Module, content: bytes) -> Path:
    package = f"{module.name}\0{module.is_package}\0".encode()  # base of relative imports
    return cache_folder() / f"{hashlib.sha256(package + content).hexdigest()}.json"
