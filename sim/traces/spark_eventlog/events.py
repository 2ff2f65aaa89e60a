"""Parse the events of an application into its state.

Source: Spark's ``JsonProtocol`` (org.apache.spark.util), as of versions 2 to 3.5. Events of other
kinds are skipped without parsing their JSON; of a task's start only the ids are parsed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, Final

from sim.base.reading import BadLineError
from sim.traces.spark_eventlog.application import (
    EXECUTOR,
    KINDS,
    NO_JOB,
    PROPERTIES,
    Application,
    Incident,
    SparkJob,
    Stage,
    Unread,
)
from sim.traces.spark_eventlog.fields import fields, ids, number, number_or, part, text

_HEAD = re.compile(rb'^\s*\{\s*"Event"\s*:\s*"([^"\\]{1,200})"')
_START_IDS = re.compile(
    rb'"Stage ID"\s*:\s*(\d{1,15})\s*,\s*"Stage Attempt ID"\s*:\s*(\d{1,15})\s*,'
    rb'\s*"Task Info"\s*:\s*\{\s*"Task ID"\s*:\s*(\d{1,15})\b'
)
TASK_START, TASK_END = "SparkListenerTaskStart", "SparkListenerTaskEnd"
LOG_START, APPLICATION_START = "SparkListenerLogStart", "SparkListenerApplicationStart"
APPLICATION_END = "SparkListenerApplicationEnd"
JOB_START, STAGE_SUBMITTED = "SparkListenerJobStart", "SparkListenerStageSubmitted"
WORK_EVENTS = frozenset((JOB_START, STAGE_SUBMITTED, TASK_START, TASK_END))
"""Events that come after the start of their application."""


def event_name(line: bytes) -> str:
    """Return the name of a line's event, if it is the first field; else an empty text."""
    match = _HEAD.match(line)
    return match[1].decode(errors="replace") if match else ""


def is_read(name: str) -> bool:
    """Return True if a line needs parsing: an event of a name that is read, or of no name yet."""
    return not name or name in _HANDLERS


def parse_event(line: bytes) -> dict[str, Any]:
    """Parse a line into an event."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadLineError("wrong line", f"the line is not valid JSON ({error})") from None
    if not isinstance(event, dict) or not isinstance(event.get("Event"), str):
        raise BadLineError("wrong line", "the line is not a Spark event: it has no field Event")
    return event


def handle_event(app: Application, line: bytes) -> None:
    """Parse a line, and enter its event into the state; what can be read of a bad one, too."""
    try:
        event = parse_event(line)
        handler = _HANDLERS.get(event["Event"])
        if handler is not None:
            handler(app, event)
    except BadLineError as error:
        app.unread.append(_unread(error.rule, line))
        raise


def identity(event: dict[str, Any]) -> tuple[str, float]:
    """Return id and start (ms) of the application that an ApplicationStart begins."""
    app_id, attempt = text(event, "App ID"), text(event, "App Attempt ID")
    return (f"{app_id}_{attempt}" if attempt else app_id), number(event, "Timestamp")


def enter_start(app: Application, line: bytes) -> None:
    """Enter the ids of a task's start; a line without them is no start."""
    match = _START_IDS.search(line)
    if match is None:
        try:
            event = json.loads(line)
            task = _index(event["Task Info"], "Task ID")
            stage, attempt = _index(event, "Stage ID"), _index(event, "Stage Attempt ID")
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            return
    else:
        stage, attempt, task = (int(digits) for digits in match.groups())
    if stage >= 0 and task >= 0:
        app.starts.extend((stage, task))
        _submit(app, stage, attempt)


def _unread(rule: str, line: bytes) -> Unread:
    """Return what can be read of a bad line; an event that ends no attempt has no work."""
    try:
        event = json.loads(line)
        name = event["Event"]
    except (ValueError, RecursionError, KeyError, TypeError):
        is_end = event_name(line) in ("", TASK_END)
        return Unread(rule, run_ms=math.nan if is_end else 0.0)
    if name != TASK_END:
        return Unread(rule, run_ms=0.0 if isinstance(name, str) else math.nan)
    info, reasons = (event.get(key) for key in ("Task Info", "Task End Reason"))
    info = info if isinstance(info, dict) else {}
    reason = reasons.get("Reason") if isinstance(reasons, dict) else None
    if reason == "Resubmitted":
        return Unread(rule, run_ms=0.0)
    launch_ms, finish_ms = (_index(info, key) for key in ("Launch Time", "Finish Time"))
    return Unread(
        rule,
        _index(event, "Stage ID"),
        _index(info, "Task ID"),
        finish_ms - launch_ms if 0 <= launch_ms <= finish_ms else math.nan,
        reason == "Success",
    )


