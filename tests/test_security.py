"""The code never unpickles foreign files and never runs text as code.

Ray passes Python objects between the processes of one sweep, and compiled kernels are cached as
numba's pickles in a private folder of the user, each read only if its checksum is right; neither
reads a file that another user put there. Text runs as code in one place, the sealed process of a
candidate, which believes the evaluator's messages; the evaluator believes none of its.
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
SEALED = {
    ("sweep/questions/evaluate/candidate.py", "import pickle"),
    ("sweep/questions/evaluate/candidate.py", "exec()"),
    ("sweep/questions/evaluate/processes.py", "import pickle"),  # writes, and reads none
}
"""Faults that are meant: what a candidate's process reads and runs."""
LOADERS = {"SafeLoader", "CSafeLoader"}


def faults(source: str) -> Iterator[str]:
    """Yield each unsafe import or call in a source."""
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
            yield from _call_faults(node)


def _call_faults(node: ast.Call) -> Iterator[str]:
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
    unsafe = [
        f"{file.relative_to(ROOT)}: {fault}"
        for file in files
        for fault in faults(file.read_text(encoding="utf-8"))
        if (file.relative_to(ROOT).as_posix(), fault.partition(": ")[2]) not in SEALED
    ]
    assert unsafe == []


def test_what_a_candidate_sends_is_not_unpickled() -> None:
    text = (ROOT / "sweep/questions/evaluate/processes.py").read_text()
    assert "pickle.dumps" in text
    assert "pickle.load" not in text


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
