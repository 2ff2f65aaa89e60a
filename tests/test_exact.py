"""Results are computed with bit-reproducible functions only; a failure names the line."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.test_code import MODULES

INEXACT = {
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "power", "float_power"),
    *("pow", "cbrt", "hypot", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "asin"),
    *("acos", "atan", "atan2", "sinh", "cosh", "tanh", "erf", "erfc", "gamma", "lgamma"),
    *("geomspace", "logspace", "interp", "polyfit", "dot", "vdot", "inner", "matmul", "tensordot"),
    *("einsum", "linalg", "convolve", "correlate", "cov", "corrcoef", "random", "partition"),
    "argpartition",
}
"""Functions of NumPy, the C library and BLAS whose bits differ between processors."""
FOREIGN = ("scipy.special", "scipy.stats", "scipy.linalg", "scipy.optimize")
ALLOWED = {
    "policies.baselines.matching": "an assignment that adds and compares, without BLAS",
    "policies.jockey.bound": "a bound that only a test compares policies with; no cell has it",
    "policies.check.unknown": "worlds of a check; no cell has them",
    "sim.check.record": "sums of whole numbers, of a check",
    "sim.check.repeat": "it seeds the global generators that a plug-in must not draw from",
    "sim.check.worlds": "worlds of a check; no cell has them",
    "sim.dags.random_dags": "powers of whole numbers",
    "sim.state.spread": "whole numbers, of a solver that uses no BLAS and draws nothing",
}
"""Exempt modules, with the reason."""
INSTEAD = "use sim.base.maths and sim.base.random instead"


def inexact(source: str) -> Iterator[tuple[int, str]]:
    """Yield the operations of a module whose bits differ between machines, with their lines."""
    for node in ast.walk(ast.parse(source)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in ("np", "numpy", "math") and node.attr in INEXACT:
                yield line, f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield line, "@"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            if not _is_exact(node.left, node.right):
                yield line, "**"
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "").startswith(FOREIGN):
                yield line, str(node.module)
            if node.module == "scipy":
                yield from ((line, a.name) for a in node.names if f"scipy.{a.name}" in FOREIGN)
            if node.module in ("math", "numpy"):
                yield from ((line, a.name) for a in node.names if a.name in INEXACT)
        elif isinstance(node, ast.Import):
            yield from ((line, a.name) for a in node.names if a.name.startswith(FOREIGN))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            kinds = [k.value for k in node.keywords if k.arg == "kind"]
            stable = [k for k in kinds if getattr(k, "value", "") in ("stable", "mergesort")]
            if node.func.attr in ("argsort", "sort_values") and not stable:
                yield line, f"{node.func.attr} without kind='stable'"


def _is_exact(base: ast.expr, exponent: ast.expr) -> bool:
    """Check that a power is a square, a power of two, or a power of two literals."""
    base = base.operand if isinstance(base, ast.UnaryOp) else base
    if isinstance(exponent, ast.Constant) and exponent.value == 2:
        return True
    return isinstance(base, ast.Constant) and (
        base.value in (2, 0.5, 1) or isinstance(exponent, ast.Constant)
    )


def test_results_use_exact_operations_only() -> None:
    """Studies make figures from cells; no cell has them."""
    for module, file in MODULES.items():
        in_results = module.startswith(("sim", "policies")) and not module.startswith("sim.base.")
        if not in_results or ".study" in module:
            continue
        faults = [f"{module}, line {line}: {op}" for line, op in inexact(file.read_text())]
        if module in ALLOWED:
            assert faults, f"{module} needs no exception any more"
        else:
            assert not faults, f"{'; '.join(faults)}: {INSTEAD}"


@pytest.mark.parametrize(
    "source",
    [
        "np.exp(x)", "math.log(x)", "a @ b", "x ** 0.5", "x ** y", "np.linalg.eigh(a)",
        "np.random.default_rng(0)", "from scipy.special import ndtri", "from scipy import stats",
        "import scipy.stats", "from math import exp", "np.argsort(x)", "x.argsort()",
        "x.argsort(kind='quicksort')", "np.interp(x, a, b)", "10 ** k",
    ],
)  # fmt: skip
def test_inexact_operations_are_reported(source: str) -> None:
    assert [line for line, _ in inexact(source)] == [1]


@pytest.mark.parametrize(
    "source", ["x ** 2", "2 ** k", "0.5 ** k", "10 ** 9", "np.sqrt(x)", "x.argsort(kind='stable')"]
)
def test_exact_operations_are_allowed(source: str) -> None:
    assert not list(inexact(source))
