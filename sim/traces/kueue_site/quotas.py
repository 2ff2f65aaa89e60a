"""Quotas of ClusterQueues and Cohorts as rows of ``cluster.quotas``.

The simulated tree knows resources, not flavors: quotas of flavors are added up, and a limit holds
only where each flavor has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim.base.reading.pod_requests import quantity
from sim.traces.kueue_site.objects import Amounts, Raw
from sim.traces.sites.notes import Notes

LEAST_WEIGHT = 1e-9
"""Weight of a queue whose weight is 0: it comes after all others."""


def quotas_of(
    queues: Sequence[Raw], cohorts: Sequence[Raw], notes: Notes
) -> dict[str, dict[str, Any]]:
    """Return the rows: ClusterQueues by name, then Cohorts; one of a queue's name gets another."""
    names = {queue.name for queue in queues}

    def cohort_name(name: str) -> str:
        return f"cohort/{name}" if name in names else name

    rows: dict[str, dict[str, Any]] = {}
    known = {cohort.name: cohort.text("spec.parentName", "spec.parent") for cohort in cohorts}
    for queue in queues:
        cohort = queue.text("spec.cohortName", "spec.cohort")
        rows[queue.name] = _row(queue, cohort_name(cohort) if cohort else "", notes)
    for item in cohorts:
        if _is_in_circle(item.name, known):
            notes.add(
                "Cohort", f"{item.name} is in a circle of parents",
                "simulated without a parent; Kueue admits nothing of it",
            )  # fmt: skip
            parent = ""
        else:
            parent = known[item.name]
        rows[cohort_name(item.name)] = _row(item, cohort_name(parent) if parent else "", notes)
    return rows


def _is_in_circle(name: str, parents: dict[str, str]) -> bool:
    seen = [name]
    while parents.get(seen[-1]):
        if parents[seen[-1]] in seen:
            return True
        seen.append(parents[seen[-1]])
    return False


def _row(item: Raw, parent: str, notes: Notes) -> dict[str, Any]:
    kind = "Cohort" if item.record.get("kind") == "Cohort" else "ClusterQueue"
    row: dict[str, Any] = {"parent": parent} if parent else {}
    parts = [*item.quotas.values()]
    nominal = _sum([part["nominal"] for part in parts])
    row["nominal"] = nominal
    several = {name for name in nominal if sum(name in part["nominal"] for part in parts) > 1}
    if several:
        notes.add(
            kind, f"{item.name}: quotas of {', '.join(sorted(several))} in several flavors",
            "added up: a job may use the quota of another flavor than its nodes'",
        )  # fmt: skip
    if parent:
        for key in ("borrow", "lend"):
            row |= _limit(key, parts, nominal)
    weight = _weight(item, notes, kind)
    if weight != 1:
        row["weight"] = weight
    return row


def _limit(key: str, parts: Sequence[dict[str, Amounts]], nominal: Amounts) -> dict[str, Amounts]:
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
    return {key: limits} if limits else {}


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
