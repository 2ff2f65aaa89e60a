"""The report on the lock file's packages, without the network."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
CLOSED = {"id": "PYSEC-1", "fix_versions": ["3.7"]}
OPEN = {"id": "PYSEC-2", "fix_versions": []}


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit", ROOT / ".ci" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "failure_of_service", lambda version: "")
    (tmp_path / "a.lock").write_text(
        "idna==3.6 \\\n    --hash=sha256:0\nnumpy==2.0 ; os == 'a' \\\n"
    )
    return module


def run_audit(monkeypatch: pytest.MonkeyPatch, audit: ModuleType, *vulns: dict[str, Any]) -> int:
    entries = [{"name": "idna", "version": "3.6", "vulns": list(vulns)}]
    skipped = [{"name": "numpy", "skip_reason": "Dependency not found on PyPI"}]
    monkeypatch.setattr(audit, "look_up", lambda lock: [*entries, *skipped])
    return int(audit.main(["a.lock"]))


def test_fails_where_a_newer_version_closes_a_vulnerability(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_audit(monkeypatch, audit, OPEN) == 0
    assert run_audit(monkeypatch, audit, OPEN, CLOSED) == 1
    output = capsys.readouterr().out
    assert "  idna 3.6: PYSEC-1, closed in 3.7\n" in output
    assert "  idna 3.6: PYSEC-2, no version closes it yet\n" in output
    assert (
        "a.lock: 1 packages looked up, 2 known vulnerabilities\n  NOT LOOKED UP: numpy\n" in output
    )


def test_reports_that_the_service_does_not_answer(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "failure_of_service", lambda version: f"no answer about {version}")
    assert audit.main(["a.lock"]) == 0
    assert "NOT CHECKED for known vulnerabilities" in (output := capsys.readouterr().out)
    assert "no answer about 2.0" in output


def test_lists_licences(audit: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    packages = audit.locked(ROOT / "requirements.lock")
    assert len(packages) > 100
    lines = audit.licences({"numpy": "1", "no-such-package": "2"})
    assert "(not for this platform): no-such-package 2" in lines
    assert any("BSD-3-Clause" in line and "numpy 1" in line for line in lines)
