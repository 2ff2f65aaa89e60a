"""Slurm's accounting as JSON, of sacct and of slurmrestd."""

from __future__ import annotations

import copy
import json

import pytest

import sim
from sim.base.errors import InputError
from sim.check.account import check_account

START = 1_772_438_400
OLD = {
    "account": "lab", "allocation_nodes": 2,
    "array": {"job_id": 0, "limits": {"max": {"running": {"tasks": 0}}}, "task": None,
              "task_id": None},
    "association": {"account": "lab", "cluster": "north", "partition": None, "user": "ann"},
    "cluster": "north", "het": {"job_id": 0, "job_offset": None}, "job_id": 17, "name": "train",
    "nodes": "n[1-2]", "partition": "gpu", "priority": 100, "qos": "normal",
    "required": {"CPUs": 8, "memory": 4000},
    "state": {"current": "COMPLETED", "reason": "None"},
    "steps": [{"state": "COMPLETED"}],
    "time": {"elapsed": 600, "eligible": START + 5, "end": START + 700, "start": START + 100,
             "submission": START, "suspended": 0, "limit": 30},
    "tres": {
        "allocated": [
            {"type": "cpu", "name": "", "id": 1, "count": 8},
            {"type": "mem", "name": "", "id": 2, "count": 8192},
            {"type": "node", "name": "", "id": 4, "count": 2},
            {"type": "gres", "name": "gpu", "id": 1001, "count": 4},
            {"type": "gres", "name": "gpu:a100", "id": 1002, "count": 4},
            {"type": "license", "name": "matlab", "id": 1003, "count": 2},
        ],
        "requested": [{"type": "cpu", "name": "", "id": 1, "count": 8}],
    },
    "user": "ann",
}  # fmt: skip


def number(value, *, infinite=False):
    return {"set": value is not None, "infinite": infinite, "number": value or 0}


def newer(job):
    """Return the job as newer versions print it."""
    job = copy.deepcopy(job)
    job["state"]["current"] = [job["state"]["current"]]
    job["priority"] = number(job["priority"])
    job["array"]["task_id"] = number(job["array"]["task_id"])
    job["het"]["job_offset"] = number(job["het"]["job_offset"])
    job["time"]["limit"] = number(job["time"]["limit"])
    job["time"]["end"] = number(job["time"]["end"])
    job["required"] = {"CPUs": 8, "memory_per_cpu": number(None), "memory_per_node": number(2000)}
    return job


def changed(job, **changes):
    job = copy.deepcopy(job)
    for path, value in changes.items():
        *parts, last = path.split("__")
        inner = job
        for part in parts:
            inner = inner[part]
        inner[last] = value
    return job


def load(path, *jobs, **options):
    file = path / "jobs.json"
    file.write_text(json.dumps({"meta": {"plugin": {}}, "jobs": [*jobs], "errors": []}, indent=1))
    return sim.read_trace("sacct", file, **options)


@pytest.mark.parametrize("form", [dict, newer])
def test_a_job_is_that_of_the_text(tmp_path, form):
    w = load(tmp_path, form(OLD), tasks="nodes")
    (job,) = w.jobs.to_pylist()
    assert job == {
        "job_id": "17", "submit_s": 0.0, "template": "train", "user": "ann", "queue": "gpu",
        "priority": 100.0, "deadline_s": None, "min_tasks": 2, "input_mode": "none",
        "requested_s": 1800.0, "recorded_start_s": 95.0, "recorded_finish_s": 695.0,
        "recorded_eligible_s": 0.0, "recorded_submit_s": -5.0, "account": "lab",
        "partition": "gpu", "qos": "normal", "n_nodes": 2, "license_matlab": 2,
    }  # fmt: skip
    (stage,) = w.stages.to_pylist()
    assert (stage["n_tasks"], stage["demand_cpu"], stage["demand_gpu"]) == (2, 4.0, 2.0)
    assert (stage["demand_mem"], stage["gpu_type"], stage["node_list"]) == (4.0, "a100", "n[1-2]")
    check_account(w, cpu_s=4800.0, gpu_s=2400.0, mem_gib_s=4800.0)
    (warning,) = w.meta["report"]["warnings"]
    assert warning.startswith("1 of 1 jobs asked for licences (matlab: at most 2 in use)")
    text = tmp_path / "log.txt"
    text.write_text(
        "JobID|JobName|User|Account|Partition|QOS|Priority|Submit|Eligible|Start|End|ElapsedRaw|"
        "TimelimitRaw|State|NNodes|AllocTRES|NodeList\n"
        f"17|train|ann|lab|gpu|normal|100|{START}|{START + 5}|{START + 100}|{START + 700}|600|30|"
        "COMPLETED|2|cpu=8,mem=8192M,node=2,gres/gpu=4,gres/gpu:a100=4,license/matlab=2|n[1-2]\n"
    )
    same = sim.read_trace("sacct", text, tasks="nodes")
    assert same.jobs.equals(w.jobs)
    assert same.stages.equals(w.stages)


