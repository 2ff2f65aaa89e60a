"""Jobs of a site's accounting, as they asked to run: nodes of features, partitions, whole nodes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.reading import BadRows, OnBadRow, first_line
from sim.traces.sacct.columns import Log, by_text
from sim.traces.sacct.json_jobs import is_json, read_json
from sim.traces.sacct.options import Options, Release, State
from sim.traces.sacct.records import LOGGED, build_workload
from sim.traces.sacct.text import read_text
from sim.traces.slurm_site.folder import Folder
from sim.traces.slurm_site.machines import Node
from sim.traces.slurm_site.shown import is_set
from sim.traces.slurm_site.slurm_conf import Record
from sim.traces.slurm_site.spread import NODES_USED, ONE_PER_NODE, spread_tasks, with_nodes_used
from sim.traces.slurm_site.switches import preferred_levels, topology_of
from sim.traces.slurm_site.whole_nodes import demand_whole_nodes, with_memory_of_all_cpus
from sim.transforms.parts import rebuild
from sim.workload.amounts import with_change
from sim.workload.schema import (
    DEMAND_PREFIX,
    EXCLUSIVE,
    PARTITION,
    PLANS_ON,
    RESERVATION,
    RUNS_ON,
    TOPOLOGY_PREFERRED,
)
from sim.workload.tables import names, values, with_column
from sim.workload.workload import Workload

_KEPT = ("SubmitLine", "Constraints", "Reservation", "ReqTRES", NODES_USED, ONE_PER_NODE)
_MORE = ("SubmitLine", "Constraints", "Reservation")
"""Columns of ``sacct`` that the reader of accounting does not read."""
_OPTIONS = {
    "partition": re.compile(r"(?:^|\s)(?:-p\s*|--partition[ =])(\S+)"),
    "exclusive": re.compile(r"(?:^|\s)(--exclusive)(?:\s|$)"),
    "constraint": re.compile(r"""(?:^|\s)(?:-C\s*|--constraint[ =])("[^"]*"|'[^']*'|\S+)"""),
}
_UNREAD = {
    re.compile(
        r"(?:^|\s)(?:-w\s*|--nodelist[ =])\S"
    ): "--nodelist: jobs run on any node that suits",
    re.compile(r"(?:^|\s)(?:-x\s*|--exclude[ =])\S"): "--exclude: jobs run on these nodes, too",
    re.compile(r"(?:^|\s)--exclusive=\S"): "--exclusive=...: such jobs share nodes",
    re.compile(r"(?:^|\s)--nice"): "--nice: priorities without it",
    re.compile(
        r"(?:^|\s)--(?:time-min|spread-job|contiguous|use-min-nodes)"
    ): "options of placement and --time-min",
}
_MEM_PER_CPU = re.compile(r"(?:^|\s)--mem-per-cpu[ =]")
_MEM = re.compile(r"(?:^|\s)--mem(?:-per-gpu)?[ =]")
_GPU_TYPE = re.compile(r"gres/gpu:([^=,]+)=")


def read_jobs(
    folder: Folder, nodes: Sequence[Node], partitions: Mapping[str, Record], *,
    on_bad_row: OnBadRow, state: State, release: Release, has_mem: bool,
) -> Workload:  # fmt: skip
    """Read ``sacct.txt``: a task for each node of a job, a job for each element of an array."""
    path = folder.files["sacct.txt"]
    bad = BadRows()
    if is_json(first_line(path)):
        log = read_json(path, on_bad_row, bad)
        folder.notes.add(
            "sacct.txt",
            "JSON",
            "features, --exclusive and partitions asked for are not read; write it as text",
        )
    else:
        log = read_text(path, on_bad_row, bad, _MORE)
    for column, lost in {
        "SubmitLine": "partitions asked for, --exclusive, dependencies and throttles",
        "Constraints": "features of nodes that jobs asked for",
        "Reservation": "reservations that jobs asked for",
        "ReqTRES": "amounts that exclusive jobs asked for",
        "QOS": "limits and priorities of QOS", "Account": "shares and limits of accounts",
    }.items():  # fmt: skip
        if column not in log:
            folder.notes.add("sacct.txt", f"no column {column}", lost)
    _alias(folder, log)
    _as_requested(log)
    if folder.conf.options.get("selecttype", "") != "select/linear":
        spread_tasks(log)
    passed = [name for name in _KEPT if name in log]
    options = Options(state=state, tasks="nodes", arrays="jobs", release=release)
    workload = build_workload(path, "slurm_site", log, bad, options, passed)
    return _with_requests(folder, workload, nodes, partitions, has_mem=has_mem)


