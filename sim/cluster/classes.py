"""Machine classes, partitions and devices: kinds of machines, and resources that come in devices.

A *class* is a name that tasks may ask for (a model of GPU); machines of one class may have several
shapes. A *partition* is a named set of machines in which a job may run; sets may overlap. Machines
of one class, weight and set of partitions have one *code*. A resource comes in *devices* where a
machine has several equal pieces of it: a task takes whole ones, or a part of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.base.errors import InputError
from sim.base.parameters import Between, Count, NotNegative, Positive, check
from sim.workload.columns import capacity_quanta
from sim.workload.node_names import expand

MAX_CLASSES, MAX_DEVICES = 63, 62
"""Classes, and devices of a machine, are bits of an int64."""

ANY = ""
"""Class of a task that runs on all machines, and of machines without a class name."""

PARTS = "parts of a machine"
"""Name of the resource of whole machines (`sim.cluster.exclusive`), which no user's has."""

SEPARATOR = "|"
"""Separator of the classes that a task may run on, and of the partitions of a job."""

DEFAULT = "*"
"""Mark behind the name of the partition of jobs that name none, as in Slurm's ``sinfo``."""


@dataclass(frozen=True)
class Kinds:
    """Machines of several kinds, one kind after the other.

    Attributes
    ----------
    resources : tuple of str
        Names of the R resources, in order of first mention.
    capacity : (M, R) float64
        Capacity of each machine.
    machine_class : (M,) int32
        Code of each machine, an index into `classes` and `partitions`.
    classes : tuple of str
        Name of the class of each code.
    partitions : tuple of tuple of str
        Names of the partitions of each code; empty if no machine is in any.
    weights : tuple of int
        Weight of each code.
    default_partition : str
        The partition of jobs that name none; "" if they may run anywhere.
    devices : str or None
        The resource that comes in devices of 1 each.
    names : tuple of str
        Name of each machine; empty if no kind has names.
    """

    resources: tuple[str, ...]
    capacity: F8
    machine_class: I4
    classes: tuple[str, ...]
    partitions: tuple[tuple[str, ...], ...]
    weights: tuple[int, ...]
    default_partition: str
    devices: str | None
    names: tuple[str, ...]


def parse_kinds(machines: object) -> Kinds:
    """Parse the kinds of machines that `sim.Cluster.mixed` takes."""
    if not isinstance(machines, Sequence) or isinstance(machines, str) or not machines:
        raise InputError(
            "machines of several kinds are a list such as [{count: 10, class: T4, cpu: 96, "
            f"mem: 384, devices: {{gpu: 2}}}}], not {machines!r}",
            rule="wrong type",
        )
    rows: list[dict[str, float]] = []
    counts: list[int] = []
    code_of_kind: list[tuple[str, tuple[str, ...], int]] = []
    in_devices: set[str] = set()
    for i, kind in enumerate(machines):
        where = f"kind {i} of the machines"
        row, devices = _amounts(where, kind)
        rows.append(row | devices)
        counts.append(int(kind.get("count", 1)))
        weight = int(kind.get("weight", 1))
        code_of_kind.append((str(kind.get("class", ANY)), _partitions(where, kind), weight))
        in_devices |= devices.keys()
    resources = tuple(dict.fromkeys(name for row in rows for name in row))
    if len(in_devices) > 1:
        raise InputError(
            f"only one resource may come in devices, not {', '.join(sorted(in_devices))}"
        )
    for row in rows:
        for name in in_devices & row.keys():
            if row[name] != int(row[name]) or row[name] > MAX_DEVICES:
                raise InputError(
                    f"a machine has 0 to {MAX_DEVICES} whole {name}, not {row[name]!r}"
                )
    names = {name for _, names, _ in code_of_kind for name in names}
    defaults = sorted(name.removesuffix(DEFAULT) for name in names if name.endswith(DEFAULT))
    if len(defaults) > 1:
        raise InputError(f"only one partition may be the default, not {', '.join(defaults)}")
    plain = [
        (name, tuple(p.removesuffix(DEFAULT) for p in set_), weight)
        for name, set_, weight in code_of_kind
    ]
    codes = tuple(dict.fromkeys(plain))
    if len(codes) > MAX_CLASSES:
        raise InputError(
            f"{len(codes)} classes of machines are too many; at most {MAX_CLASSES}, and one for "
            "each set of partitions and each weight"
        )
    capacity = np.array([[row.get(name, 0.0) for name in resources] for row in rows])
    code = np.array([codes.index(kind) for kind in plain], np.int32)
    return Kinds(
        resources,
        np.repeat(capacity, counts, axis=0),
        np.repeat(code, counts),
        tuple(name for name, _, _ in codes),
        tuple(set_ for _, set_, _ in codes) if names else (),
        tuple(weight for _, _, weight in codes),
        next(iter(defaults), ""),
        next(iter(in_devices), None),
        _names(machines, counts),
    )


NO_RESOURCES = ("count", "class", "devices", "nodes", "partitions", "weight")
"""Keys of a kind of machines that name no resource."""


