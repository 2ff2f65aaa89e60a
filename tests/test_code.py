"""Rules of the code: lint, types, and the direction of imports."""

from __future__ import annotations

import ast
import subprocess
import sys
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

MAX_LINES, MAX_STATEMENTS = 600, 60
LONG_LOOPS = {
    "sim.engine.kernels.pool.run_pool": 105,
    "sweep.questions.backtest.kernels.line.replay_line": 71,
    "sim.synth.fitted.kernels.improved.link_job": 71,
    "policies.wing.lineage.kernels.closure.hop_rows": 65,
}
"""Statements of compiled loops whose locals would become arguments of each part."""

CHECKS = {
    "lint": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "types": ["mypy"],
    "imports": ["lint-imports", "--no-cache"],
}


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, marks=pytest.mark.slow) if check == "types" else check
        for check in CHECKS
    ],
)
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
    """Yield each project module that a module imports, the statement, and True in a function."""

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
    cycles = [sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1]
    assert not cycles


def test_an_import_inside_a_function_says_why():
    """Kernels need no comment: they load numba, which takes half a second, only when needed."""
    wrong = []
    for module, path in MODULES.items():
        lines = [line.strip() for line in path.read_text().splitlines()]
        for name, statement, inside in imports(module):
            row = statement.lineno - 1
            has_comment = any("  # " in line for line in lines[row : statement.end_lineno])
            while row and lines[row - 1].startswith(("from ", "import ")):
                row -= 1
                has_comment |= "  # " in lines[row]
            has_comment |= lines[row - 1].startswith("#")
            if inside and not has_comment and ".kernels" not in name:
                wrong.append(f"{path}:{statement.lineno}: {name}")
    assert not wrong, (
        "import at the top, or say why not in a comment beside or above:\n" + "\n".join(wrong)
    )


def test_modules_and_functions_are_short():
    wrong = []
    for module, path in MODULES.items():
        text = path.read_text()
        if (n := len(text.splitlines())) > MAX_LINES:
            wrong.append(f"{path}: {n} lines")
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                n = sum(isinstance(node, ast.stmt) for node in ast.walk(function)) - 1
                if n > LONG_LOOPS.get(f"{module}.{function.name}", MAX_STATEMENTS):
                    wrong.append(f"{path}:{function.lineno}: {function.name}: {n} statements")
    assert not wrong, "\n".join(wrong)
