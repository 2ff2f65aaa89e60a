"""Why a cell is not cached: the cached cell most like it, and what differs."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sweep.grid import config_tree
from sweep.grid.config_tree import canonical

Config = Mapping[str, Any]
_THINGS = ("policy", "trace", "cluster", "evaluator", "capacity", "seed", "sources")
_NEEDED = {*_THINGS, "workload"}
_NUMBERS = ("capacity", "seed")
_MOST = 16
"""Of the cached cells that differ in one thing alone, how many are looked at closely."""
_BESIDE = 2
"""On each side, where that thing is a number: nothing farther off is nearer."""


class ClosestCached:
    """Finds, for a cell, a cached one that differs from it in a single thing.

    The things are the policy with its parameters, the trace, the cluster, what is measured, the
    capacity, the seed and the sources.
    """

    def __init__(
        self, kept: Iterable[Config], sources_changed: Callable[[Any, Any], list[str]]
    ) -> None:
        self._sources_changed = sources_changed
        self._without: dict[str, dict[int, list[Config]]] = {thing: {} for thing in _THINGS}
        self._texts: dict[int, tuple[object, str]] = {}
        self.is_empty = True
        for config in kept:
            if not config.keys() >= _NEEDED or isinstance(config["workload"], str):
                continue  # of an older version
            self.is_empty = False
            for thing, others in _others(_parts(config, canonical)).items():
                self._without[thing].setdefault(others, []).append(config)
        for thing in _NUMBERS:
            for group in self._without[thing].values():
                group.sort(key=lambda config: float(config[thing]))

    def changes(self, config: Config) -> list[str] | None:
        """Say what differs, such as ``policy.params.queues: 10 → 5``."""
        found = [
            (len(changes), _distance(other, config), changes)
            for thing, others in _others(_parts(config, self._text)).items()
            for other in _some(self._without[thing].get(others, ()), thing, config)
            if (changes := self._changes(other, config, thing))
        ]
        return min(found)[2] if found else None

    def _text(self, part: Any) -> str:
        """Write a part; what many cells share is written once."""
        if not isinstance(part, dict):
            return canonical(part)
        if id(part) not in self._texts:
            self._texts[id(part)] = (part, canonical(part))  # kept, so that its id stays its own
        return self._texts[id(part)][1]

    def _changes(self, old: Config, new: Config, thing: str) -> list[str]:
        if thing == "sources" and old[thing] != new[thing]:
            return self._sources_changed(old[thing], new[thing])
        if thing == "evaluator" and old["sources"] != new["sources"] and _is_same(old, new, thing):
            return []  # not for its own sake
        changes = [
            change
            for part in _THINGS
            if part != "sources" and old[part] != new[part]
            for change in _leaves_changed(old, new, part)
        ]
        if any(change.startswith("seed: ") for change in changes):
            changes = [change for change in changes if not change.startswith("trace.seed: ")]
        before, now = old["workload"], new["workload"]
        if not changes and before["files"] != now["files"]:
            return ["content of the trace"]
        if not changes and before != now:
            return self._sources_changed(before["sources"], now["sources"])
        return changes


def _some(group: Sequence[Config], thing: str, config: Config) -> Sequence[Config]:
    """Those to look at: all of a few; of many the nearest, where the thing is a number."""
    if len(group) <= 2 * _BESIDE or thing not in _NUMBERS:
        return group[:_MOST]
    at = bisect.bisect_left(group, float(config[thing]), key=lambda c: float(c[thing]))
    return group[max(0, at - _BESIDE) : at + _BESIDE]


def _parts(config: Config, write: Callable[[Any], str]) -> list[int]:
    """Each thing of a configuration as a number; a seed that the trace follows is no part of it."""
    trace = config["trace"]
    if "seed" in trace and trace["seed"] == config["seed"]:
        text = canonical({key: value for key, value in trace.items() if key != "seed"})
    else:
        text = write(trace)
    # what a generator draws follows from its options; what a file holds does not
    texts = {"trace": (text, canonical(config["workload"]["files"]))}
    return [hash(texts.get(thing) or write(config[thing])) for thing in _THINGS]


def _others(parts: Sequence[int]) -> dict[str, int]:
    """By thing all the others, as a number that never leaves this process."""
    others = {}
    for at, thing in enumerate(_THINGS):
        rest = [*parts[:at], *parts[at + 1 :]]
        others[thing] = hash(tuple(rest[:-1] if thing == "evaluator" else rest))
    return others  # an evaluator has sources of its own, which stand last


def _is_same(old: Config, new: Config, thing: str) -> bool:
    """Tell whether a thing is the same but for its options."""
    return all(old[thing].get(key) == new[thing].get(key) for key in ("name", "module"))


def _distance(old: Config, new: Config) -> float:
    """How far apart two cells are on the axes that are numbers."""
    return float(abs(old["capacity"] - new["capacity"]) + abs(old["seed"] - new["seed"]))


def _leaves_changed(old: Config, new: Config, thing: str) -> list[str]:
    mine, theirs = _leaves(new, thing), _leaves(old, thing)
    return [
        f"{key}: {theirs.get(key, 'absent')} → {mine.get(key, 'absent')}"
        for key in dict.fromkeys((*mine, *theirs))
        if mine.get(key) != theirs.get(key)
    ]


def _leaves(config: Config, thing: str) -> dict[str, str]:
    shown = {thing: config[thing]}
    values = ((key, config_tree.get(shown, key)) for key in config_tree.keys(shown))
    return {key: canonical(value) for key, value in values if not isinstance(value, Mapping)}
