"""Run queries on Spark; save its event logs, and the task durations of its REST API.

``python spark_queries.py queries FOLDER`` (or ``speculation FOLDER``) with a Python that has
``pyspark``, and Java. Writes into FOLDER ``logs``, a history server's folder; ``durations.json``,
the durations of successful tasks by application and stage, ms, from Spark's REST API; and
``stripped.jsonl``, the log of `queries` without hosts, users, paths and other traces of the machine
that wrote it: ``spark_queries.jsonl.gz`` beside this file is one.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

HOST = "127.0.0.1"
SECOND_HOST = "127.0.0.2"  # this machine too; a copy of a task never runs on the task's host
KEPT_FIELDS = {
    "SparkListenerLogStart": ("Spark Version",),
    "SparkListenerApplicationStart": ("App Name", "App ID", "Timestamp"),
    "SparkListenerApplicationEnd": ("Timestamp",),
    "SparkListenerResourceProfileAdded": (
        "Resource Profile Id", "Executor Resource Requests", "Task Resource Requests",
    ),
    "SparkListenerJobStart": ("Job ID", "Submission Time", "Stage Infos", "Stage IDs"),
    "SparkListenerJobEnd": ("Job ID", "Completion Time", "Job Result"),
    "SparkListenerTaskStart": ("Stage ID", "Stage Attempt ID", "Task Info"),
    "SparkListenerTaskEnd": (
        "Stage ID", "Stage Attempt ID", "Task Type", "Task Info", "Task Metrics",
    ),
}  # fmt: skip
DROPPED = {"Accumulables", "Host", "Details", "Scope", "Callsite", "Executor ID", "Storage Level"}


def session(name: str, master: str, folder: Path, **conf: str):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).master(master)
    settings = {
        "spark.eventLog.enabled": "true", "spark.eventLog.compress": "false",
        "spark.eventLog.dir": folder.as_uri(), "spark.eventLog.rolling.enabled": "false",
        "spark.ui.port": "0", "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": HOST, "spark.driver.memory": "600m",
        "spark.sql.shuffle.partitions": "3", "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.speculation": "false",
        "spark.sql.warehouse.dir": (folder.parent / "warehouse").as_uri(),
        **{key.replace("_", "."): value for key, value in conf.items()},
    }  # fmt: skip
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def durations_ms(spark) -> dict[str, list[int]]:
    """Return the durations of successful tasks by stage, from Spark's REST API."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    base = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}"
    durations: dict[str, list[int]] = {}
    for stage in _get(f"{base}/stages"):
        tasks = _get(f"{base}/stages/{stage['stageId']}/{stage['attemptId']}/taskList?length=1000")
        done = [task["duration"] for task in tasks if task["status"] == "SUCCESS"]
        if done:
            durations.setdefault(str(stage["stageId"]), []).extend(sorted(done))
    return durations


def _get(url: str):
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


def queries(folder: Path):
    """Run a join with an aggregation; a sort; a task that fails at first; a shuffle read twice."""
    from pyspark import TaskContext
    from pyspark.sql import functions as f

    spark = session("queries", "local[2,4]", folder)
    many = spark.range(0, 2000, 1, 4).withColumn("k", f.col("id") % 100)
    few = spark.range(0, 100, 1, 2).withColumnRenamed("id", "k").withColumn("v", f.col("k") % 7)
    many.join(few, "k").groupBy("v").agg(f.count("*")).collect()
    many.orderBy("k").write.format("noop").mode("overwrite").save()

    def fails_at_first(x):
        context = TaskContext.get()
        if context.attemptNumber() == 0 and context.partitionId() == 1:
            raise ValueError("the first attempt")
        return x % 5

    rest = f.udf(fails_at_first, "long")
    spark.range(0, 300, 1, 3).select(rest("id").alias("k")).groupBy("k").count().collect()
    shared = spark.sparkContext.parallelize(range(60), 3).map(lambda x: (x % 10, 1))
    shared = shared.reduceByKey(lambda x, y: x + y, 2)
    shared.count()
    shared.collect()
    return spark


def sort(folder: Path, name: str, **conf: str):
    spark = session(name, "local[2]", folder, spark_eventLog_compress="true", **conf)
    spark.range(0, 1000, 1, 3).orderBy("id", ascending=False).write.format("noop").mode(
        "overwrite"
    ).save()
    return spark


