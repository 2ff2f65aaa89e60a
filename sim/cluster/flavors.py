"""Flavors: sets of classes of machines with quotas of their own (`sim.cluster.quotas`).

The term and the rules are Kueue's (*ResourceFlavor*, *Cluster queue*, v0.19). A quota of a resource
may be given by flavor: then what runs on machines of a flavor counts in its quota, and in no other.
Each pair of a resource and a flavor is a *column* of the tree of quotas. Machines whose class no
flavor of a resource names are the rest, a column of its own. All that starts together, a gang or a
task, is of one flavor: a queue tries its flavors in the order in which it names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from sim.base.arrays import I4, I8, Mask
from sim.base.errors import InputError
from sim.base.plugins import check_names
from sim.cluster.classes import SEPARATOR

REST = "*"
"""Name of the column of machines of which no flavor names the class."""
MAX_SETS = 62
"""Sets of machines that differ by flavor: bits of an int64."""


class Amounts(Protocol):
    """Quotas of a node of the tree (`sim.cluster.quotas.Quota`)."""

    @property
    def nominal(self) -> Any:
        """Own quotas."""

    @property
    def borrow(self) -> Any:
        """Borrowing limits."""

    @property
    def lend(self) -> Any:
        """Lending limits."""

    def names(self) -> set[str]:
        """Return the resources that it names."""


class Flavors(NamedTuple):
    """Columns of the quotas: K pairs of a resource and a flavor, of R resources.

    Attributes
    ----------
    class_set : (C,) int32
        Set of each class of machines. Machines of one set are of the same flavors.
    column : (S, R) int64
        Column in which each resource of the machines of a set counts.
    resource : (K,) int64
        Resource of each column.
    resource_name : tuple of str
        Names of these.
    name : tuple of str
        Flavor of each column; `REST` for the rest, "" for a resource without flavors.
    total : (K,) int64
        What the cluster has of each column, quanta.
    """

    class_set: I4
    column: I8
    resource: I8
    resource_name: tuple[str, ...]
    name: tuple[str, ...]
    total: I8

    def sets(self, machine_class: I4, n_machines: int) -> I4:
        """Return the set of each machine, (M,), by the codes of their classes, if they have any."""
        if len(self.class_set) == 1 or not len(machine_class):
            return np.zeros(n_machines, np.int32)
        sets: I4 = self.class_set[machine_class]
        return sets

    @property
    def by_flavor(self) -> Mask:
        """Mask of the resources that have flavors, (R,)."""
        named = [self.resource[k] for k, name in enumerate(self.name) if name]
        return np.isin(np.arange(self.column.shape[1]), named)


def flavor_names(nodes: Mapping[str, Amounts], resource: str) -> list[str]:
    """Return the flavors of a resource that some node names, in the order of the nodes."""
    return list(dict.fromkeys(name for node in nodes.values() for name in own(node, resource)))


def own(node: Amounts, resource: str) -> list[str]:
    """Return the flavors of a resource that a node names, in its order."""
    names: dict[str, None] = {}
    for table in (node.nominal, node.borrow, node.lend):
        amounts = table.get(resource) if isinstance(table, Mapping) else None
        names |= dict.fromkeys(amounts if isinstance(amounts, Mapping) else ())
    return [*names]


def has_flavors(nodes: Mapping[str, Amounts]) -> bool:
    """Tell whether some quota is given by flavor."""
    return any(own(node, name) for node in nodes.values() for name in node.names())


def check_flavors(nodes: Mapping[str, Amounts], classes: Sequence[str] | None, rule: str) -> None:
    """Refuse flavors that share a class or have an unknown one, and amounts of no flavor."""
    names = sorted({name for node in nodes.values() for name in node.names()})
    for resource in names:
        flavors = flavor_names(nodes, resource)
        seen: dict[str, str] = {}
        for flavor in flavors:
            for name in flavor.split(SEPARATOR):
                if name in seen:
                    raise InputError(
                        f"quotas of {resource}: class {name!r} is in the flavors {seen[name]!r} "
                        f"and {flavor!r}; a class is in one flavor: name the same classes in all "
                        "queues",
                        rule=rule,
                    )
                seen[name] = flavor
        if classes is not None:
            check_names(f"class in quotas of {resource}", sorted(seen), classes, rule)
        for node, text in _amounts_of_none(nodes, resource) if flavors else ():
            raise InputError(
                f"quotas.{node}: {text} of {resource} is of no class of machines, and others "
                f"have quotas of {resource} by class; give one for each, such as "
                f"{{{flavors[0]}: {text}}}, or a share such as 25%, which is of each",
                rule=rule,
            )


def _amounts_of_none(nodes: Mapping[str, Amounts], resource: str) -> Iterator[tuple[str, str]]:
    """Yield the amounts of a resource that are numbers beyond 0, by name of the node."""
    for node_name, node in nodes.items():
        for key in ("nominal", "borrow", "lend"):
            table = getattr(node, key)
            amount = table.get(resource) if isinstance(table, Mapping) else table
            if isinstance(amount, float) and amount > 0:
                yield f"{node_name}.{key}", f"{amount:g}"


def no_flavors(total: I8) -> Flavors:
    """Return the columns of quotas that are of all machines: one for each resource."""
    resource = np.arange(len(total))
    no_names = ("",) * len(total)
    return Flavors(np.zeros(1, np.int32), resource[None], resource, no_names, no_names, total)


def flavors_of(
    nodes: Mapping[str, Amounts],
    resources: Sequence[str],
    classes: Sequence[str],
    machine_class: I4,
    capacity: I8,
) -> Flavors:
    """Return the columns of quotas.

    Parameters
    ----------
    nodes : mapping of str to Amounts
        The tree.
    resources : sequence of str
        R names.
    classes : sequence of str
        C names of classes; empty for machines without any.
    machine_class : (M,) int32
        Codes of classes; empty likewise.
    capacity : (M, R) int64
        Of each machine, quanta.
    """
    if not has_flavors(nodes):
        return no_flavors(capacity.sum(axis=0))
    code = machine_class if len(machine_class) else np.zeros(len(capacity), np.int32)
    column = np.zeros((max(len(classes), 1), len(resources)), np.int64)
    pairs: list[tuple[int, str]] = []
    for r, resource in enumerate(resources):
        known = flavor_names(nodes, resource)
        flavor_of = [_flavor_in(known, name) if known else "" for name in [*classes] or [""]]
        for name in [*known, *sorted({*flavor_of} - {*known})]:
            column[[c for c, flavor in enumerate(flavor_of) if flavor == name], r] = len(pairs)
            pairs.append((r, name))
    sets, class_set = np.unique(column, axis=0, return_inverse=True)
    if len(sets) > MAX_SETS:
        raise InputError(
            f"quotas divide the classes of machines into {len(sets)} sets; at most {MAX_SETS}: "
            "put classes together, as in {a|b: 8}",
            rule="too many sets of machines",
        )
    total = [int(capacity[column[code, r] == k, r].sum()) for k, (r, _) in enumerate(pairs)]
    return Flavors(
        class_set.ravel().astype(np.int32),
        sets,
        np.array([r for r, _ in pairs]),
        tuple(resources[r] for r, _ in pairs),
        tuple(name for _, name in pairs),
        np.array(total, np.int64),
    )


def _flavor_in(flavors: Sequence[str], class_name: str) -> str:
    """Return the flavor of a class of machines; `REST` if none names it."""
    return next((name for name in flavors if class_name in name.split(SEPARATOR)), REST)


def ranks(nodes: Mapping[str, Amounts], queues: Sequence[str], flavors: Flavors) -> I8:
    """Return in which order each queue tries the flavors of a resource, (O, K); -1: it may not.

    Flavors that it names in its order, and no others; if it names none all, as the columns are.
    """
    rank = np.zeros((len(queues), len(flavors.name)), np.int64)
    for q, queue in enumerate(queues):
        for k, name in enumerate(flavors.name):
            named = own(nodes[queue], flavors.resource_name[k])
            rank[q, k] = named.index(name) if name in named else -1 if named else k
    return rank


def usable_sets(rank: I8, flavors: Flavors, demanded: Mask) -> I8:
    """Return the sets of machines on which each demand is in a flavor of its queue, as bits.

    Parameters
    ----------
    rank : (N, K) int64
        Of `ranks`, of the queue of each demand.
    demanded : (N, R) bool
        What each takes.
    """
    bits = np.zeros(len(rank), np.int64)
    for s, column in enumerate(flavors.column):
        may_use = (rank[:, column] >= 0) | ~demanded
        bits |= np.where(may_use.all(axis=1), np.int64(1) << s, 0)
    return bits


def tries(
    rank: I8, flavors: Flavors, demanded: Mask, resources: Sequence[str]
) -> list[tuple[int, int]]:
    """Return what a demand of a queue tries in turn: sets of machines, as bits, and one of them.

    The sets of a try have the same columns of what is demanded. `rank` (K,) is that of the queue,
    `demanded` (R,) what is taken of resources with flavors. The first of `resources` decides first.
    """
    named = [flavors.resource_name[k] for k in flavors.column[0].tolist()]
    taken = [named.index(name) for name in resources if name in named]
    taken = [r for r in taken if demanded[r]]
    by_columns: dict[tuple[int, ...], int] = {}
    for s, column in enumerate(flavors.column):
        own_columns = tuple(column[taken].tolist())
        if all(rank[k] >= 0 for k in own_columns):
            by_columns[own_columns] = by_columns.get(own_columns, 0) | 1 << s
    order = sorted(by_columns, key=lambda columns: [int(rank[k]) for k in columns])
    return [
        (by_columns[key], (by_columns[key] & -by_columns[key]).bit_length() - 1) for key in order
    ]
