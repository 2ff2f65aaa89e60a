"""More jobs, or fewer: ``1.3`` times as many of all, or of one group: ``account=ml:2``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sim.base.errors import InputError
from sim.base.parameters import Positive
from sim.base.parameters import check as check_value
from sweep.grid.changes import Change, Config, times, with_transform

ORDER = 3
COLUMNS = ("user", "account", "queue", "partition", "qos")
"""Columns of jobs whose groups a load may be of."""
_GROUP = re.compile(r"(?P<column>\w+)=(?P<name>.+):(?P<factor>[^:]+)")


def check(change: Change) -> None:
    """Refuse what is neither a factor nor a group with one."""
    _parsed(change)


def apply(parts: Config, change: Change) -> Config:
    """Repeat or drop jobs that the seed draws; of an account, those of accounts below, too."""
    column, name, factor = _parsed(change)
    options: dict[str, Any] = {"load": factor, "seed": "${seed}", "rewire": False}
    if column:
        accounts = parts["cluster"].get("accounts") or {} if column == "account" else {}
        options["where"] = {column: [name, *_below(name, accounts)]}
    return with_transform(parts, "change_load", options)


def phrase(change: Change) -> str:
    """Write ``twice the jobs of account ml``."""
    column, name, factor = _parsed(change)
    return f"{times(factor)} the jobs" + (f" of {column} {name}" if column else "")


def _parsed(change: Change) -> tuple[str, str, float]:
    """Return column and name of a group, empty for all jobs, and the factor."""
    match = _GROUP.fullmatch(str(change.value))
    if match is None:
        check_value(change.full_key, change.value, Positive)
        return "", "", float(change.value)
    if match["column"] not in COLUMNS:
        raise InputError(
            f"{change.text}: give a factor, or a group as COLUMN=NAME:FACTOR with one of "
            f"{', '.join(COLUMNS)}",
            rule="unknown column",
        )
    try:
        factor = float(match["factor"])
    except ValueError:
        raise InputError(f"{change.text}: {match['factor']} is no factor", rule="range") from None
    check_value(f"{change.full_key}={match['column']}={match['name']}", factor, Positive)
    return match["column"], match["name"], factor


def _below(account: str, above: Mapping[str, Any]) -> list[str]:
    """Return the accounts below an account, at any depth."""
    below: list[str] = []
    front = [account]
    while front:
        front = [
            str(name)
            for name, parent in above.items()
            if parent in front and name not in below and name != account
        ]
        below += front
    return below
