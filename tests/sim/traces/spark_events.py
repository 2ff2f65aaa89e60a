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


def task(
    stage_number, index, begin, finish, reason="Success", speculative=False, attempt=0, **metrics
):
    info = {"Task ID": 0, "Index": index, "Attempt": attempt, "Partition ID": index,
            "Launch Time": T0 + begin, "Finish Time": T0 + finish,
            "Speculative": speculative}  # fmt: skip
    return {"Event": "SparkListenerTaskEnd", "Stage ID": stage_number, "Stage Attempt ID": attempt,
            "Task End Reason": {"Reason": reason}, "Task Info": info,
            "Task Metrics": metrics}  # fmt: skip


def started():
    return {"Event": "SparkListenerTaskStart", "Stage ID": 0}


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
        started(), started(), started(),
        task(0, 0, at_ms + 1000, at_ms + 2000, **READS),
        task(0, 1, at_ms + 1000, at_ms + 3000, **READS),
        task(1, 0, at_ms + 3000, at_ms + 6000, **SHUFFLED),
        job_end(0, at_ms + 6000),
        end(at_ms + 7000),
    ]  # fmt: skip
