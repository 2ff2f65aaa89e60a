"""Explain a cache miss by the closest cached configuration."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sweep.grid import config_tree
from sweep.grid.config_tree import canonical

Config = Mapping[str, Any]
_DIMENSIONS = ("policy", "trace", "cluster", "evaluator", "capacity", "seed", "sources")
_NEEDED = {*_DIMENSIONS, "workload"}
_NUMBERS = ("capacity", "seed")
_MAX_CANDIDATES = 16
"""Cached cells that differ in one dimension alone and are compared in detail."""
_N_NEIGHBOURS = 2
"""On each side, in a dimension that is a number: nothing farther away is closer."""


class ClosestCached:
    """Find, for a cell, the cached configuration that differs from it in one dimension alone.

    The dimensions are the policy with its parameters, the trace, the cluster, the evaluator, the
    capacity, the seed and the sources.
    """

    def __init__(
        self, configs: Iterable[Config], changed_sources: Callable[[Any, Any], list[str]]
    ) -> None:
        self._changed_sources = changed_sources
        self._groups: dict[str, dict[int, list[Config]]] = {
            dimension: {} for dimension in _DIMENSIONS
        }
        self._texts: dict[int, tuple[object, str]] = {}
        self.is_empty = True
        for config in configs:
            if not config.keys() >= _NEEDED or isinstance(config["workload"], str):
                continue  # of an older version
            self.is_empty = False
            for dimension, rest_hash in _hashes_without(_hashes(config, canonical)).items():
                self._groups[dimension].setdefault(rest_hash, []).append(config)
        for dimension in _NUMBERS:
            for group in self._groups[dimension].values():
                group.sort(key=lambda config: float(config[dimension]))

    def differences(self, config: Config) -> list[str] | None:
        """List the differences, such as ``policy.params.queues: 10 → 5``; None without a match."""
        matches = [
            (len(differences), _distance(other, config), differences)
            for dimension, rest_hash in _hashes_without(_hashes(config, self._text)).items()
            for other in _candidates(self._groups[dimension].get(rest_hash, ()), dimension, config)
            if (differences := self._differences(other, config, dimension))
        ]
        return min(matches)[2] if matches else None

    def _text(self, value: Any) -> str:
        """Write a value as canonical text; a dict that many cells share is written once."""
        if not isinstance(value, dict):
            return canonical(value)
        if id(value) not in self._texts:
            self._texts[id(value)] = (value, canonical(value))  # kept, so that its id stays its own
        return self._texts[id(value)][1]

    def _differences(self, old: Config, new: Config, dimension: str) -> list[str]:
        if dimension == "sources" and old[dimension] != new[dimension]:
            return self._changed_sources(old[dimension], new[dimension])
        if (
            dimension == "evaluator"
            and old["sources"] != new["sources"]
            and _is_same_module(old, new, dimension)
        ):
            return []  # the sources differ for another reason: that is two dimensions
        differences = [
            change
            for part in _DIMENSIONS
            if part != "sources" and old[part] != new[part]
            for change in _changed_leaves(old, new, part)
        ]
        if any(change.startswith("seed: ") for change in differences):
            differences = [
                change for change in differences if not change.startswith("trace.seed: ")
            ]
        before, now = old["workload"], new["workload"]
        if not differences and before["files"] != now["files"]:
            return ["content of the trace"]
        if not differences and before != now:
            return self._changed_sources(before["sources"], now["sources"])
        return differences


def _candidates(group: Sequence[Config], dimension: str, config: Config) -> Sequence[Config]:
    """Select the configurations to compare: all of a few, else the closest by number."""
    if len(group) <= 2 * _N_NEIGHBOURS or dimension not in _NUMBERS:
        return group[:_MAX_CANDIDATES]
    position = bisect.bisect_left(
        group, float(config[dimension]), key=lambda c: float(c[dimension])
    )
    return group[max(0, position - _N_NEIGHBOURS) : position + _N_NEIGHBOURS]


def _hashes(config: Config, write: Callable[[Any], str]) -> list[int]:
    """Hash each dimension of a configuration, without a seed that the trace follows."""
    trace = config["trace"]
    if "seed" in trace and trace["seed"] == config["seed"]:
        text = canonical({key: value for key, value in trace.items() if key != "seed"})
    else:
        text = write(trace)
    # a generator's output follows from its options, the content of a file does not
    texts = {"trace": (text, canonical(config["workload"]["files"]))}
    return [hash(texts.get(dimension) or write(config[dimension])) for dimension in _DIMENSIONS]


def _hashes_without(parts: Sequence[int]) -> dict[str, int]:
    """Hash, for each dimension, all the others; the hashes hold in this process alone."""
    hashes = {}
    for position, dimension in enumerate(_DIMENSIONS):
        rest = [*parts[:position], *parts[position + 1 :]]
        hashes[dimension] = hash(tuple(rest[:-1] if dimension == "evaluator" else rest))
    return hashes  # an evaluator has its own sources, which come last: they are left out, too


def _is_same_module(old: Config, new: Config, dimension: str) -> bool:
    """Tell whether a dimension is the same except for its options."""
    return all(old[dimension].get(key) == new[dimension].get(key) for key in ("name", "module"))


def _distance(old: Config, new: Config) -> float:
    """Distance of two cells on the axes that are numbers."""
    return float(abs(old["capacity"] - new["capacity"]) + abs(old["seed"] - new["seed"]))


def _changed_leaves(old: Config, new: Config, dimension: str) -> list[str]:
    new_leaves, old_leaves = _leaves(new, dimension), _leaves(old, dimension)
    return [
        f"{key}: {old_leaves.get(key, 'absent')} → {new_leaves.get(key, 'absent')}"
        for key in dict.fromkeys((*new_leaves, *old_leaves))
        if new_leaves.get(key) != old_leaves.get(key)
    ]


def _leaves(config: Config, dimension: str) -> dict[str, str]:
    tree = {dimension: config[dimension]}
    values = ((key, config_tree.get(tree, key)) for key in config_tree.keys(tree))
    return {key: canonical(value) for key, value in values if not isinstance(value, Mapping)}
