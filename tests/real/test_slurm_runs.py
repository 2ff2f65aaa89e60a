"""Kept runs of Slurm: whole, by the workloads' rule, and possible on their nodes."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import sim
from benchmarks.real.slurm import configure, workloads

FOLDER = Path(__file__).parent / "slurm"
INDEX = json.loads((FOLDER / "runs.json").read_text())
GROUPS = sorted(INDEX["settings"])


def runs(group: str) -> list[str]:
    return [run for run in INDEX["runs"] if run.rpartition("-")[0] == group]


def table(run: str) -> list[dict[str, str]]:
    with gzip.open(FOLDER / f"{run}.csv.gz", "rt", newline="") as lines:
        return list(csv.DictReader(lines))


def nodes(text: str) -> set[int]:
    """Return the numbers of ``n[0-2,5]``."""
    numbers: set[int] = set()
    for part in text.removeprefix("n").strip("[]").split(","):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def test_each_file_belongs_to_a_run_of_the_index() -> None:
    files = {path.name for path in FOLDER.glob("*.gz")}
    assert files == {
        f"{run}{ending}" for run in INDEX["runs"] for ending in (".csv.gz", ".jobcomp.txt.gz")
    }
    assert {run.rpartition("-")[0] for run in INDEX["runs"]} == set(GROUPS)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1.5e6


@pytest.mark.parametrize("group", GROUPS)
def test_runs_are_of_the_rule_and_possible(group: str) -> None:
    settings = INDEX["settings"][group]
    workload, name = group.split("-", 1)
    n_cpus = settings["n_nodes"] * settings["cpus_per_node"]
    described = configure.named(name, n_cpus, settings["speed"]).described()
    assert json.loads(json.dumps(described)) == {key: settings[key] for key in described}
    for run in runs(group):
        rows = table(run)
        assert len(rows) == workloads.N_JOBS
        if not workload.startswith("kth"):
            assert_same_jobs(rows, workloads.build(workload, None).jobs)
        busy_until = np.full(settings["n_nodes"], -np.inf)
        for row in sorted(rows, key=lambda row: float(row["start_s"])):
            used = sorted(nodes(row["nodes"]))
            start_s = float(row["start_s"])
            assert len(used) == int(row["cpus"])
            assert float(row["submit_s"]) <= start_s < float(row["end_s"])
            assert (busy_until[used] <= start_s + 1e-6).all()
            busy_until[used] = float(row["end_s"])
            if name == "builtin-basic":
                assert row["started_by"] == "sched"
        if name == "builtin-basic":
            starts = [float(row["start_s"]) for row in rows]
            assert starts == sorted(starts)


def assert_same_jobs(rows: list[dict[str, str]], jobs: tuple[workloads.Job, ...]) -> None:
    """Check that rows are submissions of these jobs, in their order, near their times."""
    for row, job in zip(rows, jobs, strict=True):
        assert (int(row["cpus"]), int(row["limit_s"])) == (job.cpus, job.limit_s)
        assert float(row["nominal_run_s"]) == pytest.approx(job.run_s, abs=0.05)
        assert float(row["submit_s"]) == pytest.approx(job.submit_s, abs=60)


@pytest.mark.parametrize("group", GROUPS)
def test_slurms_own_log_agrees_with_the_controllers(group: str) -> None:
    for run in runs(group):
        rows = table(run)
        jobs = sim.read_trace("slurm_jobcomp", FOLDER / f"{run}.jobcomp.txt.gz").jobs
        for name, column in (("submit_s", "submit_s"), ("recorded_start_s", "start_s")):
            times = np.array([float(row[column]) for row in rows])
            logged = jobs[name].to_numpy()
            assert np.abs((logged - logged[0]) - (times - times[0])).max() < 3.0, (run, name)
