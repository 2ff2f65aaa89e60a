"""Harness of Slurm without Slurm: the workloads' rule, settings, the log's reader, cleaning up."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.real import processes
from benchmarks.real.slurm import batch, cluster, collect, configure, noise, workloads

LOG = """\
[2026-11-25T17:00:00.000] slurmctld version 22.05.8 started on cluster replay
[2026-11-25T17:00:10.100] sched: Allocate JobId=1 NodeList=n[0-1] #CPUs=2 Partition=p
[2026-11-25T17:00:10.250] _slurm_rpc_submit_batch_job: JobId=1 InitPrio=4294901759 usec=200000
[2026-11-25T17:00:11.000] _slurm_rpc_submit_batch_job: JobId=2 InitPrio=4294901758 usec=1000
[2026-11-25T17:00:12.000] sched/backfill: _start_job: Started JobId=2 in p on n2
not a line of the controller
[2026-11-25T17:00:20.000] Requeuing JobId=2
[2026-11-25T17:00:30.500] sched: Allocate JobId=2 NodeList=n[0-1,3] #CPUs=1 Partition=p
[2026-11-25T17:01:10.100] _job_complete: JobId=1 WEXITSTATUS 0
[2026-11-25T17:01:10.200] _job_complete: JobId=1 done
[2026-11-26T00:00:00.000] _job_complete: JobId=2 done
"""
JOBS = (workloads.Job(0.0, 2, 59.5, 120), workloads.Job(1.0, 1, 20000.0, 25200, "express"))


def test_log_is_read_with_milliseconds_and_across_midnight() -> None:
    first, second = collect.rows(collect.read_log(LOG.splitlines()), JOBS, "basic")
    assert first == {
        "job": "0", "submit_s": "0.000", "start_s": "0.050", "end_s": "60.150", "cpus": "2",
        "limit_s": "120", "nominal_run_s": "59.5", "started_by": "sched", "nodes": "n[0-1]",
    }  # fmt: skip
    assert (second["submit_s"], second["start_s"], second["nodes"]) == (
        "0.949",
        "20.450",
        "n[0-1,3]",
    )
    assert (second["end_s"], second["started_by"]) == ("25189.950", "sched")


def test_a_start_by_backfill_is_told_from_one_by_the_main_loop() -> None:
    lines = [line for line in LOG.splitlines() if "17:00:30.500" not in line]
    assert collect.read_log(lines)[2].started_by == "backfill"


def test_a_job_that_is_killed_at_its_limit_ends_then() -> None:
    killed = LOG.replace("_job_complete: JobId=2 done", "Time limit exhausted for JobId=2")
    assert collect.read_log(killed.splitlines()) == collect.read_log(LOG.splitlines())


def test_priorities_and_partitions_are_kept_when_they_decide() -> None:
    rows = collect.rows(collect.read_log(LOG.splitlines()), JOBS, "multifactor")
    assert [(row["priority"], row["queue"]) for row in rows] == [
        ("4294901759", "p"),
        ("4294901758", "express"),
    ]


def test_a_run_with_a_late_submission_is_told_from_one_that_is_late_as_a_whole() -> None:
    jobs = [workloads.Job(10.0 * i, 1, 60.0, 120) for i in range(5)]
    shifted = [{"submit_s": str(job.submit_s - 3.0)} for job in jobs]
    shifted[0]["submit_s"] = "0"
    assert collect.latest_s(shifted, jobs) == 3.0  # the first: times count from it
    shifted[0]["submit_s"] = "-3.0"
    assert collect.latest_s(shifted, jobs) == 0.0
    shifted[3]["submit_s"] = "47.5"
    assert collect.latest_s(shifted, jobs) == 20.5


@pytest.mark.parametrize("missing", ["JobId=2 done", "Allocate JobId=1", "JobId=2 InitPrio"])
def test_a_log_in_which_a_job_is_not_whole_is_refused(missing: str) -> None:
    lines = [line for line in LOG.splitlines() if missing not in line]
    with pytest.raises(ValueError, match="2 of 2 jobs in the log; 1 of them ended"):
        collect.rows(collect.read_log(lines), JOBS, "basic")


def test_every_daemon_listens_on_loopback_alone_on_a_port_of_its_own(tmp_path: Path) -> None:
    settings = configure.named("backfill_short-multifactor", n_nodes=3, speed=60)
    text = configure.write(settings, tmp_path, 20000).read_text()
    assert "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny" in text
    assert set(re.findall(r"\d+\.\d+\.\d+\.\d+", text)) == {"127.0.0.1"}
    assert re.findall(r"Port=(\d+)", text) == ["20000", "20001", "20002", "20003"]
    assert re.findall(r"PartitionName=(\w+) Nodes=(\S+)", text) == [
        ("p", "n[0-2]"),
        ("express", "n[0-2]"),
    ]
    assert all(
        str(tmp_path) in path for path in re.findall(r"=(/\S+)", text) if path != "/bin/true"
    )


def test_settings_as_shipped_name_no_parameters() -> None:
    shipped = configure.named("backfill-basic", 4, 60).lines()
    assert "SchedulerParameters" not in shipped
    short = configure.named("backfill_short-basic", 4, 60).lines()
    assert dict(shipped, SchedulerParameters=configure.SHORT) == short
    single = configure.named("builtin_node-basic", 4, 60)
    assert (single.scheduler, single.n_nodes, single.cpus_per_node) == ("builtin", 1, 4)
    with pytest.raises(ValueError, match="settings 'easy-basic'"):
        configure.named("easy-basic", 4, 60)


@pytest.mark.parametrize("name", ["synth1", "synth3", "seconds2"])
def test_synthesized_workloads_follow_the_rule(name: str) -> None:
    replayed = workloads.build(name, None)
    assert replayed == workloads.build(name, None)
    assert_rule(replayed)


def test_a_cut_takes_jobs_in_a_row_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    lines = ["; a comment"]
    for i in range(600):  # every third is too short, every fifth too wide
        run_s, cpus = (30 if i % 3 == 0 else 60 + i), (64 if i % 5 == 0 else 1 + i % 32)
        lines.append(f"{i} {100 * i} 0 {run_s} {cpus} -1 -1 {cpus} {2 * run_s + 7}" + " -1" * 9)
    log.write_text("\n".join(lines) + "\n")
    replayed = workloads.build("kth2", log)
    assert_rule(replayed)
    taken = [i for i in range(600) if i % 3 and i % 5]
    runs = [int(job.run_s) - 60 for job in replayed.jobs]
    first = taken.index(runs[0])
    assert runs == taken[first : first + workloads.N_JOBS]
    gap_s = (runs[1] - runs[0]) * 100 * replayed.gaps
    assert replayed.jobs[1].submit_s == pytest.approx(gap_s, abs=1e-3)
    assert replayed.jobs[0].limit_s == 60 * math.ceil((2 * (runs[0] + 60) + 7) / 60)
    assert [job.run_s for job in workloads.build("kth3", log).jobs] != runs
    with pytest.raises(ValueError, match="name its SWF file"):
        workloads.build("kth1", None)


def assert_rule(replayed: workloads.Replayed) -> None:
    """Check what holds for every workload: load, nodes, limits, order."""
    jobs = replayed.jobs
    assert len(jobs) == workloads.N_JOBS
    assert workloads.MIN_NODES <= replayed.n_nodes <= workloads.MAX_NODES
    work_s = sum(job.cpus * job.run_s for job in jobs)
    assert work_s / replayed.n_nodes == pytest.approx(jobs[-1].submit_s, rel=1e-5)
    assert all(job.limit_s % 60 == 0 and job.limit_s >= job.run_s + 60 for job in jobs)
    submits = [job.submit_s for job in jobs]
    assert submits == sorted(submits)
    assert submits[0] == 0
    assert 10 < sum(job.queue == "express" for job in jobs) < 50


def test_runs_for_development_come_before_those_that_judge() -> None:
    runs = batch.planned(workloads.NAMES, 5)
    assert len(runs) == len(set(runs)) == 13 * 3 * 2 * 5
    order = {run: i for i, run in enumerate(runs)}
    assert order[batch.Run("seconds1", "backfill_short-basic", 2)] == 17
    assert order[batch.Run("kth2", "builtin-basic", 1)] == 18
    assert (
        order[batch.Run("kth1", "builtin-basic", 3)]
        > order[batch.Run("kth3", "builtin-multifactor", 2)]
    )
    assert batch.planned(["kth1"], 1) == [
        batch.Run("kth1", f"{scheduler}-{priority}", 1)
        for priority in ("basic", "multifactor")
        for scheduler in batch.SCHEDULERS
    ]


def test_an_experiment_changes_one_setting() -> None:
    shipped = configure.named("backfill-basic", 4, 60)
    for kind, parameters in configure.EXPERIMENTS.items():
        changed = configure.named(f"backfill_{kind}-basic", 4, 60)
        assert replace(changed, parameters="") == shipped
        base = configure.SHORT if kind.startswith("short") else ""
        assert parameters.removeprefix(base).strip(",").count("=") == 1
    assert configure.named("backfill_x20-basic", 4, 60) == replace(shipped, speed=20)
    runs = batch.planned(["kth4", "synth3"], 2, ["backfill_x20-basic"])
    assert [run.stem for run in runs][:2] == [
        "kth4-backfill_x20-basic-1", "synth3-backfill_x20-basic-1",
    ]  # fmt: skip


def test_an_oracle_is_the_mean_of_the_runs_beside_one() -> None:
    runs = [record(starts, [1, 1]) for starts in ([10.0, 20.0], [10.0, 24.0], [10.0, 28.0])]
    errors = [3 / 14.5, 0.0, 3 / 18.5]
    oracle = noise.oracle(runs)
    assert oracle["oracle_error"] == pytest.approx(np.mean(errors))
    assert oracle["oracle_job"] == pytest.approx(np.mean(errors))
    assert oracle["oracle_within_10pct"] == pytest.approx((0.5 + 1.0 + 0.5) / 3)
    assert np.isnan(noise.oracle(runs[:1])["oracle_job"])


def record(starts: list[float], cpus: list[int]) -> noise.Record:
    """Return a run of jobs that are submitted each second and run ten."""
    n = np.arange(len(starts), dtype=np.float64)
    start_s = np.array(starts)
    return {
        "submit_s": n,
        "start_s": start_s,
        "end_s": start_s + 10.25,
        "cpus": np.array(cpus, dtype=np.float64),
        "nominal_run_s": np.full(len(starts), 10.0),
    }


def test_noise_compares_runs_pair_by_pair() -> None:
    runs = [record([0.0, 11.0], [1, 1]), record([0.0, 13.0], [1, 1]), record([0.0, 9.0], [1, 1])]
    row = noise.between(runs)  # mean waits 5, 6 and 4 s; a job's wait differs by as much
    assert row["wait_mean_s"] == 5.0
    assert (row["wait_least_s"], row["wait_greatest_s"]) == (4.0, 6.0)
    assert row["mean_differs"] == pytest.approx((1 + 1 + 2) / 3 / 5)
    assert row["job_differs"] == pytest.approx((1 + 1 + 2) / 3 / 5)
    assert (row["waited"], row["overhead_s"]) == (1.0, 0.25)
    assert row["waited_within_10pct"] == 0.0  # 10, 12 and 8 s, each more than a tenth apart
    assert math.isnan(noise.between(runs[:1])["job_differs"])


def test_a_lag_counts_from_room_not_from_submission() -> None:
    run = record([0.5, 1.5, 11.0, 22.0, 22.25], [1, 1, 2, 1, 1])
    run["end_s"][1] = 10.9
    # two CPUs; the third needs both (free at 10.9), the fourth waits for it until 21.25, the last
    # for the fourth's start
    np.testing.assert_allclose(noise.fifo_lags_s(run, 2), [0.5, 0.5, 0.1, 0.75, 0.25], atol=1e-9)


def test_without_slurm_it_says_so_in_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys, shutil; shutil.which = lambda *a, **k: None; "
         "from benchmarks.real.slurm.__main__ import main; sys.exit(main())",
         "all", "--out", str(tmp_path)], capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("skipped: slurmctld, slurmd, munged, faketime")
    assert len(done.stdout.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux")
def test_a_clusters_processes_are_ended_though_they_left_their_group(tmp_path: Path) -> None:
    mark = f"{cluster.MARK}={tmp_path}"
    marked = os.environ | {cluster.MARK: str(tmp_path)}
    script = "setsid sh -c 'sleep 61 & wait' & env -i sleep 62 & wait"
    with subprocess.Popen(["sh", "-c", script], env=marked, start_new_session=True) as started:
        until = time.monotonic() + 120
        while len(processes.members(mark)) < 4 and time.monotonic() < until:
            time.sleep(0.02)
        assert len(processes.members(mark)) == 4
        assert processes.members(f"{mark}er") == []
        processes.end(mark)
        assert processes.members(mark) == []
        assert started.wait(timeout=120) != 0
