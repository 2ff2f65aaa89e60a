"""State of an application while its events are read: jobs, stages, and a row per task attempt."""

from __future__ import annotations

import math
import re
from array import array
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from sim.base.arrays import F8, I8

ROW: Final = (
    "stage", "attempt", "partition", "task", "executor", "launch_ms", "finish_ms", "kind",
    "speculative", "input_bytes", "shuffle_read_bytes", "shuffle_write_bytes", "output_bytes",
)  # fmt: skip
"""Columns of `Application.attempts`.

``attempt`` is the stage's attempt. ``partition`` is the Partition ID, or, if the log has none
(Spark before 3.3), -1 - Index, the position among the partitions of that attempt. ``executor`` is
an index of `Application.executor_numbers`, ``finish_ms`` NaN if unknown, ``kind`` a row of `KINDS`.
"""
COLUMN: Final = {name: position for position, name in enumerate(ROW)}
KINDS: Final = (
    "Success", "TaskKilled", "ExceptionFailure", "FetchFailed", "ExecutorLostFailure",
    "TaskResultLost", "TaskCommitDenied", "another reason",
)  # fmt: skip
"""Reasons for which an attempt ends."""
DONE, KILLED = 0.0, 1.0
EXECUTOR = ("cores", "memory", "memoryOverhead", "offHeap", "pyspark.memory")
PROPERTIES = {
    "spark.master", "spark.task.cpus", "spark.executor.cores", "spark.driver.memory",
    "spark.executor.memory", "spark.executor.memoryOverhead", "spark.yarn.queue",
}  # fmt: skip
NO_JOB: Final = -1
"""Job of a stage that no job's start lists."""
_SIZE = re.compile(r"^(\d{1,12})([kmgtp]?)b?$")
_MIB = {"k": 2.0**-10, "g": 2.0**10, "t": 2.0**20, "p": 2.0**30}


@dataclass(frozen=True)
class Stage:
    """A stage, as the first event that describes it says."""

    job: int
    name: str
    n_tasks: int
    parents: tuple[int, ...]
    rdds: frozenset[int]  # identify stages that write the same shuffle output
    profile: int


@dataclass
class SparkJob:
    """A Spark job: one action."""

    submit_ms: float
    execution: str  # of SQL; "" for none
    description: str
    pool: str
    listed: tuple[int, ...] = ()  # Stage IDs
    end_ms: float = math.inf
    has_succeeded: bool = False


@dataclass(frozen=True)
class Incident:
    """An event that decides which partitions the next attempt of a stage computes.

    Attributes
    ----------
    row : int
        Number of attempts that ended before it.
    kind : str
        ``submitted``: an attempt of a stage begins. ``lost``: Spark says that an output is.
        ``removed``, ``unfetched``: the outputs of an executor may be, as it left, or as a task
        could not fetch one.
    stage, attempt : int
        Of what is submitted or lost.
    number : int
        Partition, as in `ROW`, of what is lost; or executor.
    """

    row: int
    kind: Literal["submitted", "lost", "removed", "unfetched"]
    stage: int = -1
    attempt: int = -1
    number: int = -1


@dataclass(frozen=True)
class Unread:
    """A bad line: its rule, and what can be read of the attempt whose end it is."""

    rule: str
    stage: int = -1
    task: int = -1
    run_ms: float = math.nan  # 0 for an event of another kind
    is_success: bool = False


@dataclass
class Application:
    """State of an application after the events so far."""

    source: str  # name of the log
    app_id: str = ""
    name: str = ""
    user: str = ""
    begin_ms: float = math.nan
    end_ms: float = math.nan
    properties: dict[str, str] = field(default_factory=dict)
    stages: dict[int, Stage] = field(default_factory=dict)
    jobs: dict[int, SparkJob] = field(default_factory=dict)
    executions: dict[str, str] = field(default_factory=dict)  # their descriptions
    profiles: dict[int, dict[str, float]] = field(default_factory=dict)
    cores: dict[int, float] = field(default_factory=dict)  # of an executor, by profile
    executors: dict[str, float] = field(default_factory=dict)  # cores of those that are there
    executor_numbers: dict[str, int] = field(default_factory=dict)
    peak_cores: float = 0.0  # of all executors that were there at once
    stage_jobs: dict[int, SparkJob] = field(default_factory=dict)  # of stages without a job's start
    submissions: dict[int, float] = field(default_factory=dict)  # first submission of a stage, ms
    completions: dict[int, float] = field(default_factory=dict)  # last completion, ms
    sizes: dict[tuple[int, int], int] = field(default_factory=dict)  # tasks of a stage's attempt
    submitted: set[tuple[int, int]] = field(default_factory=set)  # later attempts of stages
    incidents: list[Incident] = field(default_factory=list)
    rows: array[float] = field(default_factory=lambda: array("d"))
    starts: array[int] = field(default_factory=lambda: array("q"))  # pairs of stage and Task ID
    file_rows: list[int] = field(default_factory=list)  # number of rows before each file
    unread: list[Unread] = field(default_factory=list)
    n_events: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    filled: dict[str, int] = field(default_factory=dict)
    noticed: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def attempts(self) -> F8:
        """Task attempts in order of their ends, (A, len(ROW))."""
        return np.frombuffer(self.rows, np.float64).reshape(-1, len(ROW))

    @property
    def started(self) -> I8:
        """Stage and Task ID of the attempts that started, (S, 2)."""
        return np.frombuffer(self.starts, np.int64).reshape(-1, 2)

    @property
    def n_rows(self) -> int:
        """Number of attempts that ended."""
        return len(self.rows) // len(ROW)

    def drop(self, rule: str, n: int = 1) -> None:
        """Count dropped attempts and tasks by rule."""
        if n:
            self.dropped[rule] = self.dropped.get(rule, 0) + n

    def fill(self, rule: str, n: int) -> None:
        """Count tasks that get a value by rule."""
        self.filled[rule] = self.filled.get(rule, 0) + n

    def notice(self, rule: str, n: int = 1) -> None:
        """Count peculiarities by rule."""
        if n:
            self.noticed[rule] = self.noticed.get(rule, 0) + n


def demand(app: Application, profile: int) -> tuple[float, float]:
    """Return the demand of a task of a resource profile: cores, and its share of memory in GiB."""
    requests, conf = app.profiles.get(profile, {}), app.properties
    cpus = requests.get("cpus") or _size(conf.get("spark.task.cpus", "")) or 1.0
    cores = (
        app.cores.get(profile)
        or requests.get("cores")
        or _size(conf.get("spark.executor.cores", ""))
        or cpus
    )
    if re.match(r"local(\[|$)", conf.get("spark.master", "")):  # the driver is the executor
        memory_mib = _size(conf.get("spark.driver.memory", "1g"))
    elif "memory" in requests:
        memory_mib = sum(requests.get(key, 0.0) for key in EXECUTOR[1:])
    else:
        memory_mib = _size(conf.get("spark.executor.memory", "1g"))
        memory_mib += _size(conf.get("spark.executor.memoryOverhead", ""))
    return cpus, memory_mib / 1024 * min(cpus / cores, 1.0)


def _size(amount: str) -> float:
    """Parse an amount; memory is in MiB unless it has another unit. Any other text is 0."""
    match = _SIZE.match(amount.strip().lower())
    if match is None:
        return 0.0
    return float(match[1]) * _MIB.get(match[2], 1.0)
