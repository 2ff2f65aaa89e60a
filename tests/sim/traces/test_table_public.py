"""Public traces: the options of conf/trace that read them, on made-up rows of their own columns.

The columns are those of the traces' own documentation.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sim
from sim.check.account import check_account
from sim.workload.workload import Workload
from sweep.grid.options import Options
from sweep.grid.recipe import GENERIC_KEYS
from tests.sim.traces.accounts import counts
from tests.sim.traces.tables import stages


@cache
def option(trace: str) -> dict[str, Any]:
    """Return an option of conf/trace."""
    whole: dict[str, Any] = Options().compose(trace=trace)["trace"]
    return whole


def load(trace: str, path: Path, **more: Any) -> Workload:
    """Read a file by an option of conf/trace; what is bad is an error."""
    options = {name: value for name, value in option(trace).items() if name not in GENERIC_KEYS}
    options |= {"on_bad_row": "error", **more}
    return sim.read_trace(option(trace)["format"], path, **options)


def load_text(trace: str, folder: Path, text: str, **more: Any) -> Workload:
    """Read a text by an option of conf/trace."""
    (folder / "jobs.csv").write_text(text)
    return load(trace, folder / "jobs.csv", **more)


def sizes(workload: Workload) -> list[tuple[float, ...]]:
    """Return tasks and demands of a task of each stage."""
    return stages(workload, *(f"demand_{resource}" for resource in workload.resources))


def waits(workload: Workload) -> list[float]:
    """Return how long each job waited, by the log."""
    jobs = workload.jobs.to_pydict()
    pairs = zip(jobs["submit_s"], jobs["recorded_start_s"], strict=True)
    return [start - submit for submit, start in pairs]


def columns(workload: Workload, *names: str) -> list[tuple[Any, ...]]:
    """Return some columns of jobs."""
    return [tuple(row[name] for name in names) for row in workload.jobs.to_pylist()]


def test_helios(tmp_path):
    text = (
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,"
        "queue\n"
        "1,a,v1,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-09 18:43:01,120,0\n"
        "2,ub,v2,16,64,2,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:37,2020-06-09 18:42:37,60,10\n"
        "3,uc,v1,0,8,1,CANCELLED,2020-06-09 18:42:28,,,0,0\n"
        "4,uc,v1,0,8,1,TIMEOUT,2020-06-09 18:42:30,2020-06-09 18:42:50,2020-06-09 18:42:49,0,20\n"
    )
    w = load_text("helios", tmp_path, text)
    assert sizes(w) == [(1, 1.0, 1.0), (2, 32.0, 8.0)]
    assert columns(w, "queue", "user", "min_tasks") == [("v1", "a", 0), ("v2", "ub", 2)]
    assert waits(w) == [0.0, 10.0]
    assert counts(w)["dropped"] == {"never started": 1, "ends before it starts": 1}
    check_account(w, cpu_s=120 + 64 * 60, gpu_s=120 + 16 * 60, jobs=4)
    assert load_text("helios", tmp_path, text, state="completed").n_jobs == 1


@pytest.mark.parametrize("cluster", ["seren", "kalos"])
def test_acme(tmp_path, cluster):
    text = (
        "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,"
        "queue,gpu_time\n"
        "5,u5,2,16,256,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,"
        "2023-03-01 00:20:54+08:00,120,32,1920.0\n"
    )
    if cluster == "kalos":  # whose duration has the wait
        text = (
            "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,"
            "submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time\n"
            "dl,u5,2,16,256,1000,100.0,Other,FAILED,2023-02-28 16:18:22+00:00,"
            "2023-02-28 16:18:54+00:00,2023-02-28 16:20:54+00:00,2023-02-28 16:20:54+00:00,,"
            "152,32.0,2432.0\n"
        )
    w = load_text("acme", tmp_path, text)
    assert (w.jobs["queue"].to_pylist(), sizes(w)) == (["Other"], [(2, 128.0, 8.0)])
    assert waits(w) == [32.0]
    check_account(w, cpu_s=256 * 120, gpu_s=1920)


def test_spot_gpu_2026(tmp_path):
    text = (
        "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,"
        "job_type\n"
        "239,13,A10,20.0,1.0,1,0.0,2764.0,HP\n437,57,A100-SXM4-80GB,15,1,16,958,410,Spot\n"
        "438,57,A10,15,0,1,959,410,Spot\n"
    )
    w = load_text("spot_gpu2026", tmp_path, text)
    assert sizes(w) == [(1, 20.0, 1.0), (16, 15.0, 1.0), (1, 15.0, 0.0)]
    names = ("submit_s", "min_tasks", "queue", "priority", "account")
    assert columns(w, *names) == [
        (0.0, 0, "HP", 1.0, "13"), (958.0, 16, "Spot", 0.0, "57"), (959.0, 0, "Spot", 0.0, "57"),
    ]  # fmt: skip
    check_account(w, cpu_s=20 * 2764 + (240 + 15) * 410, gpu_s=2764 + 16 * 410, tasks=18)
    models = option("spot_gpu2026")["columns"] | {"gpu_type": "gpu_model"}
    w = load_text("spot_gpu2026", tmp_path, text, columns=models)
    assert w.stages["runs_on"].to_pylist() == ["A10", "A100-SXM4-80GB", ""]


def test_azure_vms(tmp_path):
    text = (
        "vm1,s1,d1,558300,1673700,91.7,0.7,20.7,Delay-insensitive,2,3.5\n"
        "vm2,s2,d1,558600,558600,91.7,0.7,20.7,Interactive,>24,>64\n"
        "vm3,s2,d2,559000,,91.7,0.7,20.7,Unknown,4,32\n"
    )
    w = load_text("azure_vm", tmp_path, text)
    assert sizes(w) == [(1, 2.0, 3.5), (1, 30.0, 70.0)]
    assert waits(w) == [0.0, 0.0]
    assert columns(w, "job_id", "user", "account", "queue", "submit_s") == [
        ("vm1", "s1", "d1", "Delay-insensitive", 0.0), ("vm2", "s2", "d1", "Interactive", 300.0),
    ]  # fmt: skip
    assert w.stage_duration_s.tolist() == [1_115_400.0, 0.5]
    assert counts(w)["noticed"] == {"cpus >24: 30": 1, "mem >64: 70": 1}
    assert counts(w)["dropped"] == {"still ran when the log ended (censored)": 1}
    check_account(w, cpu_s=2 * 1_115_400, jobs=3)
    named = ",".join(option("azure_vm")["header"]) + "\n" + text
    assert load_text("azure_vm", tmp_path, named).digest == w.digest  # a header line is none more


def test_surf_lisa_over_the_end_of_daylight_saving(tmp_path):
    day = dt.datetime(2022, 10, 30)
    times = {
        "submit_date": [day + dt.timedelta(hours=1)] * 2,
        "start_date": [day + dt.timedelta(hours=1), day + dt.timedelta(hours=2, minutes=50)],
        "end_date": [day + dt.timedelta(hours=4), day + dt.timedelta(hours=2, minutes=10)],
    }
    table = pa.table(
        {"id": [1, 2], **times, "node": ["r13n5", "r28n1"], "nodetypes": ["normal", "gpu"],
         "numnodes": [1, 0], "numcores": [16, 6], "state": ["TIMEOUT", "COMPLETED"]}
    )  # fmt: skip
    pq.write_table(table, tmp_path / "slurm.parquet")
    w = load("surf_lisa", tmp_path / "slurm.parquet")
    assert w.stage_duration_s.tolist() == [4 * 3600.0, 1200.0]
    assert w.jobs["queue"].to_pylist() == ["normal", "gpu"]
    check_account(w, cpu_s=16 * 14_400 + 6 * 1200)


def test_pm100(tmp_path):
    begin = dt.datetime(2020, 5, 5, 12, tzinfo=dt.UTC)
    stamps = pa.timestamp("ns", "UTC")
    table = pa.table(
        {"job_id": [7], "user_id": [3], "job_state": ["COMPLETED"], "partition": ["1"],
         "qos": ["2"], "priority": [48], "submit_time": pa.array([begin], stamps),
         "eligible_time": pa.array([begin], stamps),
         "start_time": pa.array([begin + dt.timedelta(seconds=9)], stamps),
         "end_time": pa.array([begin + dt.timedelta(seconds=109)], stamps), "run_time": [100],
         "time_limit": [1440], "num_cores_alloc": [512], "num_gpus_alloc": [16],
         "num_nodes_alloc": [4], "mem_alloc": [950], "nodes": ["[1, 2, 3, 4]"]}
    )  # fmt: skip
    pq.write_table(table, tmp_path / "job_table.parquet")
    w = load("pm100", tmp_path / "job_table.parquet")
    assert sizes(w) == [(4, 128.0, 4.0, 237.5)]
    assert columns(w, "requested_s", "user", "partition", "qos") == [(86_400.0, "3", "1", "2")]
    assert waits(w) == [9.0]
    check_account(w, cpu_s=51_200, gpu_s=1600, mem_gib_s=95_000, tasks=4)


def test_f_data_of_two_months(tmp_path):
    month = {"jid": ["j1"], "usr": ["u"], "exit state": ["completed"], "pri": [127],
             "cnumat": [96], "nnuma": [2], "adt": ["2021-04-01 00:00:01+00:00"],
             "sdt": ["2021-04-01 00:00:31+00:00"], "edt": ["2021-04-01 00:01:31+00:00"],
             "elpl": [3600.0], "duration": [60.0]}  # fmt: skip
    later = {name: [str(values[0]).replace("2021-04", "2021-05")] if name[1:] in ("dt",) else values
             for name, values in month.items()} | {"exit state": ["failed"]}  # fmt: skip
    for name, rows in (("21_04", month), ("21_05", later)):
        pq.write_table(pa.table(rows), tmp_path / f"{name}.parquet")
    w = load("f_data", tmp_path)
    assert sizes(w) == [(2, 48.0), (2, 48.0)]
    assert columns(w, "submit_s", "requested_s") == [(0.0, 3600.0), (30 * 86_400.0, 3600.0)]
    assert waits(w) == [30.0, 30.0]
    check_account(w, cpu_s=2 * 96 * 60)
    assert load("f_data", tmp_path, state="completed").n_jobs == 1


def attempt(start: Any, end: Any, *gpus: int) -> dict[str, Any]:
    """Return an attempt of Philly's on some nodes."""
    detail = [{"ip": f"m{i}", "gpus": [f"gpu{g}" for g in range(n)]} for i, n in enumerate(gpus)]
    day = "2017-10-07 "
    start, end = (day + time if time and ":" in time else time for time in (start, end))
    return {"start_time": start, "end_time": end, "detail": detail}


