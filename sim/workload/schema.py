"""Schema of a workload: its tables, and every column with its type, unit and meaning.

The columns are defined only here. `sim.workload.workload` builds tables of exactly these types,
`sim.workload.validate` checks the rules, and ``python -m sim.workload.schema`` prints the schema.
Tables can have additional columns, which are passed through unchanged.

Row numbers are the keys between tables: ``stages.job`` is a row of ``jobs``, and so on. Rows of
``stages`` are grouped by job and rows of ``tasks`` by stage, both ascending.

A workload has six tables and three optional ones: ``history``, past jobs that are not simulated and
that policies can learn from, once they have ended; ``training``, the tasks of earlier runs of the
jobs' templates, to learn from too; and ``failures``, the failing attempts of tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

DEMAND_PREFIX: Final = "demand_"
"""Prefix of ``stages.demand_<resource>``: the amount that one task holds while it runs."""

REQUEST_PREFIX: Final = "requested_"
"""Prefix of ``stages.requested_<resource>``: the amount that a task asks for, where that is more
than its demand (`sim.cluster.requests`)."""

SPEED_PREFIX: Final = "speed_"
"""Prefix of ``stages.speed_<class>``: the speed of a task on machines of that class."""

LICENSE_PREFIX: Final = "license_"
"""Prefix of ``jobs.license_<name>``: licences that the job holds from its first start on."""

HELD_PREFIX: Final = "held_"
"""Prefix of ``stages.held_<resource>`` of logs: the amount that all tasks of a stage held together
of a resource that they do not demand. Nothing simulates it."""

USED_PREFIX: Final = "used_"
"""Prefix of ``stages.used_<resource>`` of logs: a task's average use, in the unit of its demand.
Nothing simulates it, unless a transform makes demands of it (``requests``)."""

MIN_SPEED: Final = 1e-6
"""Least speed: a duration is divided by it."""

EDGE_KINDS: Final = ("barrier", "one_to_one")
"""Stage edges: the child waits for all tasks of the parent, or task i for the parent's task i."""

INPUT_KINDS: Final = ("hard", "soft")
"""Job edges: the downstream job requires its input (hard), or can run without it (soft)."""

DEPENDENCY_KINDS: Final = ("after", "afterok", "afternotok", "afterany")
"""Job edges: the downstream job may not start before the upstream one started or failed (after), is
done (afterok), failed (afternotok), or ended in either way (afterany): `sim.workload.releases`."""

JOB_EDGE_KINDS: Final = (*INPUT_KINDS, *DEPENDENCY_KINDS)
"""All kinds of job edges; a category is stored by its text, so more may follow."""

NEEDS: Final = ("all", "any")
"""Jobs: all of its dependencies must be met, or any of them."""

INPUT_MODES: Final = ("none", "blind", "poll")
"""Jobs: ignore inputs (none), fail if a hard input is missing (blind), or wait for it (poll)."""

DEFAULT_QUANTUM: Final = 1e-6
"""Default size of a quantum: the kernel holds demands in whole quanta."""

CATEGORY: Final = pa.dictionary(pa.int32(), pa.string())
"""Type of columns with few distinct strings."""

REQUIRED: Final = object()
"""Marks a column that has no default."""


@dataclass(frozen=True)
class Column:
    """One column of one table.

    Attributes
    ----------
    name : str
        Name.
    type : pyarrow.DataType
        Type in memory and on disk.
    unit : str
        Unit of its numbers, or kind of its values.
    meaning : str
        Description, one line.
    default : str, int, float, None or REQUIRED
        Value of a table without the column.
    nullable : bool
        True if null is valid (for deadlines, and for times of past jobs).
    choices : tuple of str
        Valid values; empty for any.
    low : float or None
        Smallest valid number; None for any finite number.
    null : float or None
        Number that means null, as NaN does; None if there is none.
    """

    name: str
    type: Any
    unit: str
    meaning: str
    default: Any = REQUIRED
    nullable: bool = False
    choices: tuple[str, ...] = ()
    low: float | None = None
    null: float | None = None


