"""Axes ``what_if.KEY`` that change the policy, the workload or the cluster of every cell.

Each key is an axis that begins with today, which changes nothing. Of several keys each is tried by
itself; ``what_if.together=true`` tries all their combinations. Each is a module of
`sweep.grid.changes`. A change of the workload is a transform after its arrivals were stretched and
its cluster sized (`sweep.grid.recipe.AFTER`), so that the cluster stays as it is.
``what_if.add.KEY=VALUE`` sets a key of the traces that are added, as ``trace.KEY`` does for those
of cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sim.base.errors import InputError
from sim.base.parameters import check
from sim.metrics import metric
from sweep.grid.changes import PREFIX, Change, Config, change_of, is_key
from sweep.grid.options import Options
from sweep.grid.overrides import Assignment

NODES, ADD_AXIS, ADDED = "what_if.nodes", "what_if.add", "what_if.add."
RESTORE, TODAY, TOGETHER = "what_if.restore", "what_if.today", "what_if.together"
SETTINGS = (RESTORE, TODAY, TOGETHER)


@dataclass(frozen=True)
class WhatIf:
    """A request with what-ifs: which metric is to be as it is today."""

    restore: str | None  # None: no search for the machines that restore it
    together: bool = False  # combine the changes; else each is tried by itself

    def chosen(self, combinations: Sequence[Config]) -> list[Config]:
        """Choose the combinations of values that the request has: today, then key by key."""

        def changed(labels: Mapping[str, Any]) -> list[int]:
            keys = [key for key in labels if key.startswith(PREFIX)]
            return [k for k, key in enumerate(keys) if labels[key] is not None]

        selected = [c for c in combinations if self.together or len(changed(c)) <= 1]
        return sorted(selected, key=changed)


def take(
    lines: dict[str, Assignment], defaults: Mapping[str, Any], options: Options
) -> WhatIf | None:
    """Turn what-ifs into axes that begin with today; None if there are none.

    Raises
    ------
    InputError
        If a value is out of its range.
    """
    settings = {}
    alone = [lines[key] for key in SETTINGS if key in lines]
    if alone and not any(is_key(key) for key in lines):
        raise InputError(
            f"{alone[0].text} goes with a change, such as what_if.load=1.3", rule="wrong type"
        )
    for key in SETTINGS:
        line = lines.pop(key, None)
        settings[key] = (
            defaults["what_if"][key.removeprefix(PREFIX)] if line is None else line.value
        )
    has_any = False
    added_keys = settings_of_added(lines.values())
    if added_keys and ADD_AXIS not in lines:
        raise InputError(f"{added_keys[0].text} goes with {ADD_AXIS}=TRACE", rule="wrong type")
    for key in [key for key in lines if is_key(key)]:
        line = lines[key]
        values = tuple(value for value in line.values if value is not None)
        if not values:
            del lines[key]
            continue
        for value in values:
            change = _change(key, value, options, added_keys)
            change.module.check(change)
        today = (None,) if settings[TODAY] or len(values) < len(line.values) else ()
        lines[key] = replace(line, values=today + values, swept=True)
        has_any = True
    for key in (TODAY, TOGETHER):
        check(key, settings[key], bool)
    restore = settings[RESTORE]
    has_own = "evaluator" in lines  # numbers of its own, restored to at most today's
    if restore is not None and not has_own and metric(str(restore)).against_baseline:
        raise InputError(f"{RESTORE}={restore} compares with a baseline; give another metric")
    restored = None if restore is None else str(restore)
    # without today nothing is restored: one cell is made again
    return WhatIf(restored, settings[TOGETHER] or not settings[TODAY]) if has_any else None


def settings_of_added(lines: Iterable[Assignment]) -> list[Assignment]:
    """Return the lines that set keys of added traces; each has one value."""
    chosen = [line for line in lines if line.key.startswith(ADDED)]
    for line in chosen:
        if line.swept:
            raise InputError(f"{line.text}: a key of an added trace takes one value")
    return chosen


def is_known(key: str) -> bool:
    """Tell whether a key of the command line is a change, or a setting of what-ifs."""
    return key in SETTINGS or key.startswith(ADDED) or is_key(key)


def changes(
    labels: Mapping[str, Any], options: Options | None = None, fixed: Iterable[Assignment] = ()
) -> list[Change]:
    """Return the changes of a cell by its labels, in their order; none for today."""
    settings = settings_of_added(fixed)
    return [
        _change(key, value, options, settings)
        for key, value in labels.items()
        if is_key(key) and value is not None
    ]


def _change(
    key: str, value: Any, options: Options | None, added_keys: Sequence[Assignment]
) -> Change:
    change = change_of(key, value, options)
    return replace(change, settings=added_keys) if key == ADD_AXIS else change


def apply(parts: Config, chosen: Sequence[Change]) -> Config:
    """Apply changes to a cell's configurations, those of its workload in their order."""
    for change in sorted(chosen, key=lambda change: getattr(change.module, "ORDER", 0)):
        parts = change.module.apply(parts, change)
    return parts


def words(labels: Mapping[str, Any]) -> str:
    """Write the changes of a cell, such as ``load=1.3 nodes=+20``; empty for today."""
    return " ".join(change.word for change in changes(labels))
