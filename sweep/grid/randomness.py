"""Whether a seed can change what a cell gives; known before anything runs."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any

import policies
from sweep.grid.cluster_checks import FAULTS

_OF_SEED = re.compile(r"\$\{[^}]*\bseed\b")
_DRAWS = frozenset(("rng", "seed", "random", "default_rng", "stream"))
_ROOM = policies.__name__


def ignores_seed(world: str, cluster: Mapping[str, Any], evaluator: Mapping[str, Any]) -> bool:
    """Tell whether workload, cluster and evaluator are the same with every seed.

    `world` is the text of what they are made of, its references not resolved.
    """
    is_plain = evaluator.get("name") == "simulation" and not evaluator.get("module")
    return is_plain and not _OF_SEED.search(world) and not any(map(cluster.get, FAULTS))


def draws_randomly(policy: type) -> bool:
    """Tell whether a policy's code, or code of its room or module that it names, names chance."""
    todo: list[Any] = [policy]
    seen = set[int]()
    while todo:
        part = todo.pop()
        if id(part) in seen or not _is_own(part, policy):
            continue
        seen.add(id(part))
        for function in _functions(part):
            names = set(_names(function.__code__))
            if names & _DRAWS:
                return True
            known = [value for name, value in function.__globals__.items() if name in names]
            modules = [value for value in known if inspect.ismodule(value)]
            known += [vars(module)[n] for module in modules for n in names & vars(module).keys()]
            todo += [each for value in known for each in _each(value)]
    return False


def _is_own(part: Any, policy: type) -> bool:
    """Tell whether a part is of the bundled policies, or lies where the policy does."""
    module = str(getattr(part, "__module__", ""))
    package = policy.__module__.rpartition(".")[0] or policy.__module__
    return module.partition(".")[0] == _ROOM or (module + ".").startswith(package + ".")


def _functions(part: Any) -> Iterator[types.FunctionType]:
    """Give a function, or those of a class and of what it inherits from."""
    owners = inspect.getmro(part) if inspect.isclass(part) else ()
    for member in (part, *(member for owner in owners for member in vars(owner).values())):
        for name in ("__func__", "fget", "py_func", "__wrapped__"):
            member = getattr(member, name, None) or member
        if inspect.isfunction(member):
            yield member


def _names(code: types.CodeType) -> Iterator[str]:
    """Names that code refers to, that of functions inside it too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _each(value: Any) -> Iterator[Any]:
    """Give a value, or those that a plain collection holds."""
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from value
    else:
        yield value
