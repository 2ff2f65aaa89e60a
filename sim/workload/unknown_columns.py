"""Detection of misspelt columns: unknown to the schema, but similar to one of its columns."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from sim.workload.schema import (
    DEMAND_PREFIX,
    HELD_PREFIX,
    LICENSE_PREFIX,
    OPTIONAL_COLUMNS,
    REQUEST_PREFIX,
    SPEED_PREFIX,
    required_columns,
)
from sim.workload.tables import TableLike

_MIN_SIMILARITY = 0.75
_MORE = {"stages": ("duration_s",)}  # replaces a table of tasks
_PREFIXES = {
    "stages": (DEMAND_PREFIX, REQUEST_PREFIX, SPEED_PREFIX, HELD_PREFIX),
    "jobs": (LICENSE_PREFIX,),
}
_RESOURCES = ("cpu", "cpus", "cores", "mem", "memory", "gpu", "gpus")


def report_unused_columns(
    meta: Mapping[str, Any] | None, tables: Mapping[str, TableLike | None]
) -> dict[str, Any]:
    """Return `meta` with the misspelt columns in its report, under ``columns_unused``."""
    unused: dict[str, int] = {}
    for name, table in tables.items():
        columns: Any = {} if table is None else table
        names = getattr(columns, "column_names", columns)
        for column, suggestion in suggest_columns(name, names).items():
            unused[f"{name}.{column}: did you mean {suggestion}?"] = len(columns[column])
    extended = dict(meta or {})
    if unused:
        report = extended.get("report", {})
        unused = {**report.get("columns_unused", {}), **unused}
        extended["report"] = {**report, "columns_unused": unused}
    return extended


def suggest_columns(table: str, names: Iterable[str]) -> dict[str, str]:
    """Map misspelt columns of the table called `table` to the schema's columns they resemble.

    A column that the table already has is not suggested, nor a text for a number with a unit.

    Examples
    --------
    >>> meant("jobs", ["job_id", "submit_s", "user_name", "colour", "requested_s"])
    {'user_name': 'user'}
    """
    present = list(names)
    known = [*(c.name for c in (*required_columns(table), *OPTIONAL_COLUMNS.get(table, ())))]
    known += _MORE.get(table, ())
    missing = [name for name in known if name not in present]
    suggestions = {}
    for name in present:
        has_prefix = name.startswith(_PREFIXES.get(table, ()))
        if name not in known and not has_prefix:
            match = _closest(name, missing) or _demand(table, name)
            if match is not None and match not in present:
                suggestions[name] = match
    return suggestions


def _demand(table: str, name: str) -> str | None:
    """Return the demand column for a column of stages that names a resource."""
    parts = name.lower().split("_")
    resource = next((part for part in parts if part in _RESOURCES), None)
    return f"{DEMAND_PREFIX}{resource}" if table == "stages" and resource else None


def _closest(name: str, known: Iterable[str]) -> str | None:
    candidates = [column for column in known if column.endswith("_s") or not name.endswith("_s")]
    lower = name.lower()
    parts = [c for c in candidates if lower.startswith(f"{c}_") or lower.endswith(f"_{c}")]
    if parts:
        return max(parts, key=len)
    matches = difflib.get_close_matches(lower, candidates, 1, _MIN_SIMILARITY)
    return matches[0] if matches else None
