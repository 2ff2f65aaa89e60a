"""Quotas: queues as a tree, with nominal, borrowing and lending limits, and weights.

The terms, and what a queue may use, are Kueue's (ClusterQueues in nested cohorts, v0.19,
``pkg/cache/scheduler/resource_node.go``); the capacities of YARN's capacity scheduler are nominal
quotas, and its maximum capacities nominal plus borrowing limit.

The *quota* of a node is its nominal one and what its children lend it: theirs, up to their lending
limits. What a node does not lend it keeps for the queues below it: use beyond that counts against
the quota of its parent. A job may start if at each node on the way up the use, with the job, is at
most quota plus borrowing limit; at the root at most the quota. Quotas may be by class of machine
(`sim.cluster.flavors`): each pair of a resource and a flavor has its own, a *column*.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from sim.base.arrays import F8, I4, I8, Mask
from sim.base.errors import InputError, did_you_mean
from sim.base.parameters import NotNegative, Positive, check, check_keys
from sim.base.plugins import check_names
from sim.cluster.classes import PARTS
from sim.cluster.flavors import Flavors, check_flavors, no_flavors, own
from sim.workload.columns import capacity_quanta

_KEYS = ("parent", "nominal", "borrow", "lend", "weight", "strategy", "flavor_choice")
_RULE = "quotas"
NO_LIMIT = np.iinfo(np.int64).max // 4
"""Quanta of what is not limited."""

Amount = float | str
Amounts = Amount | Mapping[str, Amount | Mapping[str, Amount]]
Strategy = Literal["", "strict", "skip"]
FlavorChoice = Literal["first", "least_borrowing"]


@dataclass(frozen=True)
class Quota:
    """A node of the tree: a queue of jobs, or a *cohort* of the nodes below it; use `Quota.parse`.

    Amounts are numbers in the resource's unit, or texts such as ``"25%"``, of the whole cluster; a
    mapping has one for each resource, a single amount is of every resource. That of a resource may
    be a mapping of classes of machines, such as ``a100`` or ``a100|h100``, to amounts.

    Attributes
    ----------
    parent : str
        The node above; "" for a root, which borrows nothing. One that the table does not name is a
        cohort without a quota of its own.
    nominal : amounts
        Quota of its own; 0 of a resource that is not named.
    borrow : amounts
        Most that it may use beyond its quota; no limit for a resource that is not named.
    lend : amounts
        Most of its quota that its parent's other nodes may use; all of a resource not named.
    weight : float
        Of nodes of one parent the next to be served has the least use over weight.
    strategy : {"", "strict", "skip"}
        Of a queue: a job that can't start blocks those behind it in the queue, or lets them pass;
        "" as the policy says (`sim.engine.plan.Fit`).
    flavor_choice : {"first", "least_borrowing"}
        Of a queue: of the flavors in which a job fits it takes the first, or that for which it
        borrows the least far up the tree.
    """

    parent: str = ""
    nominal: Amounts = field(default_factory=dict)
    borrow: Amounts = field(default_factory=dict)
    lend: Amounts = field(default_factory=dict)
    weight: float = 1.0
    strategy: Strategy = ""
    flavor_choice: FlavorChoice = "first"

    @classmethod
    def parse(cls, row: Any, name: str = "quotas.queue") -> Quota:
        """Build a node from a mapping of its attributes, all optional.

        Raises
        ------
        InputError
            If a key is unknown, a value is out of its range, or a root borrows or lends.
        """
        row = {} if row is None else row
        check_keys(name, row, _KEYS, _RULE)
        parent = row.get("parent") or ""
        check(f"{name}.parent", parent, str)
        check(f"{name}.weight", row.get("weight", 1.0), Positive)
        amounts = {key: _amounts(f"{name}.{key}", row.get(key)) for key in _KEYS[1:4]}
        for key in ("borrow", "lend"):
            if amounts[key] != {} and not parent:
                raise InputError(
                    f"{name}.{key}: {row[key]!r}, and it has no parent to {key} "
                    f"{'from' if key == 'borrow' else 'to'}; name a parent, or leave {key} out",
                    rule=_RULE,
                )
        strategy: Strategy = row.get("strategy") or ""
        choice: FlavorChoice = row.get("flavor_choice") or "first"
        check(f"{name}.strategy", strategy, Strategy)
        check(f"{name}.flavor_choice", choice, FlavorChoice)
        weight = float(row.get("weight", 1.0))
        return cls(parent, **amounts, weight=weight, strategy=strategy, flavor_choice=choice)

    def names(self) -> set[str]:
        """Return the resources that it names."""
        tables = (self.nominal, self.borrow, self.lend)
        return {name for table in tables if isinstance(table, Mapping) for name in table}


class QuotaTree(NamedTuple):
    """The tree in quanta: O queues of the workload in their order, then the other nodes, N in all.

    Each node comes before its parent. Columns are K pairs of a resource and a flavor: the R
    resources, where no quota is by class of machine.

    Attributes
    ----------
    parent : (N,) int32
        Node above; -1 for a root.
    limit : (N, K) int64
        Quota plus borrowing limit; `NO_LIMIT` for none.
    local : (N, K) int64
        What it does not lend.
    nominal : (N, K) int64
        Quota, where it may borrow; `NO_LIMIT` where it may not.
    weight : (N,) float64
        Weights.
    path : (O, D) int32
        Nodes from the root to each queue; -1 behind it.
    is_limited : (R,) bool
        Mask of the resources that some node names; the others have no limits.
    is_isolated : bool
        True if queues have quotas, and none may borrow.
    flavors : Flavors
        The columns.
    """

    parent: I4
    limit: I8
    local: I8
    nominal: I8
    weight: F8
    path: I4
    is_limited: Mask
    is_isolated: bool
    flavors: Flavors

    def potential(self, queue: int) -> I8:
        """Return what a queue may use while nobody else uses anything, (K,) quanta."""
        path = [int(node) for node in self.path[queue] if node >= 0]
        potential: I8 = self.limit[path[0]]
        for node in path[1:]:
            potential = np.minimum(self.local[node] + potential, self.limit[node])
        return potential


def parse_quotas(
    quotas: Any, resources: Sequence[str] | None = None, classes: Sequence[str] | None = None
) -> dict[str, Quota]:
    """Return the nodes of ``cluster.quotas`` by name, with the cohorts that are named as parents.

    Raises
    ------
    InputError
        If a node is invalid, below itself, or names a resource that is not in `resources`, or a
        class of machines that is not in `classes`.
    """
    check("quotas", quotas, Mapping[str, Any])
    if not quotas:
        raise InputError(
            "quotas names no queue; for example {a: {parent: all, nominal: 50%}}", rule=_RULE
        )
    nodes = {str(name): Quota.parse(row, f"quotas.{name}") for name, row in quotas.items()}
    for node in [*nodes.values()]:
        if node.parent:
            nodes.setdefault(node.parent, Quota())
    for name, node in nodes.items():
        path = path_of(name, nodes)
        if path[-1] in path[:-1]:
            raise InputError(
                f"quotas: {' is below '.join(path)}, in a circle; leave out the parent of one",
                rule=_RULE,
            )
        if resources is not None:
            check_names(f"resource in quotas.{name}", sorted(node.names()), resources, _RULE)
    check_flavors(nodes, classes, _RULE)
    return nodes


def path_of(name: str, nodes: Mapping[str, Quota]) -> list[str]:
    """Return a node and those above it, up to its root, or to the first that it meets twice."""
    path = [name]
    while nodes[path[-1]].parent and path[-1] not in path[:-1]:
        path.append(nodes[path[-1]].parent)
    return path


def leaf_weights(nodes: Mapping[str, Quota]) -> dict[str, float]:
    """Return the weight of each node that may have jobs: one that is no parent."""
    parents = {node.parent for node in nodes.values()}
    return {name: node.weight for name, node in nodes.items() if name not in parents}


def quota_tree(
    nodes: Mapping[str, Quota],
    queue_names: Sequence[str],
    resources: Sequence[str],
    total: I8,
    quantum: F8,
    flavors: Flavors | None = None,
) -> QuotaTree:
    """Build the tree for a workload's queues.

    Parameters
    ----------
    nodes : mapping of str to Quota
        From `parse_quotas`.
    queue_names : sequence of str
        The workload's queues.
    resources : sequence of str
        R names.
    total : (R,) int64
        The cluster's, in quanta.
    quantum : (R,) float64
        Size of a quantum, in the resource's unit.
    flavors : Flavors, optional
        Columns of the quotas; left out: one for each resource.

    Raises
    ------
    InputError
        If a queue is no node, or the parent of others.
    """
    flavors = flavors or no_flavors(total)
    leaves = leaf_weights(nodes)
    for name in queue_names:
        _check_queue(name, nodes, leaves)
    cohorts = [name for name in nodes if name not in queue_names]
    cohorts.sort(key=lambda name: -len(path_of(name, nodes)))
    names = [*queue_names, *cohorts]
    row = {name: i for i, name in enumerate(names)}
    parent = np.array([row.get(nodes[name].parent, -1) for name in names], np.int32)

    def amounts(key: str, default: int) -> I8:
        tables = [getattr(nodes[name], key) for name in names]
        return np.array([_quanta(table, resources, flavors, quantum, default) for table in tables])

    quota, lend, borrow = amounts("nominal", 0), amounts("lend", NO_LIMIT), amounts("borrow", -1)
    for node, name in enumerate(names):
        if name in leaves:
            unused = _unused(nodes[name], resources, flavors)
            quota[node, unused] = borrow[node, unused] = 0
    named = {name for node in nodes.values() for name in node.names()}
    tables = [table for n in nodes.values() for table in (n.nominal, n.borrow, n.lend)]
    is_every = any(not isinstance(table, Mapping) for table in tables)
    is_limited = np.array([name != PARTS and (is_every or name in named) for name in resources])
    local = np.zeros_like(quota)
    for node, above in enumerate(parent):
        local[node] = np.maximum(quota[node] - lend[node], 0)
        if above >= 0:
            quota[above] += quota[node] - local[node]
    is_child = (parent >= 0)[:, None]
    counts = is_limited[flavors.resource]
    may_borrow = is_child & (borrow != 0) & counts
    limit = np.where(is_child & (borrow < 0), NO_LIMIT, quota + np.maximum(borrow, 0))
    limit[:, ~counts], local[:, ~counts] = NO_LIMIT, 0
    paths = [[row[n] for n in path_of(name, nodes)][::-1] for name in queue_names]
    depth = max((len(path) for path in paths), default=1)
    return QuotaTree(
        parent,
        limit,
        local,
        np.where(may_borrow, quota, NO_LIMIT),
        np.array([nodes[name].weight for name in names]),
        np.array([path + [-1] * (depth - len(path)) for path in paths], np.int32),
        is_limited,
        bool(is_limited.any() and not may_borrow.any()),
        flavors,
    )


def _unused(node: Quota, resources: Sequence[str], flavors: Flavors) -> Mask:
    """Return the mask of the columns that a queue does not name, where it names others, (K,)."""
    named = [own(node, name) for name in resources]
    pairs = zip(flavors.resource.tolist(), flavors.name, strict=True)
    return np.array([len(named[r]) > 0 and flavor not in named[r] for r, flavor in pairs])


def _check_queue(name: str, nodes: Mapping[str, Quota], leaves: Mapping[str, float]) -> None:
    if name in leaves:
        return
    if name in nodes:
        raise InputError(
            f"jobs wait in queue {name!r}, which is the parent of others in quotas; give them a "
            f"queue below it: {', '.join(leaves)}",
            rule=_RULE,
        )
    raise InputError(
        f"jobs wait in queue {name!r}, which quotas does not name; {did_you_mean(name, leaves)}it "
        f"has {', '.join(leaves)}: add {name!r}",
        rule=_RULE,
    )


def _amounts(name: str, value: Any) -> Amounts:
    """Return checked amounts; an empty mapping for None."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        return _amount(name, value)
    amounts: dict[str, Amount | dict[str, Amount]] = {}
    for key, amount in value.items():
        if not isinstance(amount, Mapping):
            amounts[str(key)] = _amount(f"{name}.{key}", amount)
            continue
        amounts[str(key)] = {
            str(flavor): _amount(f"{name}.{key}.{flavor}", own_amount)
            for flavor, own_amount in amount.items()
        }
    return amounts


def _amount(name: str, value: Any) -> Amount:
    if not isinstance(value, str):
        check(name, value, NotNegative)
        return float(value)
    text, percent, rest = value.partition("%")
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not percent or rest or not 0 <= share <= 100:
        raise InputError(
            f"{name} must be an amount of at least 0, or a share of the cluster from 0% to 100%, "
            f"such as 25%, not {value!r}",
            rule=_RULE,
        )
    return value


def _quanta(
    table: Amounts, resources: Sequence[str], flavors: Flavors, quantum: F8, default: int
) -> list[int]:
    """Return the amount of each column in quanta; `default` where the table names none."""
    quanta = []
    for k, (r, flavor) in enumerate(zip(flavors.resource.tolist(), flavors.name, strict=True)):
        value = table.get(resources[r]) if isinstance(table, Mapping) else table
        if isinstance(value, Mapping):
            value = value.get(flavor)
        if value is None:
            quanta.append(default)
        elif isinstance(value, str):
            share = np.array(float(value.removesuffix("%")) / 100 * float(flavors.total[k]))
            quanta.append(int(capacity_quanta(share, 1.0)))
        else:
            quanta.append(int(capacity_quanta(np.array(value), float(quantum[r]))))
    return quanta