def _alias(folder: Folder, log: Log) -> None:
    alias = folder.pseudonyms.alias
    for column, kind in (("User", "user"), ("Account", "account"), ("JobName", "job")):
        if column in log:
            log[column] = by_text(log[column], partial(alias, kind)).cast(pa.string())


def _as_requested(log: Log) -> None:
    """Give exclusive jobs the resources that they asked for, not the whole nodes that they had."""
    if "SubmitLine" not in log or "ReqTRES" not in log or "AllocTRES" not in log:
        return
    is_whole = pc.match_substring_regex(log["SubmitLine"], r"(^|\s)--exclusive(\s|$)").fill_null(
        False
    )
    had_some = pc.greater(pc.utf8_length(log["AllocTRES"].fill_null("")), 0)
    asks = pc.greater(pc.utf8_length(log["ReqTRES"].fill_null("")), 0)
    chosen = pc.and_(is_whole, pc.and_(had_some, asks))
    log["AllocTRES"] = pc.if_else(chosen, log["ReqTRES"], log["AllocTRES"])
    if "AllocCPUS" in log and "ReqCPUS" in log:
        mask = chosen.to_numpy(zero_copy_only=False).astype(bool)
        known = mask & ~np.isnan(log["ReqCPUS"])
        log["AllocCPUS"] = np.where(known, log["ReqCPUS"], log["AllocCPUS"])


def _with_requests(
    folder: Folder, workload: Workload, nodes: Sequence[Node],
    partitions: Mapping[str, Record], *, has_mem: bool,
) -> Workload:  # fmt: skip
    """Return the workload with what its jobs asked for as columns."""
    jobs, stages = workload.jobs, workload.stages
    texts = {
        name: jobs[LOGGED + name].to_pylist()
        for name in _KEPT
        if LOGGED + name in jobs.column_names
    }
    empty = [""] * jobs.num_rows
    commands = texts.get("SubmitLine", empty)
    for command in dict.fromkeys(commands):
        for pattern, effect in _UNREAD.items():
            if pattern.search(command):
                folder.notes.add(
                    "jobs", *effect.split(": ", 1) if ": " in effect else (effect, "not simulated")
                )
    jobs = jobs.drop_columns([LOGGED + name for name in texts])
    queue = [names(jobs, "queue")[code] for code in values(jobs, "queue").tolist()]
    requested = [
        _option(command, "partition") or text for command, text in zip(commands, queue, strict=True)
    ]
    partition = [_partition(folder, text, partitions) for text in requested]
    jobs = _with_text(jobs, PARTITION.name, partition)
    is_exclusive = np.array([bool(_option(command, "exclusive")) for command in commands])
    if is_exclusive.any():
        jobs = with_column(jobs, EXCLUSIVE.name, is_exclusive)
    jobs = with_nodes_used(jobs, texts.get(NODES_USED, empty), texts.get(ONE_PER_NODE, empty))
    reserved = [_reservation(folder, text) for text in texts.get("Reservation", empty)]
    if any(reserved):
        jobs = _with_text(jobs, RESERVATION.name, reserved)
    preferred = preferred_levels(folder, commands, topology_of(folder, nodes))
    if any(preferred):
        jobs = _with_text(jobs, TOPOLOGY_PREFERRED.name, preferred)
    classes: dict[str, Node] = {}
    for node in nodes:
        classes.setdefault(node.machine_class, node)
    constraints = [
        text or _option(command, "constraint")
        for text, command in zip(texts.get("Constraints", empty), commands, strict=True)
    ]
    runs_on = [
        _classes(folder, constraint, tres, classes)
        for constraint, tres in zip(constraints, texts.get("ReqTRES", empty), strict=True)
    ]
    by_default = is_set(folder.conf.options.get("defmempercpu"))
    is_by_cpu = np.array([_is_by_cpu(command, by_default) for command in commands])
    by_constraint = runs_on
    runs_on = with_memory_of_all_cpus(stages, is_exclusive & is_by_cpu, by_constraint, nodes)
    plans_on = [
        "" if text == fitting else text or "|".join(classes)
        for text, fitting in zip(by_constraint, runs_on, strict=True)
    ]
    if any(plans_on):
        jobs = _with_text(jobs, PLANS_ON.name, plans_on)
    if any(runs_on):
        stages = _with_text(
            stages, RUNS_ON.name, [runs_on[job] for job in values(stages, "job").tolist()]
        )
    stages = demand_whole_nodes(stages, is_exclusive, partition, runs_on, nodes)
    workload = rebuild(workload, None, jobs=jobs, stages=stages, validate=True)
    workload = with_change(workload, "an exclusive job has whole nodes")
    for resource, is_known in (("mem", has_mem), ("gpu", any(node.gpus for node in nodes))):
        if not is_known and DEMAND_PREFIX + resource in stages.column_names:
            stages = stages.drop_columns([DEMAND_PREFIX + resource])
            workload = rebuild(workload, None, stages=stages, validate=True)
            workload = with_change(workload, f"no node of the site tells its {resource}")
    return workload


