"""Kinds of machines by name: of a cluster of several kinds, and of the machines that are added.

A kind is named by its class (``T4``) or the part of that before a dash (``c`` of ``c-avx2``), by a
partition that only machines of this kind are in, or by its shape: resources with their amounts, as
many as tell it from the others (``cpu32`` or ``cpu32-gpu4``). Of kinds of one shape that a name
fits, those in other partitions say, it means the one with the most machines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from sim.base.arrays import I8
from sim.base.errors import InputError
from sim.cluster.cluster import Cluster

EXTRA_KIND: Final = "extra_kind"
"""Key of a cluster: the kind of the machines that are added or removed; without it each kind keeps
its share."""
_FIRST: Final = re.compile(r"[-#]")
_ADDED: Final = re.compile(r"(?:(?P<kind>.+):)?(?P<n>[+-]?\d{1,9})")


@dataclass(frozen=True)
class Kind:
    """Like machines of a cluster of several kinds."""

    row: int  # of the first machine
    count: int
    name: str  # class, or shape
    shape: str  # such as ``cpu 16, mem 62.5``
    partitions: tuple[str, ...]
    words: tuple[str, ...]  # class, partitions, and resources such as ``cpu16``


def parse_added(text: str) -> tuple[str | None, int] | None:
    """Return kind and number of ``KIND:+4`` or ``+4``; None for a text of another form.

    >>> parse_added("T4:+4"), parse_added("-2"), parse_added("four")
    (('T4', 4), (None, -2), None)
    """
    match = _ADDED.fullmatch(text)
    return None if match is None else (match["kind"], int(match["n"]))


def kinds_of(cluster: Cluster) -> list[Kind]:
    """Return the kinds of machines of a cluster, in its order; none of a pool of slots."""
    if cluster.unit:
        return []
    codes = cluster.machine_class if len(cluster.machine_class) else np.zeros(cluster.n_machines)
    keys = np.column_stack([codes, cluster.capacity])
    rows = np.unique(keys, axis=0, return_index=True, return_inverse=True, return_counts=True)
    first, count = rows[1], rows[3]
    return [_kind(cluster, int(first[k]), int(count[k])) for k in np.argsort(first).tolist()]


def _kind(cluster: Cluster, row: int, count: int) -> Kind:
    amounts = [
        (name, f"{amount:.10g}")
        for name, amount in zip(cluster.resources, cluster.capacity[row].tolist(), strict=True)
        if amount
    ]
    sizes = [f"{name}{amount}" for name, amount in amounts]
    code = int(cluster.machine_class[row]) if len(cluster.machine_class) else -1
    label = cluster.classes[code] if 0 <= code < len(cluster.classes) else ""
    partitions = cluster.partitions[code] if 0 <= code < len(cluster.partitions) else ()
    shape = ", ".join(f"{name} {amount}" for name, amount in amounts)
    first = _FIRST.split(label)[0]
    words = (*dict.fromkeys(filter(None, [label, first])), *partitions, *sizes)
    return Kind(row, count, label or "-".join(sizes), shape, partitions, words)


def find_kind(cluster: Cluster, text: str) -> Kind:
    """Return the kind that a text names.

    Raises
    ------
    InputError
        If none or several have this name.
    """
    kinds, option = kinds_of(cluster), f"nodes={text} (of what_if or target)"
    if not kinds:
        raise InputError(
            f"{option}: the cluster is a pool of slots, which has no kinds of "
            "machines: leave the kind out, or list machines (cluster.shape)",
            rule="unknown kind",
        )
    choices = {text}, {*text.split("-")}
    named = [kind for kind in kinds if any(words <= {*kind.words, kind.name} for words in choices)]
    exact = [kind for kind in named if kind.name == text]
    named = exact or named
    if not named or len({kind.shape for kind in named}) > 1:
        several = f"names {len(named)} kinds" if named else "names no kind"
        listed = "; ".join(f"{kind.name} ({kind.count:,} of {kind.shape})" for kind in kinds)
        raise InputError(
            f"{option} {several} of machines; the cluster has {listed}: give a "
            "class, a partition or a shape such as cpu32-gpu4",
            rule="unknown kind",
        )
    return max(named, key=lambda kind: kind.count)  # the first of several


def described_change(before: Cluster, after: Cluster) -> str:
    """Name the machines that one cluster has more than another, or fewer, by kind.

    A text such as ``2 of (cpu 16, mem 62.5) and 1 of (cpu 64) more``.
    """
    if after.unit:
        change = float(after.total[0] - before.total[0])
        noun = "slot" if abs(change) == 1 else "slots"
        return f"{abs(change):g} {noun} {_more(change)} (a pool has no nodes)"
    if not len(after.machine_class):
        per_machine = float(after.capacity[0, 0])
        change = round(float(after.total[0] - before.total[0]) / per_machine, 4)
        return f"{abs(change):g} of ({kinds_of(after)[0].shape}) {_more(change)}"
    counts = {_key(kind): kind.count for kind in kinds_of(before)}
    shapes = {_key(kind): kind for kind in (*kinds_of(before), *kinds_of(after))}
    now: Mapping[Any, int] = {_key(kind): kind.count for kind in kinds_of(after)}
    changes = {key: now.get(key, 0) - counts.get(key, 0) for key in shapes}
    names = Counter((kind.name, kind.shape) for kind in shapes.values())
    parts = [
        f"{abs(n):,} of {_named(kind, with_partitions=names[kind.name, kind.shape] > 1)} {_more(n)}"
        for key, kind in shapes.items()
        if (n := changes[key])
    ]
    return " and ".join(parts)


def numbers_after(before: Cluster, after: Cluster) -> I8:
    """Return the number of each machine in a cluster with more of some kinds, or fewer; -1: gone.

    The machines of a kind keep their order. Both are mixed, or both of one kind.
    """
    if not len(before.machine_class) or not len(after.machine_class):
        number = np.arange(before.n_machines)
        return np.where(number < after.n_machines, number, -1)
    keys = [np.column_stack([c.machine_class, c.capacity]) for c in (before, after)]
    number = np.full(before.n_machines, -1)
    for key in np.unique(keys[0], axis=0):
        old, new = (np.flatnonzero((rows == key).all(axis=1)) for rows in keys)
        n = min(len(old), len(new))
        number[old[:n]] = new[:n]
    return number


def _key(kind: Kind) -> tuple[Any, ...]:
    return (kind.name, kind.shape, kind.partitions)


def _named(kind: Kind, *, with_partitions: bool) -> str:
    is_class = kind.name in kind.words
    text = f"{kind.name} ({kind.shape})" if is_class and "," in kind.shape else f"({kind.shape})"
    return f"{text} in {', '.join(kind.partitions) or 'no partition'}" if with_partitions else text


def _more(change: float) -> str:
    return "more" if change > 0 else "fewer"
