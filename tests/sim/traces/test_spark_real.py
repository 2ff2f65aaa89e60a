"""Event logs written by Spark: a stored one, and new ones if Spark is installed."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sim

FOLDER = Path(__file__).parent
STORED = FOLDER / "spark_queries.jsonl.gz"


def test_a_log_that_spark_wrote():
    w = sim.read_trace("spark_eventlog", STORED)
    assert w.jobs["job_id"].to_pylist() == ["local-1795390601659"]
    assert w.meta["report"]["dropped"] == {"a failed attempt: ExceptionFailure": 1}
    assert w.meta["report"]["noticed"] == {"a skipped stage: its output existed": 8}
    stages = w.stages.to_pandas().set_index("spark_stage")
    # the join: two stages that read, one that joins, two that aggregate; the sort: a sample, then
    # the sort itself; the function that fails; the shuffle that is read twice
    assert stages["n_tasks"].to_dict() == {
        0: 4, 1: 2, 4: 1, 8: 1, 9: 4, 10: 4, 12: 1, 13: 3, 15: 1, 16: 3, 17: 2, 19: 2,
    }  # fmt: skip
    number = stages.index.to_numpy()
    edges = {
        (number[p], number[c]) for p, c, _ in w.stage_edges.to_pandas().itertuples(index=False)
    }
    assert {(0, 4), (1, 4), (4, 8), (10, 12), (13, 15), (16, 17), (16, 19)} <= edges
    wrote, read = stages["shuffle_write_bytes"], stages["shuffle_read_bytes"]
    assert read[4] == wrote[0] + wrote[1] > 0
    assert read[17] == read[19] == wrote[16] > 0
    assert set(stages["demand_mem"]) == {600 / 1024 / 2}
    queries = sim.read_trace("spark_eventlog", STORED, read_as="queries")
    assert queries.n_jobs == 5


@pytest.fixture(scope="module")
def python() -> str:
    """Return a Python that has pyspark; skip without pyspark or Java."""
    named = os.environ.get("SPARK_PYTHON", "")
    if not named and importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is missing: run make spark-logs, or name a Python by SPARK_PYTHON")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is missing: apt-get install openjdk-17-jre-headless")
    return named or sys.executable


def _run_spark(python: str, kind: str, folder: Path) -> dict:
    done = subprocess.run(
        [python, FOLDER / "spark_queries.py", kind, folder],
        capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads((folder / "durations.json").read_text())


def _durations_ms(workload) -> dict[str, list[int]]:
    """Return the durations of each stage's tasks by Spark's number of the stage, sorted."""
    number = workload.stages["spark_stage"].to_pylist()
    durations: dict[str, list[int]] = {}
    for task in workload.tasks.to_pylist():
        stage = durations.setdefault(str(number[task["stage"]]), [])
        stage.append(round(1000 * task["duration_s"]))
    return {stage: sorted(times) for stage, times in durations.items()}


@pytest.mark.long
def test_durations_equal_those_of_sparks_rest_api(python, tmp_path):
    applications = _run_spark(python, "queries", tmp_path)
    assert set(applications) == {"queries", "packed", "rolled"}
    logs = tmp_path / "logs"
    names = {file.name for file in logs.iterdir() if not file.name.startswith(".")}
    assert names == {
        applications["queries"]["app"],
        f"{applications['packed']['app']}.zstd",
        f"eventlog_v2_{applications['rolled']['app']}",
    }
    for name in names:
        w = sim.read_trace("spark_eventlog", logs / name)
        (expected,) = [app["stages"] for app in applications.values() if app["app"] in name]
        assert _durations_ms(w) == expected, name
    folder = sim.read_trace("spark_eventlog", logs)
    assert folder.n_jobs == 3
    assert folder.meta["report"]["dropped"] == {"a failed attempt: ExceptionFailure": 1}
    stripped = sim.read_trace("spark_eventlog", tmp_path / "stripped.jsonl")
    assert _durations_ms(stripped) == applications["queries"]["stages"]


@pytest.mark.long
def test_a_speculative_copy_that_wins_is_the_task(python, tmp_path):
    application = _run_spark(python, "speculation", tmp_path)["speculation"]
    w = sim.read_trace("spark_eventlog", tmp_path / "logs")
    assert _durations_ms(w) == application["stages"]
    assert w.n_tasks == 6
    assert w.meta["report"]["dropped"]["an attempt that a speculative copy overtook"] == 1
    assert w.meta["report"]["noticed"]["a speculative copy that won"] >= 1
