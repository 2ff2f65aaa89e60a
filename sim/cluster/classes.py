"""Machine classes and devices: kinds of machines, and resources that come in devices.

A *class* is a name that tasks may ask for (a model of GPU); machines of one class may have several
shapes. A resource comes in *devices* where a machine has several equal pieces of it: a task takes
whole ones, or a part of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.base.errors import InputError
from sim.base.parameters import Count, NotNegative, Positive, check
from sim.workload.columns import capacity_quanta

MAX_CLASSES, MAX_DEVICES = 63, 62
"""Classes, and devices of a machine, are bits of an int64."""

ANY = ""
"""Class of a task that runs on all machines, and of machines without a class name."""

SEPARATOR = "|"
"""Separator of the classes that a task may run on."""


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
        Class of each machine, an index into `classes`.
    classes : tuple of str
        Names of the classes.
    devices : str or None
        The resource that comes in devices of 1 each.
    """

    resources: tuple[str, ...]
    capacity: F8
    machine_class: I4
    classes: tuple[str, ...]
    devices: str | None


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
    class_of_kind: list[str] = []
    in_devices: set[str] = set()
    for i, kind in enumerate(machines):
        where = f"kind {i} of the machines"
        row, devices = _amounts(where, kind)
        rows.append(row | devices)
        counts.append(int(kind.get("count", 1)))
        class_of_kind.append(str(kind.get("class", ANY)))
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
    classes = tuple(dict.fromkeys(class_of_kind))
    if len(classes) > MAX_CLASSES:
        raise InputError(f"{len(classes)} classes of machines are too many; at most {MAX_CLASSES}")
    capacity = np.array([[row.get(name, 0.0) for name in resources] for row in rows])
    code = np.array([classes.index(name) for name in class_of_kind], np.int32)
    return Kinds(
        resources,
        np.repeat(capacity, counts, axis=0),
        np.repeat(code, counts),
        classes,
        next(iter(in_devices), None),
    )


def _amounts(where: str, kind: Any) -> tuple[dict[str, float], dict[str, float]]:
    """Return the resources of a machine of `kind`, and those that come in devices."""
    if not isinstance(kind, Mapping):
        raise InputError(f"{where} must be a mapping, not {kind!r}", rule="wrong type")
    check(f"{where}: count", kind.get("count", 1), Count)
    check(f"{where}: class", kind.get("class", ANY), str)
    if SEPARATOR in kind.get("class", ANY):
        raise InputError(
            f"{where}: the name of a class must not contain {SEPARATOR!r}: {kind['class']!r}"
        )
    devices = kind.get("devices") or {}
    check(f"{where}: devices", devices, Mapping[str, NotNegative])
    row = {str(k): v for k, v in kind.items() if k not in ("count", "class", "devices")}
    for name, amount in row.items():
        check(f"{where}: {name}", amount, Positive)
    if not row:
        raise InputError(f"{where} has no resource, e.g. cpu: 16")
    return {k: float(v) for k, v in row.items()}, {str(k): float(v) for k, v in devices.items()}


def share_of_kinds(capacity: F8, machine_class: I4, fraction: float) -> I8:
    """Return the machines of `fraction` times the cluster, as rows of it.

    Each kind keeps its share, by the largest-remainder method: the largest remainders are rounded
    up, of equal ones the first. There is at least one machine.
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
    return np.repeat(start, count)


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
    """Return the `classes` that each text allows, as bits: ``T4|P100``, or "" for all of them."""
    all_classes = (1 << max(len(classes), 1)) - 1
    bits = [
        sum(1 << classes.index(name) for name in {*text.split(SEPARATOR)} if name in classes)
        for text in runs_on
    ]
    return np.array(
        [all_classes if text == ANY else b for text, b in zip(runs_on, bits, strict=True)], np.int64
    )