def philly(name: str, status: str, *attempts: Any) -> dict[str, Any]:
    """Return a job of Philly's, submitted at 01:00."""
    return {"jobid": name, "vc": "v", "user": "u", "status": status, "attempts": [*attempts],
            "submitted_time": "2017-10-07 01:00:00"}  # fmt: skip


def test_philly(tmp_path):
    jobs = [
        philly("a", "Pass", attempt("01:00:30", "01:01:30", 8)),
        philly(
            "b", "Failed",
            attempt("01:02:00", "01:03:00", 8, 8), attempt("01:10:00", "01:12:00", 4),
        ),
        philly("c", "Killed"),
        philly("d", "Killed", attempt("01:05:00", None, 1)),
        philly("e", "Pass", attempt("01:05:00", "01:04:00", 1)),
        philly("f", "Killed", attempt("None", "01:04:00", 1), attempt("01:05:00", "01:05:10", 1)),
    ]  # fmt: skip
    (tmp_path / "cluster_job_log").write_text(json.dumps(jobs))
    w = load("philly", tmp_path / "cluster_job_log")
    assert columns(w, "job_id", "queue", "user") == [
        ("a", "v", "u"),
        ("b", "v", "u"),
        ("f", "v", "u"),
    ]
    assert sizes(w) == [(1, 8.0), (2, 8.0), (1, 1.0)]
    assert w.stage_duration_s.tolist() == [60.0, 180.0, 10.0]
    assert waits(w) == [30.0, 120.0, 300.0]
    assert counts(w)["dropped"] == {
        "never started": 1,
        "still ran when the log ended (censored)": 1,
        "ends before it starts": 1,
    }
    assert counts(w)["noticed"] == {
        "jobs whose attempts differ in their GPUs: as the first": 1,
        "jobs of several attempts: run times added": 2,
        "attempts without a start or an end: left out": 1,
    }
    check_account(w, gpu_s=8 * 60 + 16 * 180 + 10, jobs=6)
    assert load("philly", tmp_path / "cluster_job_log", state="completed").n_jobs == 1
    jobs[0]["submitted_time"] = "yesterday"
    (tmp_path / "cluster_job_log").write_text(json.dumps(jobs, indent=0))
    with pytest.raises(sim.InputError, match="submitted_time must be like 2017") as caught:
        load("philly", tmp_path / "cluster_job_log")
    assert caught.value.line == 2
    assert load("philly", tmp_path / "cluster_job_log", on_bad_row="skip").n_jobs == 2


