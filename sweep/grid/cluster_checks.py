"""Checks of a cluster's configuration that need no workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sim.base.errors import InputError, unknown
from sim.base.parameters import Count, NotNegative, Positive
from sim.base.parameters import check as check_value
from sim.base.plugins import check_names
from sim.cluster.changes import parse_changes
from sim.cluster.cluster import Cluster, Unmet, check_size
from sim.cluster.faults import Outages
from sim.cluster.launch import Launch
from sim.cluster.partitions import Unadmitted
from sim.cluster.power import SERIES, Power, read_series
from sim.cluster.quotas import parse_quotas
from sim.cluster.reservations import Reservations
from sim.cluster.sizing import unit_cluster
from sim.cluster.topology import check_spec
from sweep.grid import remote
from sweep.grid.cluster_size import EXTRA, STEADY_LOAD
from sweep.grid.machine_kinds import EXTRA_KIND, find_kind

FAULTS = {
    "outages": ("mtbf_s", "repair_s", "until_s"),
    "slowdowns": ("every_s", "last_s", "speed", "until_s"),
}
LAUNCH, STAGE_LAG, ENFORCES = "launch_s", "stage_lag_s", "enforce_limits"
UNMET_KEY = "unmet_dependencies"
LIMITS, ACCOUNTS, QUOTAS = "limits", "accounts", "quotas"
PARTITIONS, UNADMITTED_KEY = "partitions", "unadmitted"
RESERVATIONS = "reservations"
CHANGES, POWER, TOPOLOGY = "changes", "power", "topology"
PRICE = "price_per_machine_h"
"""Key of a cluster that no number of a run depends on, so that it is in no cell's key."""
MONTH_H = 730.0
"""Hours of a month."""
TRACE_SHARES = "trace"
"""Value of the queues' shares that takes them from the trace."""
_LABEL = "label"  # an optional key of slow periods: other labels draw other periods
_FLAGS = ("known", "drain")
"""Optional keys of outages (`sim.cluster.faults.draw_outages`)."""
KEYS = (
    "shape",
    "count",
    "load",
    "usual_load",
    "tails",
    "queues",
    "fungible",
    EXTRA,
    EXTRA_KIND,
    PRICE,
    LAUNCH,
    STAGE_LAG,
    ENFORCES,
    UNMET_KEY,
    LIMITS,
    ACCOUNTS,
    PARTITIONS,
    UNADMITTED_KEY,
    RESERVATIONS,
    QUOTAS,
    CHANGES,
    POWER,
    TOPOLOGY,
    *FAULTS,
)
_MODES = ("global", "hard", "weighted")


def check(config: Mapping[str, Any]) -> None:
    """Refuse a cluster that can't be built for any workload."""
    _check_keys("cluster", config, KEYS)
    shape, count = config.get("shape"), config.get("count")
    _check_partitions(config)
    if isinstance(shape, list):
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
    check_value(f"cluster.{EXTRA}", config.get(EXTRA), int | None)
    check_value(f"cluster.{EXTRA_KIND}", config.get(EXTRA_KIND), str | None)
    if config.get(EXTRA_KIND) is not None:
        find_kind(unit_cluster(shape), config[EXTRA_KIND])
    check_value(f"cluster.{PRICE}", config.get(PRICE), Positive | None)
    _check_queues(config.get("queues") or {}, config.get(QUOTAS))
    _check_fungible(config.get("fungible") or [], shape)
    _check_faults(config)
    if config.get(LAUNCH) is not None:
        Launch.parse(config[LAUNCH], name=f"cluster.{LAUNCH}")
    if config.get(STAGE_LAG) is not None:
        check_value(f"cluster.{STAGE_LAG}", config[STAGE_LAG], NotNegative)
    check_value(f"cluster.{ENFORCES}", config.get(ENFORCES), bool | None)
    if UNMET_KEY in config:
        check_value(f"cluster.{UNMET_KEY}", config[UNMET_KEY], Unmet)
    check_value(f"cluster.{LIMITS}", config.get(LIMITS), list[Mapping[str, Any]] | None)
    Cluster.slots(1).with_limits(config.get(LIMITS) or (), config.get(ACCOUNTS))
    check_value(f"cluster.{RESERVATIONS}", config.get(RESERVATIONS), list[Mapping[str, Any]] | None)
    Reservations.parse(config.get(RESERVATIONS) or (), f"cluster.{RESERVATIONS}")
    check_value(f"cluster.{CHANGES}", config.get(CHANGES), list[Mapping[str, Any]] | None)
    parse_changes(config.get(CHANGES) or (), f"cluster.{CHANGES}")
    if config.get(POWER) is not None:
        Power.parse(config[POWER], f"cluster.{POWER}")
    if config.get(TOPOLOGY) is not None:
        check_spec(config[TOPOLOGY], f"cluster.{TOPOLOGY}")


