"""Grid of a request: its cells, each with its whole resolved configuration."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import policies
import policies.registry
from sim import evaluators
from sim.base.errors import InputError, unknown
from sim.base.plugins import check_names, check_single
from sim.evaluators import NO_POLICY
from sweep.grid import (
    cluster_checks,
    config_tree,
    own_traces,
    randomness,
    traces,
    what_ifs,
)
from sweep.grid.changes import PREFIX, NotForPolicyError, with_transform
from sweep.grid.lazy import LazySequence
from sweep.grid.overrides import Assignment
from sweep.grid.request import Request
from sweep.stats.arrange import build_columns, check_baseline
from sweep.stats.cell_columns import AXES

Config = dict[str, Any]
_World = tuple[Config, Config, Config]
_VariantKey = tuple[Any, ...]


@dataclass(frozen=True)
class PolicyVariant:
    """A policy option with its swept parameters set; interpolations unresolved."""

    option: str
    swept: dict[str, Any]
    raw: Config
    used: frozenset[str]


@dataclass(frozen=True)
class WorldVariant:
    """A trace, its cluster and the evaluator, swept keys set; interpolations unresolved."""

    option: str
    swept: dict[str, Any]
    trace: Config
    cluster: Config
    evaluator: Config

    @property
    def raw(self) -> Config:
        """The configurations of all three."""
        return {"trace": self.trace, "cluster": self.cluster, "evaluator": self.evaluator}


_Pair = tuple[PolicyVariant, WorldVariant]


def policy_variants(request: Request, option: str, swept: Sequence[str]) -> list[PolicyVariant]:
    """Apply the fixed and the swept parameters of a policy: one variant per combination.

    Only parameters that the policy has apply; if it has no swept one there is one variant.
    """
    raw = request.options.compose(policy=option)["policy"]
    file = request.options.files["policy"][option]
    if not isinstance(raw, dict) or not isinstance(raw.get("name"), str):
        raise InputError("a policy's file must name the policy: `name: fifo`", file=file)
    if raw.get("module") is not None:
        _load_module(str(raw["module"]), raw["name"], file)
    elif raw["name"] not in policies.names():
        raise InputError(
            f"{unknown('policy', raw['name'], policies.names())}. For a policy of your own add "
            "`module: MODULE`, the Python module that registers it (docs/your_own_policy.md)",
            file=file,
            rule="unknown policy",
        )
    known = {field.name for field in dataclasses.fields(policies.spec(raw["name"]))}
    fixed = [line for line in request.fixed if line.key.startswith("policy.")]
    used = {key for key in [*swept, *(line.key for line in fixed)] if key.split(".")[1] in known}
    for line in fixed:
        if line.key in used and not (line.kind == "delete" and _inner(line.key) not in raw):
            raw = _apply(raw, line)
    axes = [request.axes[key] if key in used else (None,) for key in swept]
    variants = []
    for values in itertools.product(*axes):
        variant = raw
        for key, value in zip(swept, values, strict=True):
            if key in used:
                variant = config_tree.with_value(variant, _inner(key), value, add=True)
        labels = dict(zip(swept, values, strict=True))
        variants.append(PolicyVariant(option, labels, variant, frozenset(used)))
    return variants


def _load_module(module: str, name: str, file: Path) -> None:
    check_single("policy", module)
    try:
        policies.registry.load(module, name)
    except InputError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"module {module!r} can't be imported: {reason}", file=file) from error


def check_parameters_used(request: Request, chosen: Sequence[PolicyVariant]) -> None:
    """Refuse a ``policy.X`` that none of the policies has.

    A parameter of an experiment may be for policies that the command line has left out.
    """
    used = frozenset().union(*(policy.used for policy in chosen))
    for key in (*request.axes, *(line.key for line in request.fixed)):
        is_asked_for = key in request.named or "policy" not in request.named
        if key.startswith("policy.") and key not in used and is_asked_for:
            names = sorted({policy.raw["name"] for policy in chosen})
            fields = [f for name in names for f in dataclasses.fields(policies.spec(name))]
            known = sorted({f"policy.{field.name}" for field in fields})
            fixed = (policies.registry.fixed_message(name, key.split(".")[1]) for name in names)
            message = unknown(f"parameter of {', '.join(names)}", key, known)
            raise InputError(next(filter(None, fixed), message), rule="unknown parameter")


def trace_variants(request: Request, option: str, swept: Sequence[str]) -> list[WorldVariant]:
    """Set the keys of a trace, its cluster and its evaluator: one variant per combination."""
    fixed = [line for line in request.fixed if not line.key.startswith("policy.")]
    chosen = {line.key: line.value for line in fixed if line.key in ("cluster", "evaluator")}
    plain = [line for line in fixed if line.key not in chosen and not line.key.startswith(PREFIX)]
    worlds = []
    own = request.own_traces.get(option)
    composed: dict[str, Config] = {}
    combined = itertools.product(*(request.axes[key] for key in swept))
    all_labels = [dict(zip(swept, values, strict=True)) for values in combined]
    if request.what_if is not None:
        all_labels = request.what_if.chosen(all_labels)
    for labels in all_labels:
        choices = chosen | {key: value for key, value in labels.items() if key == "cluster"}
        choice = choices.get("cluster", "")
        if choice not in composed:
            trace = option if own is None else own.format
            composed[choice] = request.options.compose(trace=trace, **choices)
        parts = {key: composed[choice][key] for key in ("trace", "cluster", "evaluator")}
        for kind in ("trace", "evaluator"):
            if parts[kind].get("module"):
                check_single(kind, str(parts[kind]["module"]))
        if own is not None:
            parts["trace"] = own_traces.with_path(parts["trace"], own)
        swept_keys = [key for key in labels if not key.startswith(PREFIX)]
        for is_of_trace in (True, False):
            for line in plain:
                if line.key.startswith("trace.") == is_of_trace:
                    parts = _apply(parts, line, whole=True)
            for key in swept_keys:
                if key != "cluster" and key.startswith("trace.") == is_of_trace:
                    add = _is_left_out(parts, key)
                    parts = config_tree.with_value(parts, key, labels[key], add=add)
            if is_of_trace and parts["cluster"].get("shape") == traces.FROM_TRACE:
                parts = traces.with_own_cluster(parts, request.settings.traces)
        parts["cluster"] = cluster_checks.with_series(parts["cluster"])
        if request.bootstrap is not None:
            parts = _with_bootstrap(option, parts, request.bootstrap)
        worlds.append(WorldVariant(option, labels, **parts))
    return worlds


def _with_bootstrap(option: str, parts: Config, block: str) -> Config:
    """Draw the log anew for each seed."""
    if randomness.refers_to_seed(parts["trace"]):
        raise InputError(
            f"trace={option} draws another workload for each seed; seeds=bootstrap draws a log, "
            "which has none: give seed=range(0,10)",
            rule="seeds",
        )
    return with_transform(parts, "bootstrap", {"by": block, "seed": "${seed}"})


def _apply(config: Config, line: Assignment, *, whole: bool = False) -> Config:
    key = line.key if whole else _inner(line.key)
    if line.kind == "delete":
        return config_tree.without(config, key)
    add = line.kind == "add" or not whole or _is_left_out(config, key)
    return config_tree.with_value(config, key, line.value, add=add)


def _is_left_out(config: Config, key: str) -> bool:
    """Tell whether it is a key of clusters, or an option of this trace, that its file leaves out.

    Options of one's own need not list what they do not use.
    """
    head, _, inner = key.partition(".")
    if head not in ("cluster", "trace") or not inner:
        return False
    try:
        config_tree.get(config, key)
    except KeyError:
        pass
    else:
        return False
    own, name = config[head], inner.partition(".")[0]
    known = {*own, *(cluster_checks.KEYS if head == "cluster" else traces.option_names(own))}
    if name not in known:
        message = unknown("key", key, [f"{head}.{other}" for other in sorted(known)])
        raise InputError(message, rule="unknown key")
    return True


def _inner(key: str) -> str:
    return key.partition(".")[2]


def variants_without_policy(request: Request) -> list[PolicyVariant]:
    """Return the placeholder for an evaluator that needs no policy; empty for others."""
    chosen = [line.value for line in request.fixed if line.key == "evaluator"]
    option = chosen[-1] if chosen else request.options.default("evaluator")
    config = request.options.plain("evaluator", option)
    if evaluators.uses_policy(config["name"], config.get("module")):
        return []
    policy_keys = [key for key in request.named if key.partition(".")[0] in ("policy", "baseline")]
    if policy_keys:
        raise InputError(f"evaluator={option} uses the trace alone; leave {policy_keys[0]}= out")
    none: Config = {"name": NO_POLICY, "module": None, "params": {}}
    return [PolicyVariant(NO_POLICY, {}, none, frozenset())]


class Resolver:
    """Resolves and checks each distinct part once; without `has_files`, but files of traces."""

    def __init__(self, *, has_files: bool = True) -> None:
        self._has_files = has_files
        self._policies: dict[_VariantKey, Config] = {}
        self._worlds: dict[_VariantKey, _World] = {}
        # by variant: the variant (kept alive), its text, the keys of a cell that the text refers to
        self._variant_keys: dict[int, tuple[object, tuple[str], tuple[str, ...]]] = {}

    def policy(self, policy: PolicyVariant, context: Mapping[str, Any]) -> Config:
        """Resolve a policy: ``name``, ``module`` and all of its ``params``, with those fixed."""
        if policy.option == NO_POLICY:
            return policy.raw
        key = self._variant_key(policy, context)
        if key not in self._policies:
            self._policies[key] = _resolved_policy(policy, context)
        return self._policies[key]

    def world(self, world: WorldVariant, context: Mapping[str, Any]) -> _World:
        """Resolve a trace, its cluster and the evaluator."""
        key = self._variant_key(world, context)
        if key not in self._worlds:
            parts = config_tree.resolved({**world.raw, **context})
            traces.check(world.option, parts["trace"], has_files=self._has_files)
            cluster_checks.check(parts["cluster"])
            _check_evaluator(parts["evaluator"])
            self._worlds[key] = (parts["trace"], parts["cluster"], parts["evaluator"])
        return self._worlds[key]

    def part_key(
        self, policy: PolicyVariant, world: WorldVariant, context: Mapping[str, Any]
    ) -> tuple[object, ...]:
        """Return the key of a cell's resolved parts, its seed apart."""
        keys = self._variant_key(policy, context), self._variant_key(world, context)
        return (*keys, context["capacity"])

    def _variant_key(
        self, variant: PolicyVariant | WorldVariant, context: Mapping[str, Any]
    ) -> _VariantKey:
        """Return the key of a resolved variant: its text and the values that it refers to."""
        entry = self._variant_keys.get(id(variant))
        if entry is None:
            text = json.dumps(variant.raw, default=str)
            entry = self._variant_keys[id(variant)] = (variant, (text,), _references(text))
        return (*entry[1], *[context[key] for key in entry[2]]) if entry[2] else entry[1]


