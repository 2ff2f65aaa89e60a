"""Names and first lines are words of the field: a reader finds them by the term that he knows.

`docs/glossary.md` has the terms, `CONTRIBUTING.md` the rule.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("sim", "policies", "sweep", "tests", "benchmarks", "docs", ".ci")

_WORDS = """
alike anew asked at away begun came come each found gave give given gives gone held here its kept
least look looked looks made meant most much of one others said say says so such take them there
these thing things those told took wanted what which who whom whose
"""
NAMES = frozenset(_WORDS.split())
"""Names that tell nothing: a preposition, a pronoun, a participle."""
PREFIXES = ("of_", "what_", "who_", "whose_")
ALLOWED = ("what_if", "take")
"""The field's: what-if analysis; `take` of rows, as in Arrow and NumPy."""
FIRST = re.compile(
    r"(What|Who|Whose|Whom|Whoever|Whatever|Whether|That|Which|Where|When|How)\b", re.ASCII
)
"""Beginnings of a text that names no thing and no effect."""


def names(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the name that a node gives, with its line."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield node.lineno, name
        case ast.arg(arg=name):
            yield node.lineno, name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield node.lineno, name
        case ast.ClassDef(name=name):
            yield node.lineno, name
        case ast.alias(asname=str(name)):
            yield node.lineno, name


def texts(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the text that a node is, a docstring or that of a constant, with its line."""
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            yield node.lineno, text.strip()


def is_refused(name: str) -> bool:
    """Tell whether a name is one of `NAMES`, or begins with one of `PREFIXES`."""
    plain = name.strip("_")
    return plain not in ALLOWED and (
        plain in NAMES or (plain.startswith(PREFIXES) and not plain.startswith(ALLOWED))
    )


def complaints(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        for line, name in names(node):
            if is_refused(name):
                yield f"{line}: the name {name!r}: call it by the term of the field"
        for line, text in texts(node):
            if FIRST.match(text):
                first = text.splitlines()[0]
                yield f"{line}: {first!r}: begin with a noun of the field or a verb of effect"


@pytest.mark.parametrize("room", ROOMS)
def test_names_and_first_lines_are_words_of_the_field(room: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{complaint}"
        for path in sorted((ROOT / room).rglob("*.py"))
        for complaint in complaints(path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n".join([f"{len(wrong)}:", *wrong])


def test_first_lines_of_options_are_words_of_the_field() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in sorted(ROOT.glob("conf/**/*.yaml"))
        + sorted(ROOT.glob("policies/*/conf/**/*.yaml"))
        for line in path.read_text(encoding="utf-8").splitlines()[:1]
        if FIRST.match(line.removeprefix("# "))
    ]
    assert not wrong, "\n".join(wrong)


def test_modules_are_named_by_words_of_the_field() -> None:
    paths = (path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    assert not [path for path in paths if is_refused(path.stem.removeprefix("test_"))]


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        ("def of(table): ...", True),
        ("def f(at): ...", True),
        ("found = 1", True),
        ("self.kept_ = 1", True),
        ("import a as them", True),
        ("of_cell = 1", True),
        ("class Said: ...", False),
        ('"""What a node is asked."""', True),
        ('X = 1\n"""Whether it fits."""', True),
        ('"""Node preflight."""\nposition = 1', False),
        ("what_if = 1", False),
    ],
)
def test_the_check_itself(source: str, refused: bool) -> None:
    assert bool(list(complaints(source))) == refused
