"""Summary, flags and usage of a verb, read from its source: its module is not imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from sim.base.sources import modules

_FLAG = re.compile(r"--?[a-z][a-z-]*")
_SHARED = "sweep.cli.command"
"""Module of the functions that add flags of several verbs."""


@dataclass(frozen=True)
class About:
    """Summary, flags and usage of a verb."""

    summary: str  # first line of its docstring
    flags: tuple[str, ...] = ()
    with_value: frozenset[str] = frozenset()  # flags that take a value: the word after is no verb
    usage: str = ""  # all texts of the function that adds its flags


def read(module: str, function: str) -> About | None:
    """Read a verb's source; None if its module can't be read, or lacks the function."""
    functions = _functions(module)
    if function not in functions:
        return None
    summary = (ast.get_docstring(functions[function]) or "").partition("\n")[0]
    adds = functions.get(f"{function}_arguments")
    nodes = [] if adds is None else [*_with_shared(adds)]
    texts = [*_texts(nodes)]
    flags = tuple(text for text in texts if text.startswith("--") and _FLAG.fullmatch(text))
    with_value = {flag for node in nodes if _takes_value(node) for flag in _flags_of(node)}
    return About(summary, flags, frozenset(with_value), " ".join(texts))


@cache
def _functions(module: str) -> dict[str, ast.FunctionDef]:
    """Parse the functions of a module; none if it is not there, or is no Python."""
    located = modules.find(module)
    if located is None:
        return {}
    try:
        tree = ast.parse(modules.read(located.file))
    except (OSError, SyntaxError, ValueError):
        return {}
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _with_shared(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield the nodes of a function, and of the shared ones that it calls."""
    shared = _functions(_SHARED)
    for node in ast.walk(function):
        yield node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from ast.walk(shared[node.func.id]) if node.func.id in shared else ()


def _texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _takes_value(node: ast.AST) -> bool:
    """Tell whether a node calls ``add_argument`` without an action, or to append values."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    actions = [*_texts(keyword.value for keyword in node.keywords if keyword.arg == "action")]
    return node.func.attr == "add_argument" and actions in ([], ["append"])


def _flags_of(node: ast.AST) -> list[str]:
    arguments = node.args if isinstance(node, ast.Call) else []
    texts = _texts(part for argument in arguments for part in ast.walk(argument))
    return [text for text in texts if _FLAG.fullmatch(text)]
