"""Answers of a backtest one step at a time, in words."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

NO_NODES = (
    "The log or the cluster names no nodes, so no model can be put into the states that it shows: "
    "free runs alone say how near it is"
)
N_REASONS = 3
"""Number of mechanisms that are named."""


def sentences(table: pa.Table) -> list[str]:
    """Write, for each policy, what was found, and the mechanisms without which most is lost."""
    rows = [row for row in table.to_pylist() if row["partition"] == ""]
    lines = []
    for policy in dict.fromkeys(row["policy"] for row in rows):
        own = [row for row in rows if row["policy"] == policy]
        whole, *variants = own
        lines.append(f"{policy}: {share_found(whole)}")
        if reasons := _reasons(whole, variants):
            lines.append(f"{policy}: why jobs wait: {reasons}")
    return lines


def share_found(row: dict[str, Any]) -> str:
    """Write what was found of all jobs, by a row of ``steps.parquet``."""
    text = (
        f"one step at a time {_share(row['found'], row['starts'])} of "
        f"{row['starts']:,} starts are found, {row['false_starts']:,} false starts, "
        f"{_share(row['quiet_kept'], row['quiet'])} of {row['quiet']:,} quiet moments are kept"
    )
    if row["found"]:
        text += f"; {_share(row['same_nodes'], row['found'])} of those found on the same nodes"
    if row["not_placed"]:
        text += f"; {row['not_placed']:,} jobs did not fit where the log has them"
    return text


def wrong(row: dict[str, Any]) -> int:
    """Return the starts missed, false starts and quiet moments broken of a row."""
    missed = row["starts"] - row["found"] + row["quiet"] - row["quiet_kept"]
    return int(missed + row["false_starts"])


def _reasons(whole: dict[str, Any], without: list[dict[str, Any]]) -> str:
    """Write the mechanisms without which most more is wrong."""
    lost = {row["without"]: wrong(row) - wrong(whole) for row in without}
    worst = sorted((name for name in lost if lost[name] > 0), key=lambda name: -lost[name])
    return ", ".join(f"{name} ({lost[name]:,} more wrong without)" for name in worst[:N_REASONS])


def _share(part: int, whole: int) -> str:
    if not whole:
        return "none"
    percent = 100 * part / whole
    return f"{percent:.1f} %" if part < whole else "100 %"
