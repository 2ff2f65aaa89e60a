"""Records of Slurm with one id: copies, runs and sizes of one job, or several jobs."""

from __future__ import annotations

import pytest

import policies
import sim
from sim.check.account import check_account
from tests.sim.traces.test_sacct import DAY, HEAD, load, record

FIRST = {"Start": DAY + "10:00:00", "End": DAY + "11:00:00"}
LATER = {"Submit": DAY + "11:00:01", "Start": DAY + "11:30:00", "End": DAY + "12:30:00"}
SHARED = "a job whose id another job has too"


def ids(workload):
    return workload.jobs["job_id"].to_pylist()


def report(workload):
    return workload.meta["report"]


@pytest.mark.parametrize(
    "state", ["REQUEUED", "PREEMPTED", "NODE_FAIL", "FAILED", "CANCELLED by 0"]
)
def test_runs_of_a_job(tmp_path, state):
    w = load(tmp_path, record(**FIRST, State=state, AllocCPUS=2), record(**LATER, AllocCPUS=3))
    assert ids(w) == ["17"]
    rule = "lost by preemption" if state == "PREEMPTED" else "an earlier run of a requeued job"
    assert report(w)["dropped"] == {rule: 1}
    account = check_account(w, cpu_s=5 * 3600.0, jobs=1)
    assert account["cpu_s"]["left_out_by"] == {rule: 7200.0}
    (job,) = w.jobs.to_pylist()
    assert (job["recorded_start_s"], job["recorded_finish_s"]) == (1800.0, 10_800.0)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({"State": "COMPLETED"}, {}),
        ({"State": "REQUEUED"}, {"User": "bob"}),
        ({"State": "REQUEUED"}, {"JobName": "other"}),
        ({"State": "NODE_FAIL", "End": DAY + "11:45:00"}, {}),  # both ran at one time
        ({"State": "FAILED"}, {"Submit": DAY + "10:59:00"}),
        (
            {"State": "PREEMPTED"},
            {"Submit": "2026-03-09T10:00:00", "Start": "2026-03-09T10:00:00",
             "End": "2026-03-09T11:00:00"},
        ),
    ],
)  # fmt: skip
def test_other_jobs_with_the_id(tmp_path, first, later):
    w = load(tmp_path, record(**(FIRST | first)), record(**(LATER | later)))
    assert w.n_jobs == 2
    assert len(set(ids(w))) == 2
    assert all(name.startswith("17@2026-03-0") for name in ids(w))
    assert report(w)["dropped"] == {}
    assert report(w)["noticed"] == {SHARED: 2}
    check_account(w, jobs=2)


def test_a_job_that_is_preempted_and_never_runs_again(tmp_path):
    w = load(
        tmp_path,
        record(**FIRST, State="PREEMPTED"),
        record(Submit=DAY + "11:00:01", Start="Unknown", State="CANCELLED by 7"),
    )
    assert ids(w) == ["17"]
    assert report(w)["dropped"] == {"never started": 1}
    assert w.stage_duration_s.tolist() == [3600.0]


def test_runs_of_completed_jobs_alone(tmp_path):
    rows = [record(**FIRST, State="PREEMPTED"), record(**LATER), record("18", State="FAILED")]
    w = load(tmp_path, *rows, state="completed")
    account = check_account(w, cpu_s=7260.0)
    assert account["cpu_s"]["by_option"] == 60.0
    assert account["cpu_s"]["left_out"] == 3660.0
    (job,) = w.jobs.to_pylist()
    assert job["recorded_start_s"] == 1800.0


def test_a_repeated_row_is_no_work(tmp_path):
    rows = [record("17"), record("18"), record("17")]
    w = load(tmp_path, *rows)
    assert ids(w) == ["17", "18"]
    assert report(w)["dropped"] == {"a repeated row": 1}
    check_account(w, cpu_s=120.0, jobs=2)
    again = load(tmp_path, rows[0], HEAD, rows[1])
    assert again.jobs.equals(w.jobs)
    assert report(again)["noticed"] == {"the header once more: left out": 1}


