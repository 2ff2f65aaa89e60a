"""Run sleeping jobs on a real Spark, in one process on 127.0.0.1, and return its event log."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from benchmarks.real import processes
from benchmarks.real.spark.workload import SleepingJob, to_lines

APPLICATION = Path(__file__).with_name("application.scala")
TIMEOUT_S = 600
MARK = "REAL_SPARK"
Mode = Literal["FIFO", "FAIR"]


def missing() -> str:
    """Return a sentence on what is missing for a run; "" for nothing."""
    if shutil.which("java") is None:
        return "Spark is skipped: there is no java on the path."
    if spark_home() is None:
        return (
            "Spark is skipped: SPARK_HOME names no folder with bin/spark-shell, and there is no "
            "Python package pyspark."
        )
    return ""


def spark_home() -> Path | None:
    """Return the folder of Spark: SPARK_HOME, or that of the package pyspark; None without."""
    folders = [os.environ.get("SPARK_HOME", "")]
    spec = importlib.util.find_spec("pyspark")
    folders += list(spec.submodule_search_locations or ()) if spec else []
    homes = [Path(folder) for folder in folders if folder]
    return next((home for home in homes if (home / "bin" / "spark-shell").exists()), None)


def run(jobs: Sequence[SleepingJob], mode: Mode, slots: int) -> bytes:
    """Run the jobs on ``local[slots]``; return the event log.

    Everything that the run writes lies in a temporary folder; the process and its children end
    with this function, also when it is interrupted.

    Raises
    ------
    RuntimeError
        If Spark fails or takes longer than ten minutes, with the end of its output.
    """
    home = spark_home()
    assert home is not None, "ask missing() first"
    with tempfile.TemporaryDirectory(prefix="real-spark-") as name:
        folder = Path(name)
        (folder / "events").mkdir()
        workload = folder / "workload.txt"
        workload.write_text(to_lines(list(jobs)), encoding="utf-8")
        settings = {
            "spark.scheduler.mode": mode,
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file://{folder}/events",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": name,
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder}",
        }
        command = [str(home / "bin" / "spark-shell"), "--master", f"local[{slots}]"]
        command += [word for item in settings.items() for word in ("--conf", "=".join(item))]
        command += ["-i", str(APPLICATION)]
        environment = os.environ | {
            "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "WORKLOAD": str(workload),
            "SPARK_CONF_DIR": name, "HOME": name, MARK: name,
        }  # fmt: skip
        with (folder / "output.txt").open("w+b") as output:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            processes.prefer(process.pid)
            try:
                code = process.wait(TIMEOUT_S)
            except subprocess.TimeoutExpired:
                code = -1
            finally:
                processes.end(f"{MARK}={folder}")
                process.wait()
            output.seek(0)
            text = output.read().decode(errors="replace")
        logs = [log for log in (folder / "events").iterdir() if not log.name.endswith("progress")]
        if code or len(logs) != 1:
            raise RuntimeError(f"Spark ended with {code}:\n{text[-3000:]}")
        return logs[0].read_bytes()