def _is_by_cpu(command: str, by_default: bool) -> bool:
    """Tell whether a job asks for memory by CPU."""
    return bool(_MEM_PER_CPU.search(command)) or (by_default and not _MEM.search(command))


def _option(command: str, name: str) -> str:
    match = _OPTIONS[name].search(command)
    return match[1].strip("\"'") if match else ""


def _with_text(table: pa.Table, name: str, texts: Sequence[str]) -> pa.Table:
    if name in table.column_names:
        table = table.drop_columns([name])
    return table.append_column(name, pa.array(texts, pa.string()).dictionary_encode())


def _partition(folder: Folder, text: str, known: Mapping[str, Any]) -> str:
    """Return the partitions of a job, separated by ``|``; unknown ones are noted."""
    requested = [name for name in text.split(",") if name]
    for name in requested:
        if name not in known:
            folder.notes.add(
                "jobs",
                f"partition {name}",
                "no such partition now: jobs run in others that they name, or the default one",
            )
    return "|".join(name for name in requested if name in known)


def _reservation(folder: Folder, name: str) -> str:
    if name and name not in folder.reservations:
        folder.notes.add(
            "jobs",
            f"reservation {name}",
            "not in reservation.txt: its jobs are simulated as others",
        )
        return ""
    return name


def _classes(folder: Folder, constraint: str, tres: str, classes: Mapping[str, Node]) -> str:
    """Return the classes whose nodes a job asked for, separated by ``|``; "" for all."""
    types = set(_GPU_TYPE.findall(tres))
    fit = [
        name
        for name, node in classes.items()
        if satisfies(constraint, node.features) and (not types or types & node.gpu_types)
    ]
    if constraint and re.search(r"[*\[\]()]", constraint):
        folder.notes.add(
            "jobs",
            f"--constraint={constraint}",
            "counts and [alternatives]: each node has any of them",
        )
    if not fit:
        folder.notes.add(
            "jobs",
            f"--constraint={constraint} {' '.join(sorted(types))}".rstrip(),
            "no node has these: its jobs run anywhere",
        )
    return "" if len(fit) in (0, len(classes)) else "|".join(fit)


def satisfies(constraint: str, features: Collection[str]) -> bool:
    """Tell whether a node's features satisfy a constraint such as ``a100&(ib|eth)``.

    Counts (``a*4``) and brackets are read as if each node had to satisfy any alternative.

    >>> satisfies("avx512&(big|gpu)", {"avx512", "big"}), satisfies("a|b", {"c"}), satisfies("", ())
    (True, False, True)
    """
    tokens = re.findall(
        r"[&,|()\[\]]|[^&,|()\[\]]+", re.sub(r"\*\d+", "", constraint.replace(" ", ""))
    )
    position = 0

    def alternatives() -> bool:
        nonlocal position
        result = both()
        while position < len(tokens) and tokens[position] == "|":
            position += 1
            other = both()
            result = result or other
        return result

    def both() -> bool:
        nonlocal position
        result = term()
        while position < len(tokens) and tokens[position] in "&,":
            position += 1
            other = term()
            result = result and other
        return result

    def term() -> bool:
        nonlocal position
        token = tokens[position] if position < len(tokens) else ""
        position += 1
        if token in ("(", "["):
            result = alternatives()
            position += 1
            return result
        return token in features

    return alternatives() if tokens else True
