"""Spark's events as its logs have them, of made-up applications, without what no reader needs."""

from __future__ import annotations

import json

T0 = 1_772_000_000_000
"""When the first application starts, ms."""


def start(name="etl", app="app-1", at=0, user="ann", **more):
    return {"Event": "SparkListenerApplicationStart", "App Name": name, "App ID": app,
            "Timestamp": T0 + at, "User": user, **more}  # fmt: skip


def end(at=10_000):
    return {"Event": "SparkListenerApplicationEnd", "Timestamp": T0 + at}


def environment(**properties):
    of = {key.replace("_", "."): value for key, value in properties.items()}
    return {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": of}


def executor(cores=4, profile=0):
    info = {"Host": "h", "Total Cores": cores, "Resource Profile Id": profile}
    return {"Event": "SparkListenerExecutorAdded", "Timestamp": T0, "Executor ID": "1",
            "Executor Info": info}  # fmt: skip


def profile(number, cpus, cores, **memory):
    asked = {"cores": {"Amount": cores}, **{k: {"Amount": v} for k, v in memory.items()}}
    return {"Event": "SparkListenerResourceProfileAdded", "Resource Profile Id": number,
            "Executor Resource Requests": asked,
            "Task Resource Requests": {"cpus": {"Amount": cpus}}}  # fmt: skip


def stage(number, n_tasks, parents=(), rdds=None, name="count", **more):
    return {"Stage ID": number, "Stage Attempt ID": 0, "Stage Name": name,
            "Number of Tasks": n_tasks, "Parent IDs": list(parents),
            "RDD Info": [{"RDD ID": r} for r in (rdds or [number])], **more}  # fmt: skip


def job(number, *stages, at=0, **properties):
    of = {key.replace("_", "."): value for key, value in properties.items()}
    return {"Event": "SparkListenerJobStart", "Job ID": number, "Submission Time": T0 + at,
            "Stage Infos": list(stages), "Properties": of}  # fmt: skip


def job_end(number, at, result="JobSucceeded"):
    return {"Event": "SparkListenerJobEnd", "Job ID": number, "Completion Time": T0 + at,
            "Job Result": {"Result": result}}  # fmt: skip


def task(of, index, begin, finish, reason="Success", speculative=False, attempt=0, **metrics):
    info = {"Task ID": 0, "Index": index, "Attempt": attempt, "Partition ID": index,
            "Launch Time": T0 + begin, "Finish Time": T0 + finish,
            "Speculative": speculative}  # fmt: skip
    return {"Event": "SparkListenerTaskEnd", "Stage ID": of, "Stage Attempt ID": attempt,
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


def two_stages(app="app-1", at=0, name="etl"):
    """Two maps of 1 and 2 s, then a reduce of 3 s."""
    return [
        start(name, app, at),
        environment(spark_executor_memory="4g", spark_task_cpus="1"),
        executor(4),
        job(0, stage(0, 2, name="map"), stage(1, 1, [0]), at=at + 500),
        started(), started(), started(),
        task(0, 0, at + 1000, at + 2000, **READS),
        task(0, 1, at + 1000, at + 3000, **READS),
        task(1, 0, at + 3000, at + 6000, **SHUFFLED),
        job_end(0, at + 6000),
        end(at + 7000),
    ]  # fmt: skip