_REFERENCE = re.compile(r"\$\{([^}]*)\}?")


def _references(text: str) -> tuple[str, ...]:
    """Return which of a cell's capacity and seed a configuration refers to; both, if in doubt."""
    names = set(_REFERENCE.findall(text))
    if any(not re.fullmatch(r"[\w.]+", name) for name in names):
        return ("capacity", "seed")
    return tuple(key for key in ("capacity", "seed") if key in names)


def _check_evaluator(config: Mapping[str, Any]) -> None:
    known = evaluators.options(config["name"], config.get("module"))
    option_names = config.keys() - {"name", "module"}
    check_names(f"option of evaluator={config['name']}", sorted(option_names), known, "unknown key")


def _resolved_policy(policy: PolicyVariant, context: Mapping[str, Any]) -> Config:
    config = config_tree.resolved({**context, "policy": policy.raw})["policy"]
    params = {key: value for key, value in config.items() if key not in ("name", "module")}
    try:
        built = policies.build(config["name"], module=config.get("module"), **params)
        plain = json.loads(json.dumps({**built.fixed, **dataclasses.asdict(built)}))
    except InputError:
        raise
    except Exception as error:  # a user's own class may raise anything
        raise InputError(
            f"policy={policy.option} can't be built with {params}: {type(error).__name__}: {error}"
        ) from error
    return {"name": config["name"], "module": config.get("module"), "params": plain}


