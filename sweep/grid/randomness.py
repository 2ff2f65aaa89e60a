"""Static check: can a seed change the result of a cell."""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any

import policies
from sim.cluster.launch import Launch
from sweep.grid.cluster_checks import FAULTS, LAUNCH

_SEED_REFERENCE = re.compile(r"\$\{[^}]*\bseed\b")
_RANDOM_NAMES = frozenset(("rng", "seed", "random", "default_rng", "stream"))
_POLICIES = policies.__name__


def ignores_seed(world: str, cluster: Mapping[str, Any], evaluator: Mapping[str, Any]) -> bool:
    """Tell whether workload, cluster and evaluator are the same with every seed.

    `world` is the text of their configuration, its references not resolved.
    """
    is_plain = evaluator.get("name") == "simulation" and not evaluator.get("module")
    faults = [cluster.get(kind) for kind in FAULTS]
    is_drawn = any(fault and not isinstance(fault, list) for fault in faults)
    is_drawn |= Launch.parse(cluster.get(LAUNCH) or 0.0).is_drawn
    return is_plain and not is_drawn and not _SEED_REFERENCE.search(world)


def refers_to_seed(config: Mapping[str, Any]) -> bool:
    """Tell whether a configuration, its references not resolved, refers to the cell's seed."""
    return bool(_SEED_REFERENCE.search(json.dumps(config, default=str)))


def draws_randomly(policy: type) -> bool:
    """Tell whether a policy's code, or code of its package, refers to random numbers."""
    pending: list[Any] = [policy]
    seen = set[int]()
    while pending:
        item = pending.pop()
        if id(item) in seen or not _is_policy_code(item, policy):
            continue
        seen.add(id(item))
        for function in _functions(item):
            names = set(_names(function.__code__))
            if names & _RANDOM_NAMES:
                return True
            referenced = [value for name, value in function.__globals__.items() if name in names]
            modules = [value for value in referenced if inspect.ismodule(value)]
            referenced += [
                vars(module)[n] for module in modules for n in names & vars(module).keys()
            ]
            pending += [member for value in referenced for member in _members(value)]
    return False


def _is_policy_code(item: Any, policy: type) -> bool:
    """Tell whether an item belongs to the bundled policies, or to the policy's own package."""
    module = str(getattr(item, "__module__", ""))
    package = policy.__module__.rpartition(".")[0] or policy.__module__
    return module.partition(".")[0] == _POLICIES or (module + ".").startswith(package + ".")


def _functions(item: Any) -> Iterator[types.FunctionType]:
    """Yield a function, or the functions of a class and of its base classes."""
    owners = inspect.getmro(item) if inspect.isclass(item) else ()
    for member in (item, *(member for owner in owners for member in vars(owner).values())):
        for name in ("__func__", "fget", "py_func", "__wrapped__"):
            member = getattr(member, name, None) or member
        if inspect.isfunction(member):
            yield member


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the names that code refers to, including those of nested functions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _members(value: Any) -> Iterator[Any]:
    """Yield a value, or the values of a plain collection."""
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from value
    else:
        yield value
