"""Public traces as tables: the renaming that docs/your_own_trace.md gives, on made-up rows.

The columns are those of the traces' own documentation.
"""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

import sim
from sim.check.account import check_account
from sim.workload.workload import Workload
from tests.sim.traces.tables import read_csv, stages

PAGE = Path(__file__).resolve().parents[3] / "docs" / "your_own_trace.md"


def renaming(trace: str) -> dict[str, str | None]:
    """Return the columns that the page gives for a trace."""
    (row,) = re.findall(rf"^\| \[{trace}\].*\| `(\{{.*\}})` \|$", PAGE.read_text("utf-8"), re.M)
    columns: dict[str, str | None] = yaml.safe_load(re.sub(r"(\w):", r"\1: ", row))
    return columns


def sizes(workload: Workload) -> list[tuple[float, ...]]:
    """Return tasks and demands of a task of each stage."""
    return stages(workload, *(f"demand_{resource}" for resource in workload.resources))


def test_helios(tmp_path):
    text = (
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,"
        "queue\n"
        "1,a,v1,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-09 18:43:01,120,0\n"
        "2,ub,v2,16,64,2,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:37,2020-06-09 18:42:37,60,10\n"
        "3,uc,v1,0,8,1,CANCELLED,2020-06-09 18:42:28,,,0,0\n"
    )
    w = read_csv(tmp_path, text, columns=renaming("Helios"))
    assert sizes(w) == [(1, 1.0, 1.0), (2, 32.0, 8.0)]
    assert w.jobs["queue"].to_pylist() == ["v1", "v2"]
    check_account(w, cpu_s=120 + 64 * 60, gpu_s=120 + 16 * 60, jobs=3)


def test_acme(tmp_path):
    text = (
        "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,"
        "queue,gpu_time\n"
        "5,u5,2,16,256,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,"
        "2023-03-01 00:20:54+08:00,120,32,1920.0\n"
    )
    w = read_csv(tmp_path, text, columns=renaming("Acme"))
    assert (w.jobs["queue"].to_pylist(), sizes(w)) == (["default"], [(2, 128.0, 8.0)])
    check_account(w, cpu_s=256 * 120, gpu_s=1920)


def test_philly(tmp_path):
    text = (
        "jobid,vc,user,status,submitted_time,start_time,end_time,gpus,nodes\n"
        "a_1,v,u,Pass,2017-10-07 01:11:39,2017-10-07 01:12:09,2017-10-07 01:13:09,8,1\n"
        "a_1,v,u,Pass,2017-10-07 01:11:39,2017-10-07 01:13:30,2017-10-07 01:15:30,16,2\n"
        "a_2,v,u,Killed,2017-10-07 01:12:39,,,4,1\n"
    )
    w = read_csv(tmp_path, text, columns=renaming("Philly"))
    assert w.jobs["job_id"].to_pylist() == ["a_1", "a_1#2"]
    assert sizes(w) == [(1, 8.0), (2, 8.0)]
    check_account(w, gpu_s=8 * 60 + 16 * 120, jobs=3)


def test_spot_gpu_2026(tmp_path):
    text = (
        "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,"
        "job_type\n"
        "239,13,A10,20.0,1.0,1,0.0,2764.0,HP\n437,57,A100-SXM4-80GB,15,1,16,958,410,Spot\n"
    )
    w = read_csv(tmp_path, text, columns=renaming("spot-gpu-2026"))
    assert sizes(w) == [(1, 20.0, 1.0), (16, 15.0, 1.0)]
    assert w.stages["runs_on"].to_pylist() == ["A10", "A100-SXM4-80GB"]
    assert w.jobs["min_tasks"].to_pylist() == [0, 16]
    assert w.jobs["queue"].to_pylist() == ["HP", "Spot"]
    check_account(w, cpu_s=20 * 2764 + 240 * 410, gpu_s=2764 + 16 * 410, tasks=17)


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
    options = {"columns": renaming("SURF Lisa"), "zone": "Europe/Amsterdam"}
    w = sim.read_trace("table", tmp_path / "slurm.parquet", **options)
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
    options = {"columns": renaming("PM100"), "unit": {"limit_s": "min"}}
    w = sim.read_trace("table", tmp_path / "job_table.parquet", **options)
    assert sizes(w) == [(4, 128.0, 4.0, 237.5)]
    assert w.jobs["requested_s"].to_pylist() == [86_400.0]
    check_account(w, cpu_s=51_200, gpu_s=1600, mem_gib_s=95_000, tasks=4)


def test_f_data(tmp_path):
    table = pa.table(
        {"jid": ["j1"], "usr": ["u"], "exit state": ["completed"], "pri": [127], "cnumat": [96],
         "nnuma": [2], "adt": ["2021-04-01 00:00:01+00:00"], "sdt": ["2021-04-01 00:00:31+00:00"],
         "edt": ["2021-04-01 00:01:31+00:00"], "elpl": [3600.0], "duration": [60.0]}
    )  # fmt: skip
    pq.write_table(table, tmp_path / "21_04.parquet")
    columns = renaming("F-DATA")
    w = sim.read_trace("table", tmp_path / "21_04.parquet", columns=columns, state="completed")
    assert w.jobs["requested_s"].to_pylist() == [3600.0]
    check_account(w, cpu_s=96 * 60)
    nodes = sim.read_trace("table", tmp_path / "21_04.parquet", columns=columns, tasks="nodes")
    assert sizes(nodes) == [(2, 48.0)]
