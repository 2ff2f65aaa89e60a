"""Registry of policies: lookup by name, and construction with checked, typed parameters."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from policies.base import Policy
from sim.base import entry_points
from sim.base.errors import InputError, did_you_mean, unknown
from sim.base.parameters import check, coerce, type_hints
from sim.base.plugins import import_user_module, same_name_hint

MODULES_REGISTERED = ("policies",)  # so that sim.base.sources knows
MODULES_INSTALLED = ("policies",)
KIND = "policies"
"""Kind of `sim.base.entry_points`."""
_REGISTRY: dict[str, type[Policy]] = {}
_ADDED: dict[str, set[str]] = {}  # by the import of a user's module
P = TypeVar("P", bound=type[Policy])


def register(name: str) -> Callable[[P], P]:
    """Class decorator: register a policy as `name`.

    Raises
    ------
    InputError
        If another class has that name already.
    """

    def add(cls: P) -> P:
        other = _REGISTRY.get(name)
        if other is not None and (other.__module__, other.__qualname__) != (
            cls.__module__,
            cls.__qualname__,
        ):
            raise InputError(f"two policies are called {name!r}: {other!r} and {cls!r}")
        cls.name = name
        _REGISTRY[name] = cls
        return cls

    return add


def names() -> list[str]:
    """Names of every policy, sorted: registered ones, and those that packages install."""
    _discover()
    return sorted({*_REGISTRY, *entry_points.installed(KIND)})


def spec(name: str) -> type[Policy]:
    """Return the dataclass of the policy `name`; its fields are the parameters.

    Raises
    ------
    InputError
        If there is none, naming the nearest; if the module that should register it doesn't.
    """
    _discover()
    entry_points.report_unused()
    if name not in _REGISTRY and name in entry_points.installed(KIND):
        entry_points.load(KIND, name)
        if name not in _REGISTRY:
            entry = entry_points.installed(KIND)[name]
            raise InputError(
                f"{entry.module} of {entry.origin} registers no policy {name!r}",
                rule="broken plug-in",
            )
    if name not in _REGISTRY:
        raise InputError(unknown("policy", name, names()), rule="unknown policy")
    return _REGISTRY[name]


def build(name: str, *, module: str | None = None, **params: Any) -> Policy:
    """Build the policy `name` with `params`.

    Parameters
    ----------
    name : str
        One of `names`.
    module : str, optional
        A module to import first: where a user's own policy registers itself.
    **params
        Values for the policy's dataclass fields; ints pass for floats. A parameter that is fixed
        (`Policy.fixed`) may have that value.

    Raises
    ------
    InputError
        On an unknown policy, module or parameter, or a value of the wrong type.
    """
    if module is not None:
        load(module, name)
    cls = spec(name)
    fields = [field.name for field in dataclasses.fields(cls)]
    hints = type_hints(cls)
    fixed = {key for key, value in cls.fixed.items() if key in params and params[key] == value}
    chosen = {key: params[key] for key in params if key in fields or key not in fixed}
    for key, value in chosen.items():
        if key not in fields:
            message = unknown(f"parameter of policy {name}", key, fields)
            raise InputError(fixed_message(name, key) or message, rule="unknown parameter")
        check(f"policy {name}: {key}", value, hints[key])
    return cls(**{key: coerce(value, hints[key]) for key, value in chosen.items()})


def fixed_message(name: str, parameter: str) -> str:
    """Return the message for a fixed parameter (`Policy.fixed`), with the policies that have it.

    "" for any other one.
    """
    cls = spec(name)
    if parameter not in cls.fixed:
        return ""
    for base in cls.__mro__:
        owners = [other for other in names() if _has(other, base, parameter)]
        if owners:
            break
    return (
        f"policy {name} has no parameter {parameter!r}, it is {cls.fixed[parameter]!r} there; "
        f"policies that have it: {', '.join(owners)}"
    )


def _has(name: str, base: type, parameter: str) -> bool:
    """Tell whether a policy is built on `base` and has a parameter; a broken one has none."""
    try:
        cls = spec(name)
    except InputError:
        return False
    return issubclass(cls, base) and parameter in (field.name for field in dataclasses.fields(cls))


def load(module: str, name: str | None = None) -> None:
    """Import a user's policy module, which must register the policy `name` if one is given.

    Raises
    ------
    InputError
        If the module can't be found, or `name` is given and it does not register that policy.
    """
    before = set(_REGISTRY)
    loaded = import_user_module("policy", module)
    _ADDED.setdefault(module, set()).update(set(_REGISTRY) - before)
    if name is None:
        return
    registered = _registered_by(loaded)
    if not registered:
        raise InputError(
            f"policy module {module!r} ({loaded.__file__}) registers nothing: put "
            f"@policies.register({name!r}) above {_class_in(loaded)}{same_name_hint(loaded)}",
            rule="nothing registered",
        )
    _discover()
    if name not in names():
        raise InputError(
            f"policy module {module!r} ({loaded.__file__}) registers no policy {name!r}; "
            f"{did_you_mean(name, registered)}it registers {', '.join(sorted(registered))}",
            rule="unknown policy",
        )


def _registered_by(module: ModuleType) -> set[str]:
    """Names of policies that a module registers, contains, or imports through another module."""
    values = list(vars(module).values())
    modules = [module, *(value for value in values if isinstance(value, ModuleType))]
    prefixes = tuple(
        f"{room.__name__}." for room in modules if room.__name__.split(".")[0] != __package__
    )
    return _ADDED[module.__name__] | {
        name
        for name, cls in _REGISTRY.items()
        if any(cls is value for value in values) or f"{cls.__module__}.".startswith(prefixes)
    }


def _class_in(module: ModuleType) -> str:
    """Describe the class of a module that probably is the policy."""
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__:
            return f"its class {value.__name__}"
    return "a subclass of Policy in it"


@cache
def _discover() -> None:
    """Import the core's modules; rooms beside them are systems, and installed by name."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)], "policies."):
        if not module.ispkg:
            importlib.import_module(module.name)
    modules = ((name, cls.__module__.split(".")) for name, cls in _REGISTRY.items())
    core = [name for name, module in modules if len(module) == 2 and module[0] == __package__]
    entry_points.check_shadowed(KIND, core)
