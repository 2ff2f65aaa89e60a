"""Mechanisms of a site, each of which can be taken out of its model: limits, tiers, memory etc.

A backtest one step at a time is repeated without each: what is lost then says why jobs wait.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import policies
from sim.cluster.allowed import has_tiers
from sim.cluster.caps import Cap
from sim.cluster.cluster import Cluster
from sim.cluster.faults import NO_OUTAGES
from sim.cluster.reservations import NO_RESERVATIONS
from sim.engine.plan import NO_LIMIT
from sim.transforms.parts import rebuild
from sim.workload.delays import submitted_s
from sim.workload.schema import (
    ARRAY,
    DELAYED_BY,
    DEMAND_PREFIX,
    DEPENDENCY_KINDS,
    EXCLUSIVE,
    REQUEST_PREFIX,
    REQUESTED,
    RESERVATION,
    RUNS_ON,
)
from sim.workload.tables import column_or_default, names, values, with_column
from sim.workload.workload import Workload
from sweep.questions.backtest.attempts import submitted_at

THROTTLE = ARRAY[1].name
YEAR_S = 365 * 86_400.0


class Model(NamedTuple):
    """A site's model: its jobs, its cluster and its scheduler."""

    workload: Workload
    cluster: Cluster
    policy: policies.Policy


Change = Callable[[Model], "Model | None"]
"""Takes a mechanism out of a model; None if the model does not have it."""


def without_each(model: Model) -> Iterator[tuple[str, Model]]:
    """Yield the model without each mechanism that it has, and the mechanism's name."""
    for name, change in MECHANISMS.items():
        other = change(model)
        if other is not None:
            yield name, other


def _node_sets(model: Model) -> Model | None:
    sets = model.cluster.partitions
    if len({*sets}) < 2:
        return None
    everything = tuple(dict.fromkeys(name for set_ in sets for name in set_))
    return _with_cluster(model, partitions=(everything,) * len(sets))


def _limits(is_kind: Callable[[Cap], bool]) -> Change:
    """Return the change that lets caps of a kind go."""

    def change(model: Model) -> Model | None:
        limits = model.cluster.limits
        left = tuple(cap for cap in limits if not is_kind(cap))
        return None if len(left) == len(limits) else _with_cluster(model, limits=left)

    return change


def _is_of_qos(cap: Cap) -> bool:
    return bool({"qos", "queue", "partition"} & {*cap.by, *(cap.where or ())})


def _is_of_account(cap: Cap) -> bool:
    return not _is_of_qos(cap) and "account" in {*cap.by, *(cap.where or ())}


def _is_other(cap: Cap) -> bool:
    return not _is_of_qos(cap) and not _is_of_account(cap)


def _tiers(model: Model) -> Model | None:
    rules, tiers = model.cluster.rules, getattr(model.policy, "tiers", None)
    if not has_tiers(model.cluster) and not tiers:
        return None
    equal = {name: dataclasses.replace(rule, tier=1) for name, rule in rules.items()}
    policy: Any = model.policy
    policy = dataclasses.replace(policy, tiers={}) if tiers else policy
    return _with_cluster(model, rules=equal)._replace(policy=policy)


def _order(model: Model) -> Model | None:
    """Serve jobs in the order of submission, by the same scheduler."""
    name = model.policy.name
    if not name.startswith("multifactor_"):
        return None
    return model._replace(policy=_like(model.policy, name.removeprefix("multifactor_")))


def _whole_nodes(model: Model) -> Model | None:
    """Reserve amounts for all waiting jobs, not whole nodes."""
    name = model.policy.name
    if not name.endswith("slurm"):
        return None
    easy = _like(model.policy, name.removesuffix("slurm") + "easy", reservations=NO_LIMIT - 1)
    return model._replace(policy=easy)


def _like(policy: policies.Policy, name: str, **more: Any) -> policies.Policy:
    """Build another policy with the settings that it has in common with one."""
    options: dict[str, Any] = dataclasses.asdict(policy)
    known = {field.name for field in dataclasses.fields(type(policies.build(name)))}
    same = {key: value for key, value in options.items() if key in known and key != "order"}
    return policies.build(name, **same, **more)


def _throttles(model: Model) -> Model | None:
    jobs = model.workload.jobs
    if THROTTLE not in jobs.column_names or not values(jobs, THROTTLE).any():
        return None
    return _with_tables(model, jobs=jobs.drop_columns([THROTTLE]))