@pytest.mark.parametrize("form", [dict, newer])
def test_arrays_parts_and_jobs_that_did_not_run(tmp_path, form):
    single = {"tres__allocated": [{"type": "cpu", "name": "", "id": 1, "count": 1}]}
    jobs = [
        changed(OLD, job_id=21, array__job_id=20, array__task_id=1, **single),
        changed(OLD, job_id=22, array__job_id=20, array__task_id=0, **single),
        changed(OLD, job_id=20, array__job_id=20, array__task="3-9%2", time__start=0,
                state__current="PENDING"),
        changed(OLD, job_id=30, het__job_id=30, het__job_offset=0, **single),
        changed(OLD, job_id=31, het__job_id=30, het__job_offset=1, **single),
        changed(OLD, job_id=40, time__end=0, state__current="RUNNING"),
        changed(OLD, job_id=41, time__start=0, state__current="CANCELLED"),
    ]  # fmt: skip
    w = load(tmp_path, *[form(job) for job in jobs])
    assert w.jobs["job_id"].to_pylist() == ["20", "30"]
    assert w.jobs["min_tasks"].to_pylist() == [0, 2]
    assert w.meta["report"]["dropped"] == {
        "censored: waiting when the log was written": 1,
        "censored: not ended when the log was written": 1,
        "never started": 1,
    }
    third = changed(OLD, job_id=23, array__job_id=20, array__task_id=2, **single)
    throttled = load(tmp_path, *[form(job) for job in [*jobs, third]])
    assert sorted(throttled.jobs["array"].to_pylist()) == ["", "20", "20", "20"]
    assert sorted(throttled.jobs["throttle"].to_pylist()) == [0, 2, 2, 2]
    check_account(w, cpu_s=4 * 600.0 + 8 * 600.0)


@pytest.mark.parametrize("limit", [{"set": True, "infinite": True, "number": 0}, 0, None])
def test_no_limit(tmp_path, limit):
    w = load(tmp_path, changed(OLD, time__limit=limit))
    assert w.jobs["requested_s"].to_pylist() == [None]


def test_dependencies_of_the_command(tmp_path):
    second = changed(OLD, job_id=18, submit_line="sbatch -d afterok:17 job.sh")
    w = load(tmp_path, OLD, second)
    assert w.jobs["job_id"].to_pylist() == ["18", "17"]  # 18 waits for 17 from its submission on
    assert w.job_edges.to_pylist() == [{"upstream": 1, "downstream": 0, "kind": "afterok"}]


@pytest.mark.parametrize(
    ("changes", "rule", "words"),
    [
        ({"job_id": None}, "missing value", "job 2 of the list: job_id is missing"),
        (
            {"time__start": "soon"},
            "number out of range",
            "time.start is 'soon'; it must be a whole",
        ),
        ({"time__end": -5}, "number out of range", "time.end is -5"),
        ({"time": 7}, "wrong type", "must be an object, not 7"),
        ({"user": 1000}, "wrong type", "user is 1000; it must be a text"),
        ({"tres__allocated": {}}, "wrong type", "tres.allocated must be a list"),
    ],
)
def test_bad_jobs(tmp_path, changes, rule, words):
    bad = changed(OLD, **changes)
    with pytest.raises(InputError) as caught:
        load(tmp_path, OLD, bad)
    assert caught.value.rule == rule
    assert words in str(caught.value)
    w = load(tmp_path, OLD, bad, on_bad_row="skip")
    assert w.meta["report"]["bad_rows"] == {rule: 1}
    account = check_account(w, jobs=2)
    assert account["jobs"]["left_out"] == 1
    if "user" in changes:  # its work is known
        assert account["cpu_s"]["left_out"] == 4800.0
    with pytest.raises(InputError, match="no job is left"):
        load(tmp_path, bad, on_bad_row="skip")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"meta": {}}', "there is no list of jobs; write it with sacct --allusers --json"),
        ("{", "invalid JSON from here on"),
        ('{"jobs": [{"job_id": 3, "submit_time": 5}]}', "jobs of squeue or scontrol --json"),
        ('{"jobs": []}', "the trace has no rows"),
    ],
)
def test_other_json(tmp_path, content, words):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(InputError, match=words):
        sim.read_trace("sacct", tmp_path / "x.json")


def test_answers_in_a_row(tmp_path):
    answers = [json.dumps({"jobs": [changed(OLD, job_id=i)]}) for i in (1, 2)]
    (tmp_path / "two.json").write_text("\n".join(answers))
    assert sim.read_trace("sacct", tmp_path / "two.json").n_jobs == 2
    (tmp_path / "list.json").write_text(json.dumps([OLD]))
    assert sim.read_trace("sacct", tmp_path / "list.json").n_jobs == 1
