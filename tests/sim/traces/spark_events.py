"""Events of invented applications as in Spark's logs, without the fields that no reader uses."""

from __future__ import annotations

import json

T0 = 1_772_000_000_000
"""Start of the first application, ms since 1970."""


def start(name="etl", app="app-1", at_ms=0, user="ann", **more):
    return {"Event": "SparkListenerApplicationStart", "App Name": name, "App ID": app,
            "Timestamp": T0 + at_ms, "User": user, **more}  # fmt: skip


def end(at_ms=10_000):
    return {"Event": "SparkListenerApplicationEnd", "Timestamp": T0 + at_ms}


def environment(**properties):
    properties = {key.replace("_", "."): value for key, value in properties.items()}
    return {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": properties}


def executor(cores=4, profile=0):
    info = {"Host": "h", "Total Cores": cores, "Resource Profile Id": profile}
    return {"Event": "SparkListenerExecutorAdded", "Timestamp": T0, "Executor ID": "1",
            "Executor Info": info}  # fmt: skip


def profile(number, cpus, cores, **memory):
    requests = {key: {"Amount": amount} for key, amount in {"cores": cores, **memory}.items()}
    return {"Event": "SparkListenerResourceProfileAdded", "Resource Profile Id": number,
            "Executor Resource Requests": requests,
            "Task Resource Requests": {"cpus": {"Amount": cpus}}}  # fmt: skip


def stage(number, n_tasks, parents=(), rdds=None, name="count", **more):
    return {"Stage ID": number, "Stage Attempt ID": 0, "Stage Name": name,
            "Number of Tasks": n_tasks, "Parent IDs": list(parents),
            "RDD Info": [{"RDD ID": r} for r in (rdds or [number])], **more}  # fmt: skip


def job(number, *stages, at_ms=0, **properties):
    properties = {key.replace("_", "."): value for key, value in properties.items()}
    return {"Event": "SparkListenerJobStart", "Job ID": number, "Submission Time": T0 + at_ms,
            "Stage Infos": list(stages), "Properties": properties}  # fmt: skip


def job_end(number, at_ms, result="JobSucceeded"):
    return {"Event": "SparkListenerJobEnd", "Job ID": number, "Completion Time": T0 + at_ms,
            "Job Result": {"Result": result}}  # fmt: skip


def submitted(info, at_ms=0, **properties):
    properties = {key.replace("_", "."): value for key, value in properties.items()}
    info = {**info, "Submission Time": T0 + at_ms}
    return {"Event": "SparkListenerStageSubmitted", "Stage Info": info, "Properties": properties}


def completed(info, at_ms, failure=None):
    info = {**info, "Completion Time": T0 + at_ms}
    if failure is not None:
        info["Failure Reason"] = failure
    return {"Event": "SparkListenerStageCompleted", "Stage Info": info}


def removed(executor_id, at_ms):
    return {"Event": "SparkListenerExecutorRemoved", "Timestamp": T0 + at_ms,
            "Executor ID": executor_id}  # fmt: skip


def task(
    stage_number,
    index,
    begin,
    finish,
    reason="Success",
    speculative=False,
    attempt=0,
    task_id=None,
    partition=True,
    executor_id="1",
    **metrics,
):
    """Return a task's end; with `partition` False as Spark before 3.3 writes it."""
    info = {"Task ID": task_id, "Index": index, "Attempt": attempt, "Partition ID": index,
            "Launch Time": T0 + begin, "Executor ID": executor_id,
            "Finish Time": T0 + finish if finish is not None else 0,
            "Speculative": speculative}  # fmt: skip
    if task_id is None:
        del info["Task ID"]
    if not partition:
        del info["Partition ID"]
    reasons = reason if isinstance(reason, dict) else {"Reason": reason}
    return {"Event": "SparkListenerTaskEnd", "Stage ID": stage_number, "Stage Attempt ID": attempt,
            "Task End Reason": reasons, "Task Info": info, "Task Metrics": metrics}  # fmt: skip


def started(stage_number=0, task_id=0, begin=0, attempt=0):
    info = {"Task ID": task_id, "Index": 0, "Launch Time": T0 + begin, "Finish Time": 0}
    return {"Event": "SparkListenerTaskStart", "Stage ID": stage_number,
            "Stage Attempt ID": attempt, "Task Info": info}  # fmt: skip


def text(*events):
    return "".join((e if isinstance(e, str) else json.dumps(e)) + "\n" for e in events)


READS = {
    "Input Metrics": {"Bytes Read": 100},
    "Shuffle Write Metrics": {"Shuffle Bytes Written": 7},
}
SHUFFLED = {"Shuffle Read Metrics": {"Remote Bytes Read": 4, "Local Bytes Read": 3}}


def two_stages(app="app-1", at_ms=0, name="etl"):
    """Return the events of two map tasks of 1 and 2 s, then a reduce task of 3 s."""
    return [
        start(name, app, at_ms),
        environment(spark_executor_memory="4g", spark_task_cpus="1"),
        executor(4),
        job(0, stage(0, 2, name="map"), stage(1, 1, [0]), at_ms=at_ms + 500),
        started(0, 0, at_ms + 1000), started(0, 1, at_ms + 1000), started(1, 2, at_ms + 1000),
        task(0, 0, at_ms + 1000, at_ms + 2000, task_id=0, **READS),
        task(0, 1, at_ms + 1000, at_ms + 3000, task_id=1, **READS),
        task(1, 0, at_ms + 3000, at_ms + 6000, task_id=2, **SHUFFLED),
        job_end(0, at_ms + 6000),
        end(at_ms + 7000),
    ]  # fmt: skip