def speculation(folder: Path, master: str):
    """Run six tasks of which one hangs, until its copy on the other worker is done."""
    from pyspark import TaskContext

    spark = session(
        "speculation", master, folder, spark_speculation="true",
        spark_speculation_multiplier="1.1", spark_speculation_quantile="0.5",
        spark_speculation_efficiency_enabled="false", spark_executor_memory="512m",
    )  # fmt: skip

    def slow(number, rows):
        hangs = number == 0 and TaskContext.get().attemptNumber() == 0
        time.sleep(60 if hangs else 0.2)
        return rows

    spark.sparkContext.parallelize(range(12), 6).mapPartitionsWithIndex(slow).count()
    return spark


def start_workers(processes: list[subprocess.Popen]) -> str:
    """Start a master and two workers with different addresses; return the master's URL."""
    import pyspark

    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    home = os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    master, first = f"spark://{HOST}:{port}", [f"{home}/bin/spark-class"]
    package = "org.apache.spark.deploy"
    commands = [
        [f"{package}.master.Master", "--host", HOST, "--port", str(port), "--webui-port", "0"]
    ]
    commands += [
        [
            f"{package}.worker.Worker",
            "--host",
            host,
            "-c",
            "2",
            "-m",
            "600m",
            "--webui-port",
            "0",
            master,
        ]
        for host in (HOST, SECOND_HOST)
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, "SPARK_NO_DAEMONIZE": "1"}
    for command in commands:
        processes.append(subprocess.Popen([*first, *command], env=environment, **quiet))
        _wait_for(port)  # of the master, as an application gives up after a minute
    return master


def _wait_for(port: int) -> None:
    for _ in range(600):
        with socket.socket() as client:
            if client.connect_ex((HOST, port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError(f"no answer from {HOST}:{port} after two minutes")


def stripped(line: str) -> str | None:
    """Return an event with its fields on tasks, stages and jobs; None for other events."""
    event = json.loads(line)
    name = event["Event"]
    if name.endswith("SQLExecutionStart"):
        fields = {"executionId": event["executionId"], "description": event["description"]}
    elif name == "SparkListenerEnvironmentUpdate":
        keys = ("spark.master", "spark.driver.memory")
        fields = {"Spark Properties": {key: event["Spark Properties"][key] for key in keys}}
    elif name == "SparkListenerExecutorAdded":
        info = event["Executor Info"]
        fields = {"Timestamp": event["Timestamp"], "Executor Info": {
            key: info[key] for key in ("Total Cores", "Resource Profile Id")
        }}  # fmt: skip
    elif name in KEPT_FIELDS:
        fields = {key: event[key] for key in KEPT_FIELDS[name]}
    else:
        return None
    if name == "SparkListenerJobStart":
        keys = ("spark.sql.execution.id", "spark.sql.execution.root.id")
        properties = event["Properties"]
        fields["Properties"] = {key: properties[key] for key in keys if key in properties}
    if name == "SparkListenerTaskEnd":
        fields["Task End Reason"] = {"Reason": event["Task End Reason"]["Reason"]}
    return json.dumps({"Event": name, **_strip(fields)})


def _strip(value):
    if isinstance(value, dict):
        return {key: _strip(part) for key, part in value.items() if key not in DROPPED}
    if isinstance(value, list):
        return [_strip(part) for part in value]
    return re.sub(r"at \S*/", "at ", value) if isinstance(value, str) else value


def main(kind: str, folder: Path) -> None:
    os.environ["SPARK_LOCAL_IP"] = HOST
    os.environ["PYSPARK_PYTHON"] = sys.executable
    logs = folder / "logs"
    logs.mkdir(parents=True)
    applications = {}
    processes: list[subprocess.Popen] = []
    rolled = {"spark_eventLog_rolling_enabled": "true", "spark_eventLog_rolling_maxFileSize": "10m"}
    runs = [
        lambda: queries(logs),
        lambda: sort(logs, "packed"),
        lambda: sort(logs, "rolled", spark_eventLog_compression_codec="lz4", **rolled),
    ]
    if kind == "speculation":
        runs = [lambda: speculation(logs, start_workers(processes))]
    try:
        for run in runs:
            spark = run()
            app, name = spark.sparkContext.applicationId, spark.sparkContext.appName
            applications[name] = {"app": app, "stages": durations_ms(spark)}
            spark.stop()
    finally:
        for process in processes:
            process.terminate()
            process.wait(60)
    (folder / "durations.json").write_text(json.dumps(applications, indent=1))
    if kind == "queries":
        strip_log(logs / applications["queries"]["app"], folder / "stripped.jsonl")


def strip_log(log: Path, file: Path) -> None:
    events = [text for text in map(stripped, log.read_text().splitlines()) if text]
    file.write_text("\n".join(events) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).resolve())
