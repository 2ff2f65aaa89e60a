"""What a module's text asks of other modules: what it imports, and which of their names it uses."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import sim.base.plugins
from sweep.store.modules import Module

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


def imports(tree: ast.Module, module: Module) -> tuple[Bound, list[str]]:
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


def uses(node: ast.AST, binds: Bound) -> Iterator[Use]:
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
        yield from uses(child, binds)


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


def is_by_name(use: Use) -> bool:
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
