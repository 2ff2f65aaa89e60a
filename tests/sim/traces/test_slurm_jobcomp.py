"""Slurm's file of completed jobs."""

from __future__ import annotations

import pytest

import sim
from sim.base.errors import InputError
from sim.check.account import check_account

RELEASED = "submitted when it became eligible (trace.release=submit: at its submission)"
DAY = "2026-03-01T"


def line(job=17, **changes):
    values = {
        "JobId": job, "UserId": "ann(1001)", "GroupId": "lab(7)", "Name": "a b=c",
        "JobState": "COMPLETED", "Partition": "batch", "TimeLimit": 20,
        "StartTime": DAY + "09:30:10", "EndTime": DAY + "09:31:10", "NodeList": "n[1-2]",
        "NodeCnt": 2, "ProcCnt": 8, "WorkDir": "/home/ann", "ReservationName": "",
        "Tres": "cpu=8,mem=4G,node=1,gres/gpu=2", "Account": "physics", "QOS": "normal",
        "WcKey": "", "Cluster": "c", "SubmitTime": DAY + "09:30:00",
        "EligibleTime": DAY + "09:30:05", "DerivedExitCode": "0:0", "ExitCode": "0:0", **changes,
    }  # fmt: skip
    return " ".join(f"{key}={value}" for key, value in values.items() if value is not None) + " "


def load(path, *lines, **options):
    file = path / "jobcomp.txt"
    file.write_text("\n".join(lines) + "\n")
    return sim.read_trace("slurm_jobcomp", file, **options)


def test_a_line_is_a_job_with_what_really_happened(tmp_path):
    w = load(
        tmp_path,
        line(18, SubmitTime=DAY + "09:31:00", TimeLimit="UNLIMITED", EligibleTime="Unknown",
             StartTime=DAY + "09:31:00", EndTime=DAY + "09:31:00", ProcCnt=1, Account="(null)"),
        "",
        line(17),
    )  # fmt: skip
    common = {
        "template": "a b=c", "user": "ann", "queue": "batch", "priority": 0.0, "deadline_s": None,
        "input_mode": "none", "partition": "batch", "qos": "normal", "n_nodes": 2,
    }  # fmt: skip
    assert w.jobs.to_pylist() == [
        {"job_id": "17", "submit_s": 0.0, "min_tasks": 8, "requested_s": 1200.0,
         "recorded_start_s": 5.0, "recorded_finish_s": 65.0, "recorded_eligible_s": 0.0,
         "recorded_submit_s": -5.0, "account": "physics", **common},
        {"job_id": "18", "submit_s": 55.0, "min_tasks": 1, "requested_s": None,
         "recorded_start_s": 55.0, "recorded_finish_s": 55.0, "recorded_eligible_s": None,
         "recorded_submit_s": 55.0, "account": "", **common},
    ]  # fmt: skip
    assert w.stages["node_list"].to_pylist() == ["n[1-2]"] * 2
    assert w.stage_duration_s.tolist() == [60.0, 0.5]
    assert w.meta["resolution_s"] == 1.0
    report = dict(w.meta["report"])
    assert check_account(w, cpu_s=8 * 60.0)["cpu_s"]["changed"] == -0.5
    assert report.pop("account")["mem_gib_s"]["by_option"] == (4 * 60.0)
    assert report == {
        "rows": 2, "jobs": 2, "bad_rows": {}, "dropped": {}, "noticed": {RELEASED: 1},
        "filled": {"0 s becomes 0.5 s": 1},
    }  # fmt: skip
    cut = w.slice_time(30.0, 100.0)
    assert cut.jobs["recorded_start_s"].to_pylist() == [25.0]
    assert cut.jobs["recorded_submit_s"].to_pylist() == [25.0]
    submitted = load(tmp_path, line(), release="submit").slice_time(0, 9)
    assert submitted.jobs["recorded_eligible_s"].to_pylist() == [5.0]
    accounts = load(tmp_path, line(), queue="Account", gang=False)
    assert accounts.jobs["queue"].to_pylist() == ["physics"]
    assert accounts.jobs["min_tasks"].to_pylist() == [0]


@pytest.mark.parametrize(
    "name",
    [
        "a JobState=FAILED", "a Partition=b JobState=", "JobId=3 EndTime=never", " ",
        "x JobState=A Partition=p TimeLimit=1 StartTime=2 WorkDir=/",
    ],
)  # fmt: skip
def test_a_name_or_folder_may_hold_the_keys_of_other_fields(tmp_path, name):
    (job,) = load(tmp_path, line(Name=name, WorkDir=f"/w/{name}")).jobs.to_pylist()
    expected = load(tmp_path, line()).jobs.to_pylist()[0] | {"template": name}
    assert job == expected
    old = line(Name=name, WorkDir=f"/w/{name}", Tres=None, Gres="gpu:2")
    assert load(tmp_path, old).jobs["template"].to_pylist() == [name]


