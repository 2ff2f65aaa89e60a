"""Metrics against numbers by hand, and against a slow implementation on random runs."""

import dataclasses
import math

import numpy as np
import pytest

import sim
from sim import metrics
from sim.engine.batches import TaskRecords
from sim.metrics import devices, power, troubles
from sim.metrics.value import value_over_time
from sim.result import Result

NAN = float("nan")


def job(submit_s, durations, demand=None, **more):
    stages = [{"durations_s": durations, "demand": demand or {"cpu": 1}}]
    return {"submit_s": float(submit_s), "stages": stages, **more}


def run(w, cluster, start, finish, failed=(), task_start=None, task_finish=None, estimate=NAN):
    """Return a run with these times."""
    mask = np.zeros(w.n_jobs, bool)
    mask[list(failed)] = True
    arrays = {"job_start": np.asarray(start, float), "job_finish": np.asarray(finish, float)}
    records = None
    if task_start is not None:
        start_s, finish_s = np.asarray(task_start, float), np.asarray(task_finish, float)
        records = TaskRecords(start_s, np.zeros(w.n_tasks, np.int32), finish_s)
    arrays["job_estimate"] = np.broadcast_to(np.asarray(estimate, float), w.n_jobs)
    arrays["job_submit"] = w.columns.job_submit
    arrays["limits_set"] = ()
    return Result(w, cluster, None, 0, job_failed=mask, records=records, **arrays)


def compute(result):
    return metrics.compute(result, result.bounds)


def two_stage_job(submit_s):
    stages = [
        {"name": "a", "durations_s": [2, 2]},
        {"name": "b", "durations_s": [3], "parents": ["a"]},
    ]
    return {"submit_s": submit_s, "stages": stages}


def test_every_number_by_hand():
    w = sim.Workload.from_jobs([job(0, [4, 4]), two_stage_job(2.0), job(10, [1])])
    # two slots: [4 4] at 0..4, [2 2] at 4..6, [3] at 6..9, [1] at 10..11
    tasks = [[0, 0, 4, 4, 6, 10], [4, 4, 6, 6, 9, 11]]
    m = compute(run(w, sim.Cluster.slots(2), [0, 4, 10], [4, 9, 11], (), *tasks))
    assert m["jct_mean_s"] == pytest.approx((4 + 7 + 1) / 3)
    assert m["jct_p50_s"] == 4
    assert m["jct_p90_s"] == pytest.approx(4 + 0.8 * 3)
    assert m["jct_p99_s"] == pytest.approx(4 + 0.98 * 3)
    assert m["slowdown_mean"] == pytest.approx((1 + 7 / 5 + 1) / 3)
    assert m["slowdown_p95"] == pytest.approx(1 + 0.9 * 2 / 5)
    assert m["wait_mean_s"] == pytest.approx(2 / 3)
    assert m["wait_p50_s"] == 0
    assert m["wait_p90_s"] == pytest.approx(0.8 * 2)
    assert m["wait_p95_s"] == pytest.approx(0.9 * 2)
    assert m["wait_p99_s"] == pytest.approx(0.98 * 2)
    assert m["makespan_s"] == 11
    assert m["utilization_makespan"] == pytest.approx((8 + 7 + 1) / 22)
    # until the last submission, at 10
    assert m["utilization"] == m["utilization_slot"] == pytest.approx((8 + 7) / 20)
    assert m["jobs_failed"] == 0
    # bounds 4, 2 + 3, 1
    assert m["gap_lb_p50"] == pytest.approx(0)
    assert m["gap_lb_p90"] == pytest.approx(0.8 * 0.4)
    assert m["jain_10s"] == m["jain_60s"] == m["jain_240s"] == 1
    assert math.isnan(m["value_attained"])
    assert math.isnan(m["deadlines_missed"])