def build_policy(config: Mapping[str, Any]) -> policies.Policy | None:
    """Build the policy of a cell (`Cell.policy`); None if its evaluator needs none."""
    if config["name"] == NO_POLICY:
        return None
    return policies.build(config["name"], module=config["module"], **config["params"])


class Cell(NamedTuple):
    """One point of a grid."""

    # coordinates: ``policy``, ``trace``, ``capacity``, ``seed``, then the other swept keys;
    # None where a policy's key does not apply to this policy
    labels: dict[str, Any]
    # ``name``, ``module`` (a user's own, else None), ``params`` (all, including defaults)
    policy: Config
    trace: Config
    cluster: Config
    evaluator: Config

    @property
    def capacity(self) -> float:
        """Fraction of the trace's cluster."""
        return float(self.labels["capacity"])

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self.labels["seed"])


@dataclass(frozen=True)
class Grid:
    """All cells of a request, in the order of its rows."""

    request: Request
    cells: Sequence[Cell]  # policies outermost, seeds innermost; made on demand
    swept: tuple[str, ...]  # keys swept besides policy, trace, capacity and seed
    is_fixed: bool = False  # True: no seed changes any result


def build(request: Request, resolver: Resolver | None = None) -> Grid:
    """Compose each option once and combine them into cells.

    A key ``policy.X`` applies to the policies that have a parameter X; the others get one cell for
    all of its values. Many grids may share one `resolver`.
    """
    swept = tuple(key for key in request.axes if key not in AXES)
    policy_keys = [key for key in swept if key.startswith("policy.")]
    world_keys = [key for key in swept if not key.startswith("policy.")]
    chosen = variants_without_policy(request)
    if not chosen:
        chosen = [
            policy
            for name in request.axes["policy"]
            for policy in policy_variants(request, name, policy_keys)
        ]
        check_parameters_used(request, chosen)
        if request.baseline is not None:
            labels_of_policies = [{"policy": policy.option, **policy.swept} for policy in chosen]
            check_baseline(
                build_columns(labels_of_policies, policy_keys, request.baseline)[0],
                request.baseline,
            )
    worlds = [
        world
        for name in request.axes["trace"]
        for world in trace_variants(request, name, world_keys)
    ]
    paths = {"traces": request.settings.traces}
    capacities, seeds = request.axes["capacity"], request.axes["seed"]

    def context(index: int) -> dict[str, Any]:
        capacity_index, seed_index = divmod(index, len(seeds))
        return {"capacity": capacities[capacity_index], "seed": seeds[seed_index], "paths": paths}

    contexts = LazySequence(len(capacities) * len(seeds), context)
    resolver = resolver or Resolver(has_files=not request.is_recorded)
    pairs = _changed(request, list(itertools.product(chosen, worlds)))
    _check(pairs, contexts, resolver)
    extra_labels = [{key: {**p.swept, **w.swept}.get(key) for key in swept} for p, w in pairs]

    def cell(row: int) -> Cell:
        index, inner = divmod(row, len(contexts))
        (policy, world), values = pairs[index], contexts[inner]
        labels = {
            "policy": policy.option,
            "trace": world.option,
            "capacity": values["capacity"],
            "seed": values["seed"],
            **extra_labels[index],
        }
        return Cell(labels, resolver.policy(policy, values), *resolver.world(world, values))

    cells = LazySequence(len(pairs) * len(contexts), cell)
    return Grid(request, cells, swept, _is_fixed(pairs))