def _names(machines: Sequence[Mapping[str, Any]], counts: Sequence[int]) -> tuple[str, ...]:
    """Return the names of all machines; "" for those of kinds without."""
    names: list[str] = []
    for i, (kind, count) in enumerate(zip(machines, counts, strict=True)):
        text = kind.get("nodes", "")
        check(f"kind {i} of the machines: nodes", text, str)
        own = expand(text)
        if text and len(own) != count:
            raise InputError(
                f"kind {i} of the machines: nodes {text!r} are {len(own)} names, and its count is "
                f"{count}"
            )
        names += own or [""] * count
    named = [name for name in names if name]
    if len({*named}) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise InputError(f"two machines have the name {twice!r}")
    return tuple(names) if named else ()


def _partitions(where: str, kind: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the partitions of a kind of machines, in their order."""
    partitions = kind.get("partitions") or ()
    if isinstance(partitions, str):
        partitions = (partitions,)
    check(f"{where}: partitions", partitions, Sequence[str])
    for name in partitions:
        if SEPARATOR in name or not name.removesuffix(DEFAULT):
            raise InputError(f"{where}: {name!r} is no name of a partition")
    return tuple(dict.fromkeys(partitions))


def _amounts(where: str, kind: Any) -> tuple[dict[str, float], dict[str, float]]:
    """Return the resources of a machine of `kind`, and those that come in devices."""
    if not isinstance(kind, Mapping):
        raise InputError(f"{where} must be a mapping, not {kind!r}", rule="wrong type")
    check(f"{where}: count", kind.get("count", 1), Count)
    check(f"{where}: class", kind.get("class", ANY), str)
    check(f"{where}: weight", kind.get("weight", 1), Annotated[int, Between(0)])
    if SEPARATOR in kind.get("class", ANY):
        raise InputError(
            f"{where}: the name of a class must not contain {SEPARATOR!r}: {kind['class']!r}"
        )
    devices = kind.get("devices") or {}
    check(f"{where}: devices", devices, Mapping[str, NotNegative])
    row = {str(k): v for k, v in kind.items() if k not in NO_RESOURCES}
    for name, amount in row.items():
        check(f"{where}: {name}", amount, Positive)
    if not row and not any(devices.values()):
        raise InputError(f"{where} has no resource, e.g. cpu: 16 or devices: {{gpu: 8}}")
    return {k: float(v) for k, v in row.items()}, {str(k): float(v) for k, v in devices.items()}


def share_of_kinds(capacity: F8, machine_class: I4, fraction: float) -> I8:
    """Return the machines of `fraction` times the cluster, as rows of it.

    Each kind keeps its share, by the largest-remainder method: the largest remainders are rounded
    up, of equal ones the first. There is at least one machine. A kind's own rows come first, then
    its first row again.
    """
    keys = np.column_stack([machine_class, capacity])
    first = np.ones(len(keys), dtype=bool)
    first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    start = np.flatnonzero(first)
    target = np.diff(np.append(start, len(keys))) * fraction
    count = np.floor(target * (1 + 1e-12)).astype(np.int64)
    n_missing = max(int(np.floor(target.sum() + 0.5)), 1) - int(count.sum())
    rounded_up = np.argsort(count - target, kind="stable")[: max(n_missing, 0)]
    count[rounded_up] += 1
    nth = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    size = np.repeat(np.diff(np.append(start, len(keys))), count)
    rows: I8 = np.repeat(start, count) + np.where(nth < size, nth, 0)
    return rows


def capacity_in_quanta(amount: F8, quantum: F8, device: int | None) -> I8:
    """Return the capacity of machines in whole quanta, (M, R); of resource `device`, whole devices.

    Raises
    ------
    InputError
        If a device is less than a quantum.
    """
    capacity = capacity_quanta(amount, quantum)
    if device is not None:
        quanta = quanta_per_device(quantum[device])
        capacity[:, device] = np.rint(amount[:, device]).astype(np.int64) * quanta
    return capacity


def quanta_per_device(quantum: float) -> int:
    """Return the number of quanta of a device."""
    quanta = int(capacity_quanta(np.ones(1), float(quantum))[0])
    if quanta < 1:
        raise InputError(f"a quantum of {quantum:g} is larger than a device, which is 1")
    return quanta


def class_bits(runs_on: Sequence[str], classes: Sequence[str]) -> I8:
    """Return the codes of machines that each text allows, as bits: ``T4|P100``, or "" for all.

    `classes` has the class of each code.
    """
    return name_bits([(name,) for name in classes] or [(ANY,)], runs_on)


def name_bits(names_of: Sequence[Sequence[str]], texts: Sequence[str]) -> I8:
    """Return the codes with a name that each text asks for, as bits; all of them for ""."""
    return np.array(
        [
            sum(
                1 << code
                for code, names in enumerate(names_of)
                if text == ANY or {*text.split(SEPARATOR)} & {*names}
            )
            for text in texts
        ],
        np.int64,
    )
