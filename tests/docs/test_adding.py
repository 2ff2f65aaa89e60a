"""The page on adding to the project shows every file that an addition needs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs import pages

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.e2e
@pytest.mark.long
def test_each_is_a_module_and_a_yaml(tmp_path: Path) -> None:
    for name in ("sim", "policies", "sweep", "conf"):
        without_caches = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=without_caches)
    actions = pages.run_page("adding.md", tmp_path, tmp_path)
    assert actions.count("file") == 8
    assert actions[-4:] == ["run", "compared"] * 2


def test_each_takes_about_twenty_lines() -> None:
    modules = [block for block in pages.blocks("adding.md") if block.language == "python"]
    assert all(len(block.text.splitlines()) <= 30 for block in modules)
