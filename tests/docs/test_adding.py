"""The page on adding to the project shows every file that an addition needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import pages

ROOT = Path(__file__).resolve().parents[2]
MADE_HERE = (".git", ".venv*", ".*_cache", ".hypothesis", "__pycache__", "build")
RESULTS = ("judged.yaml", "reproductions")
"""Of the folder of results what is no run's."""
ALL_THAT_IS_THERE = (
    "tests/test_code.py",
    "tests/test_words.py",
    "tests/test_lanes.py",
    "tests/docs/test_references.py",
    "tests/docs/test_pages.py",
    "tests/docs/test_sections.py",
    "tests/policies/test_registry.py",
    "tests/fuzz/test_readers.py",
    "tests/sim/metrics",
    "tests/sim/traces/test_read_trace.py",
    "tests/sim/traces/test_accounts.py",
    "tests/sweep/grid/test_options.py",
    "tests/sweep/store/test_sources.py",
    "tests/sweep/store/test_sources_late.py",
    "tests/sweep/store/test_sources_complete.py",
)
"""Tests that look at all modules, files of options or pages."""
OF_EACH = (
    "tests/policies/test_invariants.py",
    "tests/policies/test_knows.py",
    "tests/policies/wserpt/test_everything.py",
    "tests/sweep/grid/test_randomness.py",
)
"""Tests that have a case for each policy."""


def made_here(folder: str, names: list[str]) -> set[str]:
    """Return which files of a folder are no part of the project."""
    if Path(folder) == ROOT / "results":
        return {*names} - {*RESULTS}
    return shutil.ignore_patterns(*MADE_HERE)(folder, names)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Copy the project, and add the examples of the page."""
    folder = tmp_path / "checkout"
    shutil.copytree(ROOT, folder, ignore=made_here)
    for block in pages.blocks("adding.md"):
        if block.file is not None:
            file = folder / block.file
            assert not file.exists()
            file.parent.mkdir(exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
    for words in (("init", "--quiet"), ("add", "--all")):  # tests ask git for all files
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def assert_passes(checkout: Path, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        timeout=5400,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr


@pytest.mark.long
def test_nothing_else_is_edited(checkout: Path) -> None:
    assert_passes(checkout, *ALL_THAT_IS_THERE)


@pytest.mark.long
def test_a_policy_of_the_page_keeps_the_rules(checkout: Path) -> None:
    assert_passes(checkout, *OF_EACH, "-k", "widest")


@pytest.mark.e2e
@pytest.mark.long
def test_each_is_a_module_and_a_yaml(tmp_path: Path) -> None:
    for name in ("sim", "policies", "sweep", "conf"):
        without_caches = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=without_caches)
    actions = pages.run_page("adding.md", tmp_path, tmp_path)
    assert actions.count("file") == 10
    assert actions[-5:] == [*["run", "compared"] * 2, "left out"]


def test_each_takes_about_twenty_lines() -> None:
    modules = [block for block in pages.blocks("adding.md") if block.language == "python"]
    assert all(len(block.text.splitlines()) <= 30 for block in modules)