@pytest.mark.parametrize("head", ["", "machineId,number of GPUs, single GPU mem\n"])
def test_philly_tells_its_machines(tmp_path, head):
    log = tmp_path / "cluster_job_log"
    with pytest.raises(sim.InputError, match="there is no cluster_machine_list beside"):
        sim.traces.cluster_of("philly", log)
    rows = "m1,8, 24GB\nm2,2, 12GB\nm3,8, 24GB\n"
    (tmp_path / "cluster_machine_list").write_text(head + rows)
    assert sim.traces.cluster_of("philly", log, state="all") == {
        "shape": [
            {"class": "12GB", "count": 1, "devices": {"gpu": 2}},
            {"class": "24GB", "count": 2, "devices": {"gpu": 8}},
        ],
        "count": 1,
    }


PAI = {
    "pai_job_table.csv": (
        "a,i1,u1,Terminated,100.0,300.0\nb,i2,u2,Failed,150.0,260.0\nc,i3,u2,Waiting,160.0,\n"
    ),
    "pai_task_table.csv": (
        "a,ps,2.0,Terminated,110.0,200.0,600.0,29.5,,CPU\n"
        "a,worker,3.0,Terminated,112.0,192.0,400.0,10,50.0,MISC\n"
        "b,tensorflow,1.0,Failed,250,260,600,,100.0,T4\n"
        "b,evaluator,1.0,Running,250,,600,,100.0,T4\n"
        "z,tensorflow,1.0,Failed,250,260,600,,100.0,T4\n"
    ),
}
"""The tables of PAI's jobs and tasks."""


