"""Why a cell is not cached: the cached cell most like it, and what differs."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sweep.grid import tree
from sweep.run.cell import canonical

Config = Mapping[str, Any]
_THINGS = ("policy", "trace", "cluster", "measure", "capacity", "seed", "sources")
_NEEDED = {*_THINGS, "workload"}
_NUMBERS = ("capacity", "seed")
_MOST = 16
"""Of the cached cells that differ in one thing alone, how many are looked at closely."""


class Nearest:
    """Finds, for a cell, a cached one that differs from it in a single thing.

    The things are the policy with its parameters, the trace, the cluster, what is measured, the
    capacity, the seed and the sources.

    Parameters
    ----------
    kept : iterable of mapping
        Configurations as `sweep.run.plan.kept_config` makes them.
    sources_changed : callable
        Says what differs between the sources of an old and of a new configuration.
    """

    def __init__(
        self, kept: Iterable[Config], sources_changed: Callable[[Any, Any], list[str]]
    ) -> None:
        self._sources_changed = sources_changed
        self._without: dict[str, dict[int, list[Config]]] = {thing: {} for thing in _THINGS}
        for config in kept:
            if not config.keys() >= _NEEDED:
                continue  # of an older version
            parts = _parts(config)
            for thing, found in self._without.items():
                found.setdefault(_others(parts, thing), []).append(config)
        for thing in _NUMBERS:
            for group in self._without[thing].values():
                group.sort(key=lambda config: float(config[thing]))

    def changes(self, config: Config) -> list[str] | None:
        """Say what differs, such as ``policy.params.queues: 10 → 5``.

        Returns
        -------
        list of str or None
            The fewest differences to a cached cell; None if every cached cell differs in more
            than one thing. Of very many that differ in the same thing, some are looked at.
        """
        parts = _parts(config)
        found = [
            (len(changes), _distance(other, config), changes)
            for thing, kept in self._without.items()
            for other in _some(kept.get(_others(parts, thing), ()), thing, config)
            if (changes := self._changes(other, config, thing))
        ]
        return min(found)[2] if found else None

    def _changes(self, old: Config, new: Config, thing: str) -> list[str]:
        if thing == "sources" and old[thing] != new[thing]:
            return self._sources_changed(old[thing], new[thing])
        if thing == "measure" and old["sources"] != new["sources"] and _is_same(old, new, thing):
            return []  # not for its own sake
        changes = [
            change
            for part in _THINGS
            if part != "sources" and old[part] != new[part]
            for change in _leaves_changed(old, new, part)
        ]
        if any(change.startswith("seed: ") for change in changes):
            changes = [change for change in changes if not change.startswith("trace.seed: ")]
        if not changes and old["workload"] != new["workload"]:
            return ["content of the trace"]
        return changes


def _some(group: Sequence[Config], thing: str, config: Config) -> Sequence[Config]:
    """Those to look at: all of a few; of many the nearest, where the thing is a number."""
    if len(group) <= _MOST:
        return group
    first = 0
    if thing in _NUMBERS:
        at = bisect.bisect_left(group, float(config[thing]), key=lambda c: float(c[thing]))
        first = max(0, at - _MOST // 2)
    return group[first : first + _MOST]


def _parts(config: Config) -> dict[str, str]:
    """Each thing of a configuration as text; a seed that the trace follows is no part of it."""
    trace = {
        key: value
        for key, value in config["trace"].items()
        if not (key == "seed" and value == config["seed"])
    }
    parts = {thing: config[thing] for thing in _THINGS}
    # what a generator draws follows from its options; what a file holds does not
    parts["trace"] = [trace, config["workload"] if "path" in trace else None]
    return {thing: canonical(part) for thing, part in parts.items()}


def _others(parts: Mapping[str, str], thing: str) -> int:
    """All things but one, as a number that never leaves this process."""
    left_out = (thing, "sources") if thing == "measure" else (thing,)  # it has sources of its own
    return hash(tuple(part for name, part in parts.items() if name not in left_out))


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
    values = ((key, tree.get(shown, key)) for key in tree.keys(shown))
    return {key: canonical(value) for key, value in values if not isinstance(value, Mapping)}