def _changed(request: Request, pairs: list[_Pair]) -> list[_Pair]:
    """Apply the what-ifs of each pair's labels; leave out policies that a change is not for."""
    if request.what_if is None:
        return pairs
    changed: list[_Pair] = []
    refused: dict[str, NotForPolicyError] = {}
    for policy, world in pairs:
        chosen = what_ifs.changes(world.swept, request.options, request.fixed)
        parts = {"policy": policy.raw, **world.raw}
        try:
            parts = what_ifs.apply(parts, chosen)
        except NotForPolicyError as refusal:
            refused[what_ifs.words(world.swept)] = refusal
            continue
        raw = parts.pop("policy")
        changed.append((replace(policy, raw=raw), replace(world, **parts)))
    applied = {what_ifs.words(world.swept) for _, world in changed}
    for words, error in refused.items():
        if words not in applied:
            raise error
    return changed


def _check(
    pairs: Sequence[tuple[PolicyVariant, WorldVariant]],
    contexts: Sequence[Mapping[str, Any]],
    resolver: Resolver,
) -> None:
    """Resolve every distinct part once, in the order of the rows; that checks it."""
    for policy, world in pairs:
        seen: set[object] = set()
        for context in contexts:
            part_key = resolver.part_key(policy, world, context)
            if part_key not in seen:
                seen.add(part_key)
                cluster_checks.check_count(resolver.world(world, context)[1], context["capacity"])
                resolver.policy(policy, context)


def _is_fixed(pairs: Sequence[_Pair]) -> bool:
    worlds = {id(world): world for _, world in pairs}
    for world in worlds.values():
        text = json.dumps([*world.raw.values()], default=str)
        if not randomness.ignores_seed(text, world.cluster, world.evaluator):
            return False
    names = {policy.raw["name"] for policy, _ in pairs}
    return not any(randomness.draws_randomly(policies.spec(name)) for name in names)