def test_pai_2020_joins_jobs_and_roles(tmp_path):
    for name, text in PAI.items():
        (tmp_path / name).write_text(text)
    w = load("pai2020", tmp_path)
    assert w.resources == ("cpu", "gpu", "mem")
    assert sizes(w) == [(2, 6.0, 0.0, 29.5), (3, 4.0, 0.5, 10.0), (1, 6.0, 1.0, 0.0)]
    assert w.stages["job"].to_pylist() == [0, 0, 1]
    assert columns(w, "job_id", "user", "submit_s", "min_tasks") == [
        ("a", "u1", 0.0, 5), ("b", "u2", 50.0, 0),
    ]  # fmt: skip
    assert waits(w) == [10.0, 100.0]
    assert w.jobs["recorded_finish_s"].to_pylist() == [100.0, 160.0]
    assert w.tasks["duration_s"].to_pylist() == [90.0, 90.0, 80.0, 80.0, 80.0, 10.0]
    assert counts(w)["dropped"] == {
        "still ran when the log ended (censored)": 1,
        "submission unknown": 1,
    }
    assert counts(w)["noticed"] == {"jobs without a task: left out": 1}
    check_account(w, cpu_s=2 * 6 * 90 + 3 * 4 * 80 + 60 + 60, gpu_s=120 + 10 + 10, jobs=3, tasks=8)
    completed = load("pai2020", tmp_path, state="completed", gang=False, models=True)
    assert columns(completed, "job_id", "min_tasks") == [("a", 0)]
    assert completed.stages["runs_on"].to_pylist() == ["", "MISC"]
    (tmp_path / "pai_job_table.csv").unlink()
    with pytest.raises(sim.InputError, match=r"has no pai_job_table\.csv"):
        load("pai2020", tmp_path)


