from __future__ import annotations

from pathlib import Path

import pytest

import policies
from sweep.store import sources

POLICY = """
from dataclasses import dataclass

from policies import Policy, register
{line}


@register("{name}")
@dataclass(frozen=True)
class Mine(Policy):
    pass
"""


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    sources.policy.cache_clear()
    sources.simulator.cache_clear()


def module(folder: Path, name: str, line: str = "") -> Path:
    file = folder / f"{name}.py"
    file.write_text(POLICY.format(line=line, name=name))
    return file


def digest(name: str) -> str:
    sources.policy.cache_clear()
    return sources.policy(name)


def test_the_simulator_is_one_digest() -> None:
    assert len(sources.simulator()) == 64
    assert sources.simulator() == sources.simulator()


def test_policies_of_different_files_differ_from_each_other() -> None:
    files = {policies.spec(name).__module__ for name in policies.names()}
    assert len({sources.policy(name) for name in policies.names()}) >= len(files) > 8


def test_a_users_policy_and_what_it_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    helper = tmp_path / "sources_helper.py"
    helper.write_text("X = 1\n")
    file = module(tmp_path, "sources_mine", "from sources_helper import X")
    policies.registry.load("sources_mine")
    first, fifo = digest("sources_mine"), digest("fifo")
    file.write_text(file.read_text() + "\n# changed\n")
    second = digest("sources_mine")
    helper.write_text("X = 2\n")
    third = digest("sources_mine")
    assert len({first, second, third}) == 3
    assert digest("fifo") == fifo


def test_packages_from_elsewhere_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    module(tmp_path, "sources_numpy", "import numpy, json")
    policies.registry.load("sources_numpy")
    names = sources._closure(["sources_numpy"])
    assert set(names) == {"sources_numpy", "policies", "policies.base", "policies.registry"}


def test_imports_by_name_bring_in_every_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    plain = module(tmp_path, "sources_plain")
    module(tmp_path, "sources_by_name", "import importlib; importlib.import_module('json')")
    assert sources._imports_by_name(tmp_path / "sources_by_name.py")
    assert not sources._imports_by_name(plain)


def test_relative_imports_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    package = tmp_path / "sources_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("X = 1\n")
    (package / "deep.py").write_text("from . import helper\n")
    found = sources._closure(["sources_package.deep"])
    assert set(found) == {"sources_package", "sources_package.deep", "sources_package.helper"}


def test_a_users_measure_and_what_it_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    helper = tmp_path / "measure_helper.py"
    helper.write_text("X = 1\n")
    (tmp_path / "measure_mine.py").write_text("from measure_helper import X\n")

    def of_cell(module: str | None) -> str:
        sources.measure.cache_clear()
        return sources.of_cell("fifo", module)

    none, first = of_cell(None), of_cell("measure_mine")
    assert first.startswith(f"{none}-")
    helper.write_text("X = 2\n")
    assert of_cell("measure_mine") != first
    assert of_cell(None) == none
