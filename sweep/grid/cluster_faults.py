"""From a cell's configuration to what goes wrong on the simulated cluster, drawn from its seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError, unknown
from sim.cluster import faults

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster

KINDS = {
    "outages": ("mtbf_s", "repair_s", "until_s"),
    "slowdowns": ("every_s", "last_s", "speed", "until_s"),
}


def check(config: Mapping[str, Any]) -> None:
    """Refuse faults that can't be drawn."""
    for kind, keys in KINDS.items():
        asked = config.get(kind)
        if asked is None:
            continue
        if not isinstance(asked, Mapping):
            raise InputError(
                f"cluster.{kind} has the keys {', '.join(keys)}, or is null, not {asked!r}",
                rule="wrong type",
            )
        for key in asked:
            if key not in keys:
                message = unknown("key", f"cluster.{kind}.{key}", keys)
                raise InputError(message, rule="unknown key")
        for key in keys:
            _check_number(f"cluster.{kind}.{key}", asked.get(key), key == "speed")


def with_faults(cluster: Cluster, sized: Mapping[str, Any], seed: int) -> Cluster:
    """Return the cluster with the faults that `sized` asks for, the same for every policy."""
    lost, slow = sized.get("outages"), sized.get("slowdowns")
    if lost:
        cluster = cluster.with_outages(faults.draw_outages(cluster.n_machines, seed, **lost))
    if slow:
        both = slow["speed"] if isinstance(slow["speed"], list) else [slow["speed"]] * 2
        drawn = faults.draw_slowdowns(seed, **{**slow, "speed": (both[0], both[1])})
        cluster = cluster.with_slowdowns(drawn)
    return cluster


def _check_number(key: str, value: Any, may_be_pair: bool) -> None:
    pair = may_be_pair and isinstance(value, list) and len(value) == 2
    for each in value if pair else [value]:
        number = isinstance(each, (int, float)) and not isinstance(each, bool)
        if not number or not math.isfinite(each) or each <= 0:
            kind = "a positive number" + (" or two of them, [low, high]" if may_be_pair else "")
            raise InputError(f"{key} must be {kind}, not {value!r}", rule="range")
    if pair and value[0] > value[1]:
        raise InputError(f"{key} lies between {value[0]!r} and {value[1]!r}: turn them")
