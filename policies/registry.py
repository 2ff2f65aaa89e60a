"""Finds policies by name and builds them with checked, typed parameters."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from policies.base import Policy
from sim.base.errors import InputError
from sim.base.errors import unknown as unknown

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
    fields = {f.name: f for f in dataclasses.fields(cls)}
    hints = get_type_hints(cls)
    for key, value in params.items():
        if key not in fields:
            raise InputError(
                unknown(f"parameter of policy {name}", key, fields), rule="unknown parameter"
            )
        if not _fits(value, hints[key]):
            want = getattr(hints[key], "__name__", str(hints[key]))
            raise InputError(
                f"policy {name}: {key} must be {want}, not {value!r}", rule="wrong type"
            )
    return cls(**{k: _coerce(v, hints[k]) for k, v in params.items()})


def load(module: str) -> None:
    """Import a user's policy module.

    Raises
    ------
    InputError
        If it can't be found.
    """
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(error.name + ".")):
            raise InputError(
                f"policy module {module!r} can't be imported: {error}; put its folder on PYTHONPATH"
            ) from error
        raise


@cache
def _discover() -> None:
    import policies

    for module in pkgutil.walk_packages(policies.__path__, "policies."):
        importlib.import_module(module.name)


def _fits(value: object, hint: Any) -> bool:
    if hint is Any:
        return True
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin in (tuple, list):
        if not isinstance(value, (list, tuple)):
            return False
        inner = get_args(hint)
        return not inner or all(_fits(v, inner[0]) for v in value)
    if origin is Mapping:
        if not isinstance(value, Mapping):
            return False
        key, item = get_args(hint)
        return all(_fits(k, key) and _fits(v, item) for k, v in value.items())
    if origin is not None:  # a union
        return any(_fits(value, arm) for arm in get_args(hint))
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _coerce(value: Any, hint: Any) -> Any:
    if hint is float:
        return float(value)
    if get_origin(hint) is tuple:
        inner = get_args(hint)[0]
        return tuple(_coerce(v, inner) for v in value)
    if get_origin(hint) is Mapping:
        key, item = get_args(hint)
        return {_coerce(k, key): _coerce(v, item) for k, v in value.items()}
    return value
