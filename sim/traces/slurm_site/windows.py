"""Advance reservations, outages and drains of a site, as rows of a cluster's configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sim.base.reading import read_bytes
from sim.traces.slurm_site.folder import Folder
from sim.traces.slurm_site.hosts import expand
from sim.traces.slurm_site.shown import is_set, time_s

Row = dict[str, Any]
_STATE = re.compile(r"\[(\S{19})\S*\] update_node: node (\S+) state set to (\S+)")
"""Line of ``slurmctld.log`` with ``LogTimeFormat=iso8601``, which is the default."""
_CREATED = re.compile(r"\[(\S{19})\S*\] sched: Created reservation=(\S+) ")
_EXPECTED_FLAGS = ("MAINT", "IGNORE_JOBS", "SPEC_NODES", "ALL_NODES", "FLEX", "OVERLAP", "")


def reservations_of(folder: Folder, machines: Mapping[str, int], zero_s: float) -> list[Row]:
    """Return the rows of ``cluster.reservations``; times count from `zero_s`."""
    alias = folder.pseudonyms.alias
    rows: list[Row] = []
    created = [(name, time_s(time)) for time, name in _CREATED.findall(_log(folder))]
    for name, record in folder.reservations.items():
        from_s, until_s = time_s(record.get("starttime", "")), time_s(record.get("endtime", ""))
        nodes = expand(record["nodes"]) if is_set(record.get("nodes")) else []
        known = [machines[node] for node in nodes if node in machines]
        if from_s is None or until_s is None or not known:
            folder.notes.add("reservation.txt", name, "left out: no times, or no nodes of the site")
            continue
        flags = record.get("flags", "").split(",")
        for flag in flags:
            if flag not in _EXPECTED_FLAGS and is_set(flag):
                folder.notes.add(
                    "reservation.txt", f"{name} flag {flag}", "reserved once, as a whole"
                )
        cores = record.get("corecnt", "")
        if is_set(record.get("partitionname")) and "PART_NODES" in flags:
            folder.notes.add("reservation.txt", f"{name} PART_NODES", "nodes are those of now")
        if until_s <= zero_s:
            continue
        row: Row = {"name": name, "machine": known}
        row |= {"from_s": max(from_s - zero_s, 0.0), "until_s": until_s - zero_s}
        announced_s = [
            time_s for other, time_s in created if other == name and time_s and time_s <= from_s
        ]
        if announced_s and announced_s[-1] > zero_s:
            row["announced_s"] = announced_s[-1] - zero_s
        for key in ("users", "accounts"):
            names = record.get(key, "")
            if names.startswith("-"):
                folder.notes.add("reservation.txt", f"{name} {key} with -", "nobody is excluded")
            elif is_set(names):
                row[key] = [alias(key[:-1], text) for text in names.split(",")]
        if is_set(record.get("groups")):
            folder.notes.add("reservation.txt", f"{name} Groups", "its members may not use it")
        if cores.isdecimal() and "SPEC_NODES" not in flags and "ALL_NODES" not in flags:
            folder.notes.add(
                "reservation.txt", f"{name} CoreCnt={cores}", "its nodes are reserved whole"
            )
        rows.append(row)
    return rows


def outages_of(folder: Folder, machines: Mapping[str, int], zero_s: float) -> list[Row]:
    """Return the rows of ``cluster.outages``, of events and of the controller's log."""
    periods = [*_event_periods(folder), *_log_periods(folder)]
    rows: list[Row] = []
    last: dict[tuple[int, bool], Row] = {}
    for from_s, until_s, node, is_drain in sorted(periods, key=lambda period: period[0]):
        if node not in machines or (until_s is not None and until_s <= zero_s):
            continue
        row: Row = {"machine": machines[node], "from_s": max(from_s - zero_s, 0.0)}
        end_s = None if until_s is None else until_s - zero_s
        before = last.get((machines[node], is_drain))
        if before is not None and row["from_s"] <= before.get("until_s", float("inf")):
            if end_s is None:
                before.pop("until_s", None)
            elif "until_s" in before:
                before["until_s"] = max(before["until_s"], end_s)
            continue
        row |= {} if end_s is None else {"until_s": end_s}
        row |= {"drain": True} if is_drain else {}
        if row.get("until_s", float("inf")) <= row["from_s"]:
            continue
        last[machines[node], is_drain] = row
        rows.append(row)
    return rows


def _event_periods(folder: Folder) -> list[tuple[float, float | None, str, bool]]:
    """Return begin, end, node, and whether it is a drain, of each event of a node."""
    periods = []
    for row in folder.events:
        from_s, until_s = time_s(row["timestart"]), time_s(row["timeend"])
        if from_s is None or not row["nodename"]:
            continue  # an event of the whole cluster: its number of CPUs changed
        is_drain = "DRAIN" in row.get("state", "").upper()
        periods += [(from_s, until_s, node, is_drain) for node in expand(row["nodename"])]
    return periods


def _log_periods(folder: Folder) -> list[tuple[float, float | None, str, bool]]:
    """Return the drains and downs that an administrator set, until the state was set anew."""
    open_periods: dict[str, tuple[float, bool]] = {}
    periods: list[tuple[float, float | None, str, bool]] = []
    for time, nodes, state in _STATE.findall(_log(folder)):
        at_s = time_s(time)
        if at_s is None:
            continue
        for node in expand(nodes):
            if node in open_periods:
                from_s, is_drain = open_periods.pop(node)
                periods.append((from_s, at_s, node, is_drain))
            if "DRAIN" in state or "DOWN" in state:
                open_periods[node] = (at_s, "DRAIN" in state)
    return periods + [
        (from_s, None, node, is_drain) for node, (from_s, is_drain) in open_periods.items()
    ]


def _log(folder: Folder) -> str:
    """Return the text of the controller's log, "" without one."""
    if "slurmctld.log" not in folder.files:
        return ""
    return read_bytes(folder.files["slurmctld.log"]).decode("utf-8", "replace")
