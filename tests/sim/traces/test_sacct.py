"""Slurm's accounting."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from sim.base.errors import InputError

HEAD = "JobID|JobName|User|Account|Partition|Submit|Start|End|Timelimit|State|AllocCPUS|NNodes"
DAY = "2026-03-01T"


def record(job="17", **changes):
    values = {
        "JobID": job, "JobName": "x", "User": "ann", "Account": "lab", "Partition": "batch",
        "Submit": DAY + "09:30:00", "Start": DAY + "09:30:10", "End": DAY + "09:31:10",
        "Timelimit": "02:00:00", "State": "COMPLETED", "AllocCPUS": 1, "NNodes": 1, **changes,
    }  # fmt: skip
    return "|".join(str(value) for value in values.values())


def load(path, *rows, head=HEAD, **options):
    file = path / "log.txt"
    file.write_text("\n".join([head, *rows]) + "\n")
    return sim.read_trace("sacct", file, **options)


def test_a_job_is_a_gang_and_its_steps_are_in_it(tmp_path):
    w = load(
        tmp_path,
        record("17", AllocCPUS=8, NNodes=2, JobName='say "hi'),
        record("17.batch", User="", JobName="batch"),
        record("17.0", User="", AllocCPUS=8),
        record("9", Submit=DAY + "09:29:00", Timelimit="UNLIMITED", User="", AllocCPUS=2),
    )
    common = {"deadline_s": None, "priority": 0.0, "queue": "batch", "input_mode": "none",
              "recorded_start_s": 70.0, "recorded_finish_s": 130.0, "account": "lab",
              "partition": "batch"}  # fmt: skip
    assert w.jobs.to_pylist() == [
        {"job_id": "9", "submit_s": 0.0, "template": "x", "user": "", "min_tasks": 2,
         "requested_s": None, "n_nodes": 1, **common},
        {"job_id": "17", "submit_s": 60.0, "template": 'say "hi', "user": "ann", "min_tasks": 8,
         "requested_s": 7200.0, "n_nodes": 2, **common},
    ]  # fmt: skip
    assert w.stages["n_tasks"].to_pylist() == [2, 8]
    assert "columns_unused" not in w.meta["report"]
    assert set(w.tasks["duration_s"].to_pylist()) == {60.0}
    report = w.meta["report"]
    assert report["dropped"] == {"a step of a job": 2}
    assert report["filled"] == {"User unknown: ''": 1}
    assert (report["rows"], report["jobs"]) == (4, 2)
    assert load(tmp_path, record(AllocCPUS=8), gang=False).jobs["min_tasks"].to_pylist() == [0]


def test_an_array_of_tasks_is_one_job(tmp_path):
    rows = [record(f"18_{i}", End=f"{DAY}09:3{i}:10") for i in (1, 2)]
    rows += [record("18_[3-9%2]", Start="Unknown", End="Unknown", State="PENDING")]
    w = load(tmp_path, *rows)
    assert w.jobs["job_id"].to_pylist() == ["18"]
    assert w.jobs["min_tasks"].to_pylist() == [0]
    assert w.stages["n_tasks"].to_pylist() == [1, 1]
    assert w.tasks["duration_s"].to_pylist() == [60.0, 120.0]
    assert w.meta["report"]["dropped"] == {"censored: waiting when the log was written": 1}
    assert w.meta["report"]["noticed"] == {}  # the throttle, 2, holds none of two
    apart = load(tmp_path, *rows, arrays="jobs")
    assert apart.jobs["job_id"].to_pylist() == ["18_1", "18_2"]
    rigid = load(tmp_path, *[record(f"18_{i}", AllocCPUS=4) for i in (1, 2)], record("19+0"))
    assert rigid.jobs["job_id"].to_pylist() == ["18_1", "18_2", "19+0"]
    assert rigid.jobs["min_tasks"].to_pylist() == [4, 4, 1]
    assert rigid.meta["report"]["noticed"] == {
        "part of a heterogeneous job: a separate job": 1,
        "parallel element of an array: a separate job": 2,
    }


def test_parts_of_a_heterogeneous_job_are_stages_of_unequal_tasks(tmp_path):
    """Tasks are nodes: two of 4 CPUs and one of 1 start together; of two partitions, apart."""
    rows = [record("19+0", AllocCPUS=8, NNodes=2), record("19+1"), record("20+0")]
    w = load(tmp_path, *rows, record("20+1", Partition="other"), tasks="nodes")
    assert w.jobs["job_id"].to_pylist() == ["19", "20+0", "20+1"]
    assert w.jobs["min_tasks"].to_pylist() == [3, 1, 1]
    assert w.stages["demand_cpu"].to_pylist() == [4.0, 1.0, 1.0, 1.0]
    nodes = [{"cpu": 4, "count": 2}, {"cpu": 1}]
    result = sim.simulate(w, sim.Cluster.mixed(nodes), policies.build("easy"), record="tasks")
    assert result.task_machine.tolist()[:3] == [0, 1, 2]


def test_jobs_that_did_not_run_are_counted(tmp_path):
    rows = [
        record("1", Start="Unknown", State="CANCELLED by 7"),
        record("2", State="RUNNING", End="Unknown"),
        record("3", End="Unknown", State="FAILED"),
        record("4", Submit="Unknown"),
        record("5", State="REQUEUED"),
        record("6", State="NODE_FAIL"),
        record("6", Submit=DAY + "09:31:11", Start=DAY + "09:40:00", End=DAY + "09:41:00"),
        record("7", End=DAY + "09:30:10"),
    ]
    w = load(tmp_path, *rows)
    assert w.meta["report"]["dropped"] == {
        "censored: not ended when the log was written": 1,
        "submission unknown": 1,
        "never started": 1,
        "run time unknown": 1,
        "an earlier run of a requeued job": 1,
    }
    assert w.jobs["job_id"].to_pylist() == ["5", "6", "7"]
    assert w.tasks["duration_s"].to_pylist() == [60.0, 60.0, 0.5]
    assert w.meta["report"]["filled"] == {"0 s becomes 0.5 s": 1}
    done = load(tmp_path, *rows, state="completed")
    assert done.meta["report"]["dropped"]["not completed"] == 1
    assert done.jobs["job_id"].to_pylist() == ["6", "7"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1-02:03:04", 93784.0),
        ("02:03:04", 7384.0),
        ("03:04", 184.0),
        ("00:01.500", None),
        ("1-02", 93600.0),
        ("1-02:03", 93780.0),
        ("90", 5400.0),
        ("Partition_Limit", None),
        ("", None),
    ],
)
def test_limits(tmp_path, text, seconds):
    if text == "00:01.500":
        w = load(tmp_path, "1|0|0|00:01.500", head="JobID|Submit|Start|Elapsed")
        assert w.tasks["duration_s"].to_pylist() == [1.5]
        return
    w = load(tmp_path, record(Timelimit=text))
    assert w.jobs["requested_s"].to_pylist() == [seconds]


def test_few_columns_suffice_and_elapsed_overrides_start_and_end(tmp_path):
    w = load(tmp_path, "1|100|130|00:00:20", head="JobID|Submit|Start|Elapsed")
    assert w.tasks["duration_s"].to_pylist() == [20.0]
    assert w.meta["report"]["filled"] == {"CPUs unknown: 1": 1}
    assert w.jobs["queue"].to_pylist() == ["default"]
    w = load(
        tmp_path,
        "1|100|130|500|25|90|7|",
        head="JobID|Submit|Start|End|ElapsedRaw|TimelimitRaw|NCPUS|",
    )
    assert w.tasks["duration_s"].to_pylist() == [25.0] * 7
    assert w.jobs["requested_s"].to_pylist() == [5400.0]


@pytest.mark.parametrize(
    ("memory", "tres", "gib", "gpus"),
    [
        ("4000Mn", "", 4000 / 1024, 0.0),
        ("2Gc", "", 8.0, 0.0),
        ("16G", "", 8.0, 0.0),
        ("?", "", 0.0, 0.0),
        ("1G", "billing=8,cpu=8,gres/gpu=4,gres/gpu:a100=4,mem=64G,node=2", 32.0, 2.0),
        ("", "cpu=8,mem=2048M,node=2", 1.0, 0.0),
    ],
)
def test_a_task_per_node_demands_the_jobs_share_of_the_node(tmp_path, memory, tres, gib, gpus):
    row = record(AllocCPUS=8, NNodes=2) + f"|{memory}|{tres}"
    w = load(tmp_path, row, head=HEAD + "|ReqMem|AllocTRES", tasks="nodes")
    (stage,) = w.stages.to_pylist()
    assert (stage["n_tasks"], stage["demand_cpu"], stage["demand_gpu"]) == (2, 4.0, gpus)
    assert stage["demand_mem"] == pytest.approx(gib)
    assert w.jobs["min_tasks"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("rows", "head", "rule", "line"),
    [
        (["1|2|3"], "1|2|3", "no header", 1),
        (["1|2"], "JobID|Submit", "missing column", 1),
        ([record(), record(Submit="yesterday")], HEAD, "text of another form", 3),
        ([record(Timelimit="soon")], HEAD, "text of another form", 2),
        ([record(AllocCPUS="four")], HEAD, "text in a number", 2),
        ([record() + "|x"], HEAD, "wrong number of fields", 2),
        ([record(State="RUNNING")], HEAD, "no job left", 1),
        (["1|2|3|4|5"], "JobID|Submit|Start|End|End", "no header", 1),
    ],
)
def test_errors_name_line_and_rule(tmp_path, rows, head, rule, line):
    with pytest.raises(InputError) as caught:
        load(tmp_path, *rows, head=head)
    assert (caught.value.rule, caught.value.line) == (rule, line)
    assert caught.value.file is not None


def test_bad_rows_are_counted_where_they_are_skipped(tmp_path):
    w = load(tmp_path, record(), record(Submit="yesterday"), on_bad_row="skip")
    assert w.meta["report"]["bad_rows"] == {"text of another form": 1}
    assert w.n_jobs == 1


def test_gangs_start_as_a_whole(tmp_path):
    w = load(tmp_path, record(AllocCPUS=2), record("18", AllocCPUS=4))
    result = sim.simulate(w, sim.Cluster.slots(4), policies.build("fifo"))
    assert np.diff(np.sort(result.jobs["start_s"].to_numpy())) == [60.0]
