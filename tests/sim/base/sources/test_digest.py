"""Digest of a module's sources and their imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sim.base import sources

ROOT = Path(__file__).resolve().parents[4]

LOADED = """
import sys
import pytest

from sim.base import sources
module = "policies.dagps.build_schedule"
closure = {*sources.closure([module], packages=False)}  # before any of it is loaded
assert "policies.dagps.online" not in closure
import sim
from policies.dagps import build_schedule
job = {"submit_s": 0.0, "stages": [{"name": "a", "durations_s": [1.0]},
       {"name": "b", "durations_s": [2.0, 3.0], "parents": ["a"]}, {"durations_s": [1.0]}]}
build_schedule.build_schedule(sim.Workload.from_jobs([job]), sim.Cluster.slots(2))
ran = {m for m in sys.modules if ".kernels." in m and not m.startswith("sim.base.maths")}
print(sorted(ran - closure), {*sources.closure([module], packages=False)} == closure)
"""


def test_imports_inside_functions_count_before_and_after_loading() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.stdout.strip() == "[] True", ran.stderr


def test_all_ways_to_import_count(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    room = tmp_path / "policies_x"
    (room / "below").mkdir(parents=True)
    for name in ("__init__", "below/__init__"):
        (room / f"{name}.py").touch()
    text = (
        '"""Words."""\nfrom .below import two\nimport policies_x.three as t\nfrom . import four\n'
    )
    (room / "one.py").write_text(text)
    (room / "below" / "two.py").write_text("from ..three import a  # a\nfrom .. import five\n")
    for name in ("three", "four", "five"):
        (room / f"{name}.py").write_text("a = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    modules = closure("policies_x.one")
    names = {"one", "below.two", "three", "four", "five"}
    assert modules == {f"policies_x.{name}" for name in names}
    (room / "six.py").write_text("import policies_x\n")  # its attributes may be any of its imports
    (room / "__init__.py").write_text("from policies_x.five import a\n")
    assert closure("policies_x.six") == {f"policies_x{end}" for end in ("", ".five", ".six")}
    before = sources.digest("policies_x.one")
    (room / "one.py").write_text("# other\n" + text.replace("Words", "Other words"))
    (room / "five.py").write_text("a = 1  # still\n")
    assert fresh("policies_x.one") == before
    (room / "five.py").write_text("a = 2\n")
    assert fresh("policies_x.one") != before


def closure(module: str) -> set[str]:
    return {*sources.closure([module], packages=False)}


def fresh(module: str) -> str:
    sources.clear_caches()
    sources.digest.cache_clear()
    return sources.digest(module)


def test_a_kernel_that_a_function_imports_is_among_the_sources() -> None:
    assert "sim.bounds.kernels.srpt" in closure("sim.bounds.stream")


@pytest.mark.parametrize("module", ["__main__", "numpy", "policies.no_such.policy.at_all"])
def test_a_module_without_sources_is_refused(module: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=module):
        sources.digest(module)