def _time(name: str, meaning: str, low: float | None = None, null: float | None = None) -> Column:
    """Return a column of times, s, which null says are unknown or do not exist."""
    return Column(name, pa.float64(), "s", meaning, None, nullable=True, low=low, null=null)


JOBS: Final = (
    Column("job_id", pa.string(), "id", "unique name of the job"),
    Column("submit_s", pa.float64(), "s", "submission time; rows are in this order", low=0),
    Column("template", CATEGORY, "name", "recurring program that it runs; '' if unknown", ""),
    Column("user", CATEGORY, "name", "submitting user; '' if unknown", ""),
    Column("queue", CATEGORY, "name", "queue (organisation) it is submitted to", "default"),
    Column("priority", pa.float64(), "1", "the user's priority; larger goes first", 0.0),
    _time("deadline_s", "deadline, relative to submit_s; null for none", low=0),
    Column("min_tasks", pa.int32(), "tasks", "gang: tasks that start together; 0: none", 0, low=0),
    Column("input_mode", CATEGORY, "mode", "handling of its inputs", "none", False, INPUT_MODES),
)
STAGES: Final = (
    Column("job", pa.int32(), "row of jobs", "its job; ascending", low=0),
    Column("name", pa.string(), "name", "name within the job", ""),
    Column("n_tasks", pa.int32(), "tasks", "number of tasks", low=1),
)
TASKS: Final = (
    Column("stage", pa.int32(), "row of stages", "its stage; ascending", low=0),
    Column("duration_s", pa.float64(), "s", "running time", low=0),
)
STAGE_EDGES: Final = (
    Column("parent", pa.int32(), "row of stages", "stage that goes first", low=0),
    Column("child", pa.int32(), "row of stages", "stage of the same job that waits", low=0),
    Column("kind", CATEGORY, "kind", "how the child waits", "barrier", False, EDGE_KINDS),
)
JOB_EDGES: Final = (
    Column("upstream", pa.int32(), "row of jobs", "job whose output is read", low=0),
    Column("downstream", pa.int32(), "row of jobs", "job that reads it, or waits", low=0),
    Column("kind", CATEGORY, "kind", "hard: requires the input", "hard", False, JOB_EDGE_KINDS),
)
DOWNLOADS: Final = (
    Column("job", pa.int32(), "row of jobs", "job whose output is downloaded", low=0),
    Column("time_s", pa.float64(), "s", "time of the downloads", low=0),
    Column("n", pa.int32(), "downloads", "number of downloads at that time", 1, low=0),
)

FEATURES: Final = (
    Column("application", CATEGORY, "name", "program that it runs; '' if unknown", ""),
    Column("job_name", CATEGORY, "name", "the user's name for it; '' if unknown", ""),
    Column("requested", CATEGORY, "text", "requested resources; '' if unknown", ""),
)
"""Optional columns of ``jobs``, and of ``stages`` whose values differ from their job's."""
CLOCK: Final = (
    Column(
        "day", pa.int32(), "day", "day of the week, any number from 0; -1 if unknown", -1, low=-1
    ),
    Column("hour", pa.int32(), "hour", "hour of the day, from 0; -1 if unknown", -1, low=-1),
)
"""Optional columns of ``jobs`` and ``history``; otherwise derived from ``submit_s``."""

