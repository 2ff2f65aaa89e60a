"""Another time limit of a partition: ``long:0.5`` is half of what it is.

Jobs that asked for more ask for the new limit, and end there if limits are enforced. Where the
cluster's partitions have no limits, it is a queue of the log, and the limit is the longest time
that its jobs ask for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sim.base.errors import InputError, unknown
from sim.base.parameters import Positive
from sim.base.parameters import check as check_value
from sim.cluster.sizing import unit_cluster
from sweep.grid.changes import Change, Config, times, with_cluster, with_transform

ORDER = 5
LONGEST, DEFAULT = "max_time_s", "default_time_s"
_TRANSFORM = "limit_time"


def check(change: Change) -> None:
    """Refuse what is no partition with a factor."""
    _parsed(change)


def apply(parts: Config, change: Change) -> Config:
    """Change the partition's rule, and what its jobs ask for."""
    partition, factor = _parsed(change)
    rules: Mapping[str, Any] = parts["cluster"].get("partitions") or {}
    limited = [name for name, rule in rules.items() if (rule or {}).get(LONGEST)]
    if not limited:
        options: Config = {"by": "queue", "changed": partition, "factor": factor}
        return with_transform(parts, _TRANSFORM, options)
    if partition not in limited:
        raise InputError(
            f"{change.text}: {unknown('partition with a time limit', partition, limited)} "
            "(cluster.partitions)",
            rule="unknown partition",
        )
    was_s = float(rules[partition][LONGEST])
    limit_s = was_s * factor
    parts = with_cluster(parts, f"partitions.{partition}.{LONGEST}", limit_s)
    default_s = rules[partition].get(DEFAULT)
    if default_s is not None and default_s > limit_s:
        parts = with_cluster(parts, f"partitions.{partition}.{DEFAULT}", limit_s)
    shape = parts["cluster"].get("shape")
    default = unit_cluster(shape).default_partition if isinstance(shape, list) else ""
    longest = {name: rule.get(LONGEST) for name, rule in parts["cluster"]["partitions"].items()}
    options = {"by": "partition", "changed": partition, "limits_s": longest, "was_s": was_s}
    return with_transform(parts, _TRANSFORM, {**options, "default": default})


def phrase(change: Change) -> str:
    """Write ``half the time limit of long``."""
    partition, factor = _parsed(change)
    return f"{times(factor)} the time limit of {partition}"


def note(
    change: Change, cluster: Mapping[str, Any], transforms: Sequence[Mapping[str, Any]]
) -> str:
    """Say how many jobs the limit changes."""
    partition, _ = _parsed(change)
    done = [entry for entry in transforms if entry.get(_TRANSFORM) == partition]
    return limit_note(done[-1], cluster) if done else ""


def limit_note(done: Mapping[str, Any], cluster: Mapping[str, Any]) -> str:
    """Say how many jobs asked for more than a limit, and how many ran for longer."""
    n_more, n_cut, n_jobs = done["asked_for_more"], done["ran_longer"], done["jobs"]
    limit = f", {done['limit_s']:,.0f} s" if "limit_s" in done else ""
    name = done[_TRANSFORM]
    text = f"{n_more:,} of {n_jobs:,} jobs of {name} asked for more than the new limit{limit}"
    if not n_more:
        return f"{text}."
    ends = (
        "end there"
        if cluster.get("enforce_limits")
        else "run on, as limits are not enforced (cluster.enforce_limits)"
    )
    longer = (
        f"{n_cut:,} of them ran for longer and {ends}" if n_cut else "none of them ran for longer"
    )
    rejected = "" if limit else ", and would be rejected as they are"  # a log's queue has no rule
    return f"{text}{rejected}; here they ask for it: {longer}."


def _parsed(change: Change) -> tuple[str, float]:
    partition, _, text = str(change.value).rpartition(":")
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not partition or factor <= 0:
        raise InputError(
            f"{change.text}: give a partition and a factor of its time limit, as in "
            f"{change.full_key}=long:0.5",
            rule="range",
        )
    check_value(f"{change.full_key}={partition}", factor, Positive)
    return partition, factor
