"""Kueue's settings as options of the policy ``kueue``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim.base.reading import json_field
from sim.traces.kueue_site.objects import Raw
from sim.traces.sites.notes import Notes

STRICT, BEST_EFFORT = "StrictFIFO", "BestEffortFIFO"
NEVER, LOWER = "Never", "LowerPriority"


def policy_of(queues: Sequence[Raw], notes: Notes) -> dict[str, Any]:
    """Return the policy's options, with its name; note what is not simulated of the queues."""
    for queue in queues:
        _note(queue, notes)
    policy: dict[str, Any] = {"name": "kueue", "queueing_strategy": _strategy(queues)}
    if any(queue.mapping("status.fairSharing") for queue in queues):
        policy["fair_sharing"] = True
        notes.add(
            "ClusterQueue", "fair sharing is on (status.fairSharing)",
            "all that a queue uses counts, not only what it borrows; its strategies of preemption "
            "are not read",
        )  # fmt: skip
    preemption = _preemption(queues, notes)
    return policy | ({"preemption": preemption} if preemption else {})


def _strategy(queues: Sequence[Raw]) -> str:
    """Return the strategy of queues that have none of their own in ``cluster.quotas``."""
    is_strict = [queue.text("spec.queueingStrategy") == STRICT for queue in queues]
    return STRICT if is_strict and all(is_strict) else BEST_EFFORT


def _preemption(queues: Sequence[Raw], notes: Notes) -> dict[str, Any]:
    """Return ``policy.preemption``: what a queue may do, all may."""
    reclaim = {q.name: q.text("spec.preemption.reclaimWithinCohort") or NEVER for q in queues}
    within = {q.name: q.text("spec.preemption.withinClusterQueue") or NEVER for q in queues}
    for name, modes in (("reclaimWithinCohort", reclaim), ("withinClusterQueue", within)):
        used = {mode for mode in modes.values() if mode != NEVER}
        if used and NEVER in modes.values():
            notes.add(
                "ClusterQueue", f"{name} Never of {_names(modes, NEVER)}",
                "what some queues may preempt, all may",
            )  # fmt: skip
    if LOWER in reclaim.values():
        notes.add(
            "ClusterQueue", f"reclaimWithinCohort {LOWER} of {_names(reclaim, LOWER)}",
            "victims in other queues are of any priority",
        )  # fmt: skip
    newer = "LowerOrNewerEqualPriority"
    if newer in within.values():
        notes.add(
            "ClusterQueue", f"withinClusterQueue {newer} of {_names(within, newer)}",
            f"as {LOWER}",
        )  # fmt: skip
    has_within = any(mode != NEVER for mode in within.values())
    if any(mode != NEVER for mode in reclaim.values()):
        return {"by": "quota", "in_queue": has_within, "when": "requeue"}
    return {"by": "priority", "in_queue": True, "when": "requeue"} if has_within else {}


def _names(modes: dict[str, str], mode: str) -> str:
    return ", ".join(name for name, own in modes.items() if own == mode)


def _note(queue: Raw, notes: Notes) -> None:
    """Note the settings of a ClusterQueue that are not simulated."""
    policy = queue.text("spec.preemption.borrowWithinCohort.policy")
    if policy not in ("", NEVER):
        notes.add(
            "ClusterQueue", f"{queue.name} borrowWithinCohort {policy}",
            "a job that borrows preempts nobody in other queues",
        )  # fmt: skip
    stop = queue.text("spec.stopPolicy")
    if stop not in ("", "None"):
        notes.add("ClusterQueue", f"{queue.name} stopPolicy {stop}", "simulated as open")
    if queue.rows("spec.admissionChecks") or queue.mapping("spec.admissionChecksStrategy"):
        notes.add("ClusterQueue", f"{queue.name} admission checks", "jobs do not wait for them")
    if queue.mapping("spec.admissionScope"):
        notes.add("ClusterQueue", f"{queue.name} admissionScope", "order without past usage")
    if queue.mapping("spec.concurrentAdmissionPolicy"):
        notes.add("ClusterQueue", f"{queue.name} concurrentAdmissionPolicy", "jobs do not migrate")
    fungibility = queue.mapping("spec.flavorFungibility")
    has_several = any(len(flavors) > 1 for _, flavors in queue.groups)
    for key, default, instead in (
        ("whenCanPreempt", "TryNextFlavor", "a job preempts only where it fits in no flavor"),
        ("preference", "BorrowingOverPreemption", "a job borrows before it preempts"),
    ):
        value = json_field(fungibility, key, str)
        if has_several and value not in ("", default):
            notes.add("ClusterQueue", f"{queue.name} flavorFungibility.{key} {value}", instead)
