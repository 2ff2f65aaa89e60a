"""Another trace's jobs, faster machines, no jobs of a queue, and more of the same."""

import numpy as np
import pytest

import policies
import sim
from sim import transforms
from sim.base.errors import InputError

ONE = sim.Workload.from_jobs(
    [
        {"job_id": "a", "submit_s": 0, "queue": "x", "stages": [{"durations_s": [4, 6]}]},
        {"job_id": "b", "submit_s": 9, "queue": "y", "stages": [{"durations_s": [8]}]},
    ]
)
OTHER = sim.Workload.from_jobs(
    [
        {
            "job_id": "a",
            "submit_s": 5,
            "queue": "z",
            "user": "u",
            "requested_s": 50.0,
            "stages": [
                {"name": "m", "durations_s": [1, 1], "demand": {"cpu": 2, "gpu": 1}},
                {"name": "r", "durations_s": [3], "parents": ["m"]},
            ],
        }
    ]
)


def test_faster_divides_durations():
    assert transforms.apply(ONE, "faster", factor=2).columns.task_duration.tolist() == [2, 3, 4]
    with pytest.raises(InputError, match="factor must be a number above 0"):
        transforms.apply(ONE, "faster", factor=0)


def test_jobs_of_a_queue_are_dropped():
    assert transforms.apply(ONE, "without_queue", queue="x").jobs["job_id"].to_pylist() == ["b"]
    with pytest.raises(InputError, match="unknown queue 'z'; valid: x, y"):
        transforms.apply(ONE, "without_queue", queue="z")
    with pytest.raises(InputError, match="no job is left"):
        transforms.apply(ONE, "without_queue", queue=["x", "y"])


def test_jobs_of_another_trace_come_at_their_times():
    both = transforms.apply(ONE, "add", other=OTHER)
    assert both.jobs["job_id"].to_pylist() == ["a", "a+1", "b"]
    assert both.jobs["submit_s"].to_pylist() == [0, 5, 9]
    assert both.jobs["queue"].to_pylist() == ["x", "z", "y"]
    assert both.columns.task_duration.tolist() == [4, 6, 1, 1, 3, 8]
    assert both.stages["demand_gpu"].to_pylist() == [0, 1, 0, 0]
    assert both.stages["demand_cpu"].to_pylist() == [1, 2, 1, 1]
    assert both.jobs["requested_s"].to_pylist() == [None, 50, None]
    assert both.stage_edges.select(["parent", "child"]).to_pylist() == [{"parent": 1, "child": 2}]
    sim.Workload.from_tables(
        **{n: getattr(both, n) for n in ("jobs", "stages", "tasks", "stage_edges")}, meta=both.meta
    )  # valid


def test_dependencies_and_columns_of_one_trace_alone_stay():
    jobs = [
        {"job_id": "a", "submit_s": 1, "stages": [{"durations_s": [1]}]},
        {
            **{"job_id": "c", "submit_s": 2, "input_mode": "poll", "poll_lag_s": 3.0},
            **{"inputs": {"a": "hard"}, "stages": [{"durations_s": [1]}]},
        },
    ]
    polling = sim.Workload.from_jobs(jobs)
    for first, second in ((ONE, polling), (polling, ONE)):
        both = transforms.apply(first, "add", other=second)
        ids = both.jobs["job_id"].to_pylist()
        upstream = "a+1" if first is ONE else "a"
        (edge,) = both.job_edges.select(["upstream", "downstream"]).to_pylist()
        assert (ids[edge["upstream"]], ids[edge["downstream"]]) == (upstream, "c")
        lags = dict(zip(ids, both.jobs["poll_lag_s"].to_pylist(), strict=True))
        assert lags == {**dict.fromkeys(("a", "a+1", "b"), 0.0), "c": 3.0}
        result = sim.simulate(both, sim.Cluster.slots(9), policies.build("fifo"))
        assert result.job_submit[ids.index("c")] == 5


def attempts(workload):
    """Return the failing attempts of each task: when, and which task's output is lost."""
    jobs, columns = workload.jobs["job_id"].to_pylist(), workload.columns
    stage = columns.task_stage()

    def name(task):
        if task < 0:
            return None
        g = stage[task]
        j = columns.stage_job[g]
        return jobs[j], int(g - columns.job_stage0[j]), int(task - columns.stage_task0[g])

    by_task = {}
    for row in workload.failures.to_pylist():
        by_task.setdefault(name(row["task"]), []).append((row["after_s"], name(row["lost"])))
    return by_task


@pytest.fixture(scope="module")
def failing():
    jobs = sim.synthesize("alibaba2018", jobs=30, seed=3)
    return transforms.apply(jobs, "fail_tasks", single=0.2, multiple=0.3, lost=0.1)


def test_failures_of_both_traces_stay_with_their_tasks(failing):
    other = transforms.apply(sim.synthesize("alibaba2018", jobs=20, seed=4), "fail_tasks", lost=0.2)
    plain = other.with_failures(None)
    pool = sim.Cluster.slots(100_000)  # nothing waits: each job as in its own trace
    fifo = policies.build("fifo")

    def times(workload):
        result = sim.simulate(workload, pool, fifo)
        jct = result.job_finish - result.job_submit
        return dict(zip(workload.jobs["job_id"].to_pylist(), jct.tolist(), strict=True))

    assert sum(lost is not None for rows in attempts(other).values() for _, lost in rows) > 3
    for first, second in ((failing, other), (failing, plain), (plain, failing)):
        both = transforms.apply(first, "add", other=second)
        ids = both.jobs["job_id"].to_pylist()
        new_ids = {j: f"{j}+1" if f"{j}+1" in ids else j for j in second.jobs["job_id"].to_pylist()}
        assert {*new_ids.values()} != {*ids[-len(new_ids) :]}  # the jobs are mixed

        def renamed(key, names=new_ids):
            return key and (names[key[0]], *key[1:])

        expected = attempts(first) | {
            renamed(task): [(after_s, renamed(lost)) for after_s, lost in rows]
            for task, rows in attempts(second).items()
        }
        assert attempts(both) == expected
        alone = times(first) | {new_ids[job]: jct for job, jct in times(second).items()}
        assert times(both) == pytest.approx(alone)


def test_failures_go_with_faster_machines_and_without_a_queue(failing):
    fast = transforms.apply(failing, "faster", factor=3)
    assert attempts(fast) == {
        task: [(after_s / 3, lost) for after_s, lost in rows]
        for task, rows in attempts(failing).items()
    }
    dealt = transforms.apply(failing.with_failures(None), "deal_queues", n=2)
    dealt = dealt.with_failures(failing.failures)
    dropped = dealt.jobs["queue"].to_pylist()[0]
    rest = transforms.apply(dealt, "without_queue", queue=dropped)
    remaining = set(rest.jobs["job_id"].to_pylist())
    assert attempts(rest) == {t: rows for t, rows in attempts(dealt).items() if t[0] in remaining}


def test_more_of_the_same_keeps_dependencies():
    more = transforms.apply(OTHER, "change_load", load=3, rewire=False)
    assert more.n_jobs == 3
    assert np.diff(more.columns.job_stage0).tolist() == [2, 2, 2]
    assert more.stage_edges["child"].to_pylist() == [1, 3, 5]
