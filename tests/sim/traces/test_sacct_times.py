"""Times of Slurm's records: clocks that are put back, releases, limits, jobs at the log's end."""

from __future__ import annotations

import pytest

import sim
from sim.base.errors import InputError
from sim.check.account import check_account
from tests.sim.traces.test_sacct import DAY, HEAD, load, record

SUNDAY = "2026-10-25T"


def report(workload):
    return workload.meta["report"]


def warnings(workload):
    return report(workload).get("warnings", [])


def night(job, submit, start, end, **changes):
    return record(job, Submit=SUNDAY + submit, Start=SUNDAY + start, End=SUNDAY + end, **changes)


@pytest.mark.parametrize(
    ("end", "run_s"), [("02:10:00", 1200.0), ("01:50:00", 0.5), ("02:49:00", 3540.0)]
)
def test_a_run_over_a_clock_that_is_put_back_is_guessed(tmp_path, end, run_s):
    w = load(tmp_path, night("17", "02:50:00", "02:50:00", end, AllocCPUS=2))
    assert w.stage_duration_s.tolist() == [run_s]
    assert w.jobs["recorded_finish_s"].to_pylist()[0] >= 0
    assert len(warnings(w)) == 1
    check_account(w)


def test_an_end_too_long_before_the_start_is_no_run(tmp_path):
    rows = [night("17", "02:50:00", "02:50:00", "01:40:00"), record("18")]
    w = load(tmp_path, *rows)
    assert report(w)["dropped"] == {"ends before it starts": 1}
    assert "1 with End before Start" in warnings(w)[0]
    assert check_account(w)["cpu_s"]["unknown"] == 1
    seconds = ["1|100|200|190", "2|100|200|260"]
    w = load(tmp_path, *seconds, head="JobID|Submit|Start|End")
    assert report(w)["dropped"] == {"ends before it starts": 1}  # no clock of a place
    assert warnings(w) == []


def test_elapsed_is_right_whatever_the_clock(tmp_path):
    head = HEAD + "|Elapsed"
    rows = [
        night("17", "02:50:00", "02:50:00", "02:10:00") + "|00:20:00",
        night("18", "00:10:00", "00:10:00", "05:10:00") + "|06:00:00",
        record("19", Submit="2026-03-29T00:10:00", Start="2026-03-29T00:10:00",
               End="2026-03-29T05:10:00") + "|04:00:00",
    ]  # fmt: skip
    w = load(tmp_path, *rows, head=head)
    run_s = [14_400.0, 21_600.0, 1200.0]
    assert w.stage_duration_s.tolist() == run_s
    jobs = w.jobs.to_pylist()
    assert [j["recorded_finish_s"] - j["recorded_start_s"] for j in jobs] == run_s
    assert report(w)["filled"] == {}
    assert "2026-03-29, 2026-10-25" in warnings(w)[0]
    one_hour = record("17", Start=DAY + "09:00:00", End=DAY + "11:00:00", Submit=DAY + "09:00:00")
    suspended = load(tmp_path, one_hour + "|01:00:00|01:00:00", head=head + "|Suspended")
    assert warnings(suspended) == []
    assert suspended.jobs["recorded_finish_s"].to_pylist() == [7200.0]


@pytest.mark.parametrize(("elapsed", "n"), [("00:08:20", 1), ("00:00:11", 0), ("00:00:05", 0)])
def test_a_run_time_that_is_longer_than_from_start_to_end_is_told(tmp_path, elapsed, n):
    head = "JobID|Submit|Start|End|Elapsed"
    w = load(tmp_path, f"1|100|110|120|{elapsed}", "2|100|110|120|00:00:10", head=head)
    sentence = "Elapsed is longer than from Start to End in 1 of 2 records: Elapsed counts"
    assert [text.startswith(sentence) for text in warnings(w)] == [True] * n


