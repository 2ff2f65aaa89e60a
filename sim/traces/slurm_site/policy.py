"""The site's scheduler as options of the policies of ``policies/backfill``.

Source: https://slurm.schedmd.com/slurm.conf.html (SchedulerParameters, PriorityWeight*), and
https://slurm.schedmd.com/preempt.html.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim.base.errors import InputError
from sim.base.reading import read_bytes
from sim.traces.slurm_site.folder import Folder
from sim.traces.slurm_site.partitions import job_factor, tier
from sim.traces.slurm_site.shown import is_set, span_s
from sim.traces.slurm_site.slurm_conf import Record

SCHEDULER: dict[str, tuple[str, float]] = {
    "bf_interval": ("interval_s", 1), "bf_resolution": ("resolution_s", 1),
    "bf_window": ("window_s", 60), "bf_max_job_test": ("depth", 1),
    "bf_job_part_count_reserve": ("reserve", 1), "bf_window_linear": ("linear_s", 1),
    "default_queue_depth": ("main_depth", 1), "sched_interval": ("main_interval_s", 1),
    "batch_sched_delay": ("main_delay_s", 1), "partition_job_depth": ("main_partition_depth", 1),
    "sched_max_job_start": ("main_starts", 1), "bf_max_job_user": ("user_depth", 1),
    "bf_max_job_part": ("partition_depth", 1), "bf_max_job_assoc": ("association_depth", 1),
    "bf_max_job_user_part": ("user_partition_depth", 1), "bf_max_job_start": ("starts", 1),
    "bf_max_job_array_resv": ("array_reserve", 1), "bf_max_time": ("max_s", 1),
    "bf_yield_interval": ("yield_s", 1e-6), "bf_yield_sleep": ("sleep_s", 1e-6),
}  # fmt: skip
"""Options of SchedulerParameters: those of the policy, and factors."""
NO_EFFECT = {
    "kill_invalid_depend": "", "no_backup_scheduling": "", "max_rpc_cnt": "",
    "disable_user_top": "", "preempt_youngest_first": "",
}  # fmt: skip
"""Understood without an option of the policy."""
EFFECTS = {
    "bf_min_age_reserve": "jobs get reservations at once",
    "bf_min_prio_reserve": "jobs of low priority get reservations, too",
    "bf_node_space_size": "the table of reservations has bf_max_job_test steps",
    "bf_licenses": "licences are not planned: a job that lacks one is passed over",
    "max_sched_time": "passes of the main loop take no time",
    "bf_busy_nodes": "nodes are chosen by best fit",
    "bf_one_resv_per_job": "a job has one reservation anyway, but in each of its partitions",
    "bf_hetjob_prio": "parts of a heterogeneous job in one partition are one job",
    "assoc_limit_stop": "a job over a limit is passed; it would block those behind it",
    "pack_serial_at_end": "serial jobs are placed by best fit",
    "defer": "starts at submission are not simulated anyway: cycles start jobs",
}
BATCH_SCHED_DELAY_S = 3
"""Slurm's default of batch_sched_delay, s."""
_WEIGHTS = {
    "priorityweightage": "weight_age", "priorityweightfairshare": "weight_fair_share",
    "priorityweightjobsize": "weight_job_size", "priorityweightpartition": "weight_partition",
    "priorityweightqos": "weight_qos",
}  # fmt: skip


def policy_of(folder: Folder, partitions: Mapping[str, Record]) -> dict[str, Any]:
    """Return the policy's options, with its name."""
    options = folder.conf.options
    is_multifactor = options.get("prioritytype", "priority/multifactor") == "priority/multifactor"
    policy: dict[str, Any] = {"name": "multifactor_slurm" if is_multifactor else "slurm"}
    kind = options.get("schedulertype", "sched/backfill")
    if kind == "sched/builtin":
        policy["backfill"] = False
    elif kind != "sched/backfill":
        folder.notes.add("slurm.conf", f"SchedulerType={kind}", "simulated as sched/backfill")
    policy |= _scheduler(folder)
    if is_multifactor:
        policy |= _priorities(folder, partitions)
    preemption = _preemption(folder, partitions)
    return policy | ({"preemption": preemption} if preemption else {})


