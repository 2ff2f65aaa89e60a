"""Slurm's names of limits, the caps that they stand for, and which of several holds.

Source: https://slurm.schedmd.com/resource_limits.html and https://slurm.schedmd.com/sacctmgr.html.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
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
ACCOUNTS, ROOT = "associations of accounts", "association root"
USERS, EACH_USER = "associations of users", "associations, of each user"
ASSOCIATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    ACCOUNTS: (), ROOT: (), USERS: (), EACH_USER: ("user",)
}  # fmt: skip
"""Names of the rows of associations, and by which keys a QOS limits the same."""
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


def is_named(row: Mapping[str, Any]) -> bool:
    """Tell whether a row has the name of a QOS's limit, and selects jobs by QOS or partition."""
    selects = {"qos", "queue"} & {*(row.get("where") or {})}
    return bool(selects) and _ROW.fullmatch(str(row.get("name", ""))) is not None


def in_hierarchy(
    rows: Sequence[Mapping[str, Any]], over: Collection[str] | None = None
) -> list[dict[str, Any]]:
    """Return the rows of ``cluster.limits`` with the jobs that each of Slurm's spares.

    Where several limit the same thing, the first of these holds: the QOS of the partition, that of
    the job, associations (*Hierarchy*). The others count its jobs all the same. Rows that are not
    named as Slurm's stay as they are.

    Parameters
    ----------
    rows : sequence of mapping
        A QOS has a row for its own jobs (``where: {qos: ...}``), and one for each partition that
        has it (``where: {queue: ...}``).
    over : collection of str, optional
        QOS with OverPartQOS, which hold before that of the partition; left out: those that rows of
        partitions spare.
    """
    qos_rows = [row for row in rows if is_named(row)]
    if over is None:
        over = {
            qos
            for row in qos_rows
            if "queue" in row["where"]
            for qos in row.get("spares", {}).get("qos", ())
        }
    ordered = []
    for row in rows:
        name = str(row.get("name", ""))
        is_association = name in ASSOCIATIONS
        if row not in qos_rows and not is_association:
            ordered.append(dict(row))
            continue
        by = ASSOCIATIONS[name] if is_association else tuple(row.get("by") or ())
        same = [
            other
            for other in qos_rows
            if (other["of"], tuple(other.get("by") or ())) == (row["of"], by)
        ]
        spares: dict[str, list[str]] = {}
        for other in same if is_association else _before(row, same, over):
            for key, value in other["where"].items():
                spares.setdefault(key, []).append(value)
        bare = {key: value for key, value in row.items() if key != "spares"}
        ordered.append(bare | ({"spares": spares} if spares else {}))
    return ordered


def _before(
    row: Mapping[str, Any], same: Sequence[Mapping[str, Any]], over: Collection[str]
) -> list[Mapping[str, Any]]:
    """Return which rows of QOS that limit the same hold before one of them."""
    if "queue" in row["where"]:
        return [other for other in same if other["where"].get("qos") in over]
    if row["where"]["qos"] in over:
        return []
    own = origin(row)
    return [other for other in same if "queue" in other["where"] and origin(other) != own]
