"""Parse the events of an application: jobs, stages, and a row of numbers per task attempt.

Source: Spark's ``JsonProtocol`` (org.apache.spark.util), as of versions 2 to 3.5. Events of other
kinds are skipped without parsing their JSON.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from sim.base.arrays import F8
from sim.base.reading import (
    BadLineError,
    BadRows,
    OnBadRow,
    broken_text_error,
    check_text,
    handle_bad_line,
)
from sim.traces.spark_eventlog.files import Log, TruncatedError, lines

ROW: Final = (
    "stage", "partition", "launch_ms", "finish_ms", "kind", "speculative",
    "input_bytes", "shuffle_read_bytes", "shuffle_write_bytes", "output_bytes",
)  # fmt: skip
"""Columns of `Application.attempts`."""
DONE, FAILED, KILLED = 0.0, 1.0, 2.0
_MAX_NUMBER = 1e15
_HEAD = re.compile(rb'^\s*\{\s*"Event"\s*:\s*"([^"\\]{1,200})"')
_SIZE = re.compile(r"^(\d{1,12})([kmgtp]?)b?$")
_MIB = {"k": 2.0**-10, "g": 2.0**10, "t": 2.0**20, "p": 2.0**30}
_REASONS = (
    "ExceptionFailure", "FetchFailed", "ExecutorLostFailure", "TaskResultLost", "TaskCommitDenied",
)  # fmt: skip


@dataclass(frozen=True)
class Stage:
    """A stage, as the first job that lists it describes it."""

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
    end_ms: float = math.inf


@dataclass
class Application:
    """State of an application after the events so far."""

    log: Log
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
    peak_cores: float = 0.0  # of all executors that were there at once
    rows: array[float] = field(default_factory=lambda: array("d"))
    n_events: int = 0
    n_started: int = 0
    n_ended: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    noticed: dict[str, int] = field(default_factory=dict)

    @property
    def attempts(self) -> F8:
        """Task attempts in order of their ends, (A, len(ROW))."""
        return np.frombuffer(self.rows, np.float64).reshape(-1, len(ROW))

    def drop(self, rule: str, n: int = 1) -> None:
        """Count dropped attempts and tasks by rule."""
        if n:
            self.dropped[rule] = self.dropped.get(rule, 0) + n

    def notice(self, rule: str, n: int = 1) -> None:
        """Count peculiarities by rule."""
        if n:
            self.noticed[rule] = self.noticed.get(rule, 0) + n


def read_log(log: Log, on_bad_row: OnBadRow, bad: BadRows) -> Application:
    """Read the log files of an application in pieces."""
    app = Application(log)
    app.notice("a file of a rolled log is missing", log.n_missing)
    for file in log.files:
        number = 0
        try:
            for number, text, is_complete in lines(file):
                app.n_events += 1
                match = _HEAD.match(text)
                name = match[1].decode(errors="replace") if match else ""
                app.n_started += name == "SparkListenerTaskStart"
                if match and name not in _HANDLERS:
                    continue
                if not is_complete and not _is_json(text):
                    app.notice("a truncated last line")
                    continue
                with handle_bad_line(file, number, on_bad_row, bad):
                    _handle(app, text)
        except TruncatedError as error:
            if on_bad_row == "error" and not log.unfinished:
                raise broken_text_error(file, number + 1, error) from error
            app.notice("a truncated compressed file")
    return app


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _handle(app: Application, text: bytes) -> None:
    try:
        event = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadLineError("wrong line", f"the line is not valid JSON ({error})") from None
    if not isinstance(event, dict) or not isinstance(event.get("Event"), str):
        raise BadLineError("wrong line", "the line is not a Spark event: it has no field Event")
    handler = _HANDLERS.get(event["Event"])
    if handler is not None:
        handler(app, event)


def _application_start(app: Application, event: dict[str, Any]) -> None:
    begin_ms = _number(event, "Timestamp")
    name, user = _text(event, "App Name"), _text(event, "User")
    app_id, attempt = _text(event, "App ID"), _text(event, "App Attempt ID")
    app.begin_ms, app.name, app.user = begin_ms, name, user
    app.app_id = f"{app_id}_{attempt}" if attempt else app_id


def _application_end(app: Application, event: dict[str, Any]) -> None:
    app.end_ms = _number(event, "Timestamp")


def _environment(app: Application, event: dict[str, Any]) -> None:
    properties = _part(event, "Spark Properties", dict, {})
    if isinstance(properties, dict):
        app.properties = {key: _text(properties, key) for key in properties if key in _PROPERTIES}


def _profile(app: Application, event: dict[str, Any]) -> None:
    executor = _part(event, "Executor Resource Requests", dict, {})
    task = _part(event, "Task Resource Requests", dict, {})
    amounts = {
        key: _number(_part(requests, key, dict, {}), "Amount")
        for requests, keys in ((executor, _EXECUTOR), (task, ("cpus",)))
        for key in keys
        if key in requests
    }
    app.profiles[int(_number(event, "Resource Profile Id"))] = amounts


def _executor(app: Application, event: dict[str, Any]) -> None:
    info = _part(event, "Executor Info", dict)
    cores = _number(info, "Total Cores")
    if cores >= 1:
        app.cores.setdefault(int(_number(info, "Resource Profile Id", 0)), cores)
        app.executors[_text(event, "Executor ID")] = cores
        app.peak_cores = max(app.peak_cores, sum(app.executors.values()))


def _executor_removed(app: Application, event: dict[str, Any]) -> None:
    app.executors.pop(_text(event, "Executor ID"), None)


def _job_start(app: Application, event: dict[str, Any]) -> None:
    number = int(_number(event, "Job ID"))
    properties = _part(event, "Properties", dict, {})
    execution = _text(properties, "spark.sql.execution.root.id")
    job = SparkJob(
        _number(event, "Submission Time"),
        execution or _text(properties, "spark.sql.execution.id"),
        _text(properties, "spark.job.description"),
        _text(properties, "spark.scheduler.pool"),
    )
    stages = {}
    for info in _part(event, "Stage Infos", list, []):
        stage_id = int(_number(_fields(info), "Stage ID"))
        parents = tuple(_ids(info, "Parent IDs"))
        if any(parent >= stage_id for parent in parents):
            text = f"stage {stage_id} has the parent {max(parents)}; valid: a smaller Stage ID"
            raise BadLineError("wrong parent", text)
        stages[stage_id] = Stage(
            number,
            _text(info, "Stage Name"),
            int(_number(info, "Number of Tasks")),
            parents,
            frozenset(
                int(_number(_fields(rdd), "RDD ID")) for rdd in _part(info, "RDD Info", list, [])
            ),
            int(_number(info, "Resource Profile Id", 0)),
        )
    if number in app.jobs:
        text = f"an earlier event started the job {number} already"
        raise BadLineError("job that has started", text)
    app.jobs[number] = job
    for stage_id, stage in stages.items():
        app.stages.setdefault(stage_id, stage)


def _job_end(app: Application, event: dict[str, Any]) -> None:
    number, end_ms = int(_number(event, "Job ID")), _number(event, "Completion Time")
    result = _part(event, "Job Result", dict, {})
    if number not in app.jobs:
        app.notice("a job's end without its start")
        return
    app.jobs[number].end_ms = max(end_ms, app.jobs[number].submit_ms)
    app.notice("a Spark job that failed", _text(result, "Result") != "JobSucceeded")


def _task_end(app: Application, event: dict[str, Any]) -> None:
    info = _part(event, "Task Info", dict)
    reason = _text(_part(event, "Task End Reason", dict), "Reason")
    launch_ms, finish_ms = _number(info, "Launch Time"), _number(info, "Finish Time")
    if finish_ms < launch_ms:
        text = f"a task ends at {finish_ms:.0f} ms, before it starts at {launch_ms:.0f} ms"
        raise BadLineError("ends before it starts", text)
    metrics = _part(event, "Task Metrics", dict, {})
    shuffle_read, shuffle_write, task_input, task_output = (
        _part(metrics, f"{key} Metrics", dict, {})
        for key in ("Shuffle Read", "Shuffle Write", "Input", "Output")
    )
    row = (
        _number(event, "Stage ID"),
        _number(info, "Partition ID", _number(info, "Index")),
        launch_ms,
        finish_ms,
        {"Success": DONE, "TaskKilled": KILLED}.get(reason, FAILED),
        float(info.get("Speculative") is True),
        _number(task_input, "Bytes Read", 0),
        _number(shuffle_read, "Remote Bytes Read", 0)
        + _number(shuffle_read, "Local Bytes Read", 0),
        _number(shuffle_write, "Shuffle Bytes Written", 0),
        _number(task_output, "Bytes Written", 0),
    )
    if reason == "Resubmitted":  # the output of a task that ended earlier is lost
        app.notice("output lost with its executor")
        return
    app.n_ended += 1
    if row[4] == FAILED:
        app.drop(f"a failed attempt: {reason if reason in _REASONS else 'another reason'}")
    app.rows.extend(row)


def _execution(app: Application, event: dict[str, Any]) -> None:
    number = int(_number(event, "executionId"))
    app.executions[str(number)] = _text(event, "description")


_SQL = "org.apache.spark.sql.execution.ui.SparkListener"
_HANDLERS: Final[dict[str, Callable[[Application, dict[str, Any]], None]]] = {
    "SparkListenerApplicationStart": _application_start,
    "SparkListenerApplicationEnd": _application_end,
    "SparkListenerEnvironmentUpdate": _environment,
    "SparkListenerResourceProfileAdded": _profile,
    "SparkListenerExecutorAdded": _executor,
    "SparkListenerExecutorRemoved": _executor_removed,
    "SparkListenerJobStart": _job_start,
    "SparkListenerJobEnd": _job_end,
    "SparkListenerTaskEnd": _task_end,
    f"{_SQL}SQLExecutionStart": _execution,
}
_EXECUTOR = ("cores", "memory", "memoryOverhead", "offHeap", "pyspark.memory")
_PROPERTIES = {
    "spark.master", "spark.task.cpus", "spark.executor.cores", "spark.driver.memory",
    "spark.executor.memory", "spark.executor.memoryOverhead", "spark.yarn.queue",
}  # fmt: skip


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
        memory_mib = sum(requests.get(key, 0.0) for key in _EXECUTOR[1:])
    else:
        memory_mib = _size(conf.get("spark.executor.memory", "1g"))
        memory_mib += _size(conf.get("spark.executor.memoryOverhead", ""))
    return cpus, memory_mib / 1024 * min(cpus / cores, 1.0)


def _size(text: str) -> float:
    """Parse an amount; memory is in MiB unless it has another unit. Any other text is 0."""
    match = _SIZE.match(text.strip().lower())
    if match is None:
        return 0.0
    return float(match[1]) * _MIB.get(match[2], 1.0)


def _fields(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadLineError("wrong type", f"expected a JSON object, found {str(value)[:40]!r}")
    return value


def _part(record: dict[str, Any], key: str, kind: type, default: Any = None) -> Any:
    value = record.get(key)
    if value is None and default is not None:
        return default
    if value is None:
        raise BadLineError("missing value", f"{key} is missing")
    if not isinstance(value, kind):
        name = "JSON object" if kind is dict else "list"
        text = f"{key} must be a {name}, not {str(value)[:40]!r}"
        raise BadLineError("wrong type", text)
    return value


def _number(record: dict[str, Any], key: str, default: float | None = None) -> float:
    value = record.get(key)
    if value is None and default is not None:
        return default
    if value is None:
        raise BadLineError("missing value", f"{key} is missing")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadLineError("wrong type", f"{key} must be a number, not {str(value)[:40]!r}")
    if not 0 <= value <= _MAX_NUMBER:
        text = f"{key} is {str(value)[:40]}; valid: 0 to {_MAX_NUMBER:g}"
        raise BadLineError("number out of range", text)
    return float(value)


def _ids(record: dict[str, Any], key: str) -> list[int]:
    return [int(_number({key: value}, key)) for value in _part(record, key, list, [])]


def _text(record: dict[str, Any], key: str) -> str:
    text = record.get(key)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise BadLineError("wrong type", f"{key} must be text, not {str(text)[:40]!r}")
    return check_text(key, text)
