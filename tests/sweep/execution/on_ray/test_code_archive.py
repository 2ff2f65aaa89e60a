"""The code that goes along with a sweep."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sweep.execution.on_ray import code_archive
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
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "there", capture_output=True, text=True
    )
    assert done.stdout.split() == ["sent", str(tmp_path / "there/sweep/execution/task.py")]


@pytest.mark.parametrize(
    ("job", "travels"),
    [("", False), ('{"runtime_env": {"working_dir": "gcs://a.zip"}}', True), ("{}", False)],
)
def test_a_submitted_job_has_its_code(
    job: str, travels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", job)
    assert code_archive.is_sent_by_job() is travels