def test_prediction_error_is_over_the_jobs_that_were_estimated_and_done():
    jobs = [job(0, [4, 4]), job(0, [10]), job(0, [5]), job(0, [0]), job(0, [2]), job(0, [7])]
    w = sim.Workload.from_jobs(jobs)
    estimate = [6, 25, NAN, 3, 2, 1]  # errors 1/4, 3/2, unknown, of no size, 0, of a failed job
    m = compute(
        run(w, sim.Cluster.slots(9), [0] * 6, [4, 10, 5, 0, 2, NAN], [5], estimate=estimate)
    )
    assert m["prediction_error_p50"] == 0.25
    assert m["prediction_error_p90"] == pytest.approx(0.25 + 0.8 * 1.25)
    nothing = compute(run(w, sim.Cluster.slots(9), [0] * 6, [4, 10, 5, 0, 2, 7]))
    assert math.isnan(nothing["prediction_error_p50"])


def test_makespan_begins_with_the_first_submission():
    w = sim.Workload.from_jobs([job(100, [1]), job(200, [1])])
    m = compute(run(w, sim.Cluster.slots(1), [100, 200], [101, 201]))
    assert m["makespan_s"] == 101
    assert m["utilization_makespan"] == pytest.approx(2 / 101)
    assert math.isnan(m["utilization"])  # nobody knows when tasks ran


def test_utilization_of_each_resource_and_the_bottleneck():
    w = sim.Workload.from_jobs([job(0, [10, 10], {"cpu": 1, "mem": 3})])
    cluster = sim.Cluster.machines(2, mem=4, cpu=4, disk=1)
    m = compute(run(w, cluster, [0], [10], (), [0, 0], [10, 10]))
    assert m["utilization_cpu"] == pytest.approx(2 / 8)
    assert m["utilization_mem"] == m["utilization"] == pytest.approx(6 / 8)
    assert m["utilization_disk"] == 0
    assert m["utilization_makespan"] == pytest.approx(6 / 8)


def test_utilization_is_over_the_time_in_which_jobs_arrive():
    w = sim.Workload.from_jobs([job(5, [10]), job(9, [2, 100]), job(25, [50])])
    tasks = [[5, 9, 15, 30], [15, 11, 115, 80]]
    m = compute(run(w, sim.Cluster.slots(3), [5, 9, 30], [15, 115, 80], (), *tasks))
    # from 5 to 25: 10, 2 and 10 s; the rest is over when nothing arrives any more
    assert m["utilization"] == pytest.approx(22 / (3 * 20))
    assert m["utilization_makespan"] == pytest.approx(162 / (3 * 110))


def test_failed_jobs_stay_out_of_completion_times():
    w = sim.Workload.from_jobs([job(0, [4]), job(0, [100]), job(0, [6])])
    m = compute(run(w, sim.Cluster.slots(3), [0, NAN, 0], [4, NAN, 6], failed=[1]))
    assert m["jct_mean_s"] == 5
    assert m["jobs_failed"] == pytest.approx(1 / 3)
    assert m["utilization_makespan"] == pytest.approx(10 / 18)


def test_recorded_tasks_of_failed_jobs_are_work_done():
    w = sim.Workload.from_jobs([job(0, [4]), job(0, [2, 8])])
    tasks = {"task_start": [0, 0, NAN], "task_finish": [4, 2, NAN]}
    m = compute(run(w, sim.Cluster.slots(2), [0, 0], [4, 2], failed=[1], **tasks))
    assert m["utilization"] == pytest.approx(6 / 8)


def test_nothing_done():
    w = sim.Workload.from_jobs([job(0, [4])])
    m = compute(run(w, sim.Cluster.slots(1), [NAN], [NAN], failed=[0]))
    assert m.pop("jobs_failed") == 1
    assert m.pop("jain_60s") == m.pop("jain_10s") == m.pop("jain_240s") == 1
    assert all(math.isnan(v) for v in m.values())


