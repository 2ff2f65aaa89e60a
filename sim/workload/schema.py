"""The written schema of a workload: its tables, every column with its type, unit and meaning.

This is the one place where the columns are named. `sim.workload.workload` builds tables of exactly
these types, `sim.workload.validate` holds them to the rules, and ``python -m sim.workload.schema``
prints them. Tables may have more columns than these (but not fewer); what is extra is carried along
untouched.

Row numbers are the keys between tables: ``stages.job`` is a row of ``jobs``, and so on. Rows of
``stages`` are grouped by job and rows of ``tasks`` by stage, both ascending.

Six tables make a workload. Three may lie beside them: ``history``, jobs that are not simulated and
that policies may learn from, once they have ended; ``training``, the tasks of earlier runs of the
jobs' templates, to learn from too; and ``failures``, which attempts of which tasks fail.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

DEMAND_PREFIX: Final = "demand_"
"""``stages.demand_<resource>``: what one task holds of that resource while it runs."""

EDGE_KINDS: Final = ("barrier", "one_to_one")
"""Stage edges: wait for all tasks of the parent, or task i for the parent's task i."""

JOB_EDGE_KINDS: Final = ("hard", "soft")
"""Job edges: the downstream job can't run without its input, or can."""

INPUT_MODES: Final = ("none", "blind", "poll")
"""Jobs: never look at inputs, fail when a hard one is missing, or wait for it."""

DEFAULT_QUANTUM: Final = 1e-6
"""Demands are held in the kernel as whole quanta of this size, unless the loader says otherwise."""

CATEGORY: Final = pa.dictionary(pa.int32(), pa.string())
"""The type of columns of few distinct strings."""

REQUIRED: Final = object()
"""Marks a column that has no default."""


@dataclass(frozen=True)
class Column:
    """One column of one table.

    Attributes
    ----------
    name : str
        Its name.
    type : pyarrow.DataType
        Its type in memory and on disk.
    unit : str
        Unit of its numbers, or what its values are.
    meaning : str
        What it says.
    default : str, int, float, None or REQUIRED
        What a table without the column gets.
    nullable : bool
        Whether null is a value (of deadlines, and of times of the past).
    choices : tuple of str
        The only values allowed; empty for any.
    low : float or None
        Smallest value allowed of a number; None for any finite number.
    """

    name: str
    type: Any
    unit: str
    meaning: str
    default: Any = REQUIRED
    nullable: bool = False
    choices: tuple[str, ...] = ()
    low: float | None = None


JOBS: Final = (
    Column("job_id", pa.string(), "id", "unique name of the job"),
    Column("submit_s", pa.float64(), "s", "when it is submitted; rows are in this order", low=0),
    Column("template", CATEGORY, "name", "recurring program it is a run of; '' if unknown", ""),
    Column("user", CATEGORY, "name", "who submits it; '' if unknown", ""),
    Column("queue", CATEGORY, "name", "queue (organisation) it is submitted to", "default"),
    Column("priority", pa.float64(), "1", "the user's priority; larger goes first", 0.0),
    Column(
        "deadline_s",
        pa.float64(),
        "s",
        "deadline, relative to submit_s; null for none",
        None,
        nullable=True,
        low=0,
    ),
    Column("min_tasks", pa.int32(), "tasks", "gang: how many start together; 0 for none", 0, low=0),
    Column("input_mode", CATEGORY, "mode", "what it does about inputs", "none", False, INPUT_MODES),
)
STAGES: Final = (
    Column("job", pa.int32(), "row of jobs", "job it belongs to; ascending", low=0),
    Column("name", pa.string(), "name", "its name within the job", ""),
    Column("n_tasks", pa.int32(), "tasks", "how many tasks it has", low=1),
)
TASKS: Final = (
    Column("stage", pa.int32(), "row of stages", "stage it belongs to; ascending", low=0),
    Column("duration_s", pa.float64(), "s", "how long it runs", low=0),
)
STAGE_EDGES: Final = (
    Column("parent", pa.int32(), "row of stages", "stage that goes first", low=0),
    Column("child", pa.int32(), "row of stages", "stage of the same job that waits", low=0),
    Column("kind", CATEGORY, "kind", "what the child waits for", "barrier", False, EDGE_KINDS),
)
JOB_EDGES: Final = (
    Column("upstream", pa.int32(), "row of jobs", "job whose output is read", low=0),
    Column("downstream", pa.int32(), "row of jobs", "job that reads it", low=0),
    Column("kind", CATEGORY, "kind", "whether it can do without", "hard", False, JOB_EDGE_KINDS),
)
DOWNLOADS: Final = (
    Column("job", pa.int32(), "row of jobs", "job whose output is downloaded", low=0),
    Column("time_s", pa.float64(), "s", "when", low=0),
    Column("n", pa.int32(), "downloads", "how many at that time", 1, low=0),
)

