"""Columns that the schema does not know, but nearly: most likely meant to be one that it does."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from sim.workload.schema import DEMAND_PREFIX, OPTIONAL_COLUMNS, required_columns
from sim.workload.tables import TableLike

_NEAR = 0.75
_MORE = {"stages": ("duration_s",)}  # it stands for a table of tasks
_RESOURCES = ("cpu", "cpus", "cores", "mem", "memory", "gpu", "gpus")


def report_unused_columns(
    meta: Mapping[str, Any] | None, tables: Mapping[str, TableLike | None]
) -> dict[str, Any]:
    """Return `meta` with such columns of tables in its report, under ``columns_unused``."""
    unused: dict[str, int] = {}
    for name, table in tables.items():
        given: Any = {} if table is None else table
        for column, near in suggest_columns(name, getattr(given, "column_names", given)).items():
            unused[f"{name}.{column}: did you mean {near}?"] = len(given[column])
    known = dict(meta or {})
    if unused:
        report = known.get("report", {})
        unused = {**report.get("columns_unused", {}), **unused}
        known["report"] = {**report, "columns_unused": unused}
    return known


def suggest_columns(table: str, names: Iterable[str]) -> dict[str, str]:
    """Tell of columns of the table called `table` which one of the schema they may be meant for.

    One that the table has cannot be meant by another; a number with its unit is meant for no text.

    Examples
    --------
    >>> meant("jobs", ["job_id", "submit_s", "user_name", "colour", "requested_s"])
    {'user_name': 'user'}
    """
    given = list(names)
    known = [*(c.name for c in (*required_columns(table), *OPTIONAL_COLUMNS.get(table, ())))]
    known += _MORE.get(table, ())
    free = [name for name in known if name not in given]
    near = {}
    for name in given:
        if name not in known and not (table == "stages" and name.startswith(DEMAND_PREFIX)):
            one = _nearest(name, free) or _demand(table, name)
            if one is not None and one not in given:
                near[name] = one
    return near


def _demand(table: str, name: str) -> str | None:
    """Return the column of a demand that a column of stages is meant for."""
    parts = name.lower().split("_")
    resource = next((part for part in parts if part in _RESOURCES), None)
    return f"{DEMAND_PREFIX}{resource}" if table == "stages" and resource else None


def _nearest(name: str, known: Iterable[str]) -> str | None:
    may_be = [one for one in known if one.endswith("_s") or not name.endswith("_s")]
    lower = name.lower()
    parts = [one for one in may_be if lower.startswith(f"{one}_") or lower.endswith(f"_{one}")]
    near = [max(parts, key=len)] if parts else difflib.get_close_matches(lower, may_be, 1, _NEAR)
    return near[0] if near else None