def test_jobs_of_no_length_have_no_slowdown_and_no_gap():
    w = sim.Workload.from_jobs([job(0, [0.0]), job(0, [2])])
    m = compute(run(w, sim.Cluster.slots(1), [0, 0], [0, 3]))
    assert m["slowdown_mean"] == 1.5
    assert m["gap_lb_p50"] == 0.5


def test_deadlines_are_relative_to_submission_and_failures_miss_them():
    rows = [(0, 5, 5), (10, 5, 15.5), (20, None, 99), (30, 5, NAN)]
    w = sim.Workload.from_jobs([job(s, [1], deadline_s=d) for s, d, _ in rows])
    finish = [f for _, _, f in rows]
    m = compute(run(w, sim.Cluster.slots(9), [0, 10, 20, NAN], finish, failed=[3]))
    assert m["deadlines_missed"] == pytest.approx(2 / 3)
    assert m["utility"] == pytest.approx((1 + (1 - 2 * 0.5 / 600) - 1000) / 3)


@pytest.mark.parametrize(
    ("late_min", "utility"), [(-9, 1), (0, 1), (5, 0), (10, -1), (505, -500.5), (1990, -1999)]
)
def test_utility_by_lateness(late_min, utility):
    w = sim.Workload.from_jobs([job(30, [1], deadline_s=600), job(40, [1])])
    m = compute(run(w, sim.Cluster.slots(9), [30, 40], [630 + 60 * late_min, 90]))
    assert m["utility"] == pytest.approx(utility)


def test_value_counts_downloads_from_completion_on():
    base = sim.Workload.from_jobs([job(0, [5]), job(0, [5])])
    downloads = {"job": [0, 0, 0, 1], "time_s": [4.0, 5.0, 6.0, 100.0], "n": [1, 2, 3, 4]}
    w = sim.Workload.from_tables(base.jobs, base.stages, base.tasks, downloads=downloads)
    slots = sim.Cluster.slots(2)
    done = compute(run(w, slots, [0, 0], [5, 5]))
    assert done["value_attained"] == pytest.approx(9 / 10)
    failed = compute(run(w, slots, [0, NAN], [5, NAN], failed=[1]))
    assert failed["value_attained"] == pytest.approx(5 / 10)


def test_value_over_time_counts_the_downloads_so_far():
    base = sim.Workload.from_jobs([job(0, [5]), job(0, [5])])
    downloads = {"job": [0, 0, 0, 1, 1], "time_s": [4.0, 5, 6, 8, 9], "n": [1, 2, 3, 4, 0]}
    w = sim.Workload.from_tables(base.jobs, base.stages, base.tasks, downloads=downloads)
    done = run(w, sim.Cluster.slots(2), [0, 0], [5, 9])
    actual = value_over_time(done, n_points=5)
    shares = [0, 2 / 3, 5 / 6, 5 / 6, 5 / 10]  # at 4, 5, 6, 7 and 8 s
    assert actual is not None
    assert (actual["begin_s"], actual["end_s"]) == (4, 8)
    assert actual["attained"] == pytest.approx(shares, rel=1e-3)
    whole = value_over_time(done)
    assert whole is not None
    assert whole["attained"][-1] == pytest.approx(compute(done)["value_attained"])
    only = sim.Workload.from_tables(
        base.jobs, base.stages, base.tasks, downloads={"job": [1], "time_s": [7.0], "n": [2]}
    )
    at_once = value_over_time(run(only, sim.Cluster.slots(2), [0, 0], [5, 6]), n_points=3)
    assert at_once == {"begin_s": 7, "end_s": 7, "attained": [1, 1, 1]}
    assert value_over_time(run(base, sim.Cluster.slots(2), [0, 0], [5, 6])) is None


