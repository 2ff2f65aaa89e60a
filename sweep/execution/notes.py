"""Notes on standard error: the cells to run, losses while loading traces, interruptions."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sim.base.text import printable
from sim.cluster.caps import Cap, accounts_above, parse_accounts
from sim.cluster.cluster import Cluster
from sweep.execution.plan import PlannedCell, PreparedGrid
from sweep.grid import cluster_size, what_ifs
from sweep.grid.cluster_checks import ACCOUNTS, ENFORCES, LIMITS
from sweep.grid.grid import build_policy
from sweep.stats import reading

N_SHOWN = 4
"""Largest number of capacities that a note lists."""
MANY = 0.2
"""Share of jobs beyond their limits that is told."""
_PLURAL = {"policy": "policies", "trace": "traces", "capacity": "capacities", "seed": "seeds"}
_SINGULAR = {plural: singular for singular, plural in _PLURAL.items()}
_SINGULAR |= {"cells": "cell", "cores": "core", "searches": "search", "settings": "setting"}


def note(text: str) -> None:
    """Print one note on standard error."""
    print(printable(text), file=sys.stderr, flush=True)


def grid(prepared: PreparedGrid, n_todo: int) -> None:
    """Report the cells that are about to run."""
    axes = " × ".join(
        count(len(values), _PLURAL.get(key, key))
        for key, values in prepared.grid.request.axes.items()
        if len(values) > 1 or key in _PLURAL
    )
    n_cells = len(prepared.planned)
    n_cached = int(prepared.is_cached().sum())
    counts = f"{count(n_cells, 'cells')}, {n_cached:,} cached, {n_todo:,} to run"
    note(f"{prepared.sweep}: {axes}: {counts}")
    traces(prepared)


def traces(prepared: PreparedGrid, names: Collection[str] | None = None) -> None:
    """Report rows that loading the traces dropped or filled in; of `names` alone, if given.

    A trace that was never loaded has no report yet.
    """
    if names is not None and not names:
        return
    lines = []
    inputs = prepared.inputs
    first_cells: dict[tuple[int, str], PlannedCell] = {}
    for cell in prepared.representatives:
        if names is None or cell.workload in names:
            first_cells.setdefault((id(cell.cell.policy), cell.workload), cell)
    loaded = [cell for cell in first_cells.values() if inputs.known(cell.workload) is not None]
    for name in dict.fromkeys(cell.workload for cell in loaded):
        description = inputs.describe(name)
        dropped = _load_report(description["meta"].get("report") or {})
        if dropped:
            trace = description["meta"].get("name", "trace")
            lines.append(f"  {trace}: {description['n_jobs']:,} jobs; {dropped}")
    for cell in loaded:
        trace, path = cell.cell.labels["trace"], cell.cell.trace.get("path")
        log = reading.describe(trace, path, inputs.describe(cell.workload))
        lines += [f"  {line}" for line in (log.lines if log else ())]
    lines += _overloads(prepared, loaded)
    lines += [line for cell in loaded if (line := _never_waits(prepared, cell))]
    for describe in (_unused_limits, _unused_levels, _single_group, _beyond_limits):
        lines += [line for cell in loaded for line in describe(prepared, cell)]
    lines += [line for cell in loaded if (line := _missing_history(prepared, cell))]
    for line in dict.fromkeys(lines):
        note(line)


def _overloads(prepared: PreparedGrid, cells: Sequence[PlannedCell]) -> list[str]:
    """Say at which of the sweep's capacities work comes faster than the cluster does it.

    Of several workloads, one a seed, the load is the largest.
    """
    if prepared.grid.request.chooses_cells:
        return []
    at_one: dict[str, list[float]] = {}
    for cell in cells:
        at_one.setdefault(_world(cell), []).append(_load_at_one(prepared, cell))
    capacities = prepared.grid.request.axes["capacity"]
    lines = []
    for world, loads in at_one.items():
        above = [capacity for capacity in capacities if max(loads) >= capacity]
        up_to = "up to " * (min(loads) < max(loads))
        words = [f"{max(loads) / capacity:.2g} at capacity {capacity:g}" for capacity in above]
        if above:
            lines.append(
                f"  {world}: offered load {up_to}{_listed(words[:N_SHOWN], len(words))}: work "
                "comes faster than the cluster does it, so waits grow as long as jobs come"
            )
    return lines


def _load_at_one(prepared: PreparedGrid, planned: PlannedCell) -> float:
    """Return the offered load at capacity 1 of a cluster of a given count or load; else 0.

    What a load below 1 makes of smaller capacities is known after the run.
    """
    cluster = planned.cell.cluster
    load = float(cluster.get("load") or 0.0)
    if load >= 1.0 and not cluster.get("tails") and planned.cell.evaluator["name"] == "simulation":
        return load
    is_sized = cluster.get("count") is None or cluster.get("load") is not None
    if is_sized or planned.cell.evaluator["name"] != "simulation":
        return 0.0
    busy = prepared.inputs.describe(planned.workload).get("busy", {})
    whole = cluster_size.at_capacity(cluster, float(cluster["count"]), 1.0)
    return max(_shares(busy, whole).values(), default=0.0)


def _never_waits(prepared: PreparedGrid, planned: PlannedCell) -> str:
    """Say from which capacity on no task waits, if one of the sweep's is above it.

    Only where the cluster has a count: others are sized so that tasks wait.
    """
    cluster = planned.cell.cluster
    peaks = prepared.inputs.describe(planned.workload).get("peaks")
    if not peaks or cluster.get("count") is None:
        return ""
    whole = cluster_size.at_capacity(cluster, float(cluster["count"]), 1.0)
    needed = _shares(peaks, whole)
    resource = max(needed, key=lambda name: needed[name], default="")
    capacities = prepared.grid.request.axes["capacity"]
    above = [capacity for capacity in capacities if resource and capacity >= needed[resource]]
    if not above or prepared.grid.request.chooses_cells:
        return ""
    words = [f"{capacity:g}" for capacity in above[:N_SHOWN]]
    unit = "slots" if whole.unit else resource
    return (
        f"  {_world(planned)}: next to nothing waits from capacity {needed[resource]:.2g} on (at "
        f"most {peaks[resource]:,.0f} {unit} in use at once), so policies are alike at "
        f"{_listed(words, len(above))}; give capacity={needed[resource] / 2:.2g}, say"
    )


def _unused_limits(prepared: PreparedGrid, planned: PlannedCell) -> list[str]:
    """Name the rows of the cluster's limits under which no job of the workload is."""
    cluster = planned.cell.cluster
    values = dict(prepared.inputs.describe(planned.workload).get("values", {}))
    if not values or not cluster.get(LIMITS):
        return []
    above = parse_accounts(cluster.get(ACCOUNTS))
    values.pop("partition", None)  # jobs that name none are in the default one
    accounts = values.get("account", ())
    if accounts:
        values["account"] = [
            name for account in accounts for name in accounts_above(account, above)
        ]
    rows = [Cap.parse(row, f"limits[{i}]") for i, row in enumerate(cluster[LIMITS])]
    return [
        f"  {_world(planned)}: no job is under cluster.{row.name}; they have "
        + "; ".join(
            f"{key} {_listed(values[key][:N_SHOWN], len(values[key])) or 'none'}"
            for key in dict.fromkeys((*row.by, *(row.where or {})))
            if key in values
        )
        for row in rows
        if not row.may_count(values)
    ]