POLL_LAG: Final = Column(
    "poll_lag_s",
    pa.float64(),
    "s",
    "polling: delay of submission after its last hard input",
    0.0,
    low=0,
)
BEGIN: Final = Column(
    "begin_s",
    pa.float64(),
    "s",
    "time before which it is not eligible to start; null: none",
    None,
    nullable=True,
    low=0,
)
AFTER_NEEDS: Final = Column(
    "after_needs", CATEGORY, "mode", "which of its dependencies must be met", "all", choices=NEEDS
)
SINGLETON: Final = Column(
    "singleton",
    pa.bool_(),
    "bool",
    "it waits for earlier and running jobs of its user and job_name",
    False,
)
DELAY: Final = Column(
    "delay_s", pa.float64(), "s", "dependencies: time from the event to its being met", 0.0, low=0
)
"""Optional column of ``job_edges``, of dependencies alone: ``poll_lag_s`` is that of inputs."""
INPUT_HOME: Final = Column(
    "input_home",
    pa.int32(),
    "machine",
    "input of task i is on machine (input_home + i) mod machines; -1 for none",
    -1,
    low=-1,
)
REMOTE_FACTOR: Final = Column(
    "remote_factor", pa.float64(), "1", "slowdown of a task on another machine", 1.0, low=1
)
RUNS_ON: Final = Column(
    "runs_on", CATEGORY, "classes", "machine classes that can run it, separated by |; '': any", ""
)
STAGE_LAG: Final = Column(
    "lag_s",
    pa.float64(),
    "s",
    "time from the end of its last barrier parent to its opening",
    0.0,
    low=0,
)
WATTS: Final = Column(
    "watts",
    pa.float64(),
    "W",
    "power that one task draws while it runs, above an idle machine's; null: by its demand",
    None,
    nullable=True,
    low=0,
)
PARTITION: Final = Column(
    "partition",
    CATEGORY,
    "partitions",
    "named sets of machines in which it may run, separated by |; '': the default one",
    "",
)
N_NODES: Final = Column(
    "n_nodes", pa.int32(), "nodes", "nodes that it runs on; 0: one for each slot", 0, low=0
)
EXCLUSIVE: Final = Column(
    "exclusive", pa.bool_(), "bool", "each of its tasks, or slots, takes a whole machine", False
)
ONE_PER_NODE: Final = Column(
    "one_per_node", pa.bool_(), "bool", "no two of its tasks, or slots, share a machine", False
)
TOPOLOGY_REQUIRED: Final = Column(
    "topology_required",
    CATEGORY,
    "level",
    "gang: level of the cluster in one domain of which all of its slots are; '': none",
    "",
)
TOPOLOGY_PREFERRED: Final = Column(
    "topology_preferred",
    CATEGORY,
    "level",
    "gang: level in one domain of which its slots are where they fit; else in one of a wider "
    "level, or in the fewest domains; '': none",
    "",
)
PLANS_ON: Final = Column(
    "plans_on",
    CATEGORY,
    "classes",
    "machine classes of which running jobs and reservations count where Slurm's planner looks for "
    "its start, separated by |; '': those that can run it",
    "",
)
RESERVATION: Final = Column(
    "reservation",
    CATEGORY,
    "name",
    "advance reservation in which alone it runs; '': none",
    "",
)
NEW_DEADLINE: Final = _time(
    "new_deadline_s",
    "deadline from new_deadline_at_s on, relative to submit_s; null if unchanged",
    low=0,
)
NEW_DEADLINE_AT: Final = _time(
    "new_deadline_at_s",
    "time of the change of deadline, relative to submit_s; null if unchanged",
    low=0,
)
REQUESTED: Final = _time(
    "requested_s",
    "the user's limit on its running time; null, or 0, if it has none or it is unknown",
    low=0,
    null=0.0,
)
PREEMPTS: Final = Column(
    "preempts", pa.bool_(), "bool", "it may preempt others, where the policy lets it", True
)
CHECKPOINT: Final = _time(
    "checkpoint_s", "time between two of its checkpoints; 0: at any moment; null: none", low=0
)
RESTART: Final = Column(
    "restart_s", pa.float64(), "s", "time to restart a task of it that was stopped", 0.0, low=0
)
WIDTH_MIN: Final = Column(
    "width_min",
    pa.int32(),
    "tasks",
    "elastic: places that it needs at least, its tasks being the most; 0: not elastic",
    0,
    low=0,
)
SPEEDUP: Final = Column(
    "speedup",
    CATEGORY,
    "curve",
    "elastic: points width:speed-up, such as '1:1 4:3.2 16:9'; '': as many as places",
    "",
)
RECONFIGURE: Final = Column(
    "reconfigure_s",
    pa.float64(),
    "s",
    "elastic: time that it stands still after its width changed; null: fixed at its start",
    0.0,
    nullable=True,
    low=0,
)
CPU: Final = _time(
    "cpu_s", "total CPU time of its tasks without initialisation; null: their total duration", low=0
)
RECORDED: Final = (
    _time("recorded_start_s", "when it really started, by the log; null if unknown"),
    _time("recorded_finish_s", "when it really ended, by the log; null if unknown"),
)
"""Optional columns of ``jobs``, ``stages`` and ``tasks``, on the clock of ``submit_s``
(`sim.workload.recorded`)."""
ELIGIBLE: Final = _time(
    "recorded_eligible_s",
    "when it was free to start, by the log: its begin time or dependencies; null if unknown",
)
SUBMITTED: Final = _time(
    "recorded_submit_s",
    "when it was really submitted, by the log, if submit_s is when it was free to start",
)
DELAYED_BY: Final = Column(
    "delayed_by",
    CATEGORY,
    "cause",
    "why it became free to start only after its submission, by the log: throttle (of its array), "
    "dependency, begin, hold or other; '' if it did not",
    "",
)
RUNS: Final = Column(
    "recorded_runs",
    CATEGORY,
    "text",
    "its runs, if it was requeued, by the log, separated by ;: from when it was free to start, "
    "start and end, s after its first start, the nodes, and tasks on some; '' for one run",
    "",
)
REASON: Final = Column(
    "reason", CATEGORY, "name", "why it waited last, by its scheduler; '' if unknown or none", ""
)
BILLING: Final = (
    Column("account", CATEGORY, "name", "account that pays for it; '' if unknown", ""),
    Column("qos", CATEGORY, "name", "its quality of service; '' if unknown", ""),
)
"""Optional columns of ``jobs`` in logs of Slurm, for fair share, priorities and caps."""
ARRAY: Final = (
    Column("array", CATEGORY, "name", "array of jobs that it belongs to; '' for none", ""),
    Column(
        "throttle", pa.int32(), "jobs", "most jobs of its array that run at once; 0: any", 0, low=0
    ),
)
"""Optional columns of ``jobs`` that are elements of arrays (Slurm's ``--array=1-100%4``)."""
COUNT: Final = Column(
    "count", pa.int64(), "tasks", "the row stands for this many tasks, one after the other", low=1
)
"""Optional column of ``tasks``, whose rows then are runs of like tasks (`sim.workload.runs`)."""
OPTIONAL_COLUMNS: Final[dict[str, tuple[Column, ...]]] = {
    "jobs": (
        POLL_LAG,
        BEGIN,
        AFTER_NEEDS,
        SINGLETON,
        NEW_DEADLINE,
        NEW_DEADLINE_AT,
        REQUESTED,
        PREEMPTS,
        CHECKPOINT,
        RESTART,
        WIDTH_MIN,
        SPEEDUP,
        RECONFIGURE,
        CPU,
        *FEATURES,
        *CLOCK,
        *RECORDED,
        ELIGIBLE,
        SUBMITTED,
        DELAYED_BY,
        RUNS,
        REASON,
        *BILLING,
        *ARRAY,
        PARTITION,
        N_NODES,
        EXCLUSIVE,
        ONE_PER_NODE,
        TOPOLOGY_REQUIRED,
        TOPOLOGY_PREFERRED,
        PLANS_ON,
        RESERVATION,
    ),
    "stages": (INPUT_HOME, REMOTE_FACTOR, RUNS_ON, STAGE_LAG, WATTS, *FEATURES, *RECORDED),
    "tasks": (COUNT, *RECORDED),
    "job_edges": (DELAY,),
    "history": CLOCK,
}
"""Optional columns, by table; a table without them does not get their defaults."""

