"""Lanes of tests: the core lane holds what a change of anything may break, by a rule."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from policies import registry
from tests.conftest import CORE, ROOT, first_of_each_file, is_core


def collected(path: str, policy: str | None = None, *markers: str) -> pytest.Item:
    """Return a stand-in for a test, of a policy or of none."""
    item = SimpleNamespace(
        path=ROOT / path, get_closest_marker=lambda name: name if name in markers else None
    )
    if policy is not None:
        item.callspec = SimpleNamespace(params={"name": policy})
    return cast(Any, item)


def test_the_core_lane_has_one_policy_of_each_file() -> None:
    files = {registry.spec(name).__module__ for name in registry.names()}
    assert {registry.spec(name).__module__ for name in first_of_each_file()} == files
    assert len(first_of_each_file()) == len(files)
    test = "tests/policies/test_invariants.py"
    taken = {name for name in registry.names() if is_core(collected(test, name))}
    assert taken == first_of_each_file()


@pytest.mark.parametrize("path", CORE)
def test_the_core_lane_is_of_folders_that_are_there(path: str) -> None:
    assert (ROOT / path).exists()
    inside = path if path.endswith(".py") else f"{path}/test_new.py"
    assert is_core(collected(inside))
    for marker in ("slow", "e2e", "long"):
        assert not is_core(collected(inside, None, marker))
    assert not is_core(collected(inside.replace("tests/", "tests/new/")))


def test_nothing_is_marked_by_hand() -> None:
    files = [file for file in (ROOT / "tests").rglob("*.py") if file != Path(__file__)]
    assert [file for file in files if "mark.core" in file.read_text()] == []