def test_a_start_before_the_submission_is_left_out(tmp_path):
    rows = [
        night("17", "02:50:00", "02:10:00", "02:30:00"),
        night("18", "04:00:00", "04:00:10", "05:00:00"),
    ]
    w = load(tmp_path, *rows)
    assert w.jobs["recorded_start_s"].to_pylist() == [None, 4210.0]
    assert report(w)["noticed"] == {"starts before its submission: its start is left out": 1}
    assert "1 with Start before Submit" in warnings(w)[0]
    early = load(tmp_path, record(Submit=DAY + "09:30:11"))  # rounding
    assert early.jobs["recorded_start_s"].to_pylist() == [-1.0]


def test_submissions_that_go_back_show_a_clock_put_back(tmp_path):
    times = ["02:40:00", "02:48:00", "02:56:00", "02:04:00", "02:12:00", "02:20:00"]
    rows = [night(str(i), time, "05:00:00", "06:00:00") for i, time in enumerate(times)]
    assert "2026-10-25 (submissions go back)" in warnings(load(tmp_path, *rows))[0]
    other_day = [row.replace("2026-10-25", "2026-10-26") for row in rows]
    assert warnings(load(tmp_path, *other_day)) == []
    requeued = [*rows[3:], rows[2], *[row.replace("T02", "T03") for row in rows[3:]]]
    assert warnings(load(tmp_path, *requeued)) == []
    by_name = [*rows, *[row.replace("T02", "T01").replace("x", "y") for row in rows[::-1]]]
    assert warnings(load(tmp_path, *by_name)) == []


@pytest.mark.parametrize(
    ("eligible", "start", "submit_s"),
    [
        ("09:30:05", "09:30:10", 65.0),
        ("09:29:00", "09:30:10", 60.0),  # never before the submission
        ("09:50:00", "09:30:10", 70.0),  # nor after the start
        ("Unknown", "09:30:10", 60.0),
    ],
)
def test_release(tmp_path, eligible, start, submit_s):
    head = HEAD + "|Eligible"
    rows = [
        record("1", Submit=DAY + "09:29:00") + "|Unknown",
        record("2", Start=DAY + start) + f"|{DAY}{eligible}".replace(DAY + "U", "U"),
    ]
    w = load(tmp_path, *rows, head=head)
    assert w.jobs["submit_s"].to_pylist() == [0.0, submit_s]
    assert load(tmp_path, *rows, head=head, release="submit").jobs["submit_s"][1].as_py() == 60.0


@pytest.mark.parametrize(
    ("name", "text", "seconds"),
    [
        ("TimelimitRaw", "90", 5400.0),
        ("TimelimitRaw", "0", None),
        ("TimelimitRaw", "UNLIMITED", None),
        ("TimelimitRaw", "Partition_Limit", None),
        ("TimelimitRaw", "unlimited", None),
        ("Timelimit", "0", None),
        ("Timelimit", "0-00:00:00", None),
        ("Timelimit", "partition_limit", None),
        ("Timelimit", "unknown", None),
    ],
)
def test_limits(tmp_path, name, text, seconds):
    w = load(tmp_path, record(Timelimit=text), head=HEAD.replace("Timelimit", name))
    assert w.jobs["requested_s"].to_pylist() == [seconds]


@pytest.mark.parametrize(
    "text", ["Unknown", "unknown", "UNKNOWN", "None", "none", "NONE", "N/A", ""]
)
def test_texts_of_no_time(tmp_path, text):
    w = load(tmp_path, record("17", Start=text, State="CANCELLED by 7"), record("18"))
    assert report(w)["dropped"] == {"never started": 1}


