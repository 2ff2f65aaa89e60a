"""Simulated cluster of a cell: built for a workload and a capacity, with faults drawn by seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sim.cluster import faults, load
from sim.cluster.changes import with_changes
from sim.cluster.cluster import Cluster
from sim.cluster.fits import check_fits, check_room
from sim.cluster.load import CLUSTER_COLUMNS
from sweep.grid import cluster_size
from sweep.grid.cluster_checks import QUOTAS, TRACE_SHARES

if TYPE_CHECKING:
    from policies.base import Policy
    from sim.workload.workload import Workload


@dataclass(frozen=True)
class SizedCluster:
    """Cluster and its metrics, shared by cells of one workload, configuration and capacity."""

    cluster: Cluster  # without faults
    facts: dict[str, float]  # see `sim.cluster.load.CLUSTER_COLUMNS`


def build_for(workload: Workload, config: Mapping[str, Any], capacity: float) -> SizedCluster:
    """Build the cluster for a workload and a capacity, and check that every job fits it."""
    shape = config["shape"]
    bare = cluster_size.at_capacity(config, cluster_size.full_count(workload, config), capacity)
    n_machines = cluster_size.machine_count(bare, shape)
    is_list = isinstance(shape, list)
    count = cluster_size.units(config, config["count"], capacity) if is_list else n_machines
    cluster = cluster_size.sized_shape(config, count, config.get("fungible") or ())
    queues = _queues(workload, config)
    cluster = cluster.with_queues(queues.get("mode", "global"), queues.get("shares"))
    unadmitted = config.get("unadmitted", cluster.unadmitted)
    cluster = cluster.with_partitions(config.get("partitions") or {}, unadmitted)
    if config.get(QUOTAS):
        cluster = cluster.with_quotas(config[QUOTAS])
    cluster = cluster.with_limits(config.get("limits") or (), config.get("accounts"))
    cluster = cluster.with_reservations(config.get("reservations") or ())
    cluster = cluster.with_topology(config.get("topology"))
    try:
        check_room(workload, bare)
        check_fits(workload, cluster)
    except InputError as error:
        raise InputError(
            f"at capacity {capacity:g} the cluster is {cluster.describe()}: {error.message}",
            rule=error.rule,
        ) from error
    offered = max(load.offered_load(workload.inflow, bare).values())
    facts = (n_machines, offered, float(workload.meta.get(cluster_size.SCALE, 1.0)))
    return SizedCluster(cluster, dict(zip(CLUSTER_COLUMNS, facts, strict=True)))


def with_faults(
    cluster: Cluster, config: Mapping[str, Any], seed: int, policy: Policy | None = None
) -> Cluster:
    """Return the cluster with outages, slow periods, lags and the like, the same for every policy.

    A policy with a lag of its own (`Policy.has_own_lag`) gets no launch lags.
    """
    outages, slowdowns = config.get("outages"), config.get("slowdowns")
    cluster = with_changes(cluster, config.get("changes") or ())
    if config.get("power") is not None:
        cluster = cluster.with_power(config["power"])
    if isinstance(outages, list):
        listed = faults.Outages.parse(outages)
        cluster = cluster.with_outages(cluster.outages.joined(listed))
    elif outages:
        drawn = faults.draw_outages(cluster.n_machines, seed, **outages)
        cluster = cluster.with_outages(cluster.outages.joined(drawn))
    if slowdowns:
        speeds = (
            slowdowns["speed"] if isinstance(slowdowns["speed"], list) else [slowdowns["speed"]] * 2
        )
        options = {**slowdowns, "speed": (speeds[0], speeds[1])}
        cluster = cluster.with_slowdowns(faults.draw_slowdowns(seed, **options))
    if config.get("stage_lag_s"):
        cluster = cluster.with_stage_lag(config["stage_lag_s"])
    if config.get("enforce_limits"):
        cluster = cluster.with_enforced_limits()
    unmet = config.get("unmet_dependencies", cluster.unmet_dependencies)
    if unmet != cluster.unmet_dependencies:
        cluster = cluster.with_unmet_dependencies(unmet)
    launch_s = None if getattr(policy, "has_own_lag", False) else config.get("launch_s")
    return cluster.with_launch(launch_s, seed) if launch_s else cluster


def _queues(workload: Workload, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return mode and shares of the queues; shares from the trace if it is to provide them."""
    queues = dict(config.get("queues") or {})
    if queues.get("shares") == TRACE_SHARES:
        if "queue_share" not in workload.meta:
            raise InputError(
                "cluster.queues.shares is 'trace', but the trace has no shares; give a number for "
                "each queue such as {a:0.6,b:0.4}, or null for equal ones"
            )
        queues["shares"] = dict(workload.meta["queue_share"])
    return queues
