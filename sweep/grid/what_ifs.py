"""Axes ``what_if.KEY`` that change the workload or the cluster of every cell.

Each key is an axis that begins with today, which changes nothing. Of several keys each is tried by
itself; ``what_if.together=true`` tries all their combinations. A change of the workload is a
transform after its arrivals were stretched and its cluster sized (`sweep.grid.recipe.AFTER`), so
that the cluster stays as it is. ``what_if.add.KEY=VALUE`` sets a key of the traces that are added,
as ``trace.KEY`` does for those of cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sim.base.errors import InputError
from sim.base.parameters import Positive, check
from sim.cluster.sizing import unit_cluster
from sim.metrics import metric
from sweep.grid import config_tree, own_traces
from sweep.grid.cluster_size import EXTRA
from sweep.grid.machine_kinds import EXTRA_KIND, find_kind, parse_added
from sweep.grid.options import Options
from sweep.grid.overrides import Assignment
from sweep.grid.recipe import ADD, AFTER

PREFIX = "what_if."
NODES, ADD_AXIS, ADDED = "what_if.nodes", "what_if.add", "what_if.add."
CHANGES = ("load", "nodes", "without_queue", "faster", "add")
RESTORE, TODAY, TOGETHER = "what_if.restore", "what_if.today", "what_if.together"

Config = dict[str, Any]


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
    for key in (RESTORE, TODAY, TOGETHER):
        line = lines.pop(key, None)
        settings[key] = (
            defaults["what_if"][key.removeprefix(PREFIX)] if line is None else line.value
        )
    has_any = False
    added_keys = settings_of_added(lines.values())
    if added_keys and ADD_AXIS not in lines:
        raise InputError(f"{added_keys[0].text} goes with {ADD_AXIS}=TRACE", rule="wrong type")
    for change in CHANGES:
        line = lines.get(PREFIX + change)
        if line is None:
            continue
        values = tuple(value for value in line.values if value is not None)
        if not values:
            del lines[PREFIX + change]
            continue
        for value in values:
            _check(line, change, value, options, added_keys)
        today = (None,) if settings[TODAY] or len(values) < len(line.values) else ()
        lines[PREFIX + change] = replace(line, values=today + values, swept=True)
        has_any = True
    for key in (TODAY, TOGETHER):
        check(key, settings[key], bool)
    restore = settings[RESTORE]
    if restore is not None and metric(str(restore)).against_baseline:
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


def _check(
    line: Assignment, change: str, value: Any, options: Options, added_keys: Sequence[Assignment]
) -> None:
    if change in ("load", "faster"):
        check(line.key, value, Positive)
    elif change == "nodes":
        added = parse_added(str(value))
        if added is None:
            check(line.key, value, int)
        elif added[1] == 0:
            raise InputError(
                f"{line.text}: give machines to add, or to remove as -5; of one kind as KIND:+4",
                rule="range",
            )
    elif change == "add":
        _added(str(value), options, added_keys)
    elif not all(isinstance(name, str | int) for name in _list(value)):
        raise InputError(f"{line.text}: give a queue, or several as [a,b]", rule="wrong type")


def apply(
    parts: Config, labels: Mapping[str, Any], options: Options, fixed: Iterable[Assignment]
) -> Config:
    """Apply the changes of a cell's labels to its configurations of trace and cluster."""
    chosen = {key.removeprefix(PREFIX): labels[key] for key in labels if key.startswith(PREFIX)}
    after: list[Config] = []
    if chosen.get("without_queue") is not None:
        queues = [str(name) for name in _list(chosen["without_queue"])]
        after.append({"without_queue": {"queue": queues}})
    if chosen.get("add") is not None:
        other = _added(str(chosen["add"]), options, settings_of_added(fixed))
        after.append({ADD: {"trace": other}})
    if chosen.get("load") is not None:
        load = {"load": float(chosen["load"]), "seed": "${seed}", "rewire": False}
        after.append({"change_load": load})
    if chosen.get("faster") is not None:
        after.append({"faster": {"factor": float(chosen["faster"])}})
    if chosen.get("nodes") is not None:
        parts = {**parts, "cluster": _with_nodes(parts["cluster"], str(chosen["nodes"]))}
    return with_transforms(parts, after)


def _with_nodes(cluster: Config, text: str) -> Config:
    """Return a cluster's configuration with machines added: of one kind, or each its share."""
    kind, n = parse_added(text) or (None, 0)
    if kind is not None and isinstance(cluster.get("shape"), Mapping):
        find_kind(unit_cluster(cluster["shape"]), kind)  # the only one
        kind = None
    if kind is not None:
        cluster = config_tree.with_value(cluster, EXTRA_KIND, kind, add=True)
    return config_tree.with_value(cluster, EXTRA, n, add=True)


def with_transforms(parts: Config, after: Sequence[Config]) -> Config:
    """Append transforms that apply after the stretch of arrivals."""
    if not after:
        return parts
    trace = parts["trace"]
    return {**parts, "trace": {**trace, AFTER: [*(trace.get(AFTER) or ()), *after]}}


def _added(text: str, options: Options, settings: Sequence[Assignment]) -> Config:
    """Return the configuration of the trace to add: an option, or ``NAME:FORMAT:PATH``."""
    if ":" in text:
        _, own = own_traces.parse(text, options, ADD_AXIS)
        trace = own_traces.with_path(options.compose(trace=own.format)["trace"], own)
    else:
        trace = options.compose(trace=text)["trace"]
    for line in settings:
        key = line.key.removeprefix(ADDED)
        if line.kind == "delete":
            trace = config_tree.without(trace, key)
        else:
            trace = config_tree.with_value(trace, key, line.value, add=line.kind == "add")
    if trace.get("path") == "???":
        raise InputError(
            f"{ADD_AXIS}={text} needs a file: write {ADD_AXIS}=NAME:{text}:FILE",
            rule="missing path",
        )
    return trace


def _list(value: Any) -> list[Any]:
    return [*value] if isinstance(value, list | tuple) else [value]


def words(labels: Mapping[str, Any]) -> str:
    """Write the changes of a cell, such as ``load=1.3 nodes=+20``; empty for today."""
    chosen = {key: labels.get(PREFIX + key) for key in CHANGES}
    return " ".join(_word(key, value) for key, value in chosen.items() if value is not None)


def _word(key: str, value: Any) -> str:
    if key == "nodes":
        kind, n = parse_added(str(value)) or (None, int(float(value)))
        return f"{key}={kind}:{n:+d}" if kind else f"{key}={n:+d}"
    if key == "add":
        return f"{key}={str(value).partition(':')[0]}"
    return f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