def test_every_metric_is_named_and_described():
    w = sim.Workload.from_jobs([job(0, [1], min_tasks=1)])  # rigid, or there is one metric less
    cluster = sim.Cluster.machines(1, cpu=1, mem=1)
    computed = compute(run(w, cluster, [0], [1]))
    against = [name for name, m in metrics.METRICS.items() if m.against_baseline]
    known, available = {*metrics.names(cluster.resources)}, {*computed, *against}
    known -= {*devices.METRICS, *troubles.METRICS, *power.METRICS}  # of clusters that have some
    assert known <= available, f"in METRICS, but not computed: {sorted(known - available)}"
    assert available <= known, f"computed, but not in METRICS: {sorted(available - known)}"
    assert against == list(metrics.speedups(np.ones(1), np.ones(1)))
    for name in computed:
        assert metrics.metric(name).meaning


def test_unknown_metric_names_the_nearest():
    with pytest.raises(sim.InputError, match="'jct_mean'; did you mean 'jct_mean_s'"):
        metrics.metric("jct_mean")


def test_speedups_by_hand():
    own, base = np.array([1.0, 2, 4, NAN, 5]), np.array([2.0, 2, 20, 9, NAN])
    assert metrics.speedups(own, base) == {"jct_speedup_mean": 24 / 7, "jct_speedup_p50": 2}


def test_speedups_of_nothing_and_of_no_time():
    nothing = metrics.speedups(np.array([NAN]), np.array([1.0]))
    assert all(math.isnan(v) for v in nothing.values())
    zero = metrics.speedups(np.zeros(3), np.array([0.0, 0.0, 1.0]))
    assert zero == {"jct_speedup_mean": math.inf, "jct_speedup_p50": 1}
    with pytest.raises(ValueError, match="different workloads"):
        metrics.speedups(np.ones(2), np.ones(3))


def queue_run(tasks, cluster):
    """Make a run of one-task jobs: (queue, submit, start, finish) each."""
    tasks = sorted(tasks, key=lambda t: t[1])
    w = sim.Workload.from_jobs([job(s, [f - b], queue=q) for q, s, b, f in tasks])
    start, finish = [b for _, _, b, _ in tasks], [f for _, _, _, f in tasks]
    return run(w, cluster, start, finish, (), start, finish)


def test_jain_by_hand():
    # in 0..10: a holds a slot 10 s, b 2 s: x = (.5, .1), index .36 / (2 × .26)
    tasks = [("a", 0, 0, 10), ("b", 0, 8, 20), ("a", 5, 10, 20)]
    m = compute(queue_run(tasks, sim.Cluster.slots(2)))
    assert m["jain_10s"] == pytest.approx((0.36 / 0.52 + 1) / 2)
    assert math.isnan(m["jain_60s"])


def test_jain_weighs_by_shares():
    tasks = [("a", 0, 0, 10), ("a", 0, 0, 10), ("a", 0, 0, 10), ("b", 0, 0, 10)]
    slots = sim.Cluster.slots(4)
    shares = {"a": 3, "b": 1}
    equal = compute(queue_run(tasks, slots))
    assert equal["jain_10s"] == pytest.approx(16 / (2 * 10))
    weighted = compute(queue_run(tasks, slots.with_queues("weighted", shares)))
    assert weighted["jain_10s"] == pytest.approx(1)


def test_jain_only_counts_windows_of_demand_in_every_queue():
    # b comes at 10 and nobody of it is there from 18 to 20: of 0..50 only 20..30 counts
    tasks = [("a", 0, 0, 50), ("b", 10, 11, 18), ("b", 20, 20, 31)]
    m = compute(queue_run(tasks, sim.Cluster.slots(2)))
    assert m["jain_10s"] == 1
    never = [("a", 0, 0, 5), ("b", 7, 7, 50)]
    assert math.isnan(compute(queue_run(never, sim.Cluster.slots(2)))["jain_10s"])


def test_jain_needs_task_records_of_several_queues():
    r = queue_run([("a", 0, 0, 50), ("b", 0, 0, 50)], sim.Cluster.slots(2))
    assert compute(r)["jain_10s"] == 1
    without = dataclasses.replace(r, records=None)
    assert math.isnan(compute(without)["jain_10s"])


