"""The options of a grid with their parameters set, and resolving each of them once."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import policies
from sim import measures
from sim.base.errors import InputError, unknown
from sweep.grid import clusters, traces, tree
from sweep.grid.overrides import Assignment
from sweep.grid.request import Request
from sweep.run.cell import NO_POLICY

Config = dict[str, Any]


@dataclass(frozen=True)
class PolicyVariant:
    """A policy option with the swept parameters set; interpolations left in."""

    option: str
    swept: dict[str, Any]
    raw: Config
    used: frozenset[str]


@dataclass(frozen=True)
class WorldVariant:
    """A trace, its cluster and what is measured, swept keys set; interpolations left in."""

    option: str
    swept: dict[str, Any]
    trace: Config
    cluster: Config
    measure: Config


def of_policy(request: Request, option: str, swept: Sequence[str]) -> list[PolicyVariant]:
    """Set the fixed and the swept parameters of a policy: a variant for each combination.

    Only those apply that the policy has; where it has none of the swept ones there is one variant.
    """
    raw = request.options.compose(policy=option)["policy"]
    file = request.options.files["policy"][option]
    if not isinstance(raw, dict) or not isinstance(raw.get("name"), str):
        raise InputError("a policy's file names it: `name: fifo`", file=file)
    if raw.get("module") is not None:
        _load(str(raw["module"]), file)
    known = {field.name for field in dataclasses.fields(policies.spec(raw["name"]))}
    fixed = [one for one in request.fixed if one.key.startswith("policy.")]
    used = {key for key in [*swept, *(one.key for one in fixed)] if _root(key) in known}
    for one in fixed:
        if one.key in used and not (one.kind == "delete" and _inner(one.key) not in raw):
            raw = _set(raw, one)
    axes = [request.axes[key] if key in used else (None,) for key in swept]
    variants = []
    for values in itertools.product(*axes):
        variant = raw
        for key, value in zip(swept, values, strict=True):
            if key in used:
                variant = tree.with_value(variant, _inner(key), value, add=True)
        labels = dict(zip(swept, values, strict=True))
        variants.append(PolicyVariant(option, labels, variant, frozenset(used)))
    return variants


def _load(module: str, file: Path) -> None:
    try:
        policies.registry.load(module)
    except InputError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"module {module!r} can't be imported: {what}", file=file) from error


def check_parameters_used(request: Request, chosen: Sequence[PolicyVariant]) -> None:
    """Refuse a ``policy.X`` that none of the policies has.

    Those of an experiment may be for policies that the command line has left out.
    """
    used = frozenset().union(*(policy.used for policy in chosen))
    for key in (*request.axes, *(one.key for one in request.fixed)):
        is_asked_for = key in request.named or "policy" not in request.named
        if key.startswith("policy.") and key not in used and is_asked_for:
            names = sorted({policy.raw["name"] for policy in chosen})
            fields = [f for name in names for f in dataclasses.fields(policies.spec(name))]
            known = sorted({f"policy.{field.name}" for field in fields})
            message = unknown(f"parameter of {', '.join(names)}", key, known)
            raise InputError(message, rule="unknown parameter")


def of_trace(request: Request, option: str, swept: Sequence[str]) -> list[WorldVariant]:
    """Set the keys of a trace, its cluster and its measure: a variant for each combination."""
    fixed = [one for one in request.fixed if not one.key.startswith("policy.")]
    chosen = {one.key: one.value for one in fixed if one.key in ("cluster", "measure")}
    plain = [one for one in fixed if one.key not in chosen]
    worlds = []
    composed: dict[str, Config] = {}
    for values in itertools.product(*(request.axes[key] for key in swept)):
        labels = dict(zip(swept, values, strict=True))
        choices = chosen | {key: value for key, value in labels.items() if key == "cluster"}
        choice = choices.get("cluster", "")
        if choice not in composed:
            composed[choice] = request.options.compose(trace=option, **choices)
        parts = {key: composed[choice][key] for key in ("trace", "cluster", "measure")}
        for one in plain:
            parts = _set(parts, one, whole=True)
        for key, value in labels.items():
            if key != "cluster":
                parts = tree.with_value(parts, key, value)
        worlds.append(WorldVariant(option, labels, **parts))
    return worlds


def _set(config: Config, one: Assignment, *, whole: bool = False) -> Config:
    key = one.key if whole else _inner(one.key)
    if one.kind == "delete":
        return tree.without(config, key)
    return tree.with_value(config, key, one.value, add=one.kind == "add" or not whole)


def _inner(key: str) -> str:
    return key.partition(".")[2]


def _root(key: str) -> str:
    return key.split(".")[1]


def of_measure(request: Request) -> list[PolicyVariant]:
    """Give what stands in for a policy where the measure needs none; empty where it needs one."""
    chosen = [one.value for one in request.fixed if one.key == "measure"]
    option = chosen[-1] if chosen else request.options.default("measure")
    config = request.options.plain("measure", option)
    if measures.uses_policy(config["name"], config.get("module")):
        return []
    asked = [key for key in request.named if key.partition(".")[0] in ("policy", "baseline")]
    if asked:
        raise InputError(f"measure={option} looks at the trace alone; leave {asked[0]}= out")
    none: Config = {"name": NO_POLICY, "module": None, "params": {}}
    return [PolicyVariant(NO_POLICY, {}, none, frozenset())]


class Resolver:
    """Resolves and checks each distinct part of a configuration once."""

    def __init__(self) -> None:
        self._policies: dict[str, Config] = {}
        self._worlds: dict[str, tuple[Config, Config, Config]] = {}

    def policy(self, policy: PolicyVariant, context: Mapping[str, Any]) -> Config:
        """Resolve a policy: ``name``, ``module`` and every one of its ``params``."""
        if policy.option == NO_POLICY:
            return policy.raw
        key = _identity(policy.raw, context)
        if key not in self._policies:
            self._policies[key] = _built(policy, context)
        return self._policies[key]

    def world(
        self, world: WorldVariant, context: Mapping[str, Any]
    ) -> tuple[Config, Config, Config]:
        """Resolve a trace, its cluster, and what is measured."""
        raw = {"trace": world.trace, "cluster": world.cluster, "measure": world.measure}
        key = _identity(raw, context)
        if key not in self._worlds:
            parts = tree.resolved({**raw, **context})
            traces.check(world.option, parts["trace"])
            clusters.check(parts["cluster"])
            _check_measure(parts["measure"])
            self._worlds[key] = (parts["trace"], parts["cluster"], parts["measure"])
        return self._worlds[key]


def _check_measure(config: Mapping[str, Any]) -> None:
    known = measures.options(config["name"], config.get("module"))
    for key in config:
        if key not in ("name", "module", *known):
            message = unknown(f"option of measure={config['name']}", key, known)
            raise InputError(message, rule="unknown key")


def _identity(raw: Config, context: Mapping[str, Any]) -> str:
    return json.dumps([raw, context if tree.interpolates(raw) else None], default=str)


def _built(policy: PolicyVariant, context: Mapping[str, Any]) -> Config:
    config = tree.resolved({**context, "policy": policy.raw})["policy"]
    params = {key: value for key, value in config.items() if key not in ("name", "module")}
    try:
        built = policies.build(config["name"], module=config.get("module"), **params)
        plain = json.loads(json.dumps(dataclasses.asdict(built)))
    except InputError:
        raise
    except Exception as error:  # a user's own class may raise anything
        raise InputError(
            f"policy={policy.option} can't be built with {params}: {type(error).__name__}: {error}"
        ) from error
    return {"name": config["name"], "module": config.get("module"), "params": plain}
