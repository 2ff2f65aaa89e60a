"""Partitions of a site, and their rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.traces.slurm_site.folder import Folder
from sim.traces.slurm_site.shown import is_set, span_s
from sim.traces.slurm_site.slurm_conf import Record

UNREAD: Mapping[str, tuple[tuple[str, ...], str]] = {
    "allowaccounts": (("ALL",), "who may submit: jobs of the log did"),
    "allowgroups": (("ALL",), "who may submit: jobs of the log did"),
    "allowqos": (("ALL",), "who may submit: jobs of the log did"),
    "denyaccounts": ((), "who may submit: jobs of the log did"),
    "denyqos": ((), "who may submit: jobs of the log did"),
    "maxcpuspernode": ((), "jobs may take more CPUs of a node than it allows"),
    "maxcpuspersocket": ((), "jobs may take more CPUs of a socket than it allows"),
    "lln": (("NO", "no"), "jobs take nodes by best fit, not the least loaded ones"),
    "exclusiveuser": (("NO", "no"), "users share nodes"),
    "exclusivetopo": (("NO", "no"), "jobs share blocks of the topology"),
    "overtimelimit": ((), "jobs are ended at their limits at once"),
    "gracetime": (("0", "00:00:00"), "victims of preemption stop at once"),
    "preemptmode": (("OFF", "off"), "victims of this partition fare as those of the cluster"),
    "maxmempercpu": ((), "jobs that exceed it got more CPUs, which the log has"),
    "maxmempernode": ((), "jobs that exceed it are admitted"),
    "reqresv": (("NO", "no"), "jobs without a reservation are admitted"),
    "rootonly": (("NO", "no"), "who may submit: jobs of the log did"),
    "selecttypeparameters": ((), "CPUs are allocated one by one, as the log has them"),
    "powerdownonidle": (("NO", "no"), "idle nodes stay up"),
    "suspendtime": ((), "idle nodes stay up"),
    "alternate": ((), "no other partition takes the jobs of one that is down"),
}
"""Keys that are not simulated: values that mean nothing, and what others may change."""
_KNOWN = (
    "nodes", "default", "maxtime", "defaulttime", "prioritytier", "priority", "priorityjobfactor",
    "minnodes", "maxnodes", "oversubscribe", "shared", "qos", "state",
)  # fmt: skip
_NO_EFFECT = (
    "hidden", "defmempercpu", "defmempernode", "disablerootjobs", "allocnodes", "jobdefaults",
    "tresbillingweights", "cpubind", "defcpupergpu", "defmempergpu",
)  # fmt: skip
"""Keys whose effect the log has already, or that have none on starts."""


def partitions_of(folder: Folder) -> dict[str, Record]:
    """Return the partitions by name: those of slurm.conf, changed as the controller shows them."""
    records = {name: dict(record) for name, record in folder.conf.partitions.items()}
    for name, shown in folder.partitions.items():
        known = records.get(name, {})
        # a node set's name is gone once the controller shows its nodes
        records[name] = {
            **known,
            **{key: text for key, text in shown.items() if key in _KNOWN or key in UNREAD},
        }
    for name, record in records.items():
        for key, (harmless, effect) in UNREAD.items():
            value = record.get(key)
            if is_set(value) and value not in harmless:
                folder.notes.add(
                    "partitions", f"{name} {key}={_aliased(folder, key, value)}", effect
                )
        for key in folder.conf.partitions.get(name, {}):
            if key not in (*_KNOWN, *UNREAD, *_NO_EFFECT):
                folder.notes.add("slurm.conf", f"PartitionName={name} {key}", "not known")
        state = record.get("state", "UP").upper()
        if state != "UP":
            folder.notes.add("partitions", f"{name} State={state}", "simulated as up")
        if (
            _oversubscribe(record).startswith(("FORCE:", "YES"))
            and _oversubscribe(record) != "FORCE:1"
        ):
            folder.notes.add(
                "partitions", f"{name} OverSubscribe={_oversubscribe(record)}",
                "jobs do not share CPUs, so that they wait for longer",
            )  # fmt: skip
    return records


def _aliased(folder: Folder, key: str, value: str | None) -> str:
    """Return the value of an option, in which accounts and groups have their aliases."""
    kind = {"accounts": "account", "groups": "group"}.get(
        key.removeprefix("allow").removeprefix("deny")
    )
    if kind is None or value is None:
        return str(value)
    return ",".join(folder.pseudonyms.alias(kind, name) for name in value.split(","))


def default_partition(partitions: Mapping[str, Record]) -> str:
    """Return the name of the default partition, "" if there is none."""
    defaults = [n for n, record in partitions.items() if record.get("default", "").upper() == "YES"]
    return defaults[-1] if defaults else ""


def tier(record: Record) -> int:
    """Return a partition's tier."""
    text = record.get("prioritytier", record.get("priority", "1"))
    return int(text) if text.isdecimal() else 1


def job_factor(record: Record) -> int:
    """Return the factor of a partition in the priority of its jobs."""
    text = record.get("priorityjobfactor", record.get("priority", "1"))
    return int(text) if text.isdecimal() else 1


def rules_of(partitions: Mapping[str, Record], *, whole_nodes: bool) -> dict[str, dict[str, Any]]:
    """Return the rules for ``cluster.partitions``; `whole_nodes` if nodes are never shared."""
    rules: dict[str, dict[str, Any]] = {}
    for name, record in partitions.items():
        row: dict[str, Any] = {"tier": tier(record)}
        row["max_time_s"] = span_s(record.get("maxtime", ""))
        row["default_time_s"] = span_s(record.get("defaulttime", ""))
        for key in ("minnodes", "maxnodes"):
            text = record.get(key, "")
            if text.isdecimal() and int(text) > 0:
                row[f"{key[:3]}_nodes"] = int(text)
        if whole_nodes or _oversubscribe(record) == "EXCLUSIVE":
            row["exclusive"] = True
        rules[name] = {key: value for key, value in row.items() if value is not None}
    return rules


def _oversubscribe(record: Record) -> str:
    return record.get("oversubscribe", record.get("shared", "NO")).upper()
