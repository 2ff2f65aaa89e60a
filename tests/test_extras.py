"""Extras of the distribution: what is missing is named with the command that installs it."""

from __future__ import annotations

import math
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import policies
import sim
import sweep
from sim.base import extras, part_library
from sweep.api import frames

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
IMPORT_NAMES = {"hydra-core": "hydra", "mlflow-skinny": "mlflow"}

WITHOUT = """
import sys
sys.modules.update(dict.fromkeys({missing!r}))  # an import of these fails
sys.argv = ["cluster-sweep", "policy=fifo"]
{code}
"""


def run_without(packages: tuple[str, ...], code: str) -> subprocess.CompletedProcess[str]:
    script = WITHOUT.format(missing=packages, code=code)
    return subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("extra", extras.EXTRAS)
def test_the_table_of_extras_is_that_of_the_distribution(extra: str) -> None:
    lines = PYPROJECT["optional-dependencies"][extra]
    packages = {line.partition(">")[0] for line in lines}
    assert {IMPORT_NAMES.get(name, name) for name in packages} == {*extras.EXTRAS[extra]}


def test_simulations_need_no_extra() -> None:
    missing = {name for packages in extras.EXTRAS.values() for name in packages}
    missing -= {"pandas"}  # which Arrow imports if it is there; `make wheel` tries without
    code = (
        "import sim, policies\n"
        "w = sim.Workload.from_jobs([{'submit_s': 0.0, 'stages': [{'durations_s': [3.0]}]}])\n"
        "r = sim.simulate(w, sim.Cluster.slots(2), policies.build('srpt'))\n"
        "print(r.metrics['jct_mean_s'])"
    )
    ran = run_without(tuple(missing), code)
    assert ran.stdout.strip() == "3.0", ran.stderr


@pytest.mark.parametrize(
    "code", ["import sweep; sweep.run", "from sweep.__main__ import main; main()"]
)
def test_a_sweep_without_ray_names_the_extra(code: str) -> None:
    ran = run_without(("ray",), code)
    assert ran.returncode
    assert ran.stderr.splitlines()[-1].endswith(
        "ray is not installed: pip install 'cluster-sweep[sweep]'"
    )


def test_a_frame_without_pandas_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    with pytest.raises(extras.MissingExtraError, match=r"pip install 'cluster-sweep\[frames\]'"):
        frames.from_rows([])


def test_a_plot_without_plotly_names_the_extra() -> None:
    with (
        pytest.raises(extras.MissingExtraError, match=r"pip install 'cluster-sweep\[plots\]'"),
        extras.importing("plots"),
    ):
        raise ModuleNotFoundError("No module named 'plotly.subplots'", name="plotly.subplots")
    with pytest.raises(ModuleNotFoundError, match="another"), extras.importing("plots"):
        raise ModuleNotFoundError("another", name="another")


def test_one_version_for_all() -> None:
    assert sim.__version__ == policies.__version__ == sweep.__version__ == PYPROJECT["version"]


def test_parts_of_kernels_fit_the_inside_of_this_numba() -> None:
    assert part_library.is_usable()


PLAIN = """
import os
os.environ |= {{"SIM_PLAIN_PARTS": "1", "NUMBA_OPT": "1", "NUMBA_CACHE_DIR": {cache!r}}}
import sim, policies
from sim.base import jit, maths
{code}
assert not jit._parts_are_linked()
"""
SIMULATION = """
w = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": [{"durations_s": [3.0]}]}])
print(sim.simulate(w, sim.Cluster.slots(2), policies.build("srpt")).metrics["jct_mean_s"])
"""


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("print(maths.exp([0.0, 1.0]).tolist())", f"[1.0, {math.e}]"),
        pytest.param(SIMULATION, "3.0", marks=pytest.mark.long),
    ],
    ids=["exp", "simulation"],
)
def test_kernels_compile_without_the_library_of_parts(
    tmp_path: Path, code: str, output: str
) -> None:
    ran = run_without((), PLAIN.format(cache=str(tmp_path), code=code))
    assert ran.stdout.strip() == output, ran.stderr
