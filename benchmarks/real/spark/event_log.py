"""Reduce an event log to the events and fields that matter here: tests keep many of them."""

from __future__ import annotations

import json
from typing import Any

_SETTINGS = ("spark.master", "spark.scheduler.mode")
_JOB = ("spark.job.description", "spark.scheduler.pool")
_STAGE = (
    "Stage ID", "Stage Name", "Number of Tasks", "Parent IDs", "Submission Time", "Completion Time",
)  # fmt: skip
_TASK = ("Index", "Partition ID", "Launch Time", "Finish Time")
_WHOLE = (
    "SparkListenerLogStart", "SparkListenerExecutorAdded", "SparkListenerApplicationStart",
    "SparkListenerApplicationEnd", "SparkListenerJobEnd",
)  # fmt: skip


def reduce_log(log: bytes, prefix: str = "job-") -> bytes:
    """Return the log without jobs of another description, and without fields that nobody reads.

    What is left is an event log that Spark's own tools and `sim.traces.spark_eventlog` read.
    """
    lines: list[str] = []
    jobs: set[int] = set()
    stages: set[int] = set()
    for line in log.splitlines():
        event = json.loads(line)
        match event["Event"]:
            case "SparkListenerJobStart":
                properties = event["Properties"]
                if not properties.get("spark.job.description", "").startswith(prefix):
                    continue
                jobs.add(event["Job ID"])
                infos = [_stage(info) for info in event["Stage Infos"]]
                stages |= {info["Stage ID"] for info in infos}
                event["Stage Infos"] = infos
                event["Properties"] = _some(properties, _JOB)
            case "SparkListenerJobEnd" if event["Job ID"] not in jobs:
                continue
            case "SparkListenerEnvironmentUpdate":
                settings = _some(event["Spark Properties"], _SETTINGS)
                event = {"Event": event["Event"], "Spark Properties": settings}
            case "SparkListenerStageCompleted" if event["Stage Info"]["Stage ID"] in stages:
                event["Stage Info"] = _some(event["Stage Info"], _STAGE)
            case "SparkListenerTaskEnd" if event["Stage ID"] in stages:
                head = _some(event, ("Event", "Stage ID", "Task End Reason"))
                event = head | {"Task Info": _some(event["Task Info"], _TASK)}
            case kind if kind not in _WHOLE:
                continue
        lines.append(json.dumps(event, separators=(",", ":")))
    return "".join(f"{line}\n" for line in lines).encode()


def _stage(info: dict[str, Any]) -> dict[str, Any]:
    return _some(info, _STAGE) | {
        "RDD Info": [{"RDD ID": rdd["RDD ID"]} for rdd in info["RDD Info"]]
    }


def _some(record: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: record[name] for name in names if name in record}
