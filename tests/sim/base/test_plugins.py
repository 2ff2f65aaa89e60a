"""Plug-ins are the modules of a package, and entry points, found by name."""

from __future__ import annotations

import sys

import pytest

from sim.base.errors import InputError
from sim.base.plugins import Plugins, check_names, check_single, import_user_module, options


@pytest.fixture
def shapes(tmp_path, monkeypatch):
    package = tmp_path / "shapes_of_a_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "square.py").write_text("def area(side, *, times=2): return times * side * side")
    (package / "circle.py").write_text("def area(radius): return 3 * radius * radius")
    (package / "_parts.py").write_text("")
    (package / "reading.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    yield Plugins("shape", package.name, "area", "shapes", helpers=("reading",))
    for name in [name for name in sys.modules if name.startswith(package.name)]:
        del sys.modules[name]


def test_every_module_except_shared_ones_is_a_plugin(shapes):
    assert shapes.names() == ["circle", "square"]
    assert shapes.function("square")(3) == 18
    assert options(shapes.function("square"), n_fixed=1) == {"times": 2}


def test_an_unknown_one_gets_the_nearest(shapes):
    with pytest.raises(InputError, match="unknown shape 'sqare'; did you mean 'square'"):
        shapes.function("sqare")
    for hidden in ("_parts", "reading", "os", "square.py"):
        with pytest.raises(InputError, match="unknown shape"):
            shapes.module(hidden)
    with pytest.raises(InputError, match="unknown side of a square 'tims'; did you mean 'times'"):
        check_names("side of a square", ["tims"], ["times"])


def test_a_module_of_ones_own_that_is_not_there_is_an_error_of_the_input(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "needs_more.py").write_text("import not_installed_at_all")
    with pytest.raises(InputError, match="shape module 'nowhere_at_all' can't be imported"):
        import_user_module("shape", "nowhere_at_all")
    with pytest.raises(ModuleNotFoundError, match="not_installed_at_all"):
        import_user_module("shape", "needs_more")


def test_two_files_of_a_module_that_differ_are_refused(tmp_path, monkeypatch):
    for name, text in (("a", "x = 1"), ("b", "x = 1"), ("c", "x = 2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "own_twice.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path / name))
        if name != "c":
            check_single("policy", "own_twice")
    with pytest.raises(InputError, match=r"differ, .*c/own_twice.py and .*: rename"):
        check_single("policy", "own_twice")