def test_pai_2020_tells_its_machines(tmp_path):
    rows = "m1,T4,96,512,2\nm2,CPU,96,512,0\nm3,T4,96,512,2\nm4,T4,96,384,2\n"
    (tmp_path / "pai_machine_spec.csv").write_text(rows)
    assert sim.traces.cluster_of("pai2020", tmp_path, models=True) == {
        "shape": [
            {"class": "CPU", "count": 1, "cpu": 96, "mem": 512},
            {"class": "T4", "count": 1, "cpu": 96, "mem": 384, "devices": {"gpu": 2}},
            {"class": "T4", "count": 2, "cpu": 96, "mem": 512, "devices": {"gpu": 2}},
        ],
        "count": 1,
    }
    (tmp_path / "pai_machine_spec.csv").write_text("m1,T4,many,512,2\n")
    with pytest.raises(sim.InputError, match="cap_cpu"):
        sim.traces.cluster_of("pai2020", tmp_path)


SECOND = 1_000_000


def event(kind: int, at_s: float, index: int = 0, **more: Any) -> dict[str, Any]:
    """Return an event of an instance as BigQuery writes it: whole numbers as texts."""
    return {
        "time": str(int(at_s * SECOND)), "type": str(kind), "collection_id": "7",
        "instance_index": str(index), "collection_type": "0", "priority": "200",
        "resource_request": {"cpus": 0.125, "memory": 0.0625}, **more,
    }  # fmt: skip


EVENTS = [
    event(0, 600), event(3, 610), event(4, 650), event(0, 650), event(3, 700), event(6, 760),
    event(0, 600, 1), event(3, 605, 1), event(6, 625, 1),
    event(0, 600, 2), event(3, 605, 2),
    event(0, 0, 3), event(3, 0, 3), event(7, 30, 3),
    event(0, 800, collection_id="9"), event(3, 800, collection_id="9"),
    event(5, 801, collection_id="9", resource_request=None),
    event(0, 1, collection_id="8", collection_type="1"),
    event(3, 1, collection_id="8", collection_type="1"),
    event(6, 5, collection_id="8", collection_type="1"),
]  # fmt: skip
"""A task that is evicted and runs again, a short one, one that runs on, one from before the trace;
a job that fails, and an alloc set."""
AFTER = {"time": "0", "type": "0", "collection_id": "9", "user": "ann",
         "start_after_collection_ids": ["7", "5"]}  # fmt: skip


@pytest.mark.parametrize("form", ["json", "parquet", "csv"])
def test_google_2019(tmp_path, form):
    if form == "json":
        text = "\n".join(map(json.dumps, reversed(EVENTS))).encode()
        (tmp_path / "instance_events-000000000000.json.gz").write_bytes(gzip.compress(text))
        (tmp_path / "collection_events-000000000000.json").write_text(json.dumps(AFTER))
    else:
        whole = ("time", "type", "instance_index", "collection_type", "priority", "collection_id")
        rows = [x | {name: int(x[name]) for name in whole} for x in EVENTS]
        after = AFTER | {name: int(AFTER[name]) for name in ("time", "type", "collection_id")}
        if form == "parquet":
            after["start_after_collection_ids"] = [7, 5]
            pq.write_table(pa.Table.from_pylist(rows), tmp_path / "instance_events-0.parquet.gz")
            pq.write_table(pa.Table.from_pylist([after]), tmp_path / "collection_events-0.parquet")
        else:
            flat = pa.Table.from_pylist(rows).flatten().to_pandas()
            flat.to_csv(tmp_path / "instance_events.csv", index=False)
            line = "collection_id,user,start_after_collection_ids\n9,ann,7;5\n"
            (tmp_path / "collection_events.csv").write_text(line)
    w = load("google2019", tmp_path)
    assert columns(w, "job_id", "submit_s", "user", "priority", "min_tasks") == [
        ("7", 0.0, "", 200.0, 0), ("9", 800.0, "ann", 200.0, 0),
    ]  # fmt: skip
    assert sizes(w) == [(3, 0.125, 0.0625), (1, 0.125, 0.0625)]
    assert sorted(zip(*w.tasks.to_pydict().values(), strict=True)) == [
        (0, 20.0, 605.0, 625.0), (0, 30.0, 0.0, 30.0), (0, 100.0, 610.0, 710.0),
        (1, 1.0, 800.0, 801.0),
    ]  # fmt: skip
    assert w.job_edges.select(["upstream", "downstream"]).to_pylist() == [
        {"upstream": 0, "downstream": 1}
    ]
    assert counts(w)["dropped"] == {
        "alloc sets: tasks in them have requests of their own": 1,
        "still ran when the log ended (censored)": 1,
    }
    assert counts(w)["noticed"] == {
        "instances that ran when the trace began: run time from then": 1,
        "instances of several runs: run times added": 1,
    }
    account = check_account(w, cpu_s=0.125 * 155, jobs=3, edges=2)
    assert account["edges"]["left_out_by"] == {"on a job that is not in the log": 1.0}


