"""The code that goes along with a sweep."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sim.base import entry_points
from sweep.execution.on_ray import code_archive, preflight
from sweep.store import sources


def test_it_has_all_that_cells_need_and_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine_sent").mkdir()
    (tmp_path / "mine_sent" / "__init__.py").write_text("")
    (tmp_path / "mine_sent" / "policy.py").write_text("GREETING = 'sent'\n")
    (tmp_path / "mine_sent" / "unused.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    sources.forget()
    own = ["mine_sent", "mine_sent.policy", "sim.base.errors"]
    for name in ("one.zip", "two.zip"):
        code_archive.pack(tmp_path / name, own, {"A": "a", "B": "b"})
    code_archive.pack(tmp_path / "three.zip", own, {"A": "a", "B": "another"})
    sources.forget()
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    # one that workers with another environment unpack is another archive to Ray
    assert (tmp_path / "one.zip").read_bytes() != (tmp_path / "three.zip").read_bytes()
    names = zipfile.ZipFile(tmp_path / "one.zip").namelist()
    assert "mine_sent/policy.py" in names
    assert "mine_sent/unused.py" not in names
    assert not [name for name in names if name.endswith(".pyc")]
    (tmp_path / "there").mkdir()
    zipfile.ZipFile(tmp_path / "one.zip").extractall(tmp_path / "there")
    code = (
        "import mine_sent.policy, sweep.execution.task as task; "
        "print(mine_sent.policy.GREETING, task.__file__)"
    )
    node = tmp_path / "there"
    assert run(node, code) == ["sent", str(node / "sweep/execution/task.py")]


def test_nodes_have_the_systems_and_their_data(tmp_path: Path) -> None:
    code_archive.pack(tmp_path / "one.zip", (), {})
    zipfile.ZipFile(tmp_path / "one.zip").extractall(tmp_path / "there")
    code = (
        "import policies; from sim.base import entry_points; from sim.published import numbers; "
        "policies.build('wserpt'), policies.build('dagps'), numbers('wing'); "
        "from sweep.execution.on_ray.preflight import _module_digests; "
        "table = _module_digests([(('wserpt', None), ('simulation', None))]); "
        "print(entry_points.__file__, min(entry_points.installed('policies')), *table)"
    )
    file, first, *sent = run(tmp_path / "there", code)
    table = preflight._module_digests([(("wserpt", None), ("simulation", None))])
    assert {*sent} == {*table}
    assert file == str(tmp_path / "there/sim/base/entry_points.py")
    assert first == min(entry_points.installed("policies"))
    assert not (tmp_path / "there" / "pyproject.toml").exists()


def run(folder: Path, code: str) -> list[str]:
    words = [sys.executable, "-c", code]
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=True
    ).stdout.split()


@pytest.mark.parametrize(
    ("job", "travels"),
    [("", False), ('{"runtime_env": {"working_dir": "gcs://a.zip"}}', True), ("{}", False)],
)
def test_a_submitted_job_has_its_code(
    job: str, travels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", job)
    assert code_archive.is_sent_by_job() is travels
