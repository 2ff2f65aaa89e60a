"""Size of the simulated cluster: slots or machines of a capacity; arrivals stretched to a load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sim.cluster import load, sizing
from sim.cluster.cluster import Cluster
from sim.cluster.sizing import scale_cluster, unit_cluster

if TYPE_CHECKING:
    from sim.workload.workload import Workload

STEADY_LOAD = 0.8
"""Offered load of a cluster at capacity 1.0 whose option says nothing else."""
SCALE = "arrival_scale"
"""Key of a workload's ``meta``: by what its arrivals were stretched."""


def stretches(config: Mapping[str, Any]) -> bool:
    """Tell whether arrivals are stretched: where a number of machines is to have a load."""
    return config.get("count") is not None and config.get("load") is not None


def stretched(workload: Workload, config: Mapping[str, Any]) -> Workload:
    """Return the workload with its arrivals stretched, where the cluster asks for it."""
    if not stretches(config):
        return workload
    fixed = build_shape(config["shape"], config["count"])
    if config.get("tails", False):
        factor = max(workload.mean_load(fixed).values()) / config["load"]
        found = workload.scale_load(config["load"], fixed)
    else:
        found, factor = load.stretch_to_load(workload, config["load"], fixed)
    return found.with_meta({SCALE: factor})


def full_count(workload: Workload, config: Mapping[str, Any]) -> float:
    """Return how many slots or machines capacity 1 is, before slots are made whole."""
    if config.get("count") is not None:
        return float(config["count"])
    wanted = config.get("load") or config.get("usual_load", STEADY_LOAD)
    tails = bool(config.get("tails", False))
    return sizing.full_count(workload, config["shape"], wanted, tails=tails)


def at_capacity(config: Mapping[str, Any], full: float, capacity: float) -> Cluster:
    """Return the cluster of a capacity, of so many machines at 1, whether or not jobs fit it."""
    return build_shape(config["shape"], capacity * full)


def machine_count(cluster: Cluster, shape: Any) -> float:
    """Return how many slots or machines a cluster of that shape has; like ones may be parts."""
    if isinstance(shape, list):
        return float(cluster.n_machines)
    each = 1.0 if cluster.unit else float(shape[cluster.resources[0]])
    return float(cluster.total[0]) / each


def comes_whole(config: Mapping[str, Any]) -> bool:
    """Tell whether slots or machines come whole; a part of a like machine is a smaller one."""
    return config["shape"] == "slots" or isinstance(config["shape"], list)


def build_shape(shape: Any, count: float, fungible: Sequence[str] = ()) -> Cluster:
    """Build the cluster of `count` times a slot, a machine of a shape, or listed machines."""
    return scale_cluster(unit_cluster(shape, fungible), count)
