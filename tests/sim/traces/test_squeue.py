"""Queue of a site of Slurm, as squeue prints it, and its jobs beside those that ended."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from sim.base.errors import InputError
from sim.cli.main import main
from sim.traces.sites import read_site
from sim.traces.slurm_site.shown import time_s
from sim.traces.slurm_site.squeue import read_queue
from tests.sim.traces.test_slurm_site import HEADER, folder, row

HEAD = (
    "JOBID|PARTITION|USER|ACCOUNT|QOS|STATE|SUBMIT_TIME|START_TIME|TIME_LIMIT|NODES|CPUS|MIN_MEMORY|"
    "TRES_PER_NODE|NODELIST|FEATURES|REASON|PRIORITY|DEPENDENCY|RESERVATION|OVER_SUBSCRIBE"
)
DAY = "2026-03-01T"
ROWS = [
    f"50|batch|ann|sub|normal|RUNNING|{DAY}09:00:00|{DAY}09:10:00|1:00:00|1|2|1G|N/A|n1|(null)|None|9"
    "|(null)|(null)|OK",
    f"51|batch,quick|bob|sub|normal|PENDING|{DAY}09:20:00|N/A|30:00|2|4|500M|N/A||avx|Resources|8"
    "|afterany:50(unfulfilled)|(null)|NO",
    f"60_[4-8:2,9%2]|batch|ann|sub|normal|PENDING|{DAY}09:25:00|N/A|1-00:00:00|1|1|0|N/A||(null)"
    "|Priority|7|(null)|(null)|OK",
    f"70|gpu|ann|sub|normal|PENDING|{DAY}09:26:00|{DAY}11:00:00|UNLIMITED|1|1|0|gres/gpu:a100:1||(null)"
    "|BeginTime|6|(null)|(null)|OK",
    f"80|gpu|bob|sub|normal|PENDING|{DAY}09:27:00|N/A|5:00|1|1|0|N/A||(null)|JobHeldUser|0|(null)"
    "|(null)|OK",
    f"90|gpu|bob|sub|normal|PENDING|{DAY}09:28:00|N/A|5:00|9|1|0|N/A||(null)|Priority|0|(null)"
    "|(null)|OK",
]  # fmt: skip
NOW = f"{DAY}09:30:00"


def number(value):
    return {"set": True, "infinite": False, "number": value}


def epoch(time):
    return number(time_s(f"{DAY}{time}") - 3600)  # the site's clock is an hour ahead of UTC


JSON = {
    "last_update": epoch("09:30:00"),
    "jobs": [
        {"job_id": 50, "partition": "batch", "user_name": "ann", "account": "sub", "qos": "normal",
         "job_state": ["RUNNING"], "submit_time": epoch("09:00:00"), "nodes": "n1",
         "start_time": epoch("09:10:00"), "time_limit": number(60), "node_count": number(1),
         "cpus": number(2), "tres_alloc_str": "cpu=2,mem=1G,node=1"},
        {"job_id": 61, "array_job_id": number(60), "array_task_string": "4-8%2",
         "partition": "batch", "user_name": "ann", "account": "sub", "qos": "normal",
         "job_state": ["PENDING"], "submit_time": epoch("09:25:00"), "time_limit": {"set": False},
         "node_count": number(1), "cpus": number(1), "tres_req_str": "cpu=1,node=1",
         "state_reason": "Priority", "array_max_tasks": number(2), "shared": ["none"]},
    ],
}  # fmt: skip


@pytest.fixture
def site(tmp_path):
    path = folder(tmp_path / "exports")
    (path / "squeue.txt").write_text("\n".join([NOW, HEAD, *ROWS]) + "\n")
    return path


def test_text_has_records_of_sacct(site):
    queue = read_queue(site / "squeue.txt", {})
    assert queue.now_s == time_s(NOW)
    assert queue.running == {"50"}
    assert queue.waiting == {"51", "60_4", "60_6", "60_8", "60_9", "70", "80", "90"}
    by_id = {record["JobID"]: record for record in queue.records}
    assert (by_id["50"]["End"], by_id["50"]["Elapsed"]) == (f"{DAY}10:10:00", "1:00:00")
    assert by_id["51"]["ReqTRES"] == "cpu=4,node=2,mem=1000M"
    assert by_id["51"]["SubmitLine"] == (
        "sbatch --partition=batch,quick --exclusive --dependency=afterany:50(unfulfilled)"
    )
    assert by_id["60_6"]["SubmitLine"].endswith("--array=0%2")
    assert (by_id["60_6"]["Timelimit"], by_id["60_6"]["Elapsed"]) == ("1-00:00:00", "1-0:00:00")
    assert by_id["70"]["Eligible"] == f"{DAY}11:00:00"
    assert by_id["70"]["ReqTRES"] == "cpu=1,node=1,gres/gpu=1,gres/gpu:a100=1"
    assert by_id["70"]["Timelimit"] == "UNLIMITED"


def test_json_is_of_utc_and_running_jobs_tell_the_site_s_clock(tmp_path):
    (tmp_path / "squeue.json").write_text(json.dumps(JSON))
    queue = read_queue(tmp_path / "squeue.json", {"50": time_s(f"{DAY}09:10:00")})
    assert queue.now_s == time_s(NOW)
    by_id = {record["JobID"]: record for record in queue.records}
    assert [*by_id] == ["50", "60_4", "60_5", "60_6", "60_7", "60_8"]
    assert by_id["50"]["Start"] == f"{DAY}09:10:00"
    assert by_id["60_5"]["Submit"] == f"{DAY}09:25:00"
    assert by_id["60_5"]["SubmitLine"] == "sbatch --partition=batch --exclusive --array=0%2"
    assert read_queue(tmp_path / "squeue.json", {}).now_s == time_s(NOW) - 3600


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("squeue.txt", "JOBID|USER\n1|a\n", "no column state, partition, submit, cpus"),
        ("squeue.txt", f"{NOW}\n{HEAD}\n1|a\n", r"squeue.txt:3: 2 fields"),
        ("squeue.json", "{", "no JSON"),
        ("squeue.json", "{}", "no list of jobs"),
    ],
)
def test_wrong_queues_say_what_is_right(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_queue(tmp_path / name, {})


def test_jobs_that_ended_run_and_wait(site):
    read = read_site(site)
    jobs = read.queue.jobs
    ids = jobs["job_id"].to_pylist()
    assert {"50", "51", "60_4", "70", "80"} <= {*ids}
    assert "90" not in ids, "nine nodes of gpu do not exist"
    assert any("job 90 can never start" in note for note in read.notes)
    assert {*read.workload.jobs["job_id"].to_pylist()} <= {*ids}
    start = dict(zip(ids, jobs["recorded_start_s"].to_pylist(), strict=True))
    end = dict(zip(ids, jobs["recorded_finish_s"].to_pylist(), strict=True))
    zero_s = read.queue.meta["offset_s"]
    assert start["50"] == time_s(f"{DAY}09:10:00") - zero_s
    assert end["50"] is None or math.isnan(end["50"])
    assert all(start[name] is None or math.isnan(start[name]) for name in ("51", "60_4", "70"))
    assert read.queue.meta["now_s"] == time_s(NOW) - zero_s
    partition = dict(zip(ids, jobs["partition"].to_pylist(), strict=True))
    assert (partition["51"], partition["50"]) == ("batch|quick", "batch")
    exclusive = dict(zip(ids, jobs["exclusive"].to_pylist(), strict=True))
    assert (exclusive["51"], exclusive["50"]) == (True, False)
    throttle = dict(zip(ids, jobs["throttle"].to_pylist(), strict=True))
    assert (throttle["60_4"], throttle["50"]) == (2, 0)
    edges = [(ids[e["upstream"]], ids[e["downstream"]]) for e in read.queue.job_edges.to_pylist()]
    assert ("50", "51") in edges


def test_options_of_the_queue_are_written(site, tmp_path):
    assert main(["site", str(site), "--out", str(tmp_path / "twin"), "--name", "lab"]) == 0
    for file in ("cluster/lab_queue.yaml", "trace/lab_queue.yaml", "queue/jobs.parquet"):
        assert (tmp_path / "twin" / file).exists()
    assert "cluster: lab_queue" in (tmp_path / "twin/trace/lab_queue.yaml").read_text()


def test_a_queue_without_accounting(site):
    (site / "sacct.txt").unlink()
    read = read_site(site)
    assert read.workload is None
    assert not np.isnan(read.queue.meta["now_s"])
    assert len(read.queue.jobs) == 8


WAITS = {"Start": "Unknown", "End": "Unknown", "State": "PENDING", "AllocCPUS": 0,
         "AllocTRES": "", "NodeList": "None assigned"}  # fmt: skip
OPEN = (
    row("50", Submit=f"{DAY}09:00:00", Start=f"{DAY}09:10:00", End="Unknown", State="RUNNING",
        Timelimit="01:00:00") + "|00:20:00",
    row("50.batch", Submit=f"{DAY}09:10:00", Start=f"{DAY}09:10:00", End="Unknown",
        State="RUNNING") + "|00:20:00",
    row("51", Submit=f"{DAY}09:20:00", **WAITS) + "|00:00:00",
    row("60_[4-8:2%2]", Submit=f"{DAY}09:25:00", **WAITS) + "|00:00:00",
)  # fmt: skip


def with_open_jobs(path, rows=OPEN):
    lines = [f"{HEADER}|Elapsed", f"{row('1')}|00:01:00", *rows]
    (path / "sacct.txt").write_text("\n".join(lines) + "\n")
    return path


def test_jobs_of_the_accounting_that_had_not_ended_are_a_queue(tmp_path):
    site = with_open_jobs(folder(tmp_path / "exports"))
    read = read_site(site)
    jobs = {job["job_id"]: job for job in read.queue.jobs.to_pylist()}
    assert {*jobs} == {"1", "50", "51", "60_4", "60_6", "60_8"}
    assert read.workload.jobs["job_id"].to_pylist() == ["1"]
    zero_s = read.queue.meta["offset_s"]
    assert read.queue.meta["now_s"] == time_s(NOW) - zero_s  # 20 minutes after job 50 started
    assert jobs["50"]["recorded_start_s"] == time_s(f"{DAY}09:10:00") - zero_s
    assert jobs["50"]["recorded_finish_s"] is None
    assert jobs["51"]["recorded_start_s"] is None
    assert jobs["60_6"]["submit_s"] == time_s(f"{DAY}09:25:00") - zero_s
    row_50 = [*jobs].index("50")
    assert read.queue.columns.job_work[row_50] == 3600.0  # its limit stands in for its end
    assert not any("60_" in note for note in read.notes)


def test_an_accounting_of_ended_jobs_has_no_queue(tmp_path):
    assert read_site(with_open_jobs(folder(tmp_path / "exports"), [])).queue is None


def test_open_jobs_that_cannot_be_read_are_named_and_left_out(tmp_path, monkeypatch):
    def refuse(*_):
        raise InputError("job 51 has two shapes")

    monkeypatch.setattr("sim.traces.slurm_site.site.read_now", refuse)
    read = read_site(with_open_jobs(folder(tmp_path / "exports")))
    assert read.queue is None
    assert read.notes[-1] == "jobs that had not ended are left out: job 51 has two shapes"
    assert read.workload.jobs["job_id"].to_pylist() == ["1"]
