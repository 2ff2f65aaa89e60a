"""Limits of QOS and associations as rows of ``cluster.limits``.

Source: https://slurm.schedmd.com/resource_limits.html, *Hierarchy*: where several limit the same
thing, the first of these holds: the QOS of the partition, that of the job, the associations. A job
for which a limit does not hold counts in it all the same (``spares``). An account's limit of each
user counts where the user's association has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.cluster.limit_names import (
    ACCOUNTS,
    EACH_USER,
    LIMITS,
    MINUTES,
    RESOURCES,
    ROOT,
    USERS,
    in_hierarchy,
    limit_key,
    row_name,
)
from sim.traces.slurm_site.folder import Folder
from sim.traces.slurm_site.shown import amounts, is_set
from sim.traces.slurm_site.slurm_conf import Record
from sim.workload.schema import LICENSE_PREFIX

Row = dict[str, Any]
_LICENCE = "license/"
_ASSOC = {
    "grpjobs": "running_jobs", "grpsubmit": "submitted_jobs", "grpsubmitjobs": "submitted_jobs",
    "grptres": "", "grptresrunmins": MINUTES,
}  # fmt: skip
"""Limits of an association and all below it together."""
_EACH_USER = {
    "maxjobs": "running_jobs",
    "maxsubmit": "submitted_jobs",
    "maxsubmitjobs": "submitted_jobs",
}
"""Limits of each user of an account."""
_BY_USER = ("user", "account")
_OVER_PARTITION = "overpartqos"
"""Flag of a QOS whose limits hold before those of the partition's QOS."""
_OF_ONE_JOB = "a limit of each single job, which jobs of the log kept"
_UNREAD = {
    "maxtres": _OF_ONE_JOB, "maxtrespernode": _OF_ONE_JOB, "maxtresmins": _OF_ONE_JOB,
    "maxwall": _OF_ONE_JOB, "mintres": _OF_ONE_JOB,
    "grptresmins": "what was used in the past is not counted",
    "grpwall": "what was used in the past is not counted",
    "usagethres": "jobs below the threshold of fair share are admitted",
    "priority": "the association's own priority (PriorityWeightAssoc)",
}  # fmt: skip
_HARMLESS = {"usagethres": ("0", "0.000000"), "priority": ("0",)}


def limits_of(
    folder: Folder, partitions: Mapping[str, Record], *, has_mem: bool, has_gpus: bool
) -> list[Row]:
    """Return the rows; limits of resources that the cluster does not count are noted."""
    rows = _licence_rows(folder)
    enforce = folder.conf.options.get("accountingstorageenforce", "").lower()
    if "slurm.conf" in folder.files and not any(w in enforce for w in ("limits", "safe", "all")):
        folder.notes.add(
            "slurm.conf", f"AccountingStorageEnforce={enforce or 'none'}",
            "no limit of QOS or associations holds, as in Slurm",
        )  # fmt: skip
        return rows
    counted = {
        name: counter
        for name, counter in RESOURCES.items()
        if (has_mem or name != "mem") and (has_gpus or name != "gres/gpu")
    }
    rows += _qos_rows(folder, partitions, counted)
    rows += _account_rows(folder, counted)
    rows += _user_rows(folder, counted)
    flags = {qos["name"]: _flags(qos) for qos in folder.qos}
    return in_hierarchy(rows, {name for name, own in flags.items() if _OVER_PARTITION in own})


def _flags(row: Record) -> list[str]:
    """Return the flags of a QOS, in lower case."""
    return row.get("flags", "").lower().split(",")


def _licence_rows(folder: Folder) -> list[Row]:
    """Return the number of licences of each name, which hold whatever limits are enforced."""
    rows: list[Row] = []
    for part in filter(None, folder.conf.options.get("licenses", "").split(",")):
        name, _, number = part.strip().partition(":")
        if number and not number.isdecimal():
            folder.notes.add("slurm.conf", f"Licenses={part}", "there are any number of them")
            continue
        rows.append(
            {
                "of": LICENSE_PREFIX + name,
                "at_most": int(number or 1),
                "name": f"licences of {name}",
            }
        )
    return rows


def accounts_above(folder: Folder) -> dict[str, str]:
    """Return the account above each account, without the root."""
    alias = folder.pseudonyms.alias
    rows = [row for row in folder.assoc if not row["user"]]
    above = {}
    for row in rows:
        parent = row.get("parentname", row.get("parname", ""))
        if is_set(parent) and parent != "root":
            above[alias("account", row["account"])] = alias("account", parent)
    if rows and not {"parentname", "parname"} & rows[0].keys():
        folder.notes.add(
            "assoc.txt", "no column ParentName",
            "all accounts are right below the root; add it to the format of sacctmgr",
        )  # fmt: skip
    return above


def _counts(
    folder: Folder, source: str, key: str, counted: str, value: str, known: Mapping[str, str]
) -> dict[str, float]:
    """Return the caps that a value sets, by what they count."""
    if counted and counted != MINUTES:
        return {counted: float(value)} if value.isdecimal() else {}
    caps_by_count: dict[str, float] = {}
    for name, amount in amounts(value).items():
        if name.startswith(_LICENCE) and not counted:
            caps_by_count[LICENSE_PREFIX + name.removeprefix(_LICENCE)] = amount
        elif name in known and not (known[name] == "nodes" and counted):
            caps_by_count[known[name] + counted] = amount
        else:
            folder.notes.add(source, f"{key}={name}={amount:g}", "not counted")
    return caps_by_count


