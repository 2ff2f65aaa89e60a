"""From a cell's cluster configuration to the simulated cluster, and what goes wrong on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from sim.base.errors import InputError, unknown
from sim.base.parameters import Count, Positive
from sim.base.parameters import check as check_value
from sim.base.plugins import check_known
from sim.cluster import faults, load, sizing
from sim.cluster.cluster import Cluster, check_most
from sim.cluster.fits import check_fits, check_room
from sim.cluster.load import FACTS
from sim.cluster.sizing import single, times

if TYPE_CHECKING:
    from sim.workload.workload import Workload

FAULTS = {
    "outages": ("mtbf_s", "repair_s", "until_s"),
    "slowdowns": ("every_s", "last_s", "speed", "until_s"),
}
_OF = "of"  # an optional key of slow periods: whose they are
_KEYS = ("shape", "count", "load", "usual_load", "tails", "queues", "fungible", *FAULTS)
_OF_TRACE = "trace"
_SCALE = "arrival_scale"
STEADY_LOAD = 0.8
"""Offered load of a cluster at capacity 1.0 whose option says nothing else."""
_MODES = ("global", "hard", "weighted")


def check(config: Mapping[str, Any]) -> None:
    """Refuse a cluster that can't be built, whatever the workload."""
    _check_keys("cluster", config, _KEYS)
    shape, count = config.get("shape"), config.get("count")
    if isinstance(shape, list):
        Cluster.mixed(shape)
        if count is None:
            raise InputError(
                "machines that differ need a cluster.count: 1 for those that are listed",
                rule="wrong type",
            )
    elif shape != "slots":
        if not isinstance(shape, Mapping) or not shape:
            raise InputError(
                f"cluster.shape must be slots, the resources of one machine such as "
                f"{{cpu:16,mem:128}}, or a list of kinds of machines, not {shape!r}",
                rule="wrong type",
            )
        for name, amount in shape.items():
            check_value(f"cluster.shape.{name}", amount, Positive)
    check_value("cluster.load", config.get("load"), Positive | None)
    check_value("cluster.usual_load", config.get("usual_load", STEADY_LOAD), Positive)
    check_value("cluster.tails", config.get("tails", False), bool)
    check_value("cluster.count", count, Count | None)
    _check_queues(config.get("queues") or {})
    _check_fungible(config.get("fungible") or [], shape)
    _check_faults(config)


def check_count(config: Mapping[str, Any], capacity: float) -> None:
    """Refuse a fraction of a fixed count that nobody means, before anything is loaded."""
    count = config.get("count")
    if count is not None:
        check_most(capacity * count, "slots" if config["shape"] == "slots" else "machines")


def stretches(config: Mapping[str, Any]) -> bool:
    """Tell whether arrivals are stretched: where a number of machines is to have a load."""
    return config.get("count") is not None and config.get("load") is not None


def stretched(workload: Workload, config: Mapping[str, Any]) -> Workload:
    """Return the workload with its arrivals stretched, where the cluster asks for it."""
    if not stretches(config):
        return workload
    fixed = _of(config["shape"], config["count"])
    if config.get("tails", False):
        factor = max(workload.mean_load(fixed).values()) / config["load"]
        found = workload.scale_load(config["load"], fixed)
    else:
        found, factor = load.stretched_to(workload, config["load"], fixed)
    return found.with_meta({_SCALE: factor})


def full_count(workload: Workload, config: Mapping[str, Any]) -> float:
    """Return how many slots or machines capacity 1 is, before slots are made whole."""
    if config.get("count") is not None:
        return float(config["count"])
    wanted = config.get("load") or config.get("usual_load", STEADY_LOAD)
    tails = bool(config.get("tails", False))
    return sizing.full_count(workload, config["shape"], wanted, tails=tails)


def at_capacity(config: Mapping[str, Any], full: float, capacity: float) -> Cluster:
    """Return the cluster of a capacity, of so many machines at 1, whether or not jobs fit it."""
    return _of(config["shape"], capacity * full)


def size(workload: Workload, config: Mapping[str, Any], capacity: float) -> dict[str, Any]:
    """Size the cluster for a workload and a capacity, and check that every job fits it."""
    shape = config["shape"]
    cluster = at_capacity(config, full_count(workload, config), capacity)
    n_machines = count_of(cluster, shape)
    count = capacity * config["count"] if isinstance(shape, list) else n_machines
    sized = {"shape": shape, "count": count, "queues": _queues(workload, config)}
    sized["fungible"] = list(config.get("fungible") or [])
    sized |= {kind: dict(config[kind]) for kind in FAULTS if config.get(kind)}
    try:
        check_room(workload, cluster)
        check_fits(workload, build(sized))
    except InputError as error:
        raise InputError(
            f"at capacity {capacity:g} the cluster is {build(sized).describe()}: {error.message}",
            rule=error.rule,
        ) from error
    offered = max(load.offered_load(workload.inflow, cluster).values())
    facts = (n_machines, offered, float(workload.meta.get(_SCALE, 1.0)))
    return {**sized, "facts": dict(zip(FACTS, facts, strict=True))}


