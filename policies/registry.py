"""Finds policies by name and builds them with checked, typed parameters."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from policies.base import Policy
from sim.base.errors import InputError, unknown
from sim.base.parameters import check, coerce, hints_of
from sim.base.plugins import import_own

_REGISTRY: dict[str, type[Policy]] = {}
P = TypeVar("P", bound=type[Policy])


def register(name: str) -> Callable[[P], P]:
    """Class decorator: make a policy known by `name`.

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
    """Names of every registered policy, sorted."""
    _discover()
    return sorted(_REGISTRY)


def spec(name: str) -> type[Policy]:
    """Return the dataclass of the policy `name`; its fields are the parameters.

    Raises
    ------
    InputError
        If there is none, naming the nearest.
    """
    _discover()
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
        Values for the policy's dataclass fields; ints pass for floats.

    Raises
    ------
    InputError
        On an unknown policy, module or parameter, or a value of the wrong type.
    """
    if module is not None:
        load(module)
    cls = spec(name)
    fields = [field.name for field in dataclasses.fields(cls)]
    hints = hints_of(cls)
    for key, value in params.items():
        if key not in fields:
            raise InputError(
                unknown(f"parameter of policy {name}", key, fields), rule="unknown parameter"
            )
        check(f"policy {name}: {key}", value, hints[key])
    return cls(**{key: coerce(value, hints[key]) for key, value in params.items()})


def load(module: str) -> None:
    """Import a user's policy module.

    Raises
    ------
    InputError
        If it can't be found.
    """
    import_own("policy", module)


@cache
def _discover() -> None:
    import policies

    for module in pkgutil.walk_packages(policies.__path__, "policies."):
        importlib.import_module(module.name)
