"""Tables with several rows a job, without a header line, and with values that mean others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sim
from sim.check.account import check_account
from tests.sim.traces.accounts import counts
from tests.sim.traces.tables import read_both, read_csv, stages

HEAD = "job_id,part_of,submit_s,start_s,end_s,cpus,nodes,state,depends_on\n"
ETL = (
    "a,etl,0,5,15,2,1,COMPLETED,\n"
    "b,etl,1,15,45,3,2,COMPLETED,a\n"
    "c,etl,1,16,26,1,1,FAILED,a\n"
    "d,etl,2,45,46,1,1,COMPLETED,b c x\n"
    "e,,3,9,19,1,1,COMPLETED,etl\n"
    "f,sum,4,30,34,1,1,COMPLETED,e b\n"
    "g,sum,4,,,1,1,CANCELLED,f\n"
)
"""A job of a fork and a join, a row that is a job by itself and waits for it, and another job."""


def test_rows_of_a_job_are_stages_that_wait_for_each_other(tmp_path):
    w = read_both(tmp_path, HEAD + ETL, tasks="nodes")
    assert w.jobs["job_id"].to_pylist() == ["etl", "e", "sum"]
    assert w.jobs["submit_s"].to_pylist() == [0.0, 3.0, 4.0]
    assert w.jobs["recorded_start_s"].to_pylist() == [5.0, 9.0, 30.0]
    assert w.jobs["recorded_finish_s"].to_pylist() == [46.0, 19.0, 34.0]
    assert w.jobs["min_tasks"].to_pylist() == [0, 0, 0]
    # b has 3 CPUs on 2 nodes: a task of 2, and one of 1
    assert stages(w, "job", "demand_cpu") == [
        (1, 0, 2.0), (1, 0, 2.0), (1, 0, 1.0), (1, 0, 1.0), (1, 0, 1.0), (1, 1, 1.0), (1, 2, 1.0),
    ]  # fmt: skip
    edges = w.stage_edges.to_pydict()
    pairs = sorted(zip(edges["parent"], edges["child"], strict=True))
    assert pairs == [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)]
    # jobs are waited for by their names, not by those of their rows
    assert w.job_edges.select(["upstream", "downstream"]).to_pylist() == [
        {"upstream": 0, "downstream": 1},
        {"upstream": 1, "downstream": 2},
    ]
    assert w.jobs["input_mode"].to_pylist() == ["none", "poll", "poll"]
    assert counts(w)["dropped"] == {"never started": 1}
    account = check_account(w, jobs=3, cpu_s=2 * 10 + 3 * 30 + 10 + 1 + 10 + 4)
    assert account["edges"]["left_out_by"] == {
        "on a job that is not in the log": 1.0,
        "on a row of another job": 1.0,
        "on a row that is left out, or of one": 1.0,
    }
    assert account["edges"]["log"] == 9.0
    assert account["edges"]["changed"] == -2.0  # those of b are two each


def test_a_job_of_which_all_rows_are_left_out_counts_once(tmp_path):
    text = "job_id,part_of,submit_s,start_s,end_s\na,x,0,1,2\nb,y,0,,\nc,y,0,,\nd,x,0,,\n"
    w = read_both(tmp_path, text)
    account = check_account(w, jobs=2)
    assert account["jobs"]["left_out_by"] == {"never started": 1.0}
    assert w.n_jobs == 1


@pytest.mark.parametrize(("gang", "min_tasks"), [(True, 5), (False, 0)])
def test_rows_without_waits_are_a_gang(tmp_path, gang, min_tasks):
    text = "job_id,part_of,submit_s,run_s,workers,cpus,gpus\nps,j,0,9,2,4,0\nw,j,0,7,3,4,1\n"
    w = read_both(tmp_path, text, gang=gang)
    assert stages(w, "demand_cpu", "demand_gpu") == [(2, 4.0, 0.0), (3, 4.0, 1.0)]
    assert w.jobs["min_tasks"].to_pylist() == [min_tasks]
    assert w.tasks["duration_s"].to_pylist() == [9.0, 9.0, 7.0, 7.0, 7.0]


def test_jobs_that_wait_for_each_other_in_a_circle_wait_for_earlier_ones(tmp_path):
    text = (
        "job_id,part_of,submit_s,run_s,depends_on\na1,a,0,5,\nb1,b,1,5,a\na2,a,2,5,b\nb2,b,3,5,a\n"
    )
    w = read_both(tmp_path, text)
    assert w.job_edges.select(["upstream", "downstream"]).to_pylist() == [
        {"upstream": 0, "downstream": 1}
    ]
    account = check_account(w, edges=3)
    assert account["edges"]["workload"] == 1.0


def test_parts_of_elastic_jobs_are_refused(tmp_path):
    text = "part_of,submit_s,run_s,cpus,width_min\nj,0,5,4,1\n"
    with pytest.raises(sim.InputError, match="an elastic job is one row"):
        read_csv(tmp_path, text)


def test_waits_say_when_a_job_started(tmp_path):
    text = "submit_s,run_s,wait_s\n0,5,2\n10,5,-1\n20,5,\n30,5,0:01:00\n"
    w = read_both(tmp_path, text)
    assert w.jobs["recorded_start_s"].to_pylist() == [2.0, None, None, 90.0]
    assert w.jobs["recorded_finish_s"].to_pylist() == [7.0, None, None, 95.0]
    assert counts(w)["noticed"] == {"wait_s below 0: unknown": 1}


def test_percents_of_cpus_and_gpus(tmp_path):
    text = "submit_s,run_s,cpus,gpus\n0,5,600,50\n"
    w = read_both(tmp_path, text, unit={"cpus": "percent", "gpus": "percent"})
    assert stages(w, "demand_cpu", "demand_gpu") == [(1, 6.0, 0.5)]
    tiny = read_both(tmp_path, "submit_s,run_s,cpus\n0,5,0.00022\n1,5,0.5\n", tasks="job")
    assert tiny.meta["quantum"] == {"cpu": 1e-8}


def test_values_that_mean_others(tmp_path):
    text = "submit_s,run_s,cpus,user,state\n0,5,>24,u,ok?\n5,6,2,-1,ran\n"
    replace = {"cpus": {">24": 30}, "user": {-1: None}, "state": {"ran": "completed"}}
    w = read_both(tmp_path, text, replace=replace, tasks="job")
    assert stages(w, "demand_cpu") == [(1, 30.0), (1, 2.0)]
    assert w.jobs["user"].to_pylist() == ["u", ""]
    assert counts(w)["noticed"] == {
        "cpus >24: 30": 1, "user -1: unknown": 1, "state ran: completed": 1,
    }  # fmt: skip
    assert read_csv(tmp_path, text, replace=replace, state="completed").n_jobs == 1
    with pytest.raises(sim.InputError, match="cpus is '>24'"):
        read_csv(tmp_path, text)
    with pytest.raises(sim.InputError, match="did you mean 'cpus'"):
        read_csv(tmp_path, text, replace={"cpu": {}})
    table = pa.table({"submit_s": [0, 1], "run_s": [5, 5], "cpus": [-1.0, 3.0]})
    pq.write_table(table, tmp_path / "t.parquet")
    w = sim.read_trace("table", tmp_path / "t.parquet", replace={"cpus": {-1: None}}, tasks="job")
    assert counts(w)["filled"] == {"CPUs unknown: 1": 1}
    with pytest.raises(sim.InputError, match="'many' can't stand in a column of double"):
        sim.read_trace("table", tmp_path / "t.parquet", replace={"cpus": {-1: "many"}})


def test_a_file_without_a_header_line(tmp_path):
    text = "7,0,5\n8,2,6\n"
    w = read_csv(tmp_path, text, header=["job_id", "submit_s", "run_s"])
    assert w.jobs["job_id"].to_pylist() == ["7", "8"]
    assert np.asarray(w.jobs["submit_s"]).tolist() == [0.0, 2.0]
    with pytest.raises(sim.InputError, match="field") as caught:
        read_csv(tmp_path, "7,0\n", header=["job_id", "submit_s", "run_s"])
    assert caught.value.line == 1
    with pytest.raises(sim.InputError, match=r"there is no column run_s; the file has a, submit_s"):
        read_csv(tmp_path, text, header=["a", "submit_s", "b"])


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    for number, cpus in enumerate((1, 2.5)):
        table = pa.table({"submit_s": [number], "run_s": [5.0], "cpus": [cpus]})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    w = sim.read_trace("table", tmp_path, tasks="job")
    assert stages(w, "demand_cpu") == [(1, 1.0), (1, 2.5)]
    pq.write_table(pa.table({"submit_s": ["x"], "run_s": [5.0]}), tmp_path / "2.parquet")
    with pytest.raises(sim.InputError, match="other columns than each other"):
        sim.read_trace("table", tmp_path)