def _check_partitions(config: Mapping[str, Any]) -> None:
    """Refuse kinds of machines, and rules of partitions that they do not name."""
    rules, shape = config.get(PARTITIONS), config.get("shape")
    check_value(f"cluster.{PARTITIONS}", rules, Mapping[str, Any] | None)
    if UNADMITTED_KEY in config:
        check_value(f"cluster.{UNADMITTED_KEY}", config[UNADMITTED_KEY], Unadmitted)
    cluster = Cluster.mixed(shape) if isinstance(shape, list) else Cluster.slots(1)
    cluster.with_partitions(rules or {})


def with_series(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with the rows of the files that its power names.

    Raises
    ------
    InputError
        If there is no such file, or it has a row that is not two numbers.
    """
    power = config.get(POWER)
    if not isinstance(power, Mapping):
        return {**config}
    read = {
        key: read_series(remote.local_path(value))
        for key, value in power.items()
        if key in SERIES and isinstance(value, str)
    }
    return {**config, POWER: {**power, **read}}


def cost_month(config: Mapping[str, Any], machines: float) -> float | None:
    """Return what machines cost a month; None without a price."""
    price = config.get(PRICE)
    return None if price is None else float(price) * MONTH_H * machines


def without_price(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the configuration as far as a run depends on it."""
    return {key: value for key, value in config.items() if key != PRICE}


def check_count(config: Mapping[str, Any], capacity: float) -> None:
    """Refuse a capacity that gives an absurd number of machines, before anything is loaded."""
    count = config.get("count")
    if count is not None:
        check_size(capacity * count, "slots" if config["shape"] == "slots" else "machines")


def _check_keys(option: str, config: Any, keys: Sequence[str]) -> None:
    """Refuse a value that is not a mapping, and unknown keys."""
    if not isinstance(config, Mapping):
        message = f"{option} has the keys {', '.join(keys)}, or is null, not {config!r}"
        raise InputError(message, rule="wrong type")
    for key in config:
        if key not in keys:
            raise InputError(unknown("key", f"{option}.{key}", keys), rule="unknown key")


def _check_fungible(fungible: Any, shape: Any) -> None:
    names = () if shape == "slots" else tuple(shape)
    check_value("cluster.fungible", fungible, list[str])
    if isinstance(shape, list):
        Cluster.mixed(shape, fungible=fungible)
    else:
        check_names("resource in cluster.fungible", fungible, names, "range")


def _check_queues(queues: Any, quotas: Any) -> None:
    _check_keys("cluster.queues", queues, ("mode", "shares"))
    mode, shares = queues.get("mode", "global"), queues.get("shares")
    if mode not in _MODES:
        raise InputError(unknown("cluster.queues.mode", str(mode), _MODES), rule="unknown mode")
    check_value("cluster.queues.shares", shares, Mapping[str, Positive] | Literal["trace"] | None)
    if shares != TRACE_SHARES:
        Cluster.slots(1).with_queues(mode, shares)
    check_value(f"cluster.{QUOTAS}", quotas, Mapping[str, Any] | None)
    if quotas:
        parse_quotas(quotas)
        if mode != "global":
            raise InputError(
                f"cluster.queues.mode is {mode}, and there are cluster.quotas, which share between "
                "queues themselves; set the mode to global, or leave out one of the two",
                rule="quotas",
            )


def _check_faults(config: Mapping[str, Any]) -> None:
    """Refuse invalid outages and slow periods."""
    for kind, keys in FAULTS.items():
        values = config.get(kind)
        if values is None:
            continue
        if kind == "outages" and isinstance(values, list):
            Outages.parse(values, "cluster.outages")
            continue
        more = (_LABEL,) if kind == "slowdowns" else _FLAGS
        _check_keys(f"cluster.{kind}", values, (*keys, *more))
        for key in more:
            if key in _FLAGS:
                check_value(f"cluster.{kind}.{key}", values.get(key, False), bool)
        if _LABEL in values:
            check_value(f"cluster.{kind}.{_LABEL}", values[_LABEL], str | None)
        for key in keys:
            _check_fault(f"cluster.{kind}.{key}", values.get(key), allow_range=key == "speed")


def _check_fault(key: str, value: Any, *, allow_range: bool) -> None:
    if not allow_range or not isinstance(value, list):
        check_value(key, value, Positive)
        return
    if len(value) != 2:
        raise InputError(f"{key} must be a number above 0, or two as [low, high], not {value!r}")
    check_value(key, value, list[Positive])
    if value[0] > value[1]:
        raise InputError(f"{key}: {value!r} is reversed; the lower bound comes first")
