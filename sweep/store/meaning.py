"""What a module's text means: a digest without comments, and what it asks of other modules."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass, field

from sweep.store import mentions
from sweep.store.mentions import Bound, Use
from sweep.store.modules import Module

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Meaning:
    """What matters of a module.

    Attributes
    ----------
    digest : str
        SHA-256 over the parsed code, without comments, docstrings and what only type checkers see.
    imports : list of str
        What its import statements load, wherever they stand; the last part of a name may be that
        of something in the module.
    uses : list of Use
        Imported names that its code mentions, as far as they are followed by attributes.
    binds : dict of str to list of str
        What imports bind names to.
    homes : dict of str to str
        Texts by text in its top-level tables: where a lazy module finds its names.
    is_lazy : bool
        Whether it has a ``__getattr__``.
    finders : list of str
        Its functions that import modules by name, directly or by one another.
    by_name : bool
        Whether anything in it does.
    """

    digest: str
    imports: list[str] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    binds: Bound = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)
    is_lazy: bool = False
    finders: list[str] = field(default_factory=list)
    by_name: bool = False


def of(module: Module, content: bytes) -> Meaning:
    """Find out what the content of a module's file means."""
    tree = ast.parse(content, filename=str(module.file))
    keeps_texts = b"__doc__" in content or b"getdoc" in content
    for node in ast.walk(tree):
        _strip(node, keeps_texts)
    digest = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    binds, imports = mentions.imports(tree, module)
    uses = dict.fromkeys(mentions.uses(tree, binds))
    return Meaning(
        digest=digest,
        imports=list(dict.fromkeys(imports)),
        uses=[use for use in uses if not mentions.is_by_name(use)],
        binds=binds,
        homes=_homes(tree),
        is_lazy="__getattr__" in {getattr(node, "name", "") for node in tree.body},
        finders=_finders(tree, binds),
        by_name=any(map(mentions.is_by_name, uses)),
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
        if isinstance(node, ast.Assign) and any(
            map(mentions.is_by_name, mentions.uses(node.value, binds))
        ):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, _DEFINITIONS):
            said[node.name] = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            if any(map(mentions.is_by_name, mentions.uses(node, binds))):
                found.add(node.name)
    while more := {name for name, names in said.items() if name not in found and names & found}:
        found |= more
    return sorted(found)