def _unused_levels(prepared: PreparedGrid, planned: PlannedCell) -> list[str]:
    """Name values with a level for preemption that no job has."""
    preemption = planned.cell.policy["params"].get("preemption") or {}
    values = prepared.inputs.describe(planned.workload).get("values", {}).get(preemption.get("by"))
    if values is None:
        return []
    return [
        f"  {_world(planned)}: no job is of {preemption['by']} {name} (policy.preemption.{key}); "
        f"they have {_listed(values[:N_SHOWN], len(values)) or 'none'}"
        for key in ("levels", "when")
        if isinstance(preemption.get(key), Mapping)
        for name in preemption[key]
        if name not in values
    ]


def _single_group(prepared: PreparedGrid, planned: PlannedCell) -> list[str]:
    """Say that a policy that shares between groups has a single one."""
    policy = planned.cell.policy["params"]
    values = prepared.inputs.describe(planned.workload).get("values", {})
    by = policy.get("by")
    if by not in ("user", "queue") or len(values.get(by, "two")) > 1:
        return []
    other = {"user": "queue", "queue": "user"}[by]
    n = len(values.get(other, ()))
    cure = f"; policy.by={other} shares between {n:,}" if n > 1 else ""
    name = planned.cell.labels["policy"]
    return [
        f"  {name} on {_world(planned)}: all jobs are of one {by}, so there is nobody to share with"
        f"{cure}"
    ]


