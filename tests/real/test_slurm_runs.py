"""Kept runs of Slurm: whole, by the workloads' rule, and possible on their nodes."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import sim
from benchmarks.real.slurm import collect, configure, experiments, workloads

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
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 2e6


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
            assert_same_jobs(rows, workloads.build(workload, None).jobs, settings["speed"])
        assert_possible(rows, settings["n_nodes"], settings["cpus_per_node"])
        if settings["scheduler"] == "builtin":
            assert {row["started_by"] for row in rows} == {"sched"}
        if settings["scheduler"] == "builtin" and settings["priority"] == "basic":
            starts = [float(row["start_s"]) for row in rows]
            assert starts == sorted(starts)


def assert_possible(rows: list[dict[str, str]], n_nodes: int, cpus_per_node: int) -> None:
    """Check that no node ever runs more than it has CPUs, and that each job has all of its own."""
    running: list[tuple[float, set[int], int]] = []
    for row in sorted(rows, key=lambda row: float(row["start_s"])):
        start_s, cpus = float(row["start_s"]), int(row["cpus"])
        used = nodes(row["nodes"])
        assert float(row["submit_s"]) <= start_s < float(row["end_s"])
        assert len(used) == (cpus if cpus_per_node == 1 else 1)
        running = [job for job in running if job[0] > start_s + 1e-6]
        running.append((float(row["end_s"]), used, cpus // len(used)))
        for node in used:
            assert sum(share for _, places, share in running if node in places) <= cpus_per_node
        assert max(used) < n_nodes


def assert_same_jobs(
    rows: list[dict[str, str]], jobs: tuple[workloads.Job, ...], speed: int
) -> None:
    """Check that rows are submissions of these jobs, in their order, none of them late."""
    for row, job in zip(rows, jobs, strict=True):
        assert (int(row["cpus"]), int(row["limit_s"])) == (job.cpus, job.limit_s)
        assert float(row["nominal_run_s"]) == pytest.approx(job.run_s, abs=0.05)
    assert collect.latest_s(rows, jobs) <= collect.MAX_LATE_S * speed


@pytest.mark.parametrize("group", GROUPS)
def test_slurms_own_log_agrees_with_the_controllers(group: str) -> None:
    for run in runs(group):
        rows = table(run)
        jobs = sim.read_trace("slurm_jobcomp", FOLDER / f"{run}.jobcomp.txt.gz").jobs
        for name, column in (("submit_s", "submit_s"), ("recorded_start_s", "start_s")):
            times = np.array([float(row[column]) for row in rows])
            logged = jobs[name].to_numpy()
            assert np.abs((logged - logged[0]) - (times - times[0])).max() < 3.0, (run, name)


@pytest.mark.long
def test_windows_of_expected_ends_are_those_of_slurm() -> None:
    # 0.27 if a window were over by the next running job on a node that may be used
    name = "synth3-backfill_short-basic"
    log = FOLDER / f"{name}-1.jobcomp.txt.gz"
    assert experiments.model(log, INDEX["settings"][name], n_runs=2)["model_job"] < 0.03
