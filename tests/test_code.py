"""The code keeps its own rules: lint, types, and the direction of imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parent.parent
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for top in ("sim", "policies", "sweep")
    for path in sorted((ROOT / top).rglob("*.py"))
}

COUNTED, MOST_LINES = (".ci", "benchmarks", "docs", "policies", "sim", "sweep"), 54_000
"""Where all code outside tests lies, and how many lines of code it may have."""

CHECKS = {
    "lint": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "types": ["mypy"],
    "imports": ["lint-imports", "--no-cache"],
}


@pytest.mark.parametrize("check", CHECKS)
def test_code_passes(check):
    tool, *args = CHECKS[check]
    command = [str(Path(sys.executable).parent / tool), *args]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("lock", ["requirements.lock", "benchmarks/requirements.lock"])
def test_lock_pins_everything_and_names_no_index(lock):
    lines = (ROOT / lock).read_text().splitlines()
    entries = [line for line in lines if line and not line.startswith((" ", "#"))]
    assert len(entries) > 50
    assert all("==" in entry and entry.endswith("\\") for entry in entries)
    hashes = [line for line in lines if line.startswith("    --hash=sha256:")]
    assert len(hashes) >= len(entries)
    assert not [line for line in lines if "://" in line or "index" in line.split("=")[0]]


def test_importing_sim_is_cheap():
    heavy = ["numba", "pandas", "ray", "mlflow", "hydra"]
    code = f"import sim, policies, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def imports(module: str) -> Iterator[tuple[str, ast.stmt, bool]]:
    """Give each project module that a module imports, where, and whether inside a function."""

    def walk(node: ast.AST, inside: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import | ast.ImportFrom):
                yield child, inside
            else:
                yield from walk(child, inside or isinstance(child, ast.FunctionDef))

    for statement, inside in walk(ast.parse(MODULES[module].read_text()), False):
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        else:
            parts = [f"{statement.module}.{alias.name}" for alias in statement.names]
            names = [part if part in MODULES else str(statement.module) for part in parts]
        yield from ((name, statement, inside) for name in names if name in MODULES)


def test_no_module_imports_itself_through_others():
    edges = [(module, name) for module in MODULES for name, _, _ in imports(module)]
    graph = nx.DiGraph([edge for edge in edges if edge[0] != edge[1]])
    circles = [sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1]
    assert not circles


@pytest.mark.parametrize("module", MODULES)
def test_an_import_inside_a_function_says_why(module):
    # Kernels need no word: they load numba, which takes half a second, where it is computed.
    lines = [line.strip() for line in MODULES[module].read_text().splitlines()]
    for name, statement, inside in imports(module):
        at = statement.lineno - 1
        said = any("  # " in line for line in lines[at : statement.end_lineno])
        while at and lines[at - 1].startswith(("from ", "import ")):
            at -= 1
            said |= "  # " in lines[at]
        said |= lines[at - 1].startswith("#")
        assert not inside or said or ".kernels" in name, (
            f"{module} imports {name} in line {statement.lineno}, inside a function; import it at "
            "the top, or say in a comment beside it or above it why it is loaded so late"
        )


def docstring_lines(tree: ast.Module) -> Iterator[int]:
    """Give the numbers of the lines of the docstrings of a module, its classes and functions."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            yield from range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)


def n_lines_of_code(text: str) -> int:
    """Count the lines that are neither blank, nor a comment, nor a docstring's."""
    lines = map(str.strip, text.splitlines())
    said = {at for at, line in enumerate(lines, 1) if not line or line.startswith("#")}
    said.update(docstring_lines(ast.parse(text)))
    return len(text.splitlines()) - len(said)


def test_lines_of_code_are_counted():
    text = '"""A module.\n\nOf its own.\n"""\n\n# why\nX = (\n    1,  # one\n)\n"""What X is."""\n'
    assert n_lines_of_code(text) == 4
    inside = 'def f():\n    """Give 1."""\n\n    return 1\n'
    assert n_lines_of_code(text + "\n\n" + inside) == 6


def test_lines_of_code_outside_tests_keep_to_their_budget():
    rooms: Counter[str] = Counter()
    for file in (file for folder in COUNTED for file in (ROOT / folder).rglob("*.py")):
        room = "/".join(file.relative_to(ROOT).parts[:-1][:2])
        rooms[room] += n_lines_of_code(file.read_text())
    largest = ", ".join(f"{room} {n:,}" for room, n in rooms.most_common(8))
    total = rooms.total()
    assert total <= MOST_LINES, f"{total:,} lines of code outside tests; largest: {largest}"
