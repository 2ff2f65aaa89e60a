"""More machines, or fewer: ``+20``, each kind its share, or of one kind: ``g:+4``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.base.arrays import I8
from sim.base.errors import InputError
from sim.base.parameters import check as check_value
from sim.cluster.sizing import unit_cluster
from sweep.grid.changes import Change, Config, with_cluster
from sweep.grid.cluster_size import EXTRA, at_capacity
from sweep.grid.machine_kinds import EXTRA_KIND, find_kind, numbers_after, parse_added

WINDOWS = ("outages", "reservations")
"""Keys of a cluster whose rows name machines by number."""


def check(change: Change) -> None:
    """Refuse what is no number of machines."""
    added = parse_added(str(change.value))
    if added is None:
        check_value(change.full_key, change.value, int)
    elif added[1] == 0:
        raise InputError(
            f"{change.text}: give machines to add, or to remove as -5; of one kind as KIND:+4",
            rule="range",
        )


def apply(parts: Config, change: Change) -> Config:
    """Add machines to the cluster."""
    kind, n = parse_added(str(change.value)) or (None, 0)
    shape = parts["cluster"].get("shape")
    if kind is not None and isinstance(shape, Mapping):
        find_kind(unit_cluster(shape), kind)  # the only one
        kind = None
    changed = parts if kind is None else with_cluster(parts, EXTRA_KIND, kind)
    return _with_windows(parts["cluster"], with_cluster(changed, EXTRA, n))


def _with_windows(before: Config, parts: Config) -> Config:
    """Give outages and reservations of machines by number the numbers that these have now."""
    after = parts["cluster"]
    count = before.get("count")
    rows_by_key = {key: before[key] for key in WINDOWS if isinstance(before.get(key), list)}
    if not any(rows_by_key.values()) or not isinstance(count, int | float):
        return parts
    number = numbers_after(*(at_capacity(config, float(count), 1.0) for config in (before, after)))
    for key, rows in rows_by_key.items():
        parts = with_cluster(parts, key, [new for row in rows if (new := _moved(row, number))])
    return parts


def _moved(row: Mapping[str, Any], number: I8) -> Config | None:
    """Return a row with the new numbers of its machines; None if they are all gone."""
    machines = row["machine"] if isinstance(row["machine"], list) else [row["machine"]]
    left = [int(number[m]) for m in machines if m < len(number) and number[m] >= 0]
    return {**row, "machine": left} if left else None


def word(value: Any) -> str:
    """Write ``g:+4``."""
    kind, n = parse_added(str(value)) or (None, int(float(value)))
    return f"{kind}:{n:+d}" if kind else f"{n:+d}"


def phrase(change: Change) -> str:
    """Write ``4 more machines of g``."""
    kind, n = parse_added(str(change.value)) or (None, int(float(change.value)))
    noun = "machine" if abs(n) == 1 else "machines"
    return f"{abs(n):,} {'more' if n > 0 else 'fewer'} {noun}{f' of {kind}' if kind else ''}"
