"""Size of the simulated cluster at a capacity; stretching of arrivals to a load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sim.cluster import load, sizing
from sim.cluster.cluster import Cluster
from sim.cluster.sizing import scale_cluster, unit_cluster
from sweep.grid.machine_kinds import EXTRA_KIND, find_kind

if TYPE_CHECKING:
    from sim.workload.workload import Workload

STEADY_LOAD = 0.8
"""Default offered load of a cluster at capacity 1.0."""
SCALE = "arrival_scale"
"""Key of a workload's ``meta``: the factor by which its arrivals were stretched."""
FULL = "full_count"
"""Key of a workload's ``meta``: slots or machines at capacity 1, before it was changed."""
EXTRA = "extra"
"""Key of a cluster: machines that are added, or if negative removed, at every capacity."""


def stretches(config: Mapping[str, Any]) -> bool:
    """Tell whether arrivals are stretched: a count and a load are both given."""
    return config.get("count") is not None and config.get("load") is not None


def stretched(workload: Workload, config: Mapping[str, Any]) -> Workload:
    """Return the workload with its arrivals stretched to the cluster's load, if one is given."""
    if not stretches(config):
        return workload
    cluster = build_shape(config["shape"], config["count"])
    if config.get("tails", False):
        factor = max(workload.mean_load(cluster).values()) / config["load"]
        scaled = workload.scale_load(config["load"], cluster)
    else:
        scaled, factor = load.stretch_to_load(workload, config["load"], cluster)
    return scaled.with_meta({SCALE: factor})


def full_count(workload: Workload, config: Mapping[str, Any]) -> float:
    """Return the number of slots or machines at capacity 1, before rounding to whole slots."""
    if config.get("count") is not None:
        return float(config["count"])
    if FULL in workload.meta:
        return float(workload.meta[FULL])
    target_load = config.get("load") or config.get("usual_load", STEADY_LOAD)
    tails = bool(config.get("tails", False))
    return sizing.full_count(workload, config["shape"], target_load, tails=tails)


def at_capacity(config: Mapping[str, Any], full: float, capacity: float) -> Cluster:
    """Build the cluster of a capacity, with `full` machines at 1; jobs need not fit it."""
    return sized_shape(config, units(config, full, capacity))


def sized_shape(config: Mapping[str, Any], count: float, fungible: Sequence[str] = ()) -> Cluster:
    """Build the cluster of `count` times the shape, and the machines of one kind that are added."""
    cluster = build_shape(config["shape"], count, fungible)
    kind = config.get(EXTRA_KIND)
    if kind is None:
        return cluster
    row = find_kind(cluster, kind).row
    return cluster.with_machines_like(row, int(config.get(EXTRA) or 0))


def units(config: Mapping[str, Any], full: float, capacity: float) -> float:
    """Return how many slots, machines, or whole lists of machines a capacity stands for."""
    shape, extra = config["shape"], config.get(EXTRA) or 0
    if not extra or config.get(EXTRA_KIND) is not None:
        return capacity * full
    n = capacity * full + extra / (unit_cluster(shape).n_machines if isinstance(shape, list) else 1)
    if n <= 0:
        raise InputError(
            f"cluster.{EXTRA}={extra:g} leaves no machine of {capacity * full:g} at capacity "
            f"{capacity:g}; remove fewer (what_if.nodes)",
            rule="range",
        )
    return n


def machine_count(cluster: Cluster, shape: Any) -> float:
    """Return the number of slots or machines of a cluster; identical machines may be fractions."""
    if isinstance(shape, list):
        return float(cluster.n_machines)
    per_machine = 1.0 if cluster.unit else float(shape[cluster.resources[0]])
    return float(cluster.total[0]) / per_machine


def comes_whole(config: Mapping[str, Any]) -> bool:
    """Tell whether slots or machines are whole.

    A fraction of identical machines is a smaller machine.
    """
    return config["shape"] == "slots" or isinstance(config["shape"], list)


def build_shape(shape: Any, count: float, fungible: Sequence[str] = ()) -> Cluster:
    """Build the cluster of `count` times a slot, a machine of a shape, or listed machines."""
    return scale_cluster(unit_cluster(shape, fungible), count)