def test_exports_that_overlap(tmp_path):
    w = load(
        tmp_path,
        record("17", Start="Unknown", End="Unknown", State="PENDING"),
        record("18", End="Unknown", State="RUNNING"),
        record("19", End="Unknown", State="RUNNING"),
        record("17"),
        record("18", State="TIMEOUT"),
        record("19", End="Unknown", State="RUNNING", AllocCPUS=2),
    )
    assert ids(w) == ["17", "18"]
    assert report(w)["dropped"] == {
        "an earlier state of a later row": 3,
        "censored: not ended when the log was written": 1,
    }
    check_account(w, cpu_s=120.0, jobs=3)


@pytest.mark.parametrize("sizes", [(2, 5), (5, 2), (3, 3), (2, 5, 3)])
@pytest.mark.parametrize("tasks", ["cpus", "nodes"])
@pytest.mark.parametrize("resubmitted", [True, False])
def test_sizes_of_a_resized_job(tmp_path, sizes, tasks, resubmitted):
    times = [f"{DAY}{9 + i:02}:00:00" for i in range(len(sizes) + 1)]
    rows = [
        record(
            Submit=times[i if resubmitted else 0], Start=times[i], End=times[i + 1],
            State="COMPLETED" if i == len(sizes) - 1 else "RESIZING", AllocCPUS=4 * n, NNodes=n,
        )
        for i, n in enumerate(sizes)
    ]  # fmt: skip
    w = load(tmp_path, *rows, record("18", Submit=times[0]), tasks=tasks)
    assert ids(w) == ["17", "18"]
    assert report(w)["dropped"] == {}
    account = check_account(w, cpu_s=4 * 3600.0 * sum(sizes) + 60.0, jobs=2)
    assert account["cpu_s"]["workload"] == account["cpu_s"]["log"]
    scale = 4 if tasks == "cpus" else 1
    assert w.jobs["min_tasks"].to_pylist() == [scale * max(sizes), 1]
    shuffled = load(tmp_path, *rows[::-1], record("18", Submit=times[0]), tasks=tasks)
    assert shuffled.stages.equals(w.stages)
    done = load(tmp_path, *rows, record("18", Submit=times[0]), tasks=tasks, state="completed")
    assert done.jobs.equals(w.jobs)
    result = sim.simulate(w, sim.Cluster.slots(20), policies.build("easy"))
    assert result.jobs["finish_s"].to_pylist()[0] == 3600.0 * len(sizes)


def test_a_resized_job_with_unequal_nodes_is_changed_by_a_known_amount(tmp_path):
    rows = [
        record(**FIRST, State="RESIZING", AllocCPUS=10, NNodes=4),
        record(Submit=DAY + "11:00:00", Start=DAY + "11:00:00", End=DAY + "12:00:00", AllocCPUS=3),
    ]
    w = load(tmp_path, *rows, tasks="nodes")
    account = check_account(w, cpu_s=13 * 3600.0)
    assert account["cpu_s"]["changed_by"] == {
        "a resized job: all nodes as its largest": (13 - 3 * 5) * 3600.0
    }


def test_arrays_of_one_id(tmp_path):
    rows = [record(f"17_{i}") for i in (1, 2)]
    rows += [record(f"17_{i}", User="bob", Submit=DAY + "09:31:00", **FIRST) for i in (1, 2)]
    w = load(tmp_path, *rows)
    assert ids(w) == ["17@2026-03-01T09:30:00", "17@2026-03-01T09:31:00"]
    assert w.n_stages == 4
    check_account(w, jobs=2)
    same_user = [record("17_1"), record("17_2"), record("17_1", **LATER), record("17_2", **LATER)]
    assert load(tmp_path, *same_user).n_jobs == 2
    requeued = [record("17_1", **FIRST, State="REQUEUED"), record("17_2"), record("17_1", **LATER)]
    w = load(tmp_path, *requeued)
    assert (ids(w), w.n_stages) == (["17"], 2)
    check_account(w, cpu_s=7260.0, jobs=1)


def test_an_id_that_a_cluster_and_a_date_do_not_tell_apart(tmp_path):
    head = "Cluster|" + HEAD
    rows = ["a|" + record(), "b|" + record(), "b|" + record(User="bob"), "b|" + record(User="cyd")]
    w = load(tmp_path, *rows, head=head)
    assert ids(w) == ["17#1", "17#2", "17#3", "17#4"]
    assert ids(load(tmp_path, *rows[:2], head=head)) == ["17@a", "17@b"]