def count_of(cluster: Cluster, shape: Any) -> float:
    """Return how many slots or machines a cluster of that shape has; like ones may be parts."""
    if isinstance(shape, list):
        return float(cluster.n_machines)
    each = 1.0 if cluster.unit else float(shape[cluster.resources[0]])
    return float(cluster.total[0]) / each


def comes_whole(config: Mapping[str, Any]) -> bool:
    """Tell whether slots or machines come whole; a part of a like machine is a smaller one."""
    return config["shape"] == "slots" or isinstance(config["shape"], list)


def _queues(workload: Workload, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return mode and shares of the queues, those of the trace where it is to say them."""
    queues = dict(config.get("queues") or {})
    if queues.get("shares") == _OF_TRACE:
        if "queue_share" not in workload.meta:
            raise InputError(
                "cluster.queues.shares is 'trace', but the trace states no shares; give a number "
                "for each queue such as {a:0.6,b:0.4}, or null for equal ones"
            )
        queues["shares"] = dict(workload.meta["queue_share"])
    return queues


def build(sized: Mapping[str, Any], seed: int = 0) -> Cluster:
    """Build the cluster that `size` described, with the faults of that seed."""
    cluster = _of(sized["shape"], sized["count"], sized.get("fungible", ()))
    queues = sized["queues"]
    cluster = cluster.with_queues(queues.get("mode", "global"), queues.get("shares"))
    return _with_faults(cluster, sized, seed)


def _of(shape: Any, count: float, fungible: Sequence[str] = ()) -> Cluster:
    return times(single(shape, fungible), count)


def _check_keys(what: str, asked: Any, keys: Sequence[str]) -> None:
    """Refuse what is no mapping, and a key that is none of these."""
    if not isinstance(asked, Mapping):
        message = f"{what} has the keys {', '.join(keys)}, or is null, not {asked!r}"
        raise InputError(message, rule="wrong type")
    for key in asked:
        if key not in keys:
            raise InputError(unknown("key", f"{what}.{key}", keys), rule="unknown key")


def _check_fungible(fungible: Any, shape: Any) -> None:
    names = () if shape == "slots" else tuple(shape)
    check_value("cluster.fungible", fungible, list[str])
    if isinstance(shape, list):
        Cluster.mixed(shape, fungible=fungible)
    else:
        check_known("resource in cluster.fungible", fungible, names, "range")


def _check_queues(queues: Any) -> None:
    _check_keys("cluster.queues", queues, ("mode", "shares"))
    mode, shares = queues.get("mode", "global"), queues.get("shares")
    if mode not in _MODES:
        raise InputError(unknown("cluster.queues.mode", str(mode), _MODES), rule="unknown mode")
    check_value("cluster.queues.shares", shares, Mapping[str, Positive] | Literal["trace"] | None)
    if shares != _OF_TRACE:
        Cluster.slots(1).with_queues(mode, shares)


def _check_faults(config: Mapping[str, Any]) -> None:
    """Refuse faults that can't be drawn."""
    for kind, keys in FAULTS.items():
        asked = config.get(kind)
        if asked is None:
            continue
        _check_keys(f"cluster.{kind}", asked, (*keys, _OF) if kind == "slowdowns" else keys)
        if _OF in asked:
            check_value(f"cluster.{kind}.{_OF}", asked[_OF], str | None)
        for key in keys:
            _check_fault(f"cluster.{kind}.{key}", asked.get(key), may_be_pair=key == "speed")


def _with_faults(cluster: Cluster, sized: Mapping[str, Any], seed: int) -> Cluster:
    """Return the cluster with the faults that `sized` asks for, the same for every policy."""
    lost, slow = sized.get("outages"), sized.get("slowdowns")
    if lost:
        cluster = cluster.with_outages(faults.draw_outages(cluster.n_machines, seed, **lost))
    if slow:
        both = slow["speed"] if isinstance(slow["speed"], list) else [slow["speed"]] * 2
        drawn = faults.draw_slowdowns(seed, **{**slow, "speed": (both[0], both[1])})
        cluster = cluster.with_slowdowns(drawn)
    return cluster


def _check_fault(key: str, value: Any, *, may_be_pair: bool) -> None:
    if not may_be_pair or not isinstance(value, list):
        check_value(key, value, Positive)
        return
    if len(value) != 2:
        raise InputError(f"{key} must be a number above 0, or two as [low, high], not {value!r}")
    check_value(key, value, list[Positive])
    if value[0] > value[1]:
        raise InputError(f"{key} lies between {value[0]!r} and {value[1]!r}: turn them")
