"""Closure of a module's imports, for every kind of import."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import grimp
import pytest

import policies
import sim.evaluators
import sim.synth
import sim.traces
import sim.transforms
from sim.base import entry_points, sources
from sim.base.plugins import Plugins
from sim.base.sources import meaning, modules

Reached = Callable[..., set[str]]


@pytest.fixture
def reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reached]:
    """Return a function that writes modules and returns the closure of the first."""
    monkeypatch.syspath_prepend(str(tmp_path))
    sources.clear_caches()

    def write(*texts: str, **files: str) -> set[str]:
        for name, text in {"closure_mine": "\n".join(texts), **files}.items():
            file = tmp_path / f"{name}.py"
            file.parent.mkdir(exist_ok=True, parents=True)
            file.write_text(text)
        return {*sources.closure(["closure_mine"])}

    yield write
    sources.clear_caches()


@pytest.mark.parametrize(
    "plugins", [sim.evaluators.EVALUATORS, sim.synth.GENERATORS, sim.traces.FORMATS]
)
def test_a_registry_declares_its_modules(plugins: Plugins) -> None:
    for name in plugins.names():
        module = plugins.module(name).__name__
        assert sources.registry_modules(plugins.package, name) == {module}


def test_modules_that_import_by_name_declare_the_package() -> None:
    ours = [modules.find(name) for top in ("sim", "policies") for name in modules.below(top)]
    unsaid = [module.name for module in ours if module and sources.module_meaning(module).by_name]
    assert not unsaid, "all that there is counts as imported by them"


@pytest.mark.long
def test_every_import_that_grimp_finds_counts() -> None:
    graph = grimp.build_graph(*modules.PROJECT, exclude_type_checking_imports=True, cache_dir=None)
    for name in graph.modules:
        result = sources.closure([name], packages=False)
        assert graph.find_upstream_modules(name) <= {*result}, name


@pytest.mark.parametrize("name", policies.names())
def test_a_policy_is_found_where_it_is_registered(name: str) -> None:
    assert sources.registry_modules("policies.registry", name) == {policies.spec(name).__module__}


@pytest.mark.parametrize(
    "text",
    [
        "import closure_other",
        "from closure_other import X",
        "def f():\n    from closure_other import X",
        "try:\n    import closure_other\nexcept ImportError:\n    pass",
        "if TYPE_CHECKING:\n    import json\nelse:\n    import closure_other",
        "import importlib\nimportlib.import_module('closure_other')",
        "__import__('closure_other')",
    ],
)
def test_an_import_counts_anywhere_in_a_module(reached: Reached, text: str) -> None:
    result = reached(text, closure_other="X = 1", closure_third="")
    assert result == {"closure_mine", "closure_other"}


@pytest.mark.parametrize("test", ["TYPE_CHECKING", "typing.TYPE_CHECKING"])
def test_imports_for_type_checkers_do_not_count(reached: Reached, test: str) -> None:
    assert reached(f"if {test}:\n    import closure_other", closure_other="") == {"closure_mine"}


def test_libraries_do_not_count(reached: Reached) -> None:
    assert reached("import json, numpy, pyarrow.parquet") == {"closure_mine"}


def test_packages_on_the_way_count(reached: Reached) -> None:
    result = reached(
        "import closure_package.inner.deep",
        **{
            "closure_package/__init__": "from . import beside",
            "closure_package/beside": "",
            "closure_package/inner/__init__": "",
            "closure_package/inner/deep": "from ..far import X",
            "closure_package/far": "X = 1",
            "closure_package/unused": "",
        },
    )
    inner = ("", ".beside", ".inner", ".inner.deep", ".far")
    assert result == {"closure_mine", *(f"closure_package{name}" for name in inner)}


def test_a_package_without_init(reached: Reached) -> None:
    result = reached("from closure_bare import deep", **{"closure_bare/deep": ""})
    assert result == {"closure_mine", "closure_bare.deep"}


@pytest.mark.parametrize(
    "text",
    [
        "import sim\nsim.simulate(1, 2, 3)",
        "import sim as world\nworld.simulate",
        "from sim import simulate",
        "from sim import *",
        "import sim\nf(sim)",
        "import sim\ngetattr(sim, name)(1)",
    ],
)
def test_a_name_of_a_lazy_package_counts_as_its_home(reached: Reached, text: str) -> None:
    assert sim.simulate.__module__ in reached(text)


def test_a_lazy_package_alone_is_only_itself(reached: Reached) -> None:
    facade = {"sim", "sim.base", "sim.base.lazy"}
    assert reached("import sim\nX = sim.__name__") == {"closure_mine", *facade}


def test_names_of_a_lazy_package_that_another_hands_on(reached: Reached) -> None:
    result = reached(
        "import closure_other\nclosure_other.world.simulate", closure_other="import sim as world"
    )
    assert sim.simulate.__module__ in result


FIRST, SECOND = [*entry_points.installed("generators").values()][:2]
GENERATORS = {FIRST.module, SECOND.module}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"import sim\nsim.synthesize('{FIRST.name}', jobs=3)", {FIRST.module}),
        (f"from sim import synthesize as s\ns('{FIRST.name}')", {FIRST.module}),
        (f"from sim.synth import synthesize\nsynthesize('{FIRST.name}')", {FIRST.module}),
        ("import sim\nsim.synthesize(name)", GENERATORS),
        ("from sim import synth\nf(synth)", GENERATORS),
        ("import sim\nmake = sim.synthesize", GENERATORS),
        ("from sim.synth import *", GENERATORS),
        ("import sim.synth", set()),
    ],
)
def test_generators_found_by_name_count(reached: Reached, text: str, expected: set[str]) -> None:
    assert reached(text) & GENERATORS == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import policies\npolicies.build('las')", {"policies.attained_service"}),
        ("from policies import build\nbuild('las')", {"policies.attained_service"}),
        (
            "import policies\npolicies.build(name)",
            {"policies.attained_service", "policies.sharing"},
        ),
        ("from policies import Policy, register", set()),
        (
            "from policies import build\nbuild('closure_later')",
            {"policies.attained_service", "policies.sharing"},
        ),
    ],
)
def test_policies_found_by_name_count(reached: Reached, text: str, expected: set[str]) -> None:
    assert policies.spec("las").__module__ == "policies.attained_service"
    assert reached(text) & {"policies.attained_service", "policies.sharing"} == expected


def test_a_policys_configured_module_counts(reached: Reached) -> None:
    text = "import policies\npolicies.build('las', module='closure_other')"
    assert "closure_other" in reached(text, closure_other="")
    text = "from policies.registry import load\nload('closure_other')"
    assert "closure_other" in reached(text, closure_other="")


def test_a_transform_is_where_its_table_says(reached: Reached) -> None:
    (home,) = sources.registry_modules("sim.transforms", "amplify")
    assert home == sim.transforms.apply.__globals__["_MODULES"]["amplify"] + ".amplify"
    installed = sources.registry_modules("sim.transforms", "rewire")
    assert installed == {sim.transforms.rewire.__module__}
    assert installed < reached("from sim import transforms", "transforms.rewire(1)")


@pytest.mark.parametrize(
    "text",
    [
        "import importlib\nimportlib.import_module(name)",
        "from importlib import import_module as find\nfind(f'closure_{name}')",
        "__import__(name)",
        "exec(text)",
        "import sys\nsys.modules[name]",
        "exec('import json')",
        "import importlib\nimportlib.import_module('.deep', __package__)",
        "from importlib import util\nutil.spec_from_file_location('name', file)",
    ],
)
def test_imports_that_the_text_does_not_name_count_as_all(reached: Reached, text: str) -> None:
    result = reached(text, closure_beside="")
    assert {
        "closure_beside",
        "sim.engine.simulate",
        "policies.attained_service",
        *GENERATORS,
    } <= result


def test_reading_versions_imports_nothing(reached: Reached) -> None:
    assert reached("from importlib.metadata import version\nversion(name)") == {"closure_mine"}


RESERVE = "sim.engine.kernels.rigid.reserve"


@pytest.mark.parametrize(
    "text",
    [
        "plan.reservations = 3",
        "plan.reservations: int = 3",
        "plan.reservations += 1",
        "x, plan.reservations = 1, 2",
        "for plan.reservations in range(3):\n    pass",
        "setattr(plan, 'reservations', 3)",
        "object.__setattr__(plan, 'reservations', 3)",
        "plan.__setattr__('reservations', 3)",
        "setattr(plan, name, 3)",
        "map(setattr, plans, names, values)",
        "plan.__dict__['reser' + 'vations'] = 3",
        "plan.__dict__.update(values)",
        "vars(plan).update(values)",
        "vars(plan)[name] = 3",
        "f(vars(plan))",
        "plan.__class__ = Other",
    ],
)
def test_a_kernel_that_is_imported_late_counts_where_its_attribute_is_set(
    reached: Reached, text: str
) -> None:
    assert RESERVE in reached(f"from sim.engine.simulate import simulate\n{text}")


@pytest.mark.parametrize(
    "text",
    [
        "plan.reservations",
        "plan.replan = Replan()",
        "reservations = 3",
        "setattr(plan, 'share', 3)",
        "x = {**vars(plan)}",
        "x = vars(plan)['reservations']",
        "'reservations' in plan.__dict__",
        "for name, value in vars(plan).items():\n    pass",
    ],
)
def test_a_kernel_that_is_imported_late_counts_nowhere_else(reached: Reached, text: str) -> None:
    result = reached(f"from sim.engine.simulate import simulate\n{text}")
    assert "sim.engine.kernels.run" in result
    assert RESERVE not in result


def test_data_counts_with_its_package_and_pages_do_not() -> None:
    table = sources.closure(["sim.describe.statistics", "sim.base.html"])
    assert "sim.describe.statistics/sections.yaml" in table
    assert not any("page." in name for name in table)


class TestMeaning:
    def digest(self, text: str) -> str:
        return meaning.parse(modules.Module("m", Path("m.py")), text.encode()).digest

    @pytest.mark.parametrize(
        "other",
        [
            "def f():\n    return 1  # why",
            "def f():\n\n    return (1)",
            '"""Of the module."""\ndef f():\n    """Of the function."""\n    return 1',
            'def f():\n    return 1\n"""After it."""',
        ],
    )
    def test_is_the_same(self, other: str) -> None:
        assert self.digest("def f():\n    return 1") == self.digest(other)

    @pytest.mark.parametrize(
        "other",
        [
            "def f():\n    return 2",
            "def f():\n    return 1.0",
            "def f():\n    return True",
            "def f(x=0):\n    return 1",
            "@g\ndef f():\n    return 1",
            "def f():\n    return 'one'",
        ],
    )
    def test_is_another(self, other: str) -> None:
        assert self.digest("def f():\n    return 1") != self.digest(other)

    def test_of_docstrings_that_are_read(self) -> None:
        text = '"""{}"""\nX = len(__doc__)'
        assert self.digest(text.format("one")) != self.digest(text.format("another"))
