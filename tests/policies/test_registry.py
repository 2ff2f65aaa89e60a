"""The registry, and options: one YAML a policy, with what differs from its defaults."""

import dataclasses
import re
import sys
from collections.abc import Mapping

import pytest
import yaml

import policies
import policies.registry
import sim
from policies.base import Policy, meanings
from sweep.grid.options import Options

OPTIONS = {
    name: file
    for name, file in Options().files["policy"].items()
    if "module" not in yaml.safe_load(file.read_text())
}
"""Options of registered policies; one with a module registers its policy when it is chosen."""
SOURCE = r"\b(19|20)\d\d\b|folklore|textbook"


def defaults(name):
    """Return the default of every parameter of a policy, as YAML would hold it."""
    built = policies.build(name)
    values = {f.name: getattr(built, f.name) for f in dataclasses.fields(built)}
    return {k: plain(v) for k, v in values.items()}


def plain(value):
    if isinstance(value, tuple):
        return [plain(v) for v in value]
    return dict(value) if isinstance(value, Mapping) else value


def test_every_policy_has_an_option_and_every_option_a_policy():
    named = {yaml.safe_load(file.read_text())["name"] for file in OPTIONS.values()}
    assert sorted(named) == policies.names()


@pytest.mark.parametrize("option_name", OPTIONS)
def test_option_holds_only_differences_from_the_defaults(option_name):
    file = OPTIONS[option_name]
    option = yaml.safe_load(file.read_text())
    name = option.pop("name")
    assert "/" in option_name or name == option_name
    policies.build(name, **option)
    same = [key for key, value in option.items() if defaults(name)[key] == value]
    assert not same, f"{file}: leave out {same}, which are the defaults of the class"


@pytest.mark.parametrize("option_name", OPTIONS)
def test_option_begins_with_a_description(option_name):
    first = OPTIONS[option_name].read_text().splitlines()[0]
    assert first.startswith("# ")
    assert 20 < len(first) <= 90


@pytest.mark.parametrize("name", policies.names())
def test_policy_is_a_frozen_dataclass_with_a_docstring(name):
    cls = policies.spec(name)
    assert issubclass(cls, Policy)
    assert cls.__dataclass_params__.frozen
    assert policies.spec(cls.name) is cls  # its name, or the one that this is another name of
    assert cls.__doc__
    assert not cls.__doc__.startswith(f"{cls.__name__}(")  # written, not made by dataclass


@pytest.mark.parametrize("name", policies.names())
def test_policy_names_its_source(name):
    cls = policies.spec(name)
    assert re.search(SOURCE, cls.__doc__), (
        f"policy {name}: the docstring of {cls.__module__}.{cls.__qualname__} must name its source "
        "with the year, e.g. 'Grandl et al., SIGCOMM 2014, §3.2', or say that it is folklore or "
        "from a textbook"
    )


@pytest.mark.parametrize("name", policies.names())
def test_policy_describes_its_parameters(name):
    cls = policies.spec(name)
    silent = {field.name for field in dataclasses.fields(cls)} - meanings(cls).keys()
    assert not silent, f"policy {name}: say what {silent} mean, under Attributes in the docstring"


def test_build_passes_parameters_and_takes_ints_for_floats():
    policy = policies.build("las", first_threshold_s=50, queues=3)
    assert policy.queues == 3
    assert policy.first_threshold_s == 50
    assert isinstance(policy.first_threshold_s, float)
    assert policies.build("fair", weights={"a": 2}).weights == {"a": 2.0}


def test_unknown_names_get_the_nearest():
    with pytest.raises(sim.InputError, match="unknown policy 'srtp'; did you mean 'srpt'"):
        policies.build("srtp")
    with pytest.raises(sim.InputError, match="of policy las 'queue'; did you mean 'queues'"):
        policies.build("las", queue=3)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("las", {"queues": 2.5}),
        ("las", {"growth": "ten"}),
        ("las", {"queues": True}),
        ("drf", {"by": "job"}),
        ("fifo", {"fit": "loose"}),
        ("fair", {"weights": {"a": "much"}}),
        ("fair", {"weights": [1, 2]}),
    ],
)
def test_wrong_types_and_choices_are_errors(name, params):
    with pytest.raises(sim.InputError, match=f"policy {name}: {next(iter(params))} must be"):
        policies.build(name, **params)


def test_a_module_that_is_not_there_is_an_error():
    with pytest.raises(sim.InputError, match="'no_such_module' can't be imported"):
        policies.build("fifo", module="no_such_module")


@pytest.fixture
def user_modules(tmp_path, monkeypatch):
    """Write user modules that can be imported during the test."""
    texts = {
        "reg_nothing": "from policies import Policy\n\nclass Edf(Policy):\n    pass\n",
        "reg_nobody": "X = 1\n",
        "reg_other": (
            "from dataclasses import dataclass\nimport policies\n\n@policies.register('reg_edf')\n"
            "@dataclass(frozen=True)\nclass Edf(policies.Policy):\n    pass\n"
        ),
        "reg_through": "import reg_other\n",
        "random": "X = 1\n",
        "pytest": "X = 1\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    yield tmp_path
    policies.registry._REGISTRY.pop("reg_edf", None)
    for name in [name for name in texts if name.startswith("reg_")]:
        sys.modules.pop(name, None)
        policies.registry._ADDED.pop(name, None)


def test_error_for_a_module_that_registers_nothing_shows_the_decorator(user_modules):
    with pytest.raises(sim.InputError) as caught:
        policies.build("oracles", module="reg_nothing")
    assert str(caught.value) == (
        f"policy module 'reg_nothing' ({user_modules / 'reg_nothing.py'}) registers nothing: put "
        "@policies.register('oracles') above its class Edf [nothing registered]"
    )
    # of a name that there is already, too: that policy is not what is meant
    with pytest.raises(sim.InputError, match=r"registers nothing.* above a subclass of Policy in"):
        policies.build("fifo", module="reg_nobody")


def test_error_for_another_registered_name_lists_it(user_modules):
    message = r"no policy 'reg_efd'; did you mean 'reg_edf'\? it registers reg_edf"
    with pytest.raises(sim.InputError, match=message):
        policies.build("reg_efd", module="reg_other")
    assert policies.build("reg_edf", module="reg_through").name == "reg_edf"
    assert policies.build("fifo", module="reg_other").name == "fifo"


def test_error_for_a_module_named_like_a_standard_one(user_modules):
    with pytest.raises(sim.InputError) as caught:
        policies.build("random", module="random")
    assert str(caught.value) == (
        "policy module 'random' is that of Python's standard library, not "
        f"{user_modules / 'random.py'}: give yours another name"
    )
    with pytest.raises(sim.InputError, match="library, not one of your own"):
        policies.build("random", module="email.mime")


def test_error_for_a_hidden_module_names_its_file(user_modules):
    with pytest.raises(sim.InputError, match=r"registers nothing.*pytest\.py has the same name"):
        policies.build("edf", module="pytest")


def test_two_policies_of_one_name_are_an_error():
    with pytest.raises(sim.InputError, match="two policies are called 'fifo'"):

        @policies.register("fifo")
        @dataclasses.dataclass(frozen=True)
        class Other(Policy):
            """Not first in, first out."""
