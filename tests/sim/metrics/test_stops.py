"""Stops and lost work: by hand, and against a naive loop over stopped attempts."""

import numpy as np
import pytest

import sim
from sim.engine.batches import TaskRecords
from sim.engine.stops import REASONS, StoppedAttempts
from sim.metrics import groups, stops
from sim.result import Result

NAN = float("nan")
NAMES = ("stops_mean", "work_lost_mean_s", "work_lost")


def job(durations, cpu=1, gpu=0, **more):
    return {
        "submit_s": 0.0,
        "stages": [{"durations_s": durations, "demand": {"cpu": cpu, "gpu": gpu}}],
        **more,
    }


def run(jobs, finish, task_times, attempts):
    """Return a run with these last times of tasks, and stopped attempts (task, from, to, ...)."""
    w = sim.Workload.from_jobs(jobs)
    start, end = np.array(task_times, float).reshape(-1, 2).T
    task, begin, stop, reason, kept_s = ([row[i] for row in attempts] for i in range(5))
    stopped = StoppedAttempts(
        np.array(task, np.int32),
        np.zeros(len(task), np.int32),
        np.array(begin, float),
        np.array(stop, float),
        np.array([REASONS.index(r) for r in reason], np.int8),
        np.array(kept_s, float),
    )
    finish_s = np.array(finish, float)
    return Result(
        w, sim.Cluster.machines(9, cpu=8, gpu=8), None, 0,
        job_submit=w.columns.job_submit, job_start=np.zeros(w.n_jobs),
        job_finish=finish_s, job_failed=np.isnan(finish_s),
        records=TaskRecords(start, np.zeros(w.n_tasks, np.int32), end),
        stopped=stopped,
    )  # fmt: skip


def test_work_by_hand():
    ran = run(
        [job([10, 10], priority=1), job([10], gpu=4, priority=2), job([5])],
        [30, 40, 5],
        [(20, 30), (14, 20), (30, 40), (0, 5)],
        [
            (0, 0, 6, "preempted", 0.0),
            (1, 0, 6, "preempted", 4.0),  # goes on from there
            (2, 0, 8, "preempted", 8.0),
            (2, 8, 10, "failed", 0.0),  # so that the 8 s are lost, too
        ],
    )
    # cpu: 6 + 2 + 10 s of 18 + 31 s of use; gpu: 10 of 20 s
    assert ran.metrics["stops_mean"] == 1.0
    assert ran.metrics["work_lost_mean_s"] == pytest.approx(18 / 3)
    assert ran.metrics["work_lost"] == 10 / 20
    by = groups.compute_by(ran, ran.bounds, ["priority"])
    assert by["work_lost_mean_s.priority.1"] == 8
    assert by["stops_mean.priority.2"] == 2
    assert groups.metric("work_lost_mean_s", "priority", "1").better == "lower"


def test_a_job_that_never_completes_loses_all_that_stopped():
    ran = run(
        [job([10])], [NAN], [(NAN, NAN)], [(0, 0, 6, "preempted", 5.0), (0, 7, 9, "timeout", 0)]
    )
    assert [ran.metrics[name] for name in NAMES] == [2, 8, 1]


def test_nothing_is_lost_where_nothing_stops():
    ran = run([job([10])], [10], [(0, 10)], [])
    assert [ran.metrics[name] for name in NAMES] == [0, 0, 0]


def test_runs_without_records_of_tasks_have_no_values():
    w = sim.Workload.from_jobs([job([10])])
    times = dict.fromkeys(("job_submit", "job_start", "job_finish"), np.zeros(1))
    ran = Result(w, sim.Cluster.slots(1), None, 0, job_failed=np.zeros(1, bool), **times)
    assert all(np.isnan(value) for value in stops.compute(ran, {}).values())
    assert np.isnan(stops.by_job(ran)).all()


@pytest.mark.parametrize("seed", range(5))
def test_against_a_naive_loop(seed):
    draws = np.random.default_rng(seed)
    n_tasks = draws.integers(1, 4, 6).tolist()
    finish = [NAN if draws.random() < 0.3 else 99.0 for _ in n_tasks]
    attempts = []
    for time in range(0, 60, 2):
        for _ in range(draws.integers(0, 3)):
            reason = REASONS[draws.integers(len(REASONS))]
            row = (int(draws.integers(sum(n_tasks))), time, time + 2.0, reason)
            kept_s = 0.0 if reason in stops.BEGIN_ANEW else float(draws.integers(0, 3))
            attempts.append((*row, kept_s))
    attempts.sort(key=lambda row: (row[2], row[0]))
    ran = run([job([5.0] * n) for n in n_tasks], finish, [(80, 90)] * sum(n_tasks), attempts)

    job_of = [j for j, n in enumerate(n_tasks) for _ in range(n)]
    lost, instants = dict.fromkeys(range(6), 0.0), {j: set() for j in range(6)}
    for i, (task, begin, stop, _, kept_s) in enumerate(attempts):
        j = job_of[task]
        later = {row[3] for row in attempts[i:] if row[0] == task}
        is_void = later & {*stops.BEGIN_ANEW} or np.isnan(finish[j])
        lost[j] += stop - begin - (0.0 if is_void else kept_s)
        if attempts[i][3] != "resized":  # its job goes on
            instants[j].add(stop)
    assert stops.by_job(ran)[0].tolist() == [len(instants[j]) for j in range(6)]
    assert stops.by_job(ran)[1].tolist() == list(lost.values())
    assert ran.metrics["stops_mean"] == pytest.approx(sum(map(len, instants.values())) / 6)