def slow_jain(r, width):
    """Compute Jain's index by a loop over windows, queues and tasks."""
    c, cluster = r.workload.columns, r.cluster
    origin = c.job_submit[0]
    n_queues = len(c.queue_names)
    indices = []
    for k in range(int((r.job_finish.max() - origin) // width) + 1):
        low, high = origin + k * width, origin + (k + 1) * width
        probes = np.linspace(low, high, 400, endpoint=False)
        in_system = [(c.job_submit <= p) & (p < r.job_finish) for p in probes]
        if not all((c.job_queue[rows] == q).any() for rows in in_system for q in range(n_queues)):
            continue
        x = []
        for q in range(n_queues):
            allocation = dict.fromkeys(cluster.resources, 0.0)
            for g in range(len(c.stage_job)):
                if c.job_queue[c.stage_job[g]] != q:
                    continue
                for t in range(int(c.stage_task0[g]), int(c.stage_task0[g + 1])):
                    seconds = min(r.task_finish[t], high) - max(r.task_start[t], low)
                    for i, name in enumerate(c.resources):
                        allocation[name] += max(0.0, seconds) * c.stage_demand_f[g, i]
            total = dict(zip(cluster.resources, cluster.total, strict=True))
            dominant = max(allocation[name] / total[name] / width for name in allocation)
            x.append(dominant / cluster.queue_share[c.queue_names[q]])
        if any(x):
            indices.append(sum(x) ** 2 / (n_queues * sum(v * v for v in x)))
    return np.mean(indices) if indices else NAN


def random_run(seed):
    rng = np.random.default_rng(seed)
    jobs = []
    for _ in range(40):
        demand = {"cpu": int(rng.integers(1, 4)), "mem": int(rng.integers(1, 9))}
        durations = rng.integers(1, 30, int(rng.integers(1, 6))).tolist()
        submit = float(rng.integers(0, 200))
        jobs.append(job(submit, durations, demand, queue=str(rng.choice(["x", "y", "z"]))))
    w = sim.Workload.from_jobs(jobs)
    c = w.columns
    task_job = np.repeat(c.stage_job, np.diff(c.stage_task0))
    task_start = c.job_submit[task_job] + rng.integers(0, 40, w.n_tasks)
    task_finish = task_start + c.task_duration
    start = np.minimum.reduceat(task_start, c.stage_task0[:-1])
    finish = np.maximum.reduceat(task_finish, c.stage_task0[:-1])
    shares = {"x": 3.0, "y": 2.0, "z": 1.0}
    cluster = sim.Cluster.machines(10, cpu=16, mem=24).with_queues("weighted", shares)
    return run(w, cluster, start, finish, (), task_start, task_finish)


@pytest.mark.parametrize("seed", range(4))
def test_jain_agrees_with_a_slow_loop(seed):
    r = random_run(seed)
    m = compute(r)
    assert m["jain_10s"] == pytest.approx(slow_jain(r, 10))
    assert m["jain_60s"] == pytest.approx(slow_jain(r, 60), nan_ok=True)


@pytest.mark.parametrize("seed", range(4))
def test_the_rest_agrees_with_a_slow_loop(seed):
    r = random_run(seed)
    m = compute(r)
    table = sim.lower_bound(r.workload, r.cluster).to_pylist()
    jct = [f - s for f, s in zip(r.job_finish, r.workload.columns.job_submit, strict=True)]
    assert m["jct_mean_s"] == pytest.approx(math.fsum(jct) / len(jct))
    assert m["jct_p50_s"] == np.median(jct)
    slow = [t / row["cp_len"] for t, row in zip(jct, table, strict=True)]
    assert m["slowdown_mean"] == pytest.approx(math.fsum(slow) / len(slow))
    gap = [t / row["new_lb"] - 1 for t, row in zip(jct, table, strict=True)]
    assert m["gap_lb_p50"] == pytest.approx(np.median(gap))
    assert m["gap_lb_p90"] == pytest.approx(np.percentile(gap, 90))