def _application_start(app: Application, event: dict[str, Any]) -> None:
    app_id, begin_ms = identity(event)
    app.name, app.user = text(event, "App Name"), text(event, "User")
    app.app_id, app.begin_ms = app_id, begin_ms


def _application_end(app: Application, event: dict[str, Any]) -> None:
    app.end_ms = number(event, "Timestamp")


def _environment(app: Application, event: dict[str, Any]) -> None:
    properties = part(event, "Spark Properties", dict, {})
    if isinstance(properties, dict):
        app.properties = {key: text(properties, key) for key in properties if key in PROPERTIES}


def _profile(app: Application, event: dict[str, Any]) -> None:
    executor = part(event, "Executor Resource Requests", dict, {})
    task = part(event, "Task Resource Requests", dict, {})
    amounts = {
        key: number(part(requests, key, dict, {}), "Amount")
        for requests, keys in ((executor, EXECUTOR), (task, ("cpus",)))
        for key in keys
        if key in requests
    }
    app.profiles[int(number(event, "Resource Profile Id"))] = amounts


def _executor(app: Application, event: dict[str, Any]) -> None:
    info = part(event, "Executor Info", dict)
    cores = number(info, "Total Cores")
    if cores >= 1:
        app.cores.setdefault(int(number(info, "Resource Profile Id", 0)), cores)
        app.executors[text(event, "Executor ID")] = cores
        app.peak_cores = max(app.peak_cores, sum(app.executors.values()))


def _executor_removed(app: Application, event: dict[str, Any]) -> None:
    name = text(event, "Executor ID")
    app.executors.pop(name, None)
    app.incidents.append(Incident(app.n_rows, "removed", number=_executor_number(app, name)))


def _job_start(app: Application, event: dict[str, Any]) -> None:
    job_id = int(number(event, "Job ID"))
    submit_ms = number(event, "Submission Time")
    job = _job(submit_ms, part(event, "Properties", dict, {}))
    infos = [fields(info) for info in part(event, "Stage Infos", list, [])]
    stages = {int(number(info, "Stage ID")): _stage(info, job_id) for info in infos}
    job.listed = tuple(sorted(stages))
    if job_id in app.jobs:
        earlier = app.jobs[job_id]
        if (earlier.submit_ms, earlier.listed) == (submit_ms, job.listed):
            app.notice("a job's start that another line has too")
            return
        problem = f"an earlier event started the job {job_id} already, with other stages or times"
        raise BadLineError("job that has started", problem)
    app.jobs[job_id] = job
    for stage_id, stage in stages.items():
        app.stages.setdefault(stage_id, stage)


def _job(submit_ms: float, properties: dict[str, Any]) -> SparkJob:
    execution = text(properties, "spark.sql.execution.root.id")
    return SparkJob(
        submit_ms,
        execution or text(properties, "spark.sql.execution.id"),
        text(properties, "spark.job.description"),
        text(properties, "spark.scheduler.pool"),
    )


def _stage(info: dict[str, Any], job: int) -> Stage:
    stage_id = int(number(info, "Stage ID"))
    parents = tuple(ids(info, "Parent IDs"))
    if any(parent >= stage_id for parent in parents):
        problem = f"stage {stage_id} has the parent {max(parents)}; valid: a smaller Stage ID"
        raise BadLineError("wrong parent", problem)
    return Stage(
        job,
        text(info, "Stage Name"),
        int(number(info, "Number of Tasks")),
        parents,
        frozenset(int(number(fields(rdd), "RDD ID")) for rdd in part(info, "RDD Info", list, [])),
        int(number(info, "Resource Profile Id", 0)),
    )


def _job_end(app: Application, event: dict[str, Any]) -> None:
    job_id, end_ms = int(number(event, "Job ID")), number(event, "Completion Time")
    result = part(event, "Job Result", dict, {})
    if job_id not in app.jobs:
        app.notice("a job's end without its start")
        return
    job = app.jobs[job_id]
    if math.isfinite(job.end_ms):
        return
    job.end_ms = max(end_ms, job.submit_ms)
    job.has_succeeded = text(result, "Result") == "JobSucceeded"
    app.notice("a Spark job that failed", not job.has_succeeded)


def _stage_submitted(app: Application, event: dict[str, Any]) -> None:
    info = part(event, "Stage Info", dict)
    stage_id, attempt = _describe(app, info)
    submit_ms = number(info, "Submission Time", math.nan)
    app.submissions.setdefault(stage_id, submit_ms)
    if app.stages[stage_id].job == NO_JOB:
        job = _job(submit_ms, part(event, "Properties", dict, {}))
        app.stage_jobs.setdefault(stage_id, job)
    _submit(app, stage_id, attempt)


