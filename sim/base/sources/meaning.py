"""Parsed meaning of a module: a digest without comments, and the names it asks of other modules.

Parsing takes longer than all else: meanings that were found out lie in the user's cache by content,
a small file each, and serve every run, sweep and worker of the machine.
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
)
"""What imports a module that the text need not name; with anything below it."""

_NO_IMPORT = ("importlib.metadata", "importlib.resources")

_TAKES_A_NAME = ("__import__", "importlib.import_module")
_OF_THE_USERS_OWN = "module"
"""The argument by which registries are told of a module to import first."""

FOUND, REGISTERED, LOADED = "MODULES_FOUND", "MODULES_REGISTERED", "MODULES_LOADED"
"""Constants by which a module that imports by name declares of which packages: one finds a module
by its name, in another each module registers names (``@register("fifo")``), of the last it loads
all when it is imported."""

Use = tuple[str, str | None]
"""A name, dotted from the top, and the text that it is called with first (None for no such)."""

Bound = dict[str, list[str]]


@dataclass(frozen=True)
class Meaning:
    """Digest of a module's code, and the names that it imports, binds and uses."""

    digest: str  # SHA-256 of the code without comments, docstrings and imports for type checkers
    imports: list[str] = field(default_factory=list)  # modules, or names in them, loaded anywhere
    uses: list[Use] = field(default_factory=list)  # imported names mentioned, with attributes
    binds: Bound = field(default_factory=dict)  # names that lie elsewhere: imported, or lazy
    finders: list[str] = field(default_factory=list)  # functions that import modules by name
    declares: dict[str, list[str]] = field(default_factory=dict)  # of which packages
    by_name: bool = False  # whether anything imports by name and nothing says of which


def parse(module: Module, content: bytes) -> Meaning:
    """Find out what the content of a module's file means."""
    tree = ast.parse(content, filename=str(module.file))
    keeps_texts = b"__doc__" in content or b"getdoc" in content
    for node in ast.walk(tree):
        _strip(node, keeps_texts)
    digest = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    binds, imports = _imports_of(tree, module)
    by_statement = [(node, [*_uses_of(node, binds)]) for node in tree.body]
    uses = dict.fromkeys(use for _, some in by_statement for use in some)
    uses |= dict.fromkeys((name, None) for name in binds.pop("*", ()))
    imports += [text for name, text in uses if name in _TAKES_A_NAME and text is not None]
    homes, declares = _homes(tree), _declared(tree)
    for name, home in homes.items():
        binds.setdefault(name, []).append(f"{home}.{name}")
    return Meaning(
        digest=digest,
        imports=list(dict.fromkeys(imports)),
        uses=[use for use in uses if not _is_by_name(use)],
        binds=binds,
        finders=_finders(by_statement),
        declares=declares,
        by_name=not homes and not declares and any(map(_is_by_name, uses)),
    )


def _strip(node: ast.AST, keeps_texts: bool) -> None:
    """Take out of a block what does nothing: bare texts, and what only type checkers see."""
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return
    if isinstance(node, ast.If) and _last_name(node.test) == "TYPE_CHECKING":
        node.body = []
    elif not keeps_texts:
        node.body = [  # type: ignore[attr-defined]
            one for one in body if not (isinstance(one, ast.Expr) and _text(one.value) is not None)
        ]


def _last_name(node: ast.expr) -> Any:
    return getattr(node, "attr", getattr(node, "id", None))


def _text(node: ast.AST | None) -> str | None:
    """Return the text that an expression is, if it stands there."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _imports_of(tree: ast.Module, module: Module) -> tuple[Bound, list[str]]:
    """Find what import statements bind, by name, and what they and registries are told to load."""
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
        elif isinstance(node, ast.keyword) and node.arg == _OF_THE_USERS_OWN:
            text = _text(node.value)
            loads += [] if text is None else [text]
    return {name: list(dict.fromkeys(bound)) for name, bound in binds.items()}, loads


def _base(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    parents = module.package.split(".")
    parents = parents[: len(parents) - node.level + 1]
    return ".".join([*parents, *([node.module] if node.module else [])])


def _uses_of(statement: ast.stmt, binds: Bound) -> Iterator[Use]:
    """Find imported names that code mentions, each with all the attributes that follow it."""
    counted: set[ast.AST] = set()
    for node in ast.walk(statement):
        call = node if isinstance(node, ast.Call) else None
        named = node if call is None else call.func
        names = [] if node in counted else _names(named, binds)
        if names:
            counted |= {one for one in ast.walk(named) if isinstance(one, ast.Attribute | ast.Name)}
            first = _text(call.args[0]) if call is not None and call.args else None
            yield from ((name, first) for name in names)


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


def _homes(tree: ast.Module) -> dict[str, str]:
    """Join the tables of texts by text of a lazy module: where it finds its names."""
    if "__getattr__" not in {getattr(node, "name", "") for node in tree.body}:
        return {}
    tables = [getattr(node, "value", None) for node in tree.body]
    return {
        str(key.value): str(value.value)
        for table in tables
        if isinstance(table, ast.Dict)
        for key, value in zip(table.keys, table.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
    }


def _declared(tree: ast.Module) -> dict[str, list[str]]:
    """Read the constants that say of which packages modules are imported by name."""
    return {
        name: [text for text in map(_text, node.value.elts) if text is not None]
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
        for name in _defined(node)
        if name in (FOUND, REGISTERED, LOADED)
    }


def _defined(node: ast.stmt) -> list[str]:
    """Names that a statement gives to a function, a class or a value."""
    targets = (*getattr(node, "targets", ()), getattr(node, "target", None))
    names = [getattr(target, "id", None) for target in targets]
    return [name for name in (*names, getattr(node, "name", None)) if name is not None]


def _finders(by_statement: Sequence[tuple[ast.stmt, list[Use]]]) -> list[str]:
    """Name the functions and objects that import by name, or mention one that does."""
    more = {
        name
        for node, uses in by_statement
        if any(map(_is_by_name, uses))
        for name in _defined(node)
    }
    finders: set[str] = set()
    while more:
        finders |= more
        more = {
            name
            for node, _ in by_statement
            if any(isinstance(one, ast.Name) and one.id in finders for one in ast.walk(node))
            for name in _defined(node)
        } - finders
    return sorted(finders)


def load_meaning(module: Module, content: bytes) -> Meaning:
    """Return what a module's content means, from disk if it was ever found out."""
    file = _file(module, content)
    record = files.read_checked_json(file)
    if record is not None:
        return Meaning(**{**record, "uses": [tuple(use) for use in record["uses"]]})
    meaning = parse(module, content)
    with contextlib.suppress(OSError):  # whoever can't keep it finds it out again
        files.write_checked_json(file, dataclasses.asdict(meaning))
    return meaning


def cache_folder() -> Path:
    """Where meanings are kept."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "cluster-sweep" / f"meanings-{_version()[:16]}"


@cache
def _version() -> str:
    """Digest of what finds meanings out, and of the Python that parses."""
    return hashlib.sha256(Path(__file__).read_bytes() + sys.version.encode()).hexdigest()


def _file(module: Module, content: bytes) -> Path:
    package = f"{module.name}\0{module.is_package}\0".encode()  # what relative imports start from
    return cache_folder() / f"{hashlib.sha256(package + content).hexdigest()}.json"