def test_jobs_of_the_same_second_are_in_order_of_their_numbers(tmp_path):
    w = load(tmp_path, line(10), line(9), line(11, SubmitTime=DAY + "09:29:59"), release="submit")
    assert w.jobs["job_id"].to_pylist() == ["11", "9", "10"]


def test_a_task_can_be_a_node(tmp_path):
    (stage,) = load(tmp_path, line(), tasks="nodes").stages.to_pylist()
    assert (stage["n_tasks"], stage["demand_cpu"], stage["demand_gpu"]) == (2, 4.0, 1.0)
    assert stage["demand_mem"] == 2.0


def test_jobs_that_did_not_run_are_counted(tmp_path):
    w = load(
        tmp_path,
        line(1, JobState="CANCELLED", StartTime="Unknown"),
        line(2, JobState="CANCELLED", NodeList="(null)", NodeCnt=0, ProcCnt=0),
        line(3, JobState="REQUEUED"),
        line(4, JobState="NODE_FAIL"),
        line(4, SubmitTime=DAY + "09:31:11", StartTime=DAY + "10:00:00", EndTime=DAY + "10:01:00"),
        line(5, JobState="TIMEOUT"),
        line(6, JobState="CANCELLED", NodeList="(null)", EndTime=DAY + "09:30:10"),
    )
    assert w.jobs["job_id"].to_pylist() == ["3", "4", "5"]
    assert w.meta["report"]["dropped"] == {
        "never started": 3,
        "an earlier run of a requeued job": 1,
    }
    done = load(tmp_path, line(4), line(5, JobState="TIMEOUT"), state="completed")
    assert done.meta["report"]["dropped"] == {"not completed": 1}


def test_elements_of_arrays_are_one_job_or_several(tmp_path):
    lines = [line(20 + i, ArrayJobId=20, ArrayTaskId=i, ProcCnt=1) for i in (1, 2)]
    assert load(tmp_path, *lines).jobs["job_id"].to_pylist() == ["20"]
    apart = load(tmp_path, *lines, arrays="jobs")
    assert apart.jobs["job_id"].to_pylist() == ["20_1", "20_2"]
    parts = [line(30 + i, HetJobId=30, HetJobOffset=i) for i in (0, 1)]
    (job,) = load(tmp_path, *parts).jobs.to_pylist()
    assert (job["job_id"], job["min_tasks"]) == ("30", 16)


@pytest.mark.parametrize(
    ("bad", "rule", "words"),
    [
        ("17|ann", "wrong line", "must begin with JobId=, not '17|ann'"),
        (line(SubmitTime=None), "missing value", "SubmitTime is missing"),
        (line(StartTime="soon"), "text of another form", "StartTime is 'soon'; it must be like 20"),
        (line(ProcCnt="many"), "text of another form", "ProcCnt is 'many'; it must be like 8"),
        (line("x"), "text of another form", "JobId is 'x'"),
    ],
)
def test_errors_name_line_value_and_the_way_out(tmp_path, bad, rule, words):
    with pytest.raises(InputError) as caught:
        load(tmp_path, line(16), bad)
    assert (caught.value.rule, caught.value.line) == (rule, 2)
    assert words in str(caught.value)
    assert "on_bad_row=skip" in str(caught.value)
    w = load(tmp_path, line(16), bad, on_bad_row="skip")
    assert w.meta["report"]["bad_rows"] == {rule: 1}
    assert w.meta["report"]["rows"] == 2


def test_a_log_without_a_job_is_an_error(tmp_path):
    with pytest.raises(InputError) as caught:
        load(tmp_path, "")
    assert caught.value.rule == "empty file"
    with pytest.raises(InputError, match="1 × never started") as caught:
        load(tmp_path, line(StartTime="Unknown"))
    assert caught.value.rule == "no job left"


@pytest.mark.parametrize("name", ["sfifo", "sbf1", "mlin", "ftdef"])
def test_real_runs(shared_traces, name):
    """Compare with the controller's own log of the same runs, in milliseconds."""
    folder = shared_traces.parent / "real"
    w = sim.read_trace("slurm_jobcomp", folder / f"slurm_{name}.jobcomp.txt.gz")
    import pandas as pd

    log = pd.read_csv(folder / f"slurm_{name}.csv.gz")
    jobs = w.jobs.to_pandas()
    assert len(jobs) == len(log)
    assert jobs["requested_s"].sum() == log["limit_s"].sum()
    assert w.n_tasks == log["cpus"].sum()
    wait_s = (jobs["recorded_start_s"] - jobs["submit_s"]).mean()
    assert wait_s == pytest.approx((log["start_s"] - log["submit_s"]).mean(), abs=0.2)