@pytest.mark.parametrize(
    ("head", "changes", "rest"),
    [
        (HEAD, {"AllocCPUS": 0, "NNodes": 0}, ""),
        (HEAD, {"AllocCPUS": 0}, ""),
        (HEAD.replace("AllocCPUS", "NCPUS"), {"AllocCPUS": 0, "NNodes": 4}, ""),
        (HEAD.replace("AllocCPUS", "ReqCPUS") + "|AllocTRES", {"AllocCPUS": 8}, "|"),
        (HEAD.replace("AllocCPUS", "ReqCPUS") + "|NodeList", {"AllocCPUS": 8}, "|None assigned"),
        (HEAD.replace("AllocCPUS", "ReqCPUS"), {"AllocCPUS": 8}, ""),
    ],
)
def test_a_job_that_was_cancelled_while_it_waited_never_ran(tmp_path, head, changes, rest):
    ran_rest = {"|": "|cpu=1", "|None assigned": "|n1"}.get(rest, "")
    cancelled = record("17", State="CANCELLED by 7", End=DAY + "09:30:10", **changes) + rest
    w = load(tmp_path, cancelled, record("18") + ran_rest, head=head)
    assert w.jobs["job_id"].to_pylist() == ["18"]
    assert report(w)["dropped"] == {"never started": 1}
    assert check_account(w, cpu_s=60.0)["cpu_s"]["left_out"] == 0.0


def test_jobs_that_still_ran_are_censored(tmp_path):
    head = HEAD + "|Elapsed"
    rows = [record(str(i)) + "|00:01:00" for i in range(9)]
    running = record("9", State="RUNNING", End="Unknown", AllocCPUS=4) + "|00:00:30"
    w = load(tmp_path, *rows, running, head=head)
    account = check_account(w, cpu_s=9 * 60.0 + 120.0, jobs=10)
    rule = "censored: not ended when the log was written"
    assert account["cpu_s"]["left_out_by"] == {rule: 120.0}
    assert "10.0 % of the jobs, 18.2 % of the CPU time known" in warnings(w)[0]
    no_state = head.replace("|State", "|Reason")
    unnamed = load(tmp_path, *rows, running.replace("RUNNING", "None"), head=no_state)
    assert report(unnamed)["dropped"] == {rule: 1}
    assert warnings(load(tmp_path, *rows, head=head)) == []


def test_a_log_without_a_job_says_why(tmp_path):
    with pytest.raises(InputError, match="1 × censored: not ended when the log was written"):
        load(tmp_path, record(State="RUNNING"))


def test_work_that_is_not_read_is_left_out_by_option(tmp_path):
    row = record(AllocCPUS=4) + "|cpu=4,gres/gpu=2,mem=8G"
    w = load(tmp_path, row, head=HEAD + "|AllocTRES")
    account = check_account(w, cpu_s=240.0, gpu_s=120.0, mem_gib_s=480.0)
    assert account["gpu_s"]["left_out_by"] == {"GPUs are not read with tasks=cpus": 120.0}
    assert account["gpu_s"]["by_option"] == 120.0
    nodes = load(tmp_path, row, head=HEAD + "|AllocTRES", tasks="nodes")
    account = check_account(nodes, cpu_s=240.0, gpu_s=120.0, mem_gib_s=480.0)
    assert account["gpu_s"]["left_out"] == 0.0


def test_defaults_are_entered(tmp_path):
    rows = [record("1", AllocCPUS=""), record("2", End=DAY + "09:30:10", AllocCPUS=4)]
    account = check_account(load(tmp_path, *rows))
    assert account["cpu_s"]["changed_by"] == {"CPUs unknown: 1": -60.0, "0 s becomes 0.5 s": -2.0}
    assert account["cpu_s"]["log"] == 0.0
    w = load(tmp_path, record(AllocCPUS=2, NNodes=5), tasks="nodes")
    assert report(w)["filled"]["more nodes than CPUs: as many"] == 1
    assert w.stages["n_tasks"].to_pylist() == [2]
    check_account(w, cpu_s=120.0)


def test_simulations_read_no_recorded_submission(tmp_path):
    w = load(tmp_path, record("1") + f"|{DAY}09:30:05", head=HEAD + "|Eligible")
    w.write(tmp_path / "w")
    assert sim.Workload.read(tmp_path / "w").jobs["recorded_submit_s"].to_pylist() == [-5.0]
