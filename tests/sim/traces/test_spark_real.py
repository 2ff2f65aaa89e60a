"""Event logs that Spark wrote: one that is kept here, and new ones where Spark is at hand."""

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

HERE = Path(__file__).parent
KEPT = HERE / "spark_queries.jsonl.gz"


def test_a_log_that_spark_wrote():
    w = sim.read_trace("spark_eventlog", KEPT)
    assert w.jobs["job_id"].to_pylist() == ["local-1795390601659"]
    assert w.meta["report"]["dropped"] == {"a failed attempt: ExceptionFailure": 1}
    assert w.meta["report"]["noticed"] == {"a skipped stage: its output existed": 8}
    stages = w.stages.to_pandas().set_index("spark_stage")
    # the join: two stages that read, one that joins, two that aggregate; the sort: a sample, then
    # what is sorted; the function that fails; what is computed once and used twice
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
    queries = sim.read_trace("spark_eventlog", KEPT, read_as="queries")
    assert queries.n_jobs == 5


@pytest.fixture(scope="module")
def python() -> str:
    """Give a Python that has pyspark, beside Java."""
    arguments = os.environ.get("SPARK_PYTHON", "")
    if not arguments and importlib.util.find_spec("pyspark") is None:
        pytest.skip("there is no pyspark: say make spark-logs, or name a Python with SPARK_PYTHON")
    if shutil.which("java") is None:
        pytest.skip("there is no Java, which Spark needs: apt-get install openjdk-17-jre-headless")
    return arguments or sys.executable


def _written(python: str, label: str, folder: Path) -> dict:
    done = subprocess.run(
        [python, HERE / "spark_queries.py", label, folder],
        capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads((folder / "told.json").read_text())


def _durations_ms(workload) -> dict[str, list[int]]:
    """Return the durations of each stage's tasks by Spark's number of the stage, sorted."""
    number = workload.stages["spark_stage"].to_pylist()
    actual: dict[str, list[int]] = {}
    for task in workload.tasks.to_pylist():
        stages = actual.setdefault(str(number[task["stage"]]), [])
        stages.append(round(1000 * task["duration_s"]))
    return {stage: sorted(stages) for stage, stages in actual.items()}


@pytest.mark.long
def test_tasks_last_as_long_as_spark_itself_says(python, tmp_path):
    expected = _written(python, "queries", tmp_path)
    assert set(expected) == {"queries", "packed", "rolled"}
    logs = tmp_path / "logs"
    names = {file.name for file in logs.iterdir() if not file.name.startswith(".")}
    assert names == {
        expected["queries"]["app"],
        f"{expected['packed']['app']}.zstd",
        f"eventlog_v2_{expected['rolled']['app']}",
    }
    for name in names:
        w = sim.read_trace("spark_eventlog", logs / name)
        (stages,) = [stages for stages in expected.values() if stages["app"] in name]
        assert _durations_ms(w) == stages["stages"], name
    every = sim.read_trace("spark_eventlog", logs)
    assert every.n_jobs == 3
    assert every.meta["report"]["dropped"] == {"a failed attempt: ExceptionFailure": 1}
    stored = sim.read_trace("spark_eventlog", tmp_path / "kept.jsonl")
    assert _durations_ms(stored) == expected["queries"]["stages"]


@pytest.mark.long
def test_a_copy_of_a_task_that_wins_is_the_task(python, tmp_path):
    expected = _written(python, "speculation", tmp_path)["speculation"]
    w = sim.read_trace("spark_eventlog", tmp_path / "logs")
    assert _durations_ms(w) == expected["stages"]
    assert w.n_tasks == 6
    assert w.meta["report"]["dropped"]["an attempt that a speculative copy overtook"] == 1
    assert w.meta["report"]["noticed"]["a speculative copy that won"] >= 1
