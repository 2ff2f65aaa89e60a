"""Packaging: a wheel with the configuration inside, and an editable install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.docs.pages import blocks

ROOT = Path(__file__).resolve().parents[1]
build = pytest.importorskip("hatchling.build")


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # the builder reads the working folder


def test_the_wheel_holds_the_packages_and_the_configuration(tmp_path: Path) -> None:
    with ZipFile(tmp_path / build.build_wheel(str(tmp_path))) as wheel:
        names = set(wheel.namelist())
    rooms = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert rooms == {"sim", "policies", "sweep"}
    conf = {file.relative_to(ROOT / "conf").as_posix() for file in (ROOT / "conf").rglob("*.yaml")}
    assert {n.removeprefix("sweep/_conf/") for n in names if n.startswith("sweep/_conf/")} == conf
    rooms = {file.relative_to(ROOT).as_posix() for file in ROOT.glob("policies/*/conf/**/*.yaml")}
    assert len(rooms) > 200
    assert rooms <= names


def test_a_script_in_any_folder_imports_an_editable_install(tmp_path: Path) -> None:
    site, work = tmp_path / "site", tmp_path / "work"
    with ZipFile(tmp_path / build.build_editable(str(tmp_path))) as wheel:
        wheel.extractall(site)
    installed = [name for name in os.listdir(site) if not name.endswith(".dist-info")]  # noqa: PTH208
    assert installed == ["_cluster_sweep.pth"]  # no copy of any file
    shown = {block.file: block.text for block in blocks("your_own_policy.md") if block.file}
    for name in ("mine/edf.py", "mine/try.py"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(shown[name])
    code = (
        f"import runpy, site, sys; site.addsitedir({str(site)!r}); sys.path[0] = 'mine'; "
        "runpy.run_path('mine/try.py'); from sweep.grid.options import bundled; print(bundled())"
    )
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=work, env=environment, capture_output=True, text=True,
        check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == ["0.0", str(ROOT / "conf")]
