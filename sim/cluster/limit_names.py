"""Slurm's names of the limits of a QOS, and the caps that they stand for.

Source: https://slurm.schedmd.com/resource_limits.html and https://slurm.schedmd.com/sacctmgr.html.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

MINUTES: Final = "_minutes"
RESOURCES: Final = {"cpu": "cpu", "mem": "mem", "gres/gpu": "gpu", "node": "nodes"}
"""Trackable resources, and what caps count of them."""


class Limit(NamedTuple):
    """A limit of a QOS."""

    name: str  # Slurm's
    counts: str  # what it counts: jobs; "": amounts of resources; `MINUTES`: of them × time left
    by: tuple[str, ...]  # keys of jobs that have a counter each


LIMITS: Final = {
    "grpjobs": Limit("GrpJobs", "running_jobs", ()),
    "grpsubmit": Limit("GrpSubmit", "submitted_jobs", ()),
    "maxjobspu": Limit("MaxJobsPU", "running_jobs", ("user",)),
    "maxsubmitpu": Limit("MaxSubmitPU", "submitted_jobs", ("user",)),
    "maxjobspa": Limit("MaxJobsPA", "running_jobs", ("account",)),
    "maxsubmitpa": Limit("MaxSubmitPA", "submitted_jobs", ("account",)),
    "grptres": Limit("GrpTRES", "", ()),
    "maxtrespu": Limit("MaxTRESPU", "", ("user",)),
    "maxtrespa": Limit("MaxTRESPA", "", ("account",)),
    "grptresrunmins": Limit("GrpTRESRunMins", MINUTES, ()),
}
"""Limits by key: the name in lower case."""
_ENDS = {"pu": "peruser", "pa": "peraccount"}
OTHER_NAMES: Final = {
    "grpsubmitjobs": "grpsubmit",
    "maxsubmitjobspu": "maxsubmitpu",
    "maxsubmitjobspa": "maxsubmitpa",
    **{key[:-2] + _ENDS[key[-2:]]: key for key in LIMITS if key[-2:] in _ENDS},
}
"""Other spellings, such as MaxTRESPerUser."""
_ROW = re.compile(r"QOS (?P<qos>.+?), (?P<key>\w+)(?:, of partition .+)?")


def limit_key(name: str) -> str:
    """Return the key of a limit's name, in any case; of an unknown name the name in lower case."""
    key = name.lower()
    return OTHER_NAMES.get(key, key)


def row_name(qos: str, key: str) -> str:
    """Write the name of a cap's row, from which `origin` finds its QOS and limit."""
    return f"QOS {qos}, {key}"


def origin(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return QOS and key of the limit that a cap's row stands for, by its name, or its columns."""
    match = _ROW.fullmatch(str(row.get("name", "")))
    if match is not None:
        return match["qos"], limit_key(match["key"])
    where = row.get("where") or {}
    if "qos" not in where:
        return None
    counted, by = str(row.get("of", "")), tuple(row.get("by") or ())
    for key, limit in LIMITS.items():
        is_amount = limit.counts == "" and counted in RESOURCES.values()
        is_minutes = limit.counts == MINUTES and counted.endswith(MINUTES)
        if limit.by == by and (is_amount or is_minutes or limit.counts == counted):
            return str(where["qos"]), key
    return None