def kills_invalid_dependencies(folder: Folder) -> bool:
    """Tell whether jobs whose dependencies can never be met are cancelled."""
    options = folder.conf.options
    texts = [options.get(key, "") for key in ("schedulerparameters", "dependencyparameters")]
    return any("kill_invalid_depend" in text.lower() for text in texts)


def _scheduler(folder: Folder) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    min_delay_s = 0
    text = folder.conf.options.get("schedulerparameters", "")
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        name = name.strip().lower()
        if name in SCHEDULER and value.isdecimal():
            key, factor = SCHEDULER[name]
            settings[key] = int(value) * factor
        elif name == "bf_continue":
            settings["continues"] = True
        elif name == "sched_min_interval" and value.isdecimal():
            min_delay_s = math.ceil(int(value) * 1e-6)
        elif name not in NO_EFFECT:
            effect = EFFECTS.get(name, "not known")
            folder.notes.add("slurm.conf", f"SchedulerParameters={part}", effect)
    lifetime = re.search(r"cred_expire=(\d+)", folder.conf.options.get("authinfo", ""))
    if lifetime:
        settings["requeue_s"] = int(lifetime[1]) + 1
    if "sdiag.txt" in folder.files:
        cycles = cycle_times(folder.files["sdiag.txt"])
        if cycles is None:
            folder.notes.add("sdiag.txt", "Total cycles: 0", "plans take 0.01 s")
        else:
            settings["cycle_s"], settings["longest_cycle_s"] = cycles
    if min_delay_s > settings.get("main_delay_s", BATCH_SCHED_DELAY_S):
        settings["main_delay_s"] = min_delay_s
    if settings.get("array_reserve") == 0:
        settings["array_reserve"] = 1  # as in Slurm: the first is not counted
    return settings


def cycle_times(file: Path) -> tuple[float, float] | None:
    """Read from the output of ``sdiag`` the mean and the longest time of a backfill cycle, s.

    None if there was no cycle since its counts began: Slurm leaves out the line then.

    Raises
    ------
    InputError
        If there is no such line, although there were cycles.
    """
    _, _, backfill = read_bytes(file).decode("utf-8", "replace").partition("Backfilling stats")
    mean, longest = (
        re.search(rf"^\s*{word} cycle:\s*(\d+)\s*$", backfill, re.MULTILINE)
        for word in ("Mean", "Max")
    )
    if mean is None and re.search(r"^\s*Total cycles:\s*0\s*$", backfill, re.MULTILINE):
        return None
    if mean is None:
        raise InputError(
            "no line Mean cycle: N below Backfilling stats; write it with sdiag > sdiag.txt",
            file=file,
            rule="no cycles",
        )
    mean_s = int(mean[1]) * 1e-6
    return mean_s, int(longest[1]) * 1e-6 if longest else mean_s