def _qos_rows(
    folder: Folder, partitions: Mapping[str, Record], known: Mapping[str, str]
) -> list[Row]:
    holders_by_qos: dict[str, list[str]] = {}
    for name, record in partitions.items():
        if is_set(record.get("qos")):
            holders_by_qos.setdefault(record["qos"], []).append(name)
    rows: list[Row] = []
    for qos in folder.qos:
        name = qos["name"]
        caps: list[Row] = []
        _note_unread(folder, "qos.txt", name, qos)
        set_limits = {limit_key(column): v for column, v in qos.items() if is_set(v)}
        for key, limit in LIMITS.items():
            if key not in set_limits:
                continue
            counts = _counts(folder, f"QOS {name}", key, limit.counts, set_limits[key], known)
            for counter, amount in counts.items():
                caps.append(
                    {
                        "of": counter,
                        "by": list(limit.by),
                        "at_most": amount,
                        "name": row_name(name, key),
                    }
                )
        holders = holders_by_qos.get(name, [])
        for cap in caps:
            rows += [cap | {"where": {"qos": name}}]
            rows += [
                cap | {"where": {"queue": p}, "name": f"{cap['name']}, of partition {p}"}
                for p in holders
            ]
        if caps and len(holders) > 1:
            folder.notes.add(
                "partitions", f"QOS {name} of {', '.join(holders)}",
                "its limits count for each of these partitions by itself, not together",
            )  # fmt: skip
    return rows


def _account_rows(folder: Folder, known: Mapping[str, str]) -> list[Row]:
    tables: dict[str, dict[str, Any]] = {}
    for row in folder.assoc:
        source = f"association {folder.pseudonyms.alias('account', row['account'])}"
        for key, counted in _ASSOC.items():
            if row["user"] or not is_set(row.get(key)):
                continue
            for counter, amount in _counts(folder, source, key, counted, row[key], known).items():
                account = folder.pseudonyms.alias("account", row["account"])
                if account == "root":
                    tables.setdefault(f"root {counter}", {"": amount})
                else:
                    tables.setdefault(counter, {})[account] = amount
    rows: list[Row] = []
    for counter, table in tables.items():
        if counter.startswith("root "):
            rows.append({"of": counter[5:], "at_most": table[""], "name": ROOT})
        else:
            rows.append(
                {
                    "of": counter,
                    "by": ["account"],
                    "at_most": table,
                    "name": ACCOUNTS,
                }
            )
    return rows


def _user_rows(folder: Folder, known: Mapping[str, str]) -> list[Row]:
    alias = folder.pseudonyms.alias
    above = accounts_above(folder)
    own = {alias("account", row["account"]): row for row in folder.assoc if not row["user"]}
    tables: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for row in folder.assoc:
        if not row["user"]:
            _note_unread(folder, "assoc.txt", alias("account", row["account"]), row)
            continue
        user, account = alias("user", row["user"]), alias("account", row["account"])
        if is_set(row.get("partition")):
            folder.notes.add(
                "assoc.txt",
                f"{user} in {account}, partition {row['partition']}",
                "limits of a partition's association are not simulated",
            )
            continue
        _note_unread(folder, "assoc.txt", f"{user} in {account}", row)
        caps_by_count: dict[tuple[str, str], float] = {}
        for key, counted in _ASSOC.items():
            if is_set(row.get(key)):
                counts = _counts(folder, f"association of {user}", key, counted, row[key], known)
                caps_by_count |= {(counter, USERS): amount for counter, amount in counts.items()}
        for key, counted in _EACH_USER.items():
            value = _inherited(row, key, account, own, above)
            if value is not None:
                caps_by_count[counted, EACH_USER] = value
        for counter, amount in caps_by_count.items():
            tables.setdefault(counter, {}).setdefault(user, {})[account] = amount
    return [
        {"of": counter, "by": [*_BY_USER], "at_most": table, "name": name}
        for (counter, name), table in tables.items()
    ]


def _inherited(
    row: Record, key: str, account: str, own: Mapping[str, Record], above: Mapping[str, str]
) -> float | None:
    """Return a limit of each user: the user's own, or that of the nearest account above."""
    if row.get(key, "").isdecimal():
        return float(row[key])
    seen: set[str] = set()
    while account and account not in seen:
        seen.add(account)
        text = own.get(account, {}).get(key, "")
        if text.isdecimal():
            return float(text)
        account = above.get(account, "root" if account != "root" else "")
    return None


def _note_unread(folder: Folder, source: str, name: str, row: Record) -> None:
    for key, effect in _UNREAD.items():
        value = row.get(key, "")
        if source == "qos.txt" and key == "priority":
            continue
        if is_set(value) and value not in _HARMLESS.get(key, ()):
            folder.notes.add(source, f"{name} {key}={value}", effect)
    unread = {*_flags(row)} - {_OVER_PARTITION} if source == "qos.txt" else set()
    flags = row.get("flags", "")
    if is_set(flags) and unread:
        folder.notes.add(source, f"{name} Flags={flags}", "flags of a QOS are not simulated")