def test_workflow_trace_archive(tmp_path):
    ids = [1, 2, 3, 4, 5]
    tasks = {
        "id": ids, "workflow_id": [70, 70, 70, 70, 80], "ts_submit": [0, 0, 5000, 5000, 9000],
        "runtime": [2000, 3000, 4000, 1000, 500], "wait_time": [100, 100, -1, 100, 100],
        "resource_amount_requested": [1.0, 2.0, -1.0, 1.0, 1.0], "user_id": [3, 3, 3, 3, -1],
        "parents": pa.array([[], [], [1, 2], [3, 99], [4]], pa.list_(pa.int64())),
    }  # fmt: skip
    folder = tmp_path / "tasks" / "schema-1.0"
    folder.mkdir(parents=True)
    table = pa.table(tasks)
    for number in range(2):  # in two files
        pq.write_table(table.slice(3 * number, 3), folder / f"part.{number}.parquet")
    w = load("wta", folder)
    assert columns(w, "job_id", "submit_s", "user", "min_tasks") == [
        ("70", 0.0, "3", 0), ("80", 9.0, "", 0),
    ]  # fmt: skip
    assert sizes(w) == [(1, 1.0), (1, 2.0), (1, 1.0), (1, 1.0), (1, 1.0)]
    assert w.stages["job"].to_pylist() == [0, 0, 0, 0, 1]
    edges = w.stage_edges.to_pydict()
    assert [*zip(edges["parent"], edges["child"], strict=True)] == [(0, 2), (1, 2), (2, 3)]
    assert w.tasks["duration_s"].to_pylist() == [2.0, 3.0, 4.0, 1.0, 0.5]
    assert w.jobs["recorded_start_s"].to_pylist() == [0.1, 9.1]
    assert counts(w)["noticed"] == {
        "cpus -1: unknown": 1, "user -1: unknown": 1, "wait_s below 0: unknown": 1,
    }  # fmt: skip
    # a parent in another workflow, and one that no row has
    account = check_account(w, edges=5)
    assert account["edges"]["left_out_by"] == {
        "on a job that is not in the log": 1.0, "on a row of another job": 1.0,
    }  # fmt: skip


def test_rows_of_a_job_may_be_in_any_order(tmp_path):
    rows = [f"{p}{i},{p},{10 * i},{5 + i},{1 + i % 2}" for p in "xyz" for i in range(6)]

    def read(lines: list[str]) -> tuple[Workload, list[tuple[Any, ...]]]:
        (tmp_path / "t.csv").write_text("\n".join(["job_id,part_of,submit_s,run_s,cpus", *lines]))
        w = sim.read_trace("table", tmp_path / "t.csv", tasks="job")
        names, jobs = w.jobs["job_id"].to_pylist(), w.stages["job"].to_pylist()
        cpus = w.stages["demand_cpu"].to_pylist()
        tasks = zip(w.tasks["stage"].to_pylist(), w.tasks["duration_s"].to_pylist(), strict=True)
        return w, sorted((names[jobs[stage]], cpus[stage], run_s) for stage, run_s in tasks)

    w, tasks = read(rows)
    assert sizes(w) == [(3, 1.0), (3, 2.0)] * 3
    assert tasks == sorted((p, 1.0 + i % 2, 5.0 + i) for p in "xyz" for i in range(6))
    check_account(w, jobs=3, cpu_s=3 * sum((5 + i) * (1 + i % 2) for i in range(6)))
    rng = np.random.default_rng(5)
    for _ in range(3):
        assert read([rows[i] for i in rng.permutation(len(rows))])[1] == tasks
