"""Files for a public forge: they call what exists, and state one version and one address."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_of_the_makefile(workflow: Path) -> None:
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    commands = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    called = {target for command in commands for target in re.findall(r"\bmake ([a-z-]+)", command)}
    assert called
    assert called <= TARGETS


@pytest.mark.skipif(shutil.which("make") is None, reason="make is missing")
@pytest.mark.parametrize(("words", "n_lanes"), [((), 2), (("TESTS=tests/test_forge.py",), 1)])
def test_a_dry_run_of_make_test_starts_none(words: tuple[str, ...], n_lanes: int) -> None:
    ran = subprocess.run(
        ["make", "-n", "test", *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    commands = ran.stdout.splitlines()
    assert sum("-m pytest" in line and "--collect-only" not in line for line in commands) == n_lanes
    assert not any("passed" in line or "skipped" in line for line in commands)


def test_the_citation_names_the_version_and_the_five_papers() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["version"]
    assert citation["repository-code"] == PROJECT["urls"]["Homepage"]
    assert len(citation["references"]) == 5


def test_the_changelog_has_the_version() -> None:
    assert f"\n## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_python_that_is_tested_is_a_classifier() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    tested = jobs["test"]["strategy"]["matrix"]["python"]
    assert PROJECT["requires-python"] == f">={tested[0]}"
    assert [f"Programming Language :: Python :: {python}" for python in tested] == [
        entry for entry in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", entry)
    ]


@pytest.mark.parametrize(
    ("subject", "code"),
    [
        ("sim/engine: name queues by their owner", 0),
        ("store, track: mask tokens", 0),
        ("Merge branch 'main'", 0),
        ("Fix things", 1),
        ("sim/engine: " + "x" * 61, 1),
    ],
)
def test_subjects_of_commits(tmp_path: Path, subject: str, code: int) -> None:
    (tmp_path / "message").write_text(f"{subject}\n\nThe reason.\n")
    check = [str(ROOT / ".ci" / "check_subject"), str(tmp_path / "message")]
    assert subprocess.run(check, capture_output=True, check=False).returncode == code


def test_hooks_call_what_is_there() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    for hook in hooks:
        program, *words = hook["entry"].split()
        assert program.startswith(".venv/bin/") or (ROOT / program).is_file()
        assert all((ROOT / word).is_file() for word in words if word.endswith(".py"))