FEATURES: Final = (
    Column("application", CATEGORY, "name", "program that it runs; '' if unknown", ""),
    Column("job_name", CATEGORY, "name", "what its user calls it; '' if unknown", ""),
    Column("requested", CATEGORY, "text", "resources asked for; '' if unknown", ""),
)
"""Columns that ``jobs`` may have, and ``stages`` too where a stage has its own."""
CLOCK: Final = (
    Column(
        "day", pa.int32(), "day", "day of the week, any number from 0; -1 if unknown", -1, low=-1
    ),
    Column("hour", pa.int32(), "hour", "hour of the day, from 0; -1 if unknown", -1, low=-1),
)
"""Columns that ``jobs`` and ``history`` may have; without them ``submit_s`` says it."""

POLL_LAG: Final = Column(
    "poll_lag_s", pa.float64(), "s", "if it polls: from its last hard input to it", 0.0, low=0
)
INPUT_HOME: Final = Column(
    "input_home",
    pa.int32(),
    "machine",
    "task i reads from machine (this + i) mod machines; -1 for none",
    -1,
    low=-1,
)
REMOTE_FACTOR: Final = Column(
    "remote_factor", pa.float64(), "1", "how many times as long a task takes elsewhere", 1.0, low=1
)
RUNS_ON: Final = Column(
    "runs_on", CATEGORY, "classes", "classes of machines that may run it, | between; '' for any", ""
)
NEW_DEADLINE: Final = Column(
    "new_deadline_s",
    pa.float64(),
    "s",
    "deadline from new_deadline_at_s on, relative to submit_s; null if it stays",
    None,
    nullable=True,
    low=0,
)
NEW_DEADLINE_AT: Final = Column(
    "new_deadline_at_s",
    pa.float64(),
    "s",
    "when the deadline changes, relative to submit_s; null if it stays",
    None,
    nullable=True,
    low=0,
)
REQUESTED: Final = Column(
    "requested_s",
    pa.float64(),
    "s",
    "how long its user said it would run at most; null if unknown",
    None,
    nullable=True,
    low=0,
)
CPU: Final = Column(
    "cpu_s",
    pa.float64(),
    "s",
    "what its tasks execute in all, initialisation left out; null: all that they last",
    None,
    nullable=True,
    low=0,
)
OPTIONAL_COLUMNS: Final[dict[str, tuple[Column, ...]]] = {
    "jobs": (POLL_LAG, NEW_DEADLINE, NEW_DEADLINE_AT, REQUESTED, CPU, *FEATURES, *CLOCK),
    "stages": (INPUT_HOME, REMOTE_FACTOR, RUNS_ON, *FEATURES),
    "history": CLOCK,
}
"""Columns of the schema that a table may do without, and then is without."""

