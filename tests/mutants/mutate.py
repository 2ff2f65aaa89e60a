"""Mutants of a module: one constant, comparison, operator or update changed, by its syntax tree."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
CALLS = {"min": "max", "max": "min"}


@dataclass(frozen=True)
class Mutant:
    """A changed module.

    Attributes
    ----------
    file : Path
        The module's file, relative to the checkout.
    line : int
        Line of the change.
    text : str
        What stands there.
    change : str
        The changed expression or statement, before and after.
    source : str
        Text of the changed module.
    lines : range
        The lines of the innermost statement around it, without those of its body.
    place : int
        Which one it is, from 1 on, of the equal changes of its line.
    """

    file: Path
    line: int
    text: str
    change: str
    source: str
    lines: range
    place: int = 1

    def __str__(self) -> str:
        """Return file, line and change, and which of equal ones it is."""
        suffix = f" ({self.place})" if self.place > 1 else ""
        return f"{self.file}:{self.line}: {self.change}{suffix}"


def mutants(file: Path, text: str) -> Iterator[Mutant]:
    """Yield all mutants of a module's functions, in the order of their lines."""
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    nodes = [node for function in functions for node in _body(function)]
    negated = {node.operand for node in nodes if isinstance(node, ast.UnaryOp)}
    nodes = [node for node in nodes if not (isinstance(node, ast.Constant) and node in negated)]
    nodes.sort(key=lambda node: (node.lineno, node.col_offset))  # type: ignore[attr-defined]
    statements, texts = _statements(tree), text.splitlines()
    places: Counter[tuple[int, str]] = Counter()
    for node in nodes:
        for changed in _changes(node):
            before, after = ast.unparse(node), ast.unparse(changed)
            source = _replaced(text, node, after)
            line = node.lineno  # type: ignore[attr-defined]
            was, change = texts[line - 1].strip(), f"{before} -> {after}"
            places[line, change] += 1
            place = places[line, change]
            yield Mutant(file, line, was, change, source, statements[line], place)


def _body(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield the nodes of a function that have a place, without decorators, docstring and names."""
    statements = function.body[1:] if ast.get_docstring(function) else function.body
    for statement in statements:
        yield from (node for node in ast.walk(statement) if hasattr(node, "lineno"))


def _statements(tree: ast.Module) -> dict[int, range]:
    """Return the lines of the innermost statement at each line, without those of its body."""
    lines: dict[int, range] = {}
    for node in ast.walk(tree):  # outer ones first
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = body[0].lineno if body else (node.end_lineno or node.lineno) + 1
            own = range(node.lineno, max(end, node.lineno + 1))
            lines.update(dict.fromkeys(own, own))
    return lines


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield ast.Constant(node.value + 1)
        case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
            yield _with(node, ops=[COMPARISONS[type(operator)]()])
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in OPERATORS:
            yield _with(node, op=OPERATORS[type(operator)]())
        case ast.UnaryOp(op=ast.Not()) | ast.UnaryOp(op=ast.USub()):
            yield node.operand
            if isinstance(node.operand, ast.Constant):
                yield ast.Constant(-node.operand.value - 1)
        case ast.BoolOp():
            yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.Call(func=ast.Name(id=name)) if name in CALLS:
            yield _with(node, func=ast.Name(CALLS[name], ast.Load()))
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()
    if isinstance(node, ast.AugAssign):
        yield ast.Pass()


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _replaced(text: str, node: ast.AST, after: str) -> str:
    """Replace the text of a node; parentheses keep an expression what it is."""
    lines = text.encode().split(b"\n")
    first, last = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined]
    begin, end = node.col_offset, node.end_col_offset  # type: ignore[attr-defined]
    new = f"({after})" if isinstance(node, ast.expr) else after
    changed = lines[first][:begin] + new.encode() + lines[last][end:]
    return b"\n".join([*lines[:first], changed, *lines[last + 1 :]]).decode()
