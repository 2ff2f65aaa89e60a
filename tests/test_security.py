"""What the code never does: read a pickle, or run what it reads.

Ray hands Python objects between the processes of one sweep, and compiled kernels are kept as
numba's pickles in a folder of the user's own, each read only with the checksum that it was written
with; neither reads anything that another user put there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
UNSAFE_MODULES = {
    *("pickle", "_pickle", "cPickle", "cloudpickle", "dill", "jsonpickle", "joblib"),
    *("marshal", "shelve", "torch"),
}
UNSAFE_CALLS = {"eval", "exec", "read_pickle", "read_hdf", "unsafe_load", "full_load"}
LOADERS = {"SafeLoader", "CSafeLoader"}


def faults(source: str) -> Iterator[str]:
    """Give each place in a source where something unsafe is imported or called."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            names = []
        for name in names:
            if name.partition(".")[0] in UNSAFE_MODULES:
                yield f"line {node.lineno}: import {name}"
        if isinstance(node, ast.Call):
            yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[str]:
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    owner = function.value.id if isinstance(function, ast.Attribute) and isinstance(
        function.value, ast.Name) else ""  # fmt: skip
    if name in UNSAFE_CALLS and (owner or isinstance(function, ast.Name)):
        yield f"line {node.lineno}: {name}()"
    for keyword in node.keywords:
        is_false = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        if keyword.arg == "allow_pickle" and not is_false:
            yield f"line {node.lineno}: allow_pickle"
    if owner == "yaml" and name in ("load", "load_all"):
        used = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)} | {
            n.value for n in ast.walk(node) if isinstance(n, ast.Constant)
        }
        if not used & LOADERS:
            yield f"line {node.lineno}: yaml.{name} without a safe loader"


@pytest.mark.parametrize("package", ["sim", "policies", "sweep"])
def test_no_pickle_is_read_and_no_text_is_run(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    found = [
        f"{file.relative_to(ROOT)}: {fault}"
        for file in files
        for fault in faults(file.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from joblib import load",
        "np.load(file, allow_pickle=True)",
        "pd.read_pickle(file)",
        "yaml.load(text)",
        "yaml.load(text, yaml.Loader)",
        "eval(text)",
    ],
)
def test_the_check_finds(source: str) -> None:
    assert len(list(faults(source))) == 1


@pytest.mark.parametrize(
    "source",
    ["np.load(file)", "np.load(file, allow_pickle=False)", "yaml.load(text, yaml.SafeLoader)",
     "re.compile(text)", "model.evaluate(text)"],
)  # fmt: skip
def test_the_check_passes(source: str) -> None:
    assert list(faults(source)) == []