HISTORY: Final = (
    Column(
        "submit_s",
        pa.float64(),
        "s",
        "when it was submitted; below 0 is before the start; null if only the order is known",
        None,
        nullable=True,
    ),
    Column(
        "finish_s",
        pa.float64(),
        "s",
        "when its last task ended; null likewise",
        None,
        nullable=True,
    ),
    Column("n_tasks", pa.int32(), "tasks", "how many tasks it had; 0 if unknown", 0, low=0),
    Column("mean_task_s", pa.float64(), "s", "mean duration of its tasks", low=0),
    Column("user", CATEGORY, "name", "who submitted it; '' if unknown", ""),
    *FEATURES,
)

TRAINING: Final = (
    Column("template", CATEGORY, "name", "recurring program that was run"),
    Column("run", pa.int32(), "number", "which of its earlier runs", low=0),
    Column("stage", pa.int32(), "index", "stage, counted within the job", low=0),
    Column("task", pa.int32(), "index", "task, counted within the stage", low=0),
    Column("ready_s", pa.float64(), "s", "when its inputs were there, from the submission", low=0),
    Column("start_s", pa.float64(), "s", "when the attempt that succeeded started", low=0),
    Column("finish_s", pa.float64(), "s", "when it ended", low=0),
    Column("init_s", pa.float64(), "s", "what of that was initialisation", 0.0, low=0),
    Column("n_failed", pa.int32(), "attempts", "how many failed before", 0, low=0),
)
FAILURES: Final = (
    Column("task", pa.int32(), "row of tasks", "task whose attempt fails", low=0),
    Column("after_s", pa.float64(), "s", "how long the attempt runs before it fails", low=0),
    Column(
        "lost",
        pa.int32(),
        "row of tasks",
        "task of a parent stage whose output it finds lost and that runs again; -1 for none",
        -1,
        low=-1,
    ),
)

TABLES: Final[dict[str, tuple[Column, ...]]] = {
    "jobs": JOBS,
    "stages": STAGES,
    "tasks": TASKS,
    "stage_edges": STAGE_EDGES,
    "job_edges": JOB_EDGES,
    "downloads": DOWNLOADS,
}

OPTIONAL_TABLES: Final[dict[str, tuple[Column, ...]]] = {
    "history": HISTORY,
    "training": TRAINING,
    "failures": FAILURES,
}
"""Tables that a workload may do without: an empty one is the same as none."""

SORT_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "stage_edges": ("parent", "child"),
    "job_edges": ("upstream", "downstream"),
    "downloads": ("job", "time_s", "n"),
    "history": ("finish_s", "submit_s"),
    "training": ("template", "run", "stage", "task"),
    "failures": ("task",),
}
"""Tables whose rows have no meaning in their order are kept in this one, nulls first; of the
failures of one task the first in the table is the first attempt, of jobs of the past without times
the first came and ended before the second came."""


def demand_column(resource: str) -> Column:
    """Return the column of ``stages`` that holds the demand for `resource`."""
    return Column(
        DEMAND_PREFIX + resource, pa.float64(), resource, "held by one task while it runs", 0.0,
        low=0,
    )  # fmt: skip


def empty(table: str) -> pa.Table:
    """Return the table of that name without rows."""
    return pa.table({c.name: pa.array([], c.type) for c in required_columns(table)})


def required_columns(table: str) -> tuple[Column, ...]:
    """Return the columns that the table of that name must have."""
    return TABLES[table] if table in TABLES else OPTIONAL_TABLES[table]


def describe() -> str:
    """Return the schema as a plain text for people, a line a column."""
    lines = []
    for table, columns in (TABLES | OPTIONAL_TABLES).items():
        lines.append(table + (", if there is any" if table in OPTIONAL_TABLES else ""))
        shown = (*columns, demand_column("<resource>")) if table == "stages" else columns
        for c in (*shown, *OPTIONAL_COLUMNS.get(table, ())):
            kind = "category" if c.type == CATEGORY else str(c.type)
            values = f" ({', '.join(c.choices)})" if c.choices else ""
            lines.append(f"  {c.name:18} {kind:9} {c.unit:14} {c.meaning}{values}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(describe())