def _stage_completed(app: Application, event: dict[str, Any]) -> None:
    info = part(event, "Stage Info", dict)
    stage_id, _ = _describe(app, info)
    if not text(info, "Failure Reason"):
        app.completions[stage_id] = number(info, "Completion Time", math.nan)


def _describe(app: Application, info: dict[str, Any]) -> tuple[int, int]:
    """Enter the stage that an event describes, unless a job lists it; return stage and attempt."""
    stage_id, attempt = int(number(info, "Stage ID")), int(number(info, "Stage Attempt ID", 0))
    stage = _stage(info, NO_JOB)
    app.stages.setdefault(stage_id, stage)
    app.sizes[stage_id, attempt] = stage.n_tasks
    return stage_id, attempt


def _submit(app: Application, stage: int, attempt: int) -> None:
    """Enter the first sign of a later attempt of a stage."""
    if attempt > 0 and (stage, attempt) not in app.submitted:
        app.submitted.add((stage, attempt))
        app.incidents.append(Incident(app.n_rows, "submitted", stage, attempt))


def _task_end(app: Application, event: dict[str, Any]) -> None:
    info = part(event, "Task Info", dict)
    reasons = part(event, "Task End Reason", dict)
    reason = text(reasons, "Reason")
    launch_ms = number(info, "Launch Time")
    finish_ms = number(info, "Finish Time", None if reason == "Success" else 0)
    if finish_ms == 0 < launch_ms and reason != "Success":  # its end was not written
        finish_ms = math.nan
    if finish_ms < launch_ms:
        problem = f"a task ends at {finish_ms:.0f} ms, before it starts at {launch_ms:.0f} ms"
        raise BadLineError("ends before it starts", problem)
    metrics = part(event, "Task Metrics", dict, {})
    shuffle_read, shuffle_write, task_input, task_output = (
        part(metrics, f"{key} Metrics", dict, {})
        for key in ("Shuffle Read", "Shuffle Write", "Input", "Output")
    )
    stage, attempt = number(event, "Stage ID"), number(event, "Stage Attempt ID", 0)
    row = (
        stage,
        attempt,
        number(info, "Partition ID") if "Partition ID" in info else -1 - number(info, "Index"),
        number(info, "Task ID", -1),
        _executor_number(app, text(info, "Executor ID")),
        launch_ms,
        finish_ms,
        float(KINDS.index(reason) if reason in KINDS else len(KINDS) - 1),
        float(info.get("Speculative") is True),
        number(task_input, "Bytes Read", 0),
        number(shuffle_read, "Remote Bytes Read", 0) + number(shuffle_read, "Local Bytes Read", 0),
        number(shuffle_write, "Shuffle Bytes Written", 0),
        number(task_output, "Bytes Written", 0),
    )
    if reason == "Resubmitted":  # the output of a task that ended earlier is lost
        app.notice("output lost with its executor")
        app.incidents.append(Incident(app.n_rows, "lost", int(stage), int(attempt), int(row[2])))
        return
    if reason == "FetchFailed":
        _fetch_failed(app, reasons)
    app.rows.extend(row)


def _fetch_failed(app: Application, reason: dict[str, Any]) -> None:
    """Enter the executor whose outputs a task could not fetch."""
    address = reason.get("Block Manager Address")
    name = address.get("Executor ID") if isinstance(address, dict) else None
    if isinstance(name, str):
        executor = _executor_number(app, name)
        app.incidents.append(Incident(app.n_rows, "unfetched", number=executor))


def _executor_number(app: Application, name: str) -> int:
    return app.executor_numbers.setdefault(name, len(app.executor_numbers))


def _index(record: dict[str, Any], key: str) -> int:
    """Return a number of a record; -1 if it is none."""
    return int(number_or(record.get(key), -1))


def _execution(app: Application, event: dict[str, Any]) -> None:
    execution = int(number(event, "executionId"))
    app.executions[str(execution)] = text(event, "description")


_SQL = "org.apache.spark.sql.execution.ui.SparkListener"
_HANDLERS: Final[dict[str, Callable[[Application, dict[str, Any]], None]]] = {
    APPLICATION_START: _application_start,
    APPLICATION_END: _application_end,
    "SparkListenerEnvironmentUpdate": _environment,
    "SparkListenerResourceProfileAdded": _profile,
    "SparkListenerExecutorAdded": _executor,
    "SparkListenerExecutorRemoved": _executor_removed,
    JOB_START: _job_start,
    "SparkListenerJobEnd": _job_end,
    STAGE_SUBMITTED: _stage_submitted,
    "SparkListenerStageCompleted": _stage_completed,
    TASK_END: _task_end,
    f"{_SQL}SQLExecutionStart": _execution,
}