def _priorities(folder: Folder, partitions: Mapping[str, Record]) -> dict[str, Any]:
    options, alias = folder.conf.options, folder.pseudonyms.alias
    policy: dict[str, Any] = {key: _number(options.get(name)) for name, key in _WEIGHTS.items()}
    flags = options.get("priorityflags", "").lower().split(",")
    for flag in filter(is_set, flags):
        if flag not in ("no_fair_tree", "fair_tree"):
            folder.notes.add("slurm.conf", f"PriorityFlags={flag}", "priorities without it")
    spans = {
        "prioritymaxage": "max_age_s",
        "prioritydecayhalflife": "half_life_s",
        "prioritycalcperiod": "calc_period_s",
    }
    for name, key in spans.items():
        span = span_s(options[name]) if name in options else None
        if span is not None:
            policy[key] = span
    policy["favor_small"] = options.get("priorityfavorsmall", "NO").upper() in ("YES", "1", "TRUE")
    policy["fair_tree"] = "no_fair_tree" not in flags
    policy["partitions"] = {n: f for n, r in partitions.items() if (f := job_factor(r)) != 1}
    policy["qos"] = {
        q["name"]: int(p) for q in folder.qos if (p := q.get("priority", "")).isdecimal() and int(p)
    }
    shares: dict[str, int] = {}
    parents: dict[str, str] = {}
    for row in folder.assoc:
        if is_set(row.get("partition")):
            continue
        account = alias("account", row["account"])
        key = f"{account}/{alias('user', row['user'])}" if row["user"] else account
        share = row.get("share", row.get("fairshare", ""))
        if share.isdecimal():
            if key not in ("root", "root/root"):
                shares[key] = int(share)
        elif is_set(share):
            folder.notes.add(
                "assoc.txt", f"{key} Share={share}", "a share of 1, not that of its parent"
            )
        parent = row.get("parentname", row.get("parname", ""))
        if not row["user"] and is_set(parent) and parent != "root":
            parents[account] = alias("account", parent)
    policy |= {"shares": shares, "parents": parents}
    return {key: value for key, value in policy.items() if value not in ({}, None)}


def _number(text: str | None) -> float:
    return float(text) if text is not None and text.isdecimal() else 0.0


def _preemption(folder: Folder, partitions: Mapping[str, Record]) -> dict[str, Any] | None:
    options = folder.conf.options
    kind = options.get("preempttype", "preempt/none")
    if kind in ("preempt/none", ""):
        return None
    mode = _way(options.get("preemptmode", "OFF"))
    if kind == "preempt/partition_prio":
        levels = {name: tier(record) for name, record in partitions.items()}
        first, when = _victims(folder), mode or "requeue"
        return {"by": "partition", "levels": levels, "victims": first, "when": when}
    if kind != "preempt/qos":
        folder.notes.add("slurm.conf", f"PreemptType={kind}", "no job is preempted")
        return None
    victims = {q["name"]: [v for v in q.get("preempt", "").split(",") if v] for q in folder.qos}
    levels = _levels(victims)
    if not any(victims.values()):
        return None
    for name, below in victims.items():
        more = sorted(v for v in victims if below and levels[v] < levels[name] and v not in below)
        if more:
            folder.notes.add(
                "qos.txt", f"{name} Preempt={','.join(below)}",
                f"goes by levels, so that it may preempt {', '.join(more)}, too",
            )  # fmt: skip
    ways = {
        q["name"]: _way(q.get("preemptmode", "cluster")) or mode or "requeue" for q in folder.qos
    }
    graces = {q["name"]: span_s(q.get("gracetime", "")) or 0.0 for q in folder.qos}
    victim_graces = {graces.get(v, 0.0) for below in victims.values() for v in below}
    if len(victim_graces) > 1:
        folder.notes.add("qos.txt", "GraceTime", "that of all victims is the longest of them")
    grace_s, first = max(victim_graces), _victims(folder)
    return {"by": "qos", "levels": levels, "victims": first, "when": ways, "grace_s": grace_s}


def _victims(folder: Folder) -> str:
    """Return which victims stop first: small jobs, or the youngest.

    Source: the candidates' order in Slurm's plug-ins preempt/qos and preempt/partition_prio.
    """
    parameters = folder.conf.options.get("schedulerparameters", "").lower().split(",")
    return "last_started" if "preempt_youngest_first" in parameters else "fewest_machines"


def _levels(victims: Mapping[str, list[str]]) -> dict[str, int]:
    """Return the least levels at which each QOS is above those that it may preempt."""
    levels = dict.fromkeys(victims, 0)
    for _ in victims:
        for name, below in victims.items():
            levels[name] = max(
                [levels[name], *(levels[v] + 1 for v in below if v in levels and v != name)]
            )
            levels[name] = min(levels[name], len(victims))
    return levels


def _way(text: str) -> str | None:
    """Return the fate of victims by Slurm's PreemptMode; None for that of the cluster."""
    for way in ("requeue", "cancel", "suspend"):
        if way in text.lower():
            return way
    return None