NOW: Final = "now_s"
"""Key of ``meta``: when a log with jobs that still wait was written, s on the workload's clock."""

HISTORY: Final = (
    _time(
        "submit_s", "submission time; negative before the start; null if only the order is known"
    ),
    _time("finish_s", "end of its last task; null if only the order is known"),
    Column("n_tasks", pa.int32(), "tasks", "number of tasks; 0 if unknown", 0, low=0),
    Column("mean_task_s", pa.float64(), "s", "mean duration of its tasks", low=0),
    Column("user", CATEGORY, "name", "submitting user; '' if unknown", ""),
    *FEATURES,
)

TRAINING: Final = (
    Column("template", CATEGORY, "name", "recurring program"),
    Column("run", pa.int32(), "number", "number of the earlier run", low=0),
    Column("stage", pa.int32(), "index", "index of the stage in the job", low=0),
    Column("task", pa.int32(), "index", "index of the task in the stage", low=0),
    Column("ready_s", pa.float64(), "s", "when its inputs were ready, from submission", low=0),
    Column("start_s", pa.float64(), "s", "start of the successful attempt", low=0),
    Column("finish_s", pa.float64(), "s", "end of the successful attempt", low=0),
    Column("init_s", pa.float64(), "s", "initialisation time in this attempt", 0.0, low=0),
    Column("n_failed", pa.int32(), "attempts", "number of failed attempts before", 0, low=0),
)
FAILURES: Final = (
    Column("task", pa.int32(), "row of tasks", "task whose attempt fails", low=0),
    Column(
        "after_s",
        pa.float64(),
        "s",
        "running time of the attempt before it fails, at full speed and beside its input",
        low=0,
    ),
    Column(
        "lost",
        pa.int32(),
        "row of tasks",
        "task of a parent stage whose lost output makes it run again; -1 for none",
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
"""Optional tables; an empty table means the same as none."""

SORT_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "stage_edges": ("parent", "child"),
    "job_edges": ("upstream", "downstream"),
    "downloads": ("job", "time_s", "n"),
    "history": ("finish_s", "submit_s"),
    "training": ("template", "run", "stage", "task"),
    "failures": ("task",),
}
"""Sort keys of the tables whose row order has no meaning, nulls first. Rows of equal keys keep
their order: the first failure of a task is its first attempt; of two past jobs without times, the
first ended before the second was submitted."""


def demand_column(resource: str) -> Column:
    """Return the column of ``stages`` that holds the demand for `resource`."""
    return Column(
        DEMAND_PREFIX + resource, pa.float64(), resource, "demand of one task while it runs", 0.0,
        low=0,
    )  # fmt: skip


def request_column(resource: str) -> Column:
    """Return the optional column of ``stages`` with the request of a task for `resource`."""
    meaning = "request of one task, at least its demand; null: its demand"
    name = REQUEST_PREFIX + resource
    return Column(name, pa.float64(), resource, meaning, None, nullable=True, low=0)


def speed_column(class_name: str) -> Column:
    """Return the optional column of ``stages`` with the speed on machines of a class."""
    meaning = "speed of its tasks there: their durations are divided by it"
    return Column(SPEED_PREFIX + class_name, pa.float64(), "1", meaning, 1.0, low=MIN_SPEED)


def licence_column(name: str) -> Column:
    """Return the optional column of ``jobs`` with the licences of a name that each job holds."""
    meaning = "licences that the job holds from its first start to its end"
    return Column(LICENSE_PREFIX + name, pa.int32(), "licences", meaning, 0, low=0)


def empty(table: str) -> pa.Table:
    """Return an empty table of that name."""
    return pa.table({c.name: pa.array([], c.type) for c in required_columns(table)})


def required_columns(table: str) -> tuple[Column, ...]:
    """Return the required columns of the table of that name."""
    return TABLES[table] if table in TABLES else OPTIONAL_TABLES[table]


def describe() -> str:
    """Format the schema as plain text, a line a column."""
    lines = []
    for table, columns in (TABLES | OPTIONAL_TABLES).items():
        lines.append(table + (" (optional)" if table in OPTIONAL_TABLES else ""))
        amounts = demand_column("<resource>"), request_column("<resource>")
        shown = (*columns, *amounts) if table == "stages" else columns
        shown = (*shown, licence_column("<name>")) if table == "jobs" else shown
        shown = (*shown, *OPTIONAL_COLUMNS.get(table, ()))
        for c in (*shown, speed_column("<class>")) if table == "stages" else shown:
            kind = "category" if c.type == CATEGORY else str(c.type)
            values = f" ({', '.join(c.choices)})" if c.choices else ""
            lines.append(f"  {c.name:18} {kind:9} {c.unit:14} {c.meaning}{values}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(describe())
