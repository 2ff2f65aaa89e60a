"""Small logs of Slurm, each of a kind of fault that its users have reported (tests/cases)."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.check.account import check_account

CASES = Path(__file__).resolve().parents[2] / "cases" / "logs"
FOLDERS = {folder.name.split("_")[0]: folder for folder in CASES.iterdir()}
HOUR_S = 3600.0


def load(case, **options):
    """Read the log of a case, through whichever reader it is for."""
    (file,) = (f for f in FOLDERS[case].iterdir() if f.name != "expected.txt")
    reader = "slurm_jobcomp" if case.startswith("J") else "sacct"
    return sim.read_trace(reader, file, **options)


def column(workload, name, table="jobs"):
    return getattr(workload, table)[name].to_pylist()


def report(workload):
    return workload.meta["report"]


@pytest.mark.parametrize(
    ("case", "jobs", "cpu_s", "log_cpu_s"),
    [
        ("S01", ["101", "105"], 86_400, 86_400),
        ("S02", ["201", "202", "203", "204"], 115_200, 115_200),
        ("S03", ["301@north", "302@2017-10-03", "301@south", "302@2017-10-05"], 139_200, 139_200),
        ("S04", ["401", "402"], 14_400, 44_400),
        ("S05", ["501", "502", "503", "504"], 236_400, 236_400),
        ("S06", ["600_1", "600_2", "600_3", "602"], 2_160, 2_160),
        ("S07", ["700", "701"], 45_600, 45_600),
        ("S08", ["801", "802", "803"], 84_000, 84_000),
        ("S08b", ["801", "802", "803"], 98_400, 98_400),
        ("S09", ["901", "902", "903", "904"], 960, 960),
        ("S10", ["1001"], 14_400, 14_400),
        ("S11", ["1101", "1102", "1103", "1104", "1105", "1106"], 172_800, 172_800),
        ("S14", ["1401"], 240, 240),
        ("S15", ["1"], 240, 240),
        ("S16", ["1601"], 240, 240),
        ("S17", ["1701", "1702", "1703"], 86_400, 86_400),
        ("S17b", ["1701", "1702", "1703"], 86_400, 86_400),
        ("S19", ["1901", "1902"], 154_800, 154_800),
        ("S20", ["2001"], 4_000, 4_000),
        ("S30", ["1", "2"], 43_200, 72_000),
        ("S31", ["1", "2"], 172_800, 172_800),
        ("S32", ["1", "2"], 7_200, 7_200),
        ("S33", ["1_1", "1_2", "3"], 14_400, 14_400),
    ],
)
@pytest.mark.parametrize("tasks", ["cpus", "nodes"])
def test_jobs_and_work(case, jobs, cpu_s, log_cpu_s, tasks):
    w = load(case, tasks=tasks)
    if (case, tasks) == ("S07", "nodes"):  # its parts demand different amounts
        jobs = ["700+0", "700+1", "701"]
    assert column(w, "job_id") == jobs
    account = check_account(w, cpu_s=log_cpu_s)
    assert account["cpu_s"]["workload"] == cpu_s
    assert report(w)["bad_rows"] == {}
    skipped = load(case, tasks=tasks, on_bad_row="skip")
    assert skipped.jobs.equals(w.jobs)
    assert skipped.stages.equals(w.stages)


def test_jobs_that_never_ran_are_none():
    assert report(load("S01"))["dropped"] == {
        "never started": 2,
        "censored: waiting when the log was written": 1,
    }
    assert check_account(load("S01"))["cpu_s"]["left_out"] == 0
    assert check_account(load("S01"))["jobs"]["log"] == 5


def test_gpus_of_a_model_are_gpus():
    w = load("S02", tasks="nodes")
    assert column(w, "demand_gpu", "stages") == [4, 4, 4, 2]
    assert column(w, "n_tasks", "stages") == [1, 1, 1, 2]
    assert column(w, "gpu_type", "stages") == ["", "a100", "a100", "a100|v100"]
    assert sum(report(w)["noticed"].values()) == 3
    check_account(w, gpu_s=4 * 4 * HOUR_S)
    classes = load("S02", tasks="nodes", gpu_types=True)
    assert column(classes, "runs_on", "stages") == ["", "a100", "a100", "a100|v100"]
    assert column(classes, "min_tasks") == [0, 0, 0, 2]
    assert report(classes)["noticed"] == {}
    with pytest.raises(InputError, match="gpu_types=true needs tasks=nodes"):
        load("S02", gpu_types=True)
    cpus = check_account(load("S02"), gpu_s=4 * 4 * HOUR_S)["gpu_s"]
    assert cpus["by_option"] == cpus["left_out"] == cpus["log"]


def test_ids_given_again_are_other_jobs():
    w = load("S03")
    assert report(w)["dropped"] == {}
    assert report(w)["noticed"] == {"a job whose id another job has too": 2}
    (warning,) = report(w)["warnings"]
    assert "jobs of 2 clusters (north, south)" in warning


def test_a_requeued_job_waits_from_its_first_submission_on():
    w = load("S04")
    assert column(w, "submit_s") == [0, 30]
    assert column(w, "recorded_start_s") == [10, 60]
    assert column(w, "recorded_finish_s") == [10_200, 1_860]
    assert column(w, "recorded_start_s", "stages") == [8_400, 60]
    account = report(w)["account"]["cpu_s"]
    assert account["left_out_by"] == {
        "lost by preemption": 14_400,
        "an earlier run of a requeued job": 15_600,
    }
    assert report(w)["account"]["jobs"]["log"] == 2
    preempted = load("S30")
    assert column(preempted, "submit_s") == [0, 3_600]
    assert column(preempted, "recorded_start_s") == [0, 3_600]
    assert column(preempted, "recorded_eligible_s") == [0, 3_600]
    account = report(preempted)["account"]["cpu_s"]
    assert account["left_out_by"] == {"lost by preemption": 28_800}


def test_delimiters_and_line_ends_in_names():
    w = load("S05")
    names = ["plain", "grid|search", "two\nlines", '"quoted" name']
    assert column(w, "template") == names
    assert sum(report(w)["noticed"].values()) == 2


def test_elements_that_never_ran_are_in_no_array():
    w = load("S06")
    assert w.stage_duration_s.tolist() == [600, 1_200, 300, 60]
    assert report(w)["dropped"] == {
        "a step of a job": 3,
        "never started": 1,
        "censored: waiting when the log was written": 1,
    }
    assert column(w, "array") == ["600", "600", "600", "602"]
    assert column(w, "throttle") == [2, 2, 2, 0]
    starts = sim.simulate(w, sim.Cluster.slots(9), policies.build("easy")).jobs["start_s"]
    assert starts.to_pylist() == [0, 0, 600, 1_800]  # recorded: 10, 10, 610
    joined = load("S06", arrays="job")
    assert column(joined, "job_id") == ["600", "602"]
    rule = "array with a limit on its running elements (%): not read, as it is one job"
    assert report(joined)["noticed"] == {rule: 1}


def test_parts_of_a_heterogeneous_job_start_together():
    w = load("S07")
    assert column(w, "min_tasks") == [12, 4]
    assert column(w, "n_tasks", "stages") == [4, 8, 4]
    result = sim.simulate(w, sim.Cluster.slots(13), policies.build("easy"))
    assert result.jobs["start_s"].to_pylist() == [0, HOUR_S]
    apart = load("S07", tasks="nodes")
    assert report(apart)["noticed"] == {"part of a heterogeneous job: a separate job": 2}


def test_a_clock_that_was_put_back():
    w = load("S08")
    assert w.stage_duration_s.tolist() == [18_000, 1_200, 1_800]
    assert [text for text in report(w)["filled"] if "may have been put back" in text]
    (warning,) = report(w)["warnings"]
    for words in ("2026-10-25", "1 with End before Start", "SLURM_TIME_FORMAT=%s", "Elapsed"):
        assert words in warning
    right = load("S08b")
    assert right.stage_duration_s.tolist() == [21_600, 1_200, 1_800]
    assert column(right, "recorded_start_s") == [0, 9_600, 21_000]
    assert column(right, "recorded_finish_s") == [21_600, 10_800, 22_800]
    (warning,) = report(right)["warnings"]
    assert ": waits across it may be an hour off" in warning
    assert "warnings" not in report(load("S08c"))  # nothing shows it


def test_limits():
    assert column(load("S09"), "requested_s") == [86_400, 5_400, None, None]
    assert column(load("S20"), "requested_s") == [None]


def test_a_suspended_job_ends_later():
    w = load("S10")
    assert w.stage_duration_s.tolist() == [HOUR_S]
    assert (column(w, "recorded_start_s"), column(w, "recorded_finish_s")) == ([0], [7_200])


def test_memory_of_a_node():
    w = load("S11", tasks="nodes")
    assert column(w, "demand_mem", "stages") == [16, 16, 0, 31.25, 1.953125, 1_024]
    assert set(column(w, "demand_cpu", "stages")) == {4}
    assert report(w)["filled"] == {"memory unknown: 0": 1}


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("S13", "aligned with spaces, which cuts long values off; run sacct with --parsable2"),
        ("J02", "no line has SubmitTime, which older versions of Slurm do not write"),
    ],
)
@pytest.mark.parametrize("on_bad_row", ["error", "skip"])
def test_refusals_name_the_way_out(case, words, on_bad_row):
    with pytest.raises(InputError, match=words) as caught:
        load(case, on_bad_row=on_bad_row)
    assert caught.value.line == 1


def test_jobs_are_released_when_they_become_eligible():
    w = load("S17")
    assert column(w, "submit_s") == [0, 7_200, 14_401]
    assert column(w, "recorded_submit_s") == [0, 1, 2]
    assert column(w, "recorded_start_s") == [0, 7_201, 14_402]
    (text,) = report(w)["noticed"]
    assert "trace.release=submit" in text
    result = sim.simulate(w, sim.Cluster.slots(12), policies.build("fifo"))
    assert result.metrics["makespan_s"] == pytest.approx(21_602, abs=1)
    submitted = load("S17", release="submit")
    assert column(submitted, "submit_s") == column(load("S17b"), "submit_s") == [0, 1, 2]
    assert "recorded_submit_s" not in submitted.jobs.column_names


def test_unequal_nodes_are_stages_of_their_own():
    w = load("S19", tasks="nodes")
    names = ("job", "n_tasks", "demand_cpu", "demand_gpu", "demand_mem")
    assert [tuple(stage[name] for name in names) for stage in w.stages.to_pylist()] == [
        (0, 1, 3, 2, 10), (0, 1, 3, 1, 10), (0, 2, 2, 1, 10), (1, 1, 2, 0, 2), (1, 31, 1, 0, 2),
    ]  # fmt: skip
    assert column(w, "min_tasks") == [4, 32]
    check_account(w, gpu_s=18_000, mem_gib_s=104 * HOUR_S)
    assert "warnings" not in report(w)
    nodes = [(3, 2), (3, 1), (2, 1), (2, 1)]
    kinds = [{"cpu": cpu, "mem": 10, "devices": {"gpu": gpus}} for cpu, gpus in nodes]
    cluster = sim.Cluster.mixed([*kinds, {"cpu": 1, "mem": 2, "count": 32}])
    result = sim.simulate(w, cluster, policies.build("easy"), record="tasks")
    assert sorted(result.task_machine[:4].tolist()) == [0, 1, 2, 3]  # all are as large as needed


def test_node_lists_are_kept():
    assert column(load("S31"), "node_list", "stages") == ["m0", "m[0-1]"]
    assert column(load("S31", tasks="nodes"), "demand_cpu", "stages") == [20, 14]


def test_licences_are_told():
    (warning,) = report(load("S32"))["warnings"]
    assert warning.startswith("2 of 2 jobs asked for licences (matlab: at most 6 in use); they")


def test_jobs_wait_for_licences_that_the_cluster_counts():
    w = load("S32")
    assert column(w, "license_matlab") == [6, 2]
    cluster = sim.Cluster.slots(2).with_limits([{"of": "license_matlab", "at_most": 6}])
    run = sim.simulate(w, cluster, policies.build("fifo"))
    assert run.jobs["start_s"].to_pylist() == [0.0, 3600.0]


@pytest.mark.parametrize("policy", ["easy", "conservative", "slurm"])
def test_arrays_beside_parallel_jobs_are_planned(policy):
    w = load("S33")
    (text,) = report(w)["noticed"]
    assert "as the log has parallel jobs" in text
    result = sim.simulate(w, sim.Cluster.slots(2), policies.build(policy))
    assert set(result.jobs["outcome"].to_pylist()) == {"done"}
    assert column(load("S33", arrays="job"), "job_id") == ["1", "3"]


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress, None])
def test_compressed_logs(tmp_path, pack):
    head = "JobID|User|Partition|Submit|Start|End|State|AllocCPUS\n"
    rows = [
        f"{3000 + i}|ada|batch|2026-03-02T08:{i:02}:00|2026-03-02T08:{i:02}:00|"
        f"2026-03-02T09:{i:02}:00|COMPLETED|2\n"
        for i in range(20)
    ]
    file = tmp_path / "log.txt"
    if pack is not None:
        file.write_bytes(pack("".join([head, *rows]).encode()))
    else:  # members, as log rotation and bgzip write them
        parts = (head, "".join(rows[:9]), "".join(rows[9:]))
        file.write_bytes(b"".join(gzip.compress(part.encode()) for part in parts))
    check_account(sim.read_trace("sacct", file), cpu_s=144_000, jobs=20)
