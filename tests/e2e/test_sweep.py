"""Whole sweeps: real Ray, real sqlite MLflow."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.conftest import Command, every_file

pytestmark = pytest.mark.e2e

GRID = (
    "policy=fifo,sjf,las,srpt", "capacity=0.5,1.0", "seed=0,1", "baseline=fifo",
    "trace=alibaba_synth", "trace.jobs=200", "trace.max_tasks_per_stage=20",
)  # fmt: skip


def tracked(results: Path) -> dict[str, int]:
    """Count MLflow's runs by their status."""
    with closing(sqlite3.connect(results / "mlflow.db")) as database:
        query = "SELECT status, COUNT(*) FROM runs WHERE lifecycle_stage = 'active' GROUP BY status"
        return dict(database.execute(query).fetchall())


def test_on_ray_then_cached_then_inline(command: Command) -> None:
    first = command(*GRID)
    assert first.code == 0, first.err
    assert "jct_mean_s" in first.out
    assert "jct_speedup_mean" in first.out
    assert "±" in first.out
    assert len(first.rows) == 16
    assert {row["status"] for row in first.rows} == {"done"}
    results = command.folder / "results"
    assert first.folder.parent == results / "sweeps"
    assert tracked(results) == {"FINISHED": 17 + 4}  # a curve for each policy and trace
    assert "python -m sweep ui" in first.out

    again = command(*GRID, PYTHONPROFILEIMPORTTIME="1")
    assert again.code == 0
    assert "every cell is cached" in again.err
    assert {row["status"] for row in again.rows} == {"cached"}
    imported = {line.rpartition("|")[2].strip() for line in again.err.splitlines()}
    assert "sweep.driver" in imported
    assert not imported & {"ray", "mlflow", "numba", "plotly"}
    assert tracked(results) == {"FINISHED": 17 + 4}  # a curve for each policy and trace

    inline = command(*GRID, "launcher=inline", "tracking=none", "paths.results=other")
    assert inline.code == 0, inline.err
    on_ray_files, inline_files = every_file(results), every_file(command.folder / "other")
    for name in ("cells.parquet", "SHA256SUMS"):  # of statuses
        path = f"sweeps/{first.folder.name}/{name}"
        del on_ray_files[path], inline_files[path]
    assert on_ray_files == inline_files


def test_a_real_trace(command: Command, shared_traces: Path) -> None:
    file = shared_traces / "alibaba2018" / "batch_task_50_jobs.csv.gz"
    words = ("policy=fifo,las", "capacity=0.5,1.0", "trace=alibaba2018", f"trace.path={file}")
    ran = command(*words, "baseline=fifo", "launcher=inline", "tracking=none")
    assert ran.code == 0, ran.err
    assert len(ran.rows) == 4
    verified = command("verify", "--cells", "2", "launcher=inline")
    assert verified.code == 0, verified.out + verified.err


def test_cells_that_raise(command: Command) -> None:
    words = (
        "policy=fifo,moody", "policy.mood=raises", "seed=0,1", "trace=alibaba_synth",
        "trace.seed=0", "trace.jobs=50", "launcher=inline", f"--config-dir={command.user}",
    )  # fmt: skip
    ran = command(*words)
    assert ran.code == 1
    outcome = {(row["policy"], row["seed"]): row for row in ran.rows}
    assert outcome["fifo", 0]["status"] == outcome["fifo", 1]["status"] == "done"
    assert outcome["moody", 0]["status"] == "done"
    raises = outcome["moody", 1]
    assert (raises["error_stage"], raises["error_type"]) == ("policy", "RuntimeError")
    assert raises["error_message"].startswith("not in the mood (e2e_policies.py:")
    assert "e2e_policies.py" in raises["error_traceback"]
    assert tracked(command.folder / "results")["FAILED"] >= 1

    file = command.folder / "e2e_policies.py"
    file.write_text(file.read_text().replace("world.seed == 1", "world.seed == 7"))
    retried = command("retry", "launcher=inline")
    assert retried.code == 0, retried.err
    assert "4 cells, 2 cached, 2 to run" in retried.err


@pytest.mark.long
def test_two_sweeps_at_once_in_one_folder(command: Command) -> None:
    common = (
        "trace=alibaba_synth", "trace.jobs=50", "launcher=inline", "capacity=range(0.5,1.5,0.1)",
    )  # fmt: skip
    started = [
        command.start("policy=fifo,sjf,las", *common),
        command.start("policy=sjf,las,srpt", *common),
        command.start("policy=fifo,sjf,las", *common),
    ]
    for process in started:
        out, err = process.communicate(timeout=900)
        assert process.returncode == 0, err
        assert Path(out.splitlines()[-1]).is_dir()
        assert "could not log" not in err
    assert tracked(command.folder / "results") == {"FINISHED": 62 + 6}
    for policies in ("fifo,sjf,las", "sjf,las,srpt"):
        again = command(f"policy={policies}", *common)
        assert "every cell is cached" in again.err
    assert not list((command.folder / "results").rglob(".tmp-*"))
