"""A table's columns beyond CPUs: GPUs, memory, nodes, workers, states, dependencies, names."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.check.account import check_account
from sim.traces.table.states import CANCELLED, COMPLETED, OTHER, RUNNING, WAITING, state_codes
from tests.sim.traces.tables import read_both, read_csv, stages, warnings_of


def test_all_columns_find_their_place(tmp_path):
    text = (
        "job_id,submit_s,eligible_s,start_s,end_s,limit_s,cpus,gpus,gpu_type,mem,nodes,state,user,"
        "account,queue,partition,qos,priority,depends_on\n"
        "a,0,0,5,105,600,16,4,A100,64,2,COMPLETED,ann,phys,long,gpu,high,7,\n"
        "b,1,105,106,206,0,8,0,,16,1,FAILED,bob,,,cpu,,,a\n"
    )
    w = read_both(tmp_path, text)
    a, b = w.jobs.to_pylist()
    assert [a[name] for name in ("user", "account", "queue", "partition", "qos", "priority")] == [
        "ann", "phys", "long", "gpu", "high", 7.0,
    ]  # fmt: skip
    assert [b[name] for name in ("user", "account", "queue", "partition", "qos", "priority")] == [
        "bob", "", "default", "cpu", "", 0.0,
    ]  # fmt: skip
    assert (a["min_tasks"], b["min_tasks"]) == (2, 0)
    assert (a["input_mode"], b["input_mode"]) == ("none", "poll")
    assert (b["submit_s"], b["recorded_eligible_s"], b["requested_s"]) == (1.0, 105.0, None)
    assert w.job_edges.to_pylist() == [{"upstream": 0, "downstream": 1, "kind": "hard"}]
    rows_found = stages(w, "demand_cpu", "demand_gpu", "demand_mem", "runs_on")
    assert rows_found == [(2, 8.0, 2.0, 32.0, "A100"), (1, 8.0, 0.0, 16.0, "")]
    account = check_account(w, cpu_s=2400, gpu_s=400, mem_gib_s=8000, jobs=2, tasks=3, edges=1)
    assert all(entry["left_out"] == entry["changed"] == 0 for entry in account.values())


def test_columns_of_a_workload_are_read_under_their_names(tmp_path):
    w = read_both(tmp_path, "submit_s,run_s,cpus,requested_s\n0,60,1,90\n1,60,1,0\n")
    assert w.jobs["requested_s"].to_pylist() == [90.0, None]
    assert warnings_of(w) == ""


def test_checkpoints(tmp_path):
    text = "submit_s,run_s,cpus,checkpoint_s,restart_s\n0,60,1,1800,0:02:00\n1,60,1,0,0\n2,60,1,,\n"
    w = read_both(tmp_path, text)
    assert w.jobs["checkpoint_s"].to_pylist() == [1800.0, 0.0, None]
    assert w.jobs["restart_s"].to_pylist() == [120.0, 0.0, 0.0]
    options = {"columns": {"checkpoint_s": "ckpt"}, "unit": {"checkpoint_s": "min"}}
    text = "submit_s,run_s,cpus,ckpt\n0,60,1,30\n"
    assert read_csv(tmp_path, text, **options).jobs["checkpoint_s"].to_pylist() == [1800.0]


def test_demands_are_shared_out_among_nodes_without_rounding(tmp_path):
    text = "submit_s,run_s,cpus,gpus,mem,nodes\n0,3600,10,5,40G,4\n1,3600,33,0,64,32\n"
    w = read_both(tmp_path, text)
    assert stages(w, "demand_cpu", "demand_gpu", "demand_mem") == [
        (1, 3.0, 2.0, 10.0), (1, 3.0, 1.0, 10.0), (2, 2.0, 1.0, 10.0),
        (1, 2.0, 0.0, 2.0), (31, 1.0, 0.0, 2.0),
    ]  # fmt: skip
    check_account(w, cpu_s=154_800, gpu_s=18_000, tasks=36)
    assert w.meta["quantum"] == {"cpu": 1.0, "gpu": 1.0, "mem": 1e-6}
    half = read_both(tmp_path, "submit_s,run_s,cpus,nodes\n0,60,1.5,2\n", tasks="nodes")
    assert stages(half, "demand_cpu") == [(2, 0.75)]
    assert half.meta["quantum"]["cpu"] == 1e-3


@pytest.mark.parametrize(
    ("tasks", "rows"),
    [
        ("nodes", [(4, 2.0, 1.0, 8.0)]),
        ("gpus", [(4, 2.0, 1.0, 8.0)]),
        ("job", [(1, 8.0, 4.0, 32.0)]),
        ("cpus", [(8, 1.0, None, 4.0)]),
        (None, [(4, 2.0, 1.0, 8.0)]),
    ],
)
def test_ways_to_cut_a_job_into_tasks(tmp_path, tasks, rows):
    text = "submit_s,run_s,cpus,gpus,mem,nodes\n0,100,8,4,32,4\n"
    w = read_both(tmp_path, text, tasks=tasks)
    gpu = ["demand_gpu"] if tasks != "cpus" else []
    rows_found = stages(w, "demand_cpu", *gpu, "demand_mem")
    assert rows_found == [tuple(x for x in row if x is not None) for row in rows]
    assert w.jobs["min_tasks"].to_pylist() == [0 if tasks == "job" else rows[0][0]]
    account = check_account(w, cpu_s=800, gpu_s=400, mem_gib_s=3200)
    left_out = {"GPUs, by trace.tasks=cpus": 400.0} if tasks == "cpus" else {}
    assert account["gpu_s"].get("left_out_by", {}) == left_out
    assert account["gpu_s"].get("by_option", 0.0) == account["gpu_s"]["left_out"]


def test_workers_are_a_gang_each_with_the_demands_of_the_row(tmp_path):
    text = "submit_s,run_s,cpus,gpus,workers\n0,100,15,1,16\n1,100,1.5,0.5,2\n2,100,3,1,\n"
    w = read_both(tmp_path, text)
    assert stages(w, "demand_cpu", "demand_gpu") == [(16, 15.0, 1.0), (2, 1.5, 0.5), (1, 3.0, 1.0)]
    assert w.jobs["min_tasks"].to_pylist() == [16, 2, 0]
    assert w.meta["report"]["filled"] == {"workers unknown: 1": 1}
    check_account(w, cpu_s=24_000 + 300 + 300, gpu_s=1600 + 100 + 100, tasks=18)
    whole = read_both(tmp_path, text.replace("15,1,16", "16,20,16"), demands="job")
    assert stages(whole, "demand_cpu", "demand_gpu")[:2] == [(4, 1.0, 2.0), (12, 1.0, 1.0)]
    check_account(whole, cpu_s=1600 + 150 + 300, gpu_s=2000 + 50 + 100)
    assert read_csv(tmp_path, text, gang=False).jobs["min_tasks"].to_pylist() == [0, 0, 0]


def test_parts_of_cpus_are_shared_out_evenly(tmp_path):
    w = read_both(tmp_path, "submit_s,run_s,cpus\n0,30,1.5\n1,480,10.0\n2,10,0.25\n")
    assert stages(w, "demand_cpu") == [(2, 0.75), (10, 1.0), (1, 0.25)]
    assert w.meta["quantum"] == {"cpu": 1e-3}
    check_account(w, cpu_s=45 + 4800 + 2.5)


def test_gpus_alone_are_the_only_demand(tmp_path):
    text = "job_id,submit_s,run_s,gpus\na,0,60,8\nb,1,60,0\nc,2,60,\nd,3,60,0.5\n"
    w = read_both(tmp_path, text)
    assert w.resources == ("gpu",)
    assert w.jobs["job_id"].to_pylist() == ["a", "d"]
    assert w.meta["report"]["dropped"] == {"no GPUs": 2}
    check_account(w, gpu_s=510, jobs=4)
    slots = read_both(tmp_path, text, tasks="gpus")
    assert stages(slots, "demand_gpu") == [(8, 1.0), (1, 0.5)]
    typed = read_both(tmp_path, "submit_s,run_s,gpus,gpu_type\n0,9,1,N/A\n0,9,1,\n0,9,1,A|B\n")
    assert typed.stages["runs_on"].to_pylist() == ["", "", "A|B"]
    plain = read_both(tmp_path, text, tasks="cpus")
    assert (plain.n_jobs, plain.resources) == (4, ("cpu",))
    check_account(plain, cpu_s=240, gpu_s=510)
    for way in ("nodes", "workers"):
        with pytest.raises(InputError, match=f"tasks={way} needs a column {way}: give trace.col"):
            read_csv(tmp_path, text, tasks=way)


def test_states_tell_which_rows_ran(tmp_path):
    text = (
        "job_id,submit_s,start_s,end_s,state\n"
        "done,0,5,15,COMPLETED\nquick,0,5,5,COMPLETED\nfailed,0,5,15,FAILED\n"
        "killed,0,5,15,CANCELLED by 1001\nvain,0,5,5,CANCELLED\nwaits,0,,,PENDING\n"
        "runs,0,5,15,RUNNING\nopen,0,5,,running\nskipped,0,7,7,skipped\n"
    )
    w = read_both(tmp_path, text)
    assert w.jobs["job_id"].to_pylist() == ["done", "quick", "failed", "killed"]
    assert w.stage_duration_s.tolist() == [10.0, 0.5, 10.0, 10.0]
    assert w.meta["report"]["dropped"] == {
        "never started": 3,
        "still ran when the log ended (censored)": 2,
    }
    assert "22.2 % of the jobs, with 25.0 % of the known work, still ran" in warnings_of(w)
    account = check_account(w, cpu_s=40.0, jobs=9)
    assert account["cpu_s"]["changed_by"] == {"0 s becomes 0.5 s": -0.5}
    completed = read_both(tmp_path, text, state="completed")
    assert completed.jobs["job_id"].to_pylist() == ["done", "quick"]
    entry = check_account(completed, cpu_s=40.0)["cpu_s"]
    assert entry["left_out_by"]["not completed"] == entry["by_option"] == 20.0


def test_completed_jobs_need_states(tmp_path):
    with pytest.raises(InputError, match="state=completed needs a column state") as caught:
        read_csv(tmp_path, "submit_s,run_s\n0,60\n", state="completed")
    assert caught.value.file is not None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (COMPLETED, "COMPLETED,Completed,success,SUCCEEDED,Pass,DONE,FINISHED,CD,ok"),
        (CANCELLED, "CANCELLED,CANCELLED by 7,Killed,ABORTED,canceled"),
        (RUNNING, "RUNNING,running,R,SUSPENDED,COMPLETING,in progress"),
        (WAITING, "PENDING,queued,upstream_failed,skipped,PENDING_ARGS_AVAIL,not started"),
        (OTHER, "FAILED,TIMEOUT,NODE_FAIL,OUT_OF_MEMORY,error,CACHED,rerun,"),
    ],
)
def test_words_of_states(code, words):
    assert state_codes(pa.array(words.split(","))).tolist() == [code] * len(words.split(","))
    assert state_codes(pa.nulls(1, pa.string())).tolist() == [OTHER]


CHAIN = (
    "job_id,submit_s,eligible_s,start_s,end_s,cpus,depends_on\n"
    "1,0,0,0,7200,4,\n2,1,7200,7201,14401,4,{}\n3,2,14401,14402,21602,4,{}\n"
)


def finishes(workload):
    run = sim.simulate(workload, sim.Cluster.slots(12), policies.build("fifo"), seed=0)
    return run.jobs["finish_s"].to_pylist()


def test_a_running_job_with_an_end_before_the_logs_has_ended(tmp_path):
    rows = "job_id,submit_s,start_s,end_s,state\na,0,1,5,RUNNING\nb,2,3,9,FAILED\nc,3,4,9,RUNNING\n"
    w = read_both(tmp_path, rows + "d,4,5,5000,RUNNING\n")  # an end that is only expected
    assert w.jobs["job_id"].to_pylist() == ["a", "b"]
    assert w.meta["report"]["dropped"] == {"still ran when the log ended (censored)": 2}


def test_jobs_are_released_when_eligible_or_when_submitted(tmp_path):
    text = CHAIN.format("", "")
    w = read_both(tmp_path, text)
    assert w.jobs["submit_s"].to_pylist() == [0.0, 7200.0, 14_401.0]
    assert w.meta["report"]["noticed"] == {"released when it was eligible, after its submission": 2}
    assert finishes(w) == [7200.0, 14_400.0, 21_601.0]
    early = read_both(tmp_path, text, release="submit")
    assert early.jobs["submit_s"].to_pylist() == [0.0, 1.0, 2.0]
    assert early.jobs["recorded_eligible_s"].to_pylist() == [0.0, 7200.0, 14_401.0]
    assert finishes(early)[-1] == 7202.0


def test_a_dependency_takes_the_place_of_the_time_it_took(tmp_path):
    w = read_both(tmp_path, CHAIN.format("afterok:1", "afterok:2"))
    assert w.jobs["submit_s"].to_pylist() == [0.0, 1.0, 2.0]
    assert w.jobs["input_mode"].to_pylist() == ["none", "poll", "poll"]
    assert finishes(w) == [7200.0, 14_400.0, 21_600.0]
    begin = CHAIN.format("1", "2").replace("2,1,7200,7201", "2,1,7300,7301")
    assert read_both(tmp_path, begin).jobs["submit_s"].to_pylist() == [0.0, 2.0, 7300.0]


@pytest.mark.parametrize(
    "text",
    ["a;b", "a|b", "a b", "a:b", "afterok:a:b", "afterok:a?afterany:b(unfulfilled)", "['a' 'b']"],
)
def test_ids_are_separated_in_many_ways(tmp_path, text):
    rows = f"job_id,submit_s,run_s,depends_on\na,0,5,-\nb,1,5,none\nc,2,5,{text}\n"
    w = read_both(tmp_path, rows)
    assert w.job_edges["upstream"].to_pylist() == [0, 1]
    check_account(w, edges=2)


def test_dependencies_that_are_left_out_are_counted_by_reason(tmp_path):
    rows = (
        "job_id,submit_s,run_s,depends_on\n"
        "a,0,5,zz\na:1,1,5,after:a\nb,2,5,b;a;a\nc,3,,a\nd,4,5,c;a:1\ne,5,5,f\nf,6,5,e\n"
    )
    w = read_both(tmp_path, rows)
    ids = w.jobs["job_id"].to_pylist()
    edges = w.job_edges.to_pylist()
    assert [(ids[e["upstream"]], ids[e["downstream"]]) for e in edges] == [
        ("a", "b"), ("a:1", "d"), ("e", "f"),
    ]  # fmt: skip
    account = check_account(w, edges=10)
    assert account["edges"]["left_out_by"] == {
        "on a job that is not in the log": 1.0,
        "of a kind that waits for no end": 1.0,
        "named twice, or on the job itself": 2.0,
        "on a row that is left out, or of one": 2.0,
        "on a later job, in a circle": 1.0,
    }


def test_of_jobs_with_one_id_the_last_before_is_waited_for(tmp_path):
    rows = "job_id,submit_s,run_s,depends_on\na,0,5,\na,1,6,\nb,2,5,a\na,3,7,a\n"
    w = read_both(tmp_path, rows)
    assert w.jobs["job_id"].to_pylist() == ["a", "a#2", "b", "a#3"]
    assert [(e["upstream"], e["downstream"]) for e in w.job_edges.to_pylist()] == [(1, 2), (1, 3)]


def test_rows_are_repeated_only_if_all_columns_are_equal(tmp_path):
    rows = "job_id,submit_s,run_s,part\na,0,60,0\na,0,60,1\na,0,60,1\nb,0,60,1\nb,0,60,1\n"
    w = read_both(tmp_path, rows)
    assert w.jobs["job_id"].to_pylist() == ["a", "a#2", "b"]
    assert w.meta["report"]["dropped"] == {"repeated row": 2}
    assert check_account(w, cpu_s=300)["cpu_s"]["left_out_by"] == {"repeated row": 120.0}
    assert read_both(tmp_path, rows.replace("job_id,", "x,")).n_jobs == 5  # nothing tells


def test_parquet_may_have_lists_of_ids(tmp_path):
    table = pa.table(
        {"job_id": [7, 8, 9], "submit_s": [0, 1, 2], "run_s": [5, 5, 5],
         "depends_on": pa.array([None, [], [7, 8]], pa.list_(pa.int64()))}
    )  # fmt: skip
    pq.write_table(table, tmp_path / "t.parquet")
    w = sim.read_trace("table", tmp_path / "t.parquet")
    assert w.job_edges["upstream"].to_pylist() == [0, 1]


def test_a_job_that_contains_others_is_left_out_and_told(tmp_path):
    text = (
        "job_id,parent_job_id,submit_s,run_s,cpus\n"
        "s,,0,600,10\ns_0,s,0,480,10\ns_1,s,480,120,10\nq,gone,5,30,1.5\nx,x,6,1,1\n"
    )
    w = read_both(tmp_path, text)
    assert w.jobs["job_id"].to_pylist() == ["s_0", "q", "x", "s_1"]
    entry = check_account(w, cpu_s=12_046)["cpu_s"]
    assert entry["left_out_by"] == {"contains other jobs, whose work is counted there": 6000.0}
    assert entry["by_option"] == 6000.0
    assert read_both(tmp_path, text, columns={"parent_id": None}).n_jobs == 5


def test_priorities_that_are_texts_name_the_way_out(tmp_path):
    text = "submit_s,run_s,priority\n0,60,INTERACTIVE\n1,60,BATCH\n"
    with pytest.raises(InputError, match=r"trace\.columns\.priority=null leaves the"):
        read_both(tmp_path, text)
    with pytest.raises(InputError, match=r"'BATCH' \(1 job\), 'INTERACTIVE' \(1 job\); give"):
        read_csv(tmp_path, text, on_bad_row="skip")
    w = read_both(tmp_path, text, columns={"priority": None, "submit_s": "submit_s"})
    assert w.jobs["priority"].to_pylist() == [0.0, 0.0]


def test_priorities_in_words_have_the_numbers_that_are_chosen(tmp_path):
    text = "submit_s,run_s,priority\n0,60,High\n1,60,low prio\n2,60,-\n3,60,2.5\n4,60,high\n"
    w = read_both(tmp_path, text, priorities={"high": 10, "low prio": -1})
    assert w.jobs["priority"].to_pylist() == [10.0, -1.0, 0.0, 2.5, 10.0]
    with pytest.raises(InputError, match=r"'low prio' \(1 job\); give .*\{\"low prio\": N\}"):
        read_both(tmp_path, text, priorities={"HIGH": 10})
    with pytest.raises(InputError, match=r"'hihg'; did you mean 'high'"):
        read_csv(tmp_path, text, priorities={"high": 1, "low prio": 0, "hihg": 2})
    with pytest.raises(InputError, match="priority is '%'"):
        read_csv(tmp_path, "submit_s,run_s,priority\n0,60,%\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"eventType": "START", "run": {}}\n{}', "OpenLineage: python -m sim lineage"),
        ('{"Event":"SparkListenerLogStart"}', "trace=spark_eventlog"),
        ('{"name": "x", "workflow": {}}', "trace=wfcommons"),
        ('{"apiVersion": "argoproj.io/v1alpha1"}', "trace=argo"),
        ('{"apiVersion": "v1", "kind": "List"}', "trace=kubernetes"),
        ('[{"task_id": "a", "required_resources": {}}]', "trace=ray"),
        ('[{"a": 1}, {"b": ' + '"x' * 40_000, "write it as CSV with a row a job"),
        ("{\n", "write it as CSV"),
    ],
)
def test_json_is_named_with_what_reads_it(tmp_path, text, words):
    with pytest.raises(InputError, match="the file is JSON, no table") as caught:
        read_csv(tmp_path, text)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_long_header_is_cut(tmp_path):
    with pytest.raises(InputError, match=r"380 more: give trace\.columns\.submit_s=") as caught:
        read_csv(tmp_path, ",".join(f"column{i}{'x' * 150}" for i in range(400)) + "\n")
    assert len(str(caught.value)) < 1500


def test_quoted_line_ends(tmp_path):
    quoted = 'job_id,note,submit_s,run_s,cpus\na,"one\ntwo, x",0,60,1\nb,"x, y",5,60,1\n'
    w = read_csv(tmp_path, quoted)
    check_account(w, cpu_s=120.0, jobs=2)
    with pytest.raises(InputError) as caught:
        read_csv(tmp_path, quoted + 'c,"\n\n",6,60,-1\n')
    assert caught.value.line == 5


def test_texts_that_hold_the_delimiter_are_put_right(tmp_path):
    text = "job_id,name,submit_s,run_s,cpus\na,grid, search,0,60,1\nb,x,5,60,1\n"
    w = read_csv(tmp_path, text)
    check_account(w, cpu_s=120.0, jobs=2)
    assert w.meta["report"]["noticed"] == {"a ',' in a text: its fields are joined": 1}
    unnamed = read_csv(tmp_path, ",,column 1,submit_s,run_s\n1,2,3,0,60\nx,y,z,5,6\n")
    assert unnamed.stage_duration_s.tolist() == [60.0, 6.0]


def test_a_byte_order_mark_and_utf_16(tmp_path):
    text = "job_id;submit_s;run_s;cpus\na;0;60;1\n"
    for encoding in ("utf-8-sig", "utf-16", "utf-16-le"):
        (tmp_path / "jobs.csv").write_bytes(text.encode(encoding))
        w = sim.read_trace("table", tmp_path / "jobs.csv")
        assert w.jobs["job_id"].to_pylist() == ["a"], encoding


def test_large_files_keep_line_numbers_behind_quoted_line_ends(tmp_path):
    rows = "".join(f'{i},"two\nlines",{i},60\n' for i in range(200_000))
    with pytest.raises(InputError) as caught:
        read_csv(tmp_path, f"job_id,note,submit_s,run_s\n{rows}x,,soon,60\n")
    assert caught.value.line == 400_002
    w = read_csv(tmp_path, f"job_id,note,submit_s,run_s\n{rows}")
    assert w.n_jobs == 200_000
    assert np.allclose(w.stage_duration_s, 60.0)


def test_elastic_jobs(tmp_path):
    text = (
        "submit_s,run_s,workers,cpus,width_min,width_max,speedup,reconfigure_s\n"
        "0,60,2,1,1,4,1:1 2:2 4:3,30\n1,60,2,1,,,,\n2,60,3,1,2,,,\n"
    )
    w = read_csv(tmp_path, text, gang=True)
    columns = w.columns
    assert columns.job_width_min.tolist() == [1, 0, 2]
    assert columns.job_min_tasks.tolist() == [1, 2, 2]
    assert columns.job_n_tasks.tolist() == [4, 2, 3]
    assert columns.stage_max_s.tolist() == [40.0, 60.0, 60.0]  # at 4: 60 x 2 / 3
    assert columns.job_reconfigure.tolist() == [30.0, 0.0, 0.0]
    assert [columns.speedups[k] for k in columns.job_speedup] == ["1:1 2:2 4:3", "", ""]


def test_waits_count_from_the_inputs_or_from_the_submission(tmp_path):
    """On one slot b waits for a, which ends at 60: it waits 0 or 55 s."""
    rows = "job_id,submit_s,start_s,end_s,depends_on\na,0,0,60,\nb,5,60,70,a\n"
    file = tmp_path / "log.csv"
    file.write_text(rows)
    for waits_from, submit_s in (("inputs", 60.0), ("submit", 5.0)):
        workload = sim.read_trace("table", file, waits_from=waits_from)
        result = sim.simulate(workload, sim.Cluster.slots(1), policies.build("fifo"))
        assert (result.job_submit[1], result.job_start[1]) == (submit_s, 60.0)
        has_notice = any("waits_from=submit" in text for text in workload.meta["report"]["noticed"])
        assert has_notice == (waits_from == "inputs")


def test_a_gang_larger_than_the_cluster_names_what_helps(tmp_path):
    rows = "submit_s,run_s,cpus\n0,5,2\n1,5,40\n2,5,30\n"
    w = read_both(tmp_path, rows)
    message = r"room for only 8 of them.*of 3 jobs 2 are so large.*trace\.gang=false.*No policy"
    for fit in ("strict", "skip"):
        with pytest.raises(InputError, match=message):
            sim.simulate(w, sim.Cluster.slots(8), policies.build("fifo", fit=fit))
    loose = read_both(tmp_path, rows, gang=False)
    run = sim.simulate(loose, sim.Cluster.slots(8), policies.build("fifo"), seed=0)
    assert not run.job_failed.any()
