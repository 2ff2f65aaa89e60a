"""Parser of the two files of scheduled tables, and of their schedules.

A schedule is a cron expression, or one of Airflow's words for one.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

import numpy as np

from sim.base.acyclic import nodes_on_cycles
from sim.base.arrays import F8, I4
from sim.base.errors import InputError
from sim.base.extras import importing
from sim.base.reading import BadLineError, BadRows, OnBadRow, handle_bad_line, read_text

WORDS: Final = {
    "hourly": "0 * * * *", "daily": "0 0 * * *", "weekly": "0 0 * * 0", "monthly": "0 0 1 * *",
    "yearly": "0 0 1 1 *",
}  # fmt: skip
ONCE: Final = "once"

_EVERY = re.compile(r"([1-9][0-9]*)(m|h|d)")
_UNIT_S = {"m": 60.0, "h": 3600.0, "d": 86_400.0}

JOBS, EDGES = "mozilla_bqetl_jobs.csv", "mozilla_bqetl_edges.csv"
"""Names of the files in their folder."""
TIER = "impact/tier_"


@dataclass
class TableJobs:
    """N scheduled jobs and E reads."""

    name: list[str] = field(default_factory=list)  # of the table that the job writes
    dag: list[str] = field(default_factory=list)  # group of jobs with one schedule
    schedule: list[str] = field(default_factory=list)
    owner: list[str] = field(default_factory=list)
    start: list[date] = field(default_factory=list)  # first date of the schedule
    tier: list[int] = field(default_factory=list)  # impact: 1 (highest) to 3
    # rows of jobs; ``down`` reads the table of ``up``
    up: I4 = field(default_factory=lambda: np.empty(0, np.int32))
    down: I4 = field(default_factory=lambda: np.empty(0, np.int32))
    bad_rows: BadRows = field(default_factory=BadRows)  # number of dropped lines by rule


def read_files(path: str | os.PathLike[str], on_bad_row: OnBadRow) -> TableJobs:
    """Read the folder of the two files."""
    folder = Path(path)
    if not folder.is_dir():
        text = f"not a folder; give the folder with the files {JOBS} and {EDGES}"
        raise InputError(text, file=folder, rule="missing file")
    jobs = TableJobs()
    row_of: dict[str, int] = {}
    edges: dict[tuple[int, int], None] = {}

    def add_job(row: dict[str, str]) -> None:
        name = row["job"]
        if name in row_of:
            raise BadLineError("duplicate id", f"the job {name} is on an earlier line too")
        if not is_schedule(row["schedule_interval"]):
            text = (
                f"schedule_interval is {row['schedule_interval']!r}; valid: a cron expression, "
                f"{', '.join(WORDS)}, {ONCE}, or a period such as 30m, 6h or 1d"
            )
            raise BadLineError("unknown schedule", text)
        tier = row["impact_tier"].removeprefix(TIER)
        if tier not in ("1", "2", "3"):
            text = f"impact_tier is {row['impact_tier']!r}; valid: {TIER}1, {TIER}2, {TIER}3"
            raise BadLineError("unknown tier", text)
        try:
            start = date.fromisoformat(row["dag_start_date"])
        except ValueError:
            text = f"dag_start_date is {row['dag_start_date']!r}; valid: a date YYYY-MM-DD"
            raise BadLineError("wrong date", text) from None
        row_of[name] = len(jobs.name)
        jobs.name.append(name)
        jobs.dag.append(row["dag"])
        jobs.schedule.append(row["schedule_interval"])
        jobs.owner.append(row["owner_id"])
        jobs.start.append(start)
        jobs.tier.append(int(tier))

    def add_edge(row: dict[str, str]) -> None:
        producer, consumer = row["producer_job"], row["consumer_job"]
        for name in (producer, consumer):
            if name not in row_of:
                raise BadLineError("unknown job", f"there is no job {name!r} in {JOBS}")
        edge = row_of[producer], row_of[consumer]
        if producer == consumer:
            raise BadLineError("job reads itself", f"{producer} reads its own table")
        if edge in edges:
            text = f"an earlier line says already that {consumer} reads {producer}"
            raise BadLineError("read is named twice", text)
        edges[edge] = None

    columns = ("job", "dag", "schedule_interval", "dag_start_date", "impact_tier", "owner_id")
    _add_rows(folder / JOBS, columns, add_job, on_bad_row, jobs.bad_rows)
    _add_rows(folder / EDGES, ("producer_job", "consumer_job"), add_edge, on_bad_row, jobs.bad_rows)
    pairs = np.array(list(edges), np.int32).reshape(-1, 2)
    jobs.up, jobs.down = pairs[:, 0].copy(), pairs[:, 1].copy()
    on_cycle = nodes_on_cycles(jobs.up, jobs.down, len(jobs.name))
    if len(on_cycle):
        names = ", ".join(jobs.name[row] for row in on_cycle[:3])
        more = f" and {len(on_cycle) - 3} more" if len(on_cycle) > 3 else ""
        text = f"jobs wait for each other in a cycle: {names}{more}; remove one of their edges"
        raise InputError(text, file=folder / EDGES, rule="cycle")
    return jobs


def _add_rows(
    path: Path,
    columns: tuple[str, ...],
    add: Callable[[dict[str, str]], None],
    on_bad_row: OnBadRow,
    bad: BadRows,
) -> None:
    for line, row in _rows(path, columns):
        with handle_bad_line(path, line, on_bad_row, bad):
            for column in columns:
                if not row.get(column):
                    raise BadLineError("missing value", f"{column} is missing")
            add(row)


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    missing = [c for c in columns if c not in (reader.fieldnames or ())]
    if missing:
        message = f"the header has no column {', '.join(missing)}"
        raise InputError(message, file=path, line=1, rule="missing column")
    for row in reader:
        yield reader.line_num, row


def is_schedule(text: str) -> bool:
    """Return whether `text` is a schedule that `run_times` can evaluate."""
    with importing("schedules"):
        from croniter import croniter

    plain = text.removeprefix("@")
    return (
        plain in WORDS
        or plain == ONCE
        or _EVERY.fullmatch(plain) is not None
        or croniter.is_valid(plain)
    )


def run_times(schedule: str, begin: datetime, end_s: float) -> F8:
    """Return the times in [0, end_s) at which a schedule runs, s from `begin` (UTC)."""
    with importing("schedules"):
        from croniter import croniter_range

    plain = schedule.removeprefix("@")
    if plain == ONCE:
        return np.empty(0)
    if every := _EVERY.fullmatch(plain):
        return np.arange(0.0, end_s, int(every[1]) * _UNIT_S[every[2]])
    end = begin + timedelta(seconds=end_s)
    first = begin.astimezone(UTC)
    times = croniter_range(first, end, WORDS.get(plain, plain), exclude_ends=False)
    times_s = np.array([(time - first).total_seconds() for time in times], np.float64)
    return times_s[times_s < end_s]
