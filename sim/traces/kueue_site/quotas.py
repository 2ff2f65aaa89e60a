"""Quotas of ClusterQueues and Cohorts as rows of ``cluster.quotas``.

Quotas of several flavors of a resource are by the classes of their nodes. Where nodes are unknown
they are added up, and a limit holds only where each flavor has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim.base.reading.pod_requests import quantity
from sim.traces.kueue_site.nodes import Node
from sim.traces.kueue_site.objects import Amounts, Raw
from sim.traces.kueue_site.policy import STRICT
from sim.traces.sites.notes import Notes

Flavors = dict[str, dict[str, str]]
"""Classes of the nodes of each flavor, separated by ``|``, for resources that have several."""
LEAST_WEIGHT = 1e-9
"""Weight of a queue whose weight is 0: it comes after all others."""


def quotas_of(
    queues: Sequence[Raw],
    cohorts: Sequence[Raw],
    nodes: Sequence[Node],
    notes: Notes,
) -> dict[str, dict[str, Any]]:
    """Return the rows: ClusterQueues by name, then Cohorts; one of a queue's name gets another.

    `nodes`: those of flavors; none, to add up the quotas of all flavors.
    """
    flavors = _flavors(queues, cohorts, nodes, notes)
    is_strict = {queue.name: queue.text("spec.queueingStrategy") == STRICT for queue in queues}
    names = {queue.name for queue in queues}

    def cohort_name(name: str) -> str:
        return f"cohort/{name}" if name in names else name

    rows: dict[str, dict[str, Any]] = {}
    known = {cohort.name: cohort.text("spec.parentName", "spec.parent") for cohort in cohorts}
    for queue in queues:
        cohort = queue.text("spec.cohortName", "spec.cohort")
        row = _row(queue, cohort_name(cohort) if cohort else "", flavors, notes)
        if is_strict[queue.name] and not all(is_strict.values()):
            row["strategy"] = "strict"
        rows[queue.name] = row
    for item in cohorts:
        if _is_in_circle(item.name, known):
            notes.add(
                "Cohort", f"{item.name} is in a circle of parents",
                "simulated without a parent; Kueue admits nothing of it",
            )  # fmt: skip
            parent = ""
        else:
            parent = known[item.name]
        above = cohort_name(parent) if parent else ""
        rows[cohort_name(item.name)] = _row(item, above, flavors, notes)
    return rows


def _flavors(
    queues: Sequence[Raw], cohorts: Sequence[Raw], nodes: Sequence[Node], notes: Notes
) -> Flavors:
    """Return the classes of the nodes of each flavor, for each resource that has several.

    A class of nodes of several flavors of a resource counts in the first of them.
    """
    named: dict[str, dict[str, None]] = {}
    for item in (*queues, *cohorts):
        for flavor, part in item.quotas.items():
            for resource in part["nominal"]:
                named.setdefault(resource, {})[flavor] = None
    flavors: Flavors = {}
    for resource, own in named.items():
        if len(own) == 1 or not nodes:
            continue
        classes: dict[str, list[str]] = {flavor: [] for flavor in own}
        for name, node in {node.machine_class: node for node in nodes}.items():
            own_flavors = [flavor for flavor in own if flavor in node.flavors]
            if own_flavors:
                classes[own_flavors[0]].append(name)
            for flavor in own_flavors[1:]:
                notes.add(
                    "Node", f"{node.name} is of the flavors {own_flavors[0]} and {flavor}",
                    f"its {resource} counts in the quota of {own_flavors[0]}",
                )  # fmt: skip
        flavors[resource] = {flavor: "|".join(names) for flavor, names in classes.items()}
    return flavors


def _is_in_circle(name: str, parents: dict[str, str]) -> bool:
    seen = [name]
    while parents.get(seen[-1]):
        if parents[seen[-1]] in seen:
            return True
        seen.append(parents[seen[-1]])
    return False


def _row(item: Raw, parent: str, flavors: Flavors, notes: Notes) -> dict[str, Any]:
    kind = "Cohort" if item.record.get("kind") == "Cohort" else "ClusterQueue"
    row: dict[str, Any] = {"parent": parent} if parent else {}
    parts = [*item.quotas.values()]
    nominal = _sum([part["nominal"] for part in parts])
    row["nominal"] = {
        name: _by_flavor(item, "nominal", name, flavors) if name in flavors else amount
        for name, amount in nominal.items()
    }
    for name in nominal:
        for flavor in item.quotas if name in flavors else ():
            if name in item.quotas[flavor]["nominal"] and not flavors[name][flavor]:
                notes.add(
                    kind, f"{item.name}'s quota of {name} in {flavor}, of which there is no node",
                    "it is left out",
                )  # fmt: skip
    tries_all = item.text("spec.flavorFungibility.whenCanBorrow") == "TryNextFlavor"
    if tries_all and any(isinstance(amount, dict) for amount in row["nominal"].values()):
        row["flavor_choice"] = "least_borrowing"
    nominal = {name: amount for name, amount in nominal.items() if name not in flavors}
    several = {name for name in nominal if sum(name in part["nominal"] for part in parts) > 1}
    if several:
        notes.add(
            kind, f"{item.name}: quotas of {', '.join(sorted(several))} in several flavors",
            "added up: a job may use the quota of another flavor than its nodes'",
        )  # fmt: skip
    if parent:
        for key in ("borrow", "lend"):
            limits: dict[str, Any] = _limit(key, parts, nominal)
            limits |= {
                name: own for name in row["nominal"]
                if name in flavors and (own := _by_flavor(item, key, name, flavors))
            }  # fmt: skip
            row |= {key: limits} if limits else {}
    weight = _weight(item, notes, kind)
    if weight != 1:
        row["weight"] = weight
    return row


def _by_flavor(item: Raw, key: str, resource: str, flavors: Flavors) -> Amounts:
    """Return amounts of a resource by the classes of its flavors; 0 of one if none has nodes."""
    amounts: Amounts = {}
    for flavor, part in item.quotas.items():
        classes = flavors[resource].get(flavor)
        if classes and resource in part[key]:
            amounts[classes] = part[key][resource]
    if key == "nominal" and not amounts:
        known = [classes for classes in flavors[resource].values() if classes]
        amounts = dict.fromkeys(known[:1], 0.0)
    return amounts


def _limit(key: str, parts: Sequence[dict[str, Amounts]], nominal: Amounts) -> Amounts:
    """Return a limit, for resources for which each flavor has one; flavors that lend all add up."""
    limits = {}
    for name in nominal:
        flavors = [part for part in parts if name in part["nominal"]]
        amounts = [part[key].get(name) for part in flavors]
        if key == "lend" and any(amount is not None for amount in amounts):
            amounts = [part["lend"].get(name, part["nominal"][name]) for part in flavors]
        known = [amount for amount in amounts if amount is not None]
        if len(known) == len(flavors):
            limits[name] = sum(known)
    return limits


def _weight(item: Raw, notes: Notes, kind: str) -> float:
    value = item.mapping("spec.fairSharing").get("weight")
    if value is None:
        return 1.0
    weight = quantity("fairSharing.weight", value)
    if weight == 0:
        notes.add(kind, f"{item.name} weight 0", f"a weight of {LEAST_WEIGHT:g}")
    return max(weight, LEAST_WEIGHT)


def _sum(parts: Sequence[Amounts]) -> Amounts:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: sum(part.get(name, 0.0) for part in parts) for name in names}
