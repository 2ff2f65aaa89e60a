"""Another limit of a QOS, in Slurm's names: lifted, scaled or set.

``normal:MaxTRESPU=none`` lifts it, ``normal:MaxTRESPU=x2`` is twice of what it is, and
``high:MaxJobsPU=8`` or ``'normal:MaxTRESPU=cpu=64,gres/gpu=4'`` sets it.
``normal:MaxWall=12:00:00`` limits the time that its jobs ask for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sim.base.errors import InputError, unknown
from sim.cluster.limit_names import (
    LIMITS,
    MINUTES,
    RESOURCES,
    in_hierarchy,
    is_named,
    limit_key,
    origin,
    row_name,
)
from sim.traces.slurm_site.shown import amounts, span_s
from sweep.grid.changes import Change, Config, times, with_cluster, with_transform
from sweep.grid.changes.limit import limit_note

ORDER = 5
MAX_WALL = "MaxWall"
_FORM = re.compile(r"(?P<qos>[^:]+):(?P<limit>\w+)=(?P<value>.+)")
_LIFTED = ("none", "-1", "null")
_SCALED = re.compile(r"x(\d+(?:\.\d+)?)")
_EXAMPLE = "normal:MaxTRESPU=none, normal:MaxTRESPU=x2 or normal:MaxTRESPU=cpu=64"


def check(change: Change) -> None:
    """Refuse what is no limit of Slurm's with a value."""
    _, name, value = _parsed(change)
    if name == MAX_WALL:
        if span_s(value) is None:
            raise InputError(
                f"{change.text}: give a time, as in 12:00:00 or 1-00:00:00: jobs of the log kept "
                f"today's {MAX_WALL}, so that lifting it changes nothing",
                rule="range",
            )
    elif value not in _LIFTED and not _SCALED.fullmatch(value):
        _set_amounts(change)


def apply(parts: Config, change: Change) -> Config:
    """Change the caps that stand for the limit, also of partitions that have this QOS."""
    qos, name, value = _parsed(change)
    if name == MAX_WALL:
        limits_s = {qos: span_s(value)}
        return with_transform(
            parts, "limit_time", {"by": "qos", "changed": qos, "limits_s": limits_s}
        )
    rows: Sequence[Mapping[str, Any]] = parts["cluster"].get("limits") or ()
    key = limit_key(name)
    _check_known(change, rows, parts)
    unchanged = [row for row in rows if origin(row) != (qos, key)]
    changed: Sequence[Mapping[str, Any]]
    changed = [row for row in rows if origin(row) == (qos, key)]
    scaled = _SCALED.fullmatch(value)
    if value in _LIFTED:
        changed = []
    elif scaled:
        factor = float(scaled[1])
        changed = [{**row, "at_most": _scale(row["at_most"], factor)} for row in changed]
    else:
        changed = _set_rows(change, changed)
    return with_cluster(parts, "limits", in_hierarchy([*unchanged, *changed]))


def phrase(change: Change) -> str:
    """Write ``QOS normal without MaxTRESPU``."""
    qos, name, value = _parsed(change)
    scaled = _SCALED.fullmatch(value)
    if value in _LIFTED:
        return f"QOS {qos} without {name}"
    if scaled:
        return f"{times(float(scaled[1]))} the {name} of QOS {qos}"
    return f"QOS {qos} with {name}={value}"


def note(
    change: Change, cluster: Mapping[str, Any], transforms: Sequence[Mapping[str, Any]]
) -> str:
    """Say how many jobs a time limit changes."""
    qos, name, _ = _parsed(change)
    done = [entry for entry in transforms if entry.get("limit_time") == qos]
    return limit_note(done[-1], cluster) if done and name == MAX_WALL else ""


def _parsed(change: Change) -> tuple[str, str, str]:
    """Return QOS, Slurm's name of the limit, and value."""
    match = _FORM.fullmatch(str(change.value))
    if match is None:
        raise InputError(
            f"{change.text}: give QOS:LIMIT=VALUE, such as {change.full_key}={_EXAMPLE}",
            rule="wrong type",
        )
    known = {**{key: limit.name for key, limit in LIMITS.items()}, MAX_WALL.lower(): MAX_WALL}
    key = limit_key(match["limit"])
    if key not in known:
        raise InputError(
            f"{change.text}: {unknown('limit of a QOS', match['limit'], known.values())}",
            rule="unknown limit",
        )
    return match["qos"], known[key], match["value"].strip()


def _check_known(change: Change, rows: Sequence[Mapping[str, Any]], parts: Config) -> None:
    """Refuse a limit that the site does not have; to set one, its QOS must be known."""
    qos, name, value = _parsed(change)
    present = sorted({pair for row in rows if (pair := origin(row)) is not None})
    if (qos, limit_key(name)) in present:
        return
    known = {*(known for known, _ in present), *(parts["policy"].get("qos") or {})}
    is_set = value not in _LIFTED and not _SCALED.fullmatch(value)
    if is_set and qos in known:
        return
    listed = ", ".join(f"{known}:{LIMITS[key].name}" for known, key in present) or "none"
    raise InputError(
        f"{change.text}: the cluster has no such limit (cluster.limits); it has {listed}"
        + (f". QOS that are known: {', '.join(sorted(known)) or 'none'}" if is_set else ""),
        rule="unknown limit",
    )


def _scale(at_most: Any, factor: float) -> Any:
    if isinstance(at_most, Mapping):
        return {name: _scale(value, factor) for name, value in at_most.items()}
    return float(at_most) * factor


def _set_amounts(change: Change) -> dict[str, float | None]:
    """Return the caps of a value that is set, by what they count; None for one that is lifted."""
    _, name, value = _parsed(change)
    limit = LIMITS[limit_key(name)]
    if limit.counts not in ("", MINUTES):
        if not value.isdecimal():
            raise InputError(f"{change.text}: give a number of jobs, none or x2", rule="range")
        return {limit.counts: float(value)}
    caps: dict[str, float | None] = {}
    for part in value.split(","):
        resource, _, amount = part.partition("=")
        known = amounts(part)
        if resource not in RESOURCES or not (known or amount in _LIFTED):
            raise InputError(
                f"{change.text}: give none, x2, or amounts of {', '.join(RESOURCES)}, as in "
                "'cpu=64,gres/gpu=4' (cpu=none lifts one)",
                rule="range",
            )
        caps[RESOURCES[resource] + limit.counts] = known.get(resource)
    return caps


def _set_rows(change: Change, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a limit with new amounts: for each group of jobs that has it, or its own.

    What the value does not name stays as it is, as with ``sacctmgr modify``.
    """
    qos, name, _ = _parsed(change)
    key = limit_key(name)
    caps = _set_amounts(change)
    own = {"by": list(LIMITS[key].by), "where": {"qos": qos}, "name": row_name(qos, key)}
    bare = [
        {
            k: v
            for k, v in row.items()
            if k not in ("of", "at_most") and not (k == "spares" and is_named(row))
        }
        for row in rows
    ]
    groups = [row for n, row in enumerate(bare) if row not in bare[:n]] or [own]
    remaining = [dict(row) for row in rows if row["of"] not in caps]
    return remaining + [
        {"of": counted, "at_most": amount, **group}
        for group in groups
        for counted, amount in caps.items()
        if amount is not None
    ]