def _time_limits(model: Model) -> Model | None:
    jobs = model.workload.jobs
    if REQUESTED.name not in jobs.column_names:
        return None
    rules = {
        name: dataclasses.replace(rule, max_time_s=None, default_time_s=None)
        for name, rule in model.cluster.rules.items()
    }
    endless = np.full(jobs.num_rows, YEAR_S)
    other = _with_tables(model, jobs=with_column(jobs, REQUESTED.name, endless))
    return _with_cluster(other, rules=rules)


def _exclusive(model: Model) -> Model | None:
    jobs, rules = model.workload.jobs, model.cluster.rules
    has_jobs = EXCLUSIVE.name in jobs.column_names and bool(
        column_or_default(jobs, EXCLUSIVE).any()
    )
    if not has_jobs and not any(rule.exclusive for rule in rules.values()):
        return None
    shared = {name: dataclasses.replace(rule, exclusive=False) for name, rule in rules.items()}
    other = _with_tables(model, jobs=jobs.drop_columns([EXCLUSIVE.name])) if has_jobs else model
    return _with_cluster(other, rules=shared)


def _demand(resource: str) -> Change:
    """Return the change that lets jobs take none of a resource."""

    def change(model: Model) -> Model | None:
        stages, column = model.workload.stages, DEMAND_PREFIX + resource
        if column not in stages.column_names or resource not in model.cluster.resources:
            return None
        if REQUEST_PREFIX + resource in stages.column_names:
            stages = stages.drop_columns([REQUEST_PREFIX + resource])
        return _with_tables(model, stages=with_column(stages, column, np.zeros(stages.num_rows)))

    return change


def _begins(model: Model) -> Model | None:
    """Let jobs that were held, or had a begin time, be free from their submission on."""
    workload = model.workload
    if DELAYED_BY.name not in workload.jobs.column_names:
        return None
    cause = np.array(names(workload.jobs, DELAYED_BY.name), object)
    is_held = np.isin(cause[values(workload.jobs, DELAYED_BY.name)], ["begin", "hold"])
    free_s = np.where(is_held, submitted_s(workload), workload.columns.job_submit)
    if (free_s == workload.columns.job_submit).all():
        return None
    rows = np.argsort(free_s, kind="stable")
    return model._replace(workload=submitted_at(workload, rows, free_s[rows]))


def _dependencies(model: Model) -> Model | None:
    edges = model.workload.job_edges
    kinds = np.array(names(edges, "kind"), object)
    is_one = np.isin(kinds[values(edges, "kind")], DEPENDENCY_KINDS)
    if not is_one.any():
        return None
    return _with_tables(model, job_edges=edges.filter(pa.array(~is_one)))


def _windows(model: Model) -> Model | None:
    cluster, jobs = model.cluster, model.workload.jobs
    if not len(cluster.reservations) and not len(cluster.outages):
        return None
    if RESERVATION.name in jobs.column_names:
        model = _with_tables(model, jobs=jobs.drop_columns([RESERVATION.name]))
    return _with_cluster(model, reservations=NO_RESERVATIONS, outages=NO_OUTAGES)


def _features(model: Model) -> Model | None:
    stages = model.workload.stages
    if RUNS_ON.name not in stages.column_names:
        return None
    return _with_tables(model, stages=stages.drop_columns([RUNS_ON.name]))


def _with_cluster(model: Model, **changed: Any) -> Model:
    return model._replace(cluster=dataclasses.replace(model.cluster, **changed))


def _with_tables(model: Model, **changed: pa.Table) -> Model:
    return model._replace(workload=rebuild(model.workload, None, **changed))


MECHANISMS: Mapping[str, Change] = {
    "node sets of partitions": _node_sets,
    "QOS limits": _limits(_is_of_qos),
    "account limits": _limits(_is_of_account),
    "other limits": _limits(_is_other),
    "tiers": _tiers,
    "priority order": _order,
    "array throttle": _throttles,
    "time limits": _time_limits,
    "exclusive": _exclusive,
    "memory": _demand("mem"),
    "GPUs": _demand("gpu"),
    "begin and hold": _begins,
    "dependencies": _dependencies,
    "whole-node reservations": _whole_nodes,
    "maintenance and outages": _windows,
    "features": _features,
}
"""Mechanisms that a site may have, by name, and the change of its model that takes it out."""
