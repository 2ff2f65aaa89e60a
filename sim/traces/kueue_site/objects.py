"""Objects of Kueue and nodes, as `kubectl get -o json` writes them.

Source: Kueue's API, ``apis/kueue/v1beta1`` and ``v1beta2`` (ClusterQueue, Cohort, LocalQueue,
ResourceFlavor, Topology, Workload), and the API reference of Kubernetes (``v1`` Node).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sim.base.reading import BadRows, OnBadRow, json_field
from sim.base.reading.objects import Meta, Notice, parse_meta, read_objects
from sim.base.reading.pod_requests import amounts_of, quantity, simulated_resource
from sim.traces.sites.notes import Notes

COMMAND = (
    "kubectl get workloads,clusterqueues,cohorts,resourceflavors,localqueues,topologies,nodes -A "
    "-o json"
)
KINDS = ("ClusterQueue", "Cohort", "ResourceFlavor", "LocalQueue", "Topology", "Node", "Workload")
Amounts = dict[str, float]


@dataclass(frozen=True)
class Raw:
    """An object: its part that all have, its fields, and its parsed quotas.

    Attributes
    ----------
    record : mapping
        The object.
    quotas : dict of str to dict
        Of a queue or cohort, by flavor: ``nominal``, ``borrow`` and ``lend``, amounts by resource;
        a resource without a limit is in neither of the latter.
    groups : list of (list of str, list of str)
        Resources and flavors of each of its groups of resources.
    amounts : dict
        Of a node: what it may allocate.
    """

    meta: Meta
    record: Mapping[str, Any]
    quotas: dict[str, dict[str, Amounts]] = field(default_factory=dict)
    groups: list[tuple[list[str], list[str]]] = field(default_factory=list)
    amounts: Amounts = field(default_factory=dict)

    @property
    def version(self) -> tuple[Any, ...]:
        """Order among states of one object: later ones are larger."""
        return self.meta.version

    @property
    def name(self) -> str:
        """Name."""
        return self.meta.name

    def text(self, *names: str) -> str:
        """Return the first of some fields that is set; "" for none."""
        return next(filter(None, (json_field(self.record, name, str) for name in names)), "")

    def mapping(self, name: str) -> dict[str, Any]:
        """Return a field that is an object."""
        return json_field(self.record, name, dict)

    def rows(self, name: str) -> list[Any]:
        """Return a field that is a list."""
        return json_field(self.record, name, list)


def read_site_objects(path: Path, notes: Notes, on_bad_row: OnBadRow) -> dict[str, list[Raw]]:
    """Read the objects of a site by kind, ordered by name."""
    parsers: dict[str, Callable[[Any, Notice], Raw]] = dict.fromkeys(
        ("ResourceFlavor", "LocalQueue", "Topology", "Workload"), _parse_raw
    )
    parsers |= {"ClusterQueue": _parse_quotas, "Cohort": _parse_quotas, "Node": _parse_node}

    def notice(rule: str, n: int) -> None:
        if "not read" not in rule and "given again" not in rule:
            notes.add("quotas and nodes", rule, f"{n:,} times")

    bad = BadRows()
    objects = read_objects(path, COMMAND, parsers, on_bad_row, bad, notice)
    for rule, n in bad.items():
        notes.add("objects left out", f"{rule} ({n:,})", bad.examples[rule])
    return {kind: sorted(items, key=lambda item: item.name) for kind, items in objects.items()}


def _parse_raw(record: Any, _: Notice) -> Raw:
    return Raw(parse_meta(record), record)


def _parse_node(record: Any, notice: Notice) -> Raw:
    known = json_field(record, "status.allocatable", dict) or json_field(
        record, "status.capacity", dict
    )
    allocatable = {name: quantity(f"allocatable.{name}", value) for name, value in known.items()}
    return Raw(parse_meta(record), record, amounts=amounts_of(allocatable, notice))


def _parse_quotas(record: Any, notice: Notice) -> Raw:
    """Parse the groups of resources of a ClusterQueue or Cohort."""
    quotas: dict[str, dict[str, Amounts]] = {}
    groups = []
    for group in json_field(record, "spec.resourceGroups", list):
        flavors = json_field(group, "flavors", list)
        resources = [str(name) for name in json_field(group, "coveredResources", list)]
        groups.append((resources, [json_field(flavor, "name", str) for flavor in flavors]))
        for flavor in flavors:
            quotas[json_field(flavor, "name", str)] = _flavor_quotas(flavor, notice)
    return Raw(parse_meta(record), record, quotas, groups)


def _flavor_quotas(flavor: Any, notice: Notice) -> dict[str, Amounts]:
    """Return nominal quota, borrowing and lending limit of a flavor, by resource."""
    keys = {"nominalQuota": "nominal", "borrowingLimit": "borrow", "lendingLimit": "lend"}
    amounts: dict[str, Amounts] = {}
    for field_name, key in keys.items():
        known: Amounts = {}
        for row in json_field(flavor, "resources", list):
            if isinstance(row, Mapping) and row.get(field_name) is not None:
                name = json_field(row, "name", str)
                known[name] = quantity(f"{name}.{field_name}", row[field_name])
        amounts[key] = _simulated(known, notice)
    return amounts


def _simulated(known: Amounts, notice: Notice) -> Amounts:
    """Return the amounts of resources that are simulated: those that are given, 0 too."""
    for name in known:
        if not simulated_resource(name):
            notice(f"quota of {name}: not simulated")
    counted = {name: amount for name, amount in known.items() if simulated_resource(name)}
    amounts = amounts_of(counted, notice)
    return {name: amounts.get(name, 0.0) for name in map(simulated_resource, counted)}