def _beyond_limits(prepared: PreparedGrid, planned: PlannedCell) -> list[str]:
    """Say how many jobs will be ended at their limits, if these are many."""
    share = prepared.inputs.describe(planned.workload).get("beyond_limits", 0.0)
    if not planned.cell.cluster.get(ENFORCES) or share < MANY:
        return []
    return [
        f"  {_world(planned)}: {share:.0%} of the jobs run longer than their limits, and end there "
        "(cluster.enforce_limits=true); are these in another unit?"
    ]


def _shares(amounts: Mapping[str, float], cluster: Cluster) -> dict[str, float]:
    """Return amounts of resources as shares of the cluster's."""
    totals = zip(cluster.resources, cluster.total, strict=True)
    return {name: amounts[name] / float(n) for name, n in totals if name in amounts and n}


def _world(planned: PlannedCell) -> str:
    labels = planned.cell.labels
    return ", ".join(filter(None, [labels["trace"], what_ifs.words(labels)]))


def _listed(words: Sequence[str], n: int) -> str:
    return ", ".join(words) + ", ..." * (n > len(words))


def _missing_history(prepared: PreparedGrid, planned: PlannedCell) -> str:
    """Warn that a policy learns from columns that the workload lacks; '' if it does not."""
    policy = build_policy(planned.cell.policy)
    needed = policy.learns_from if policy else ()
    available = prepared.inputs.describe(planned.workload).get("learnable", needed)
    missing = " and ".join(f"no {column}" for column in needed if column not in available)
    if not missing:
        return ""
    labels = planned.cell.labels
    return (
        f"  {labels['policy']} on {labels['trace']}: the workload has {missing} of jobs to predict "
        "from, so its estimates are poor (docs/your_own_trace.md)"
    )


INTERRUPTED = "interrupted: finished cells are stored; the same command resumes from here"


def interrupted(prepared: PreparedGrid, n_todo: int) -> str:
    """Report how many cells are stored."""
    n_left = len(prepared.missing_rows())
    return (
        f"interrupted: {n_todo - n_left} of {n_todo} cells are done and stored; "
        "the same command resumes from here"
    )


def count(n: int, plural: str) -> str:
    """Write a number with its noun, such as ``1 cell``."""
    return f"{n:,} {_SINGULAR.get(plural, plural) if n == 1 else plural}"


def _load_report(report: Mapping[str, Any]) -> str:
    """Describe the rows that a loader dropped or filled in, by rule."""
    parts: list[str] = []
    for kind in ("dropped", "filled", "edges_dropped", "noticed", "bad_rows", "columns_unused"):
        counts = report.get(kind)
        if isinstance(counts, Mapping) and counts:
            rules = ", ".join(f"{rule} ({n:,})" for rule, n in counts.items())
            parts.append(f"{kind.replace('_', ' ')}: {rules}")
    return "; ".join(parts)
