"""Each policy orders as its definition says, on examples small enough to follow by hand."""

import numpy as np
import pytest

import policies
import sim

ONE = sim.Cluster.slots(1)


def job(name, submit_s, durations, demand=None, **more):
    stages = [{"durations_s": list(durations), "demand": demand or {"cpu": 1}}]
    return {"job_id": name, "submit_s": float(submit_s), "stages": stages, **more}


def run(policy, jobs, cluster=ONE, seed=0, **params):
    w = sim.Workload.from_jobs(jobs)
    return sim.simulate(w, cluster, policies.build(policy, **params), seed=seed, record="tasks")


def started(result):
    """Return the names of the jobs in the order of their first tasks."""
    names = np.array(result.workload.jobs["job_id"].to_pylist())
    return "".join(names[np.argsort(result.job_start, kind="stable")])


def running_at(result, t):
    """Count the running tasks of each job at time t."""
    c = result.workload.columns
    of_job = np.repeat(c.stage_job, np.diff(c.stage_task0))
    alive = (result.task_start <= t) & (t < result.task_finish)
    return np.bincount(of_job[alive], minlength=result.workload.n_jobs).tolist()


def stage_starts(result):
    """Return the names of the stages in the order of their first tasks."""
    task0 = result.workload.columns.stage_task0[:-1]
    first = np.minimum.reduceat(result.task_start, task0)
    names = result.workload.stages["name"].to_pylist()
    return [names[i] for i in np.argsort(first, kind="stable")]


SIZES = [job("a", 0, [10]), job("b", 1, [9]), job("c", 2, [3, 1]), job("d", 3, [1] * 6)]


@pytest.mark.parametrize(("policy", "order"), [("fifo", "abcd"), ("sjf", "acdb"), ("ljf", "abdc")])
def test_orders_by_submission_and_by_total_size(policy, order):
    assert started(run(policy, SIZES)) == order


def test_srpt_counts_only_what_is_left():
    jobs = [job("a", 0, [1] * 10), job("b", 7.5, [1] * 4)]
    # at 8 a has 2 s left of its 10
    assert run("srpt", jobs).job_finish.tolist() == [10, 14]
    assert run("sjf", jobs).job_finish.tolist() == [14, 12]


def test_srpt_yields_to_a_job_with_less_left():
    jobs = [job("a", 0, [1] * 10), job("b", 2.5, [1] * 4)]
    assert run("srpt", jobs).job_finish.tolist() == [14, 7]


def test_random_is_drawn_from_the_seed():
    jobs = [job(chr(97 + i), 0, [1]) for i in range(20)]
    orders = [started(run("random", jobs, seed=s)) for s in range(5)]
    assert len(set(orders)) == 5
    assert all(sorted(o) == sorted(orders[0]) for o in orders)
    assert orders[3] == started(run("random", jobs, seed=3))


def test_priority_goes_first_and_equals_are_served_in_turn():
    rows = [("a", 0, 0), ("b", 1, 1), ("c", 2, 5), ("d", 2, 1), ("e", 2, 5)]
    jobs = [job(n, t, [10], priority=p) for n, t, p in rows]
    assert started(run("priority", jobs)) == "acebd"


def test_priority_holds_inside_the_queues_of_the_cluster():
    jobs = [
        job("a", 0, [10, 10, 10], queue="x", priority=9),
        job("b", 0, [10, 10], queue="y", priority=1),
        job("c", 0, [10], queue="y", priority=2),
    ]
    r = run("priority", jobs, sim.Cluster.slots(2).with_queues("hard"))
    assert running_at(r, 0) == [1, 0, 1]
    assert running_at(r, 10) == [1, 1, 0]


def test_fair_serves_the_queue_with_the_least_use():
    jobs = [job("a", 0, [10] * 9, queue="x"), job("b", 0, [10] * 9, queue="y")]
    assert running_at(run("fifo", jobs, sim.Cluster.slots(4)), 0) == [4, 0]
    assert running_at(run("fair", jobs, sim.Cluster.slots(4)), 0) == [2, 2]


def test_fair_keeps_to_its_weights():
    jobs = [job("a", 0, [10] * 9, queue="x"), job("b", 0, [10] * 9, queue="y")]
    r = run("fair", jobs, sim.Cluster.slots(4), weights={"y": 3})
    assert running_at(r, 0) == [1, 3]


def test_fair_gives_what_nobody_else_wants():
    jobs = [job("a", 0, [10] * 9, queue="x"), job("b", 0, [10], queue="y")]
    assert running_at(run("fair", jobs, sim.Cluster.slots(6)), 0) == [5, 1]


def test_fair_is_fifo_inside_a_queue():
    jobs = [job("a", 0, [10], queue="x"), job("b", 1, [9], queue="x"), job("c", 2, [1], queue="x")]
    assert started(run("fair", jobs)) == "abc"


def test_fair_counts_the_resource_asked_for():
    jobs = [
        job("a", 0, [10] * 9, {"cpu": 1, "mem": 3}, queue="x"),
        job("b", 0, [10] * 9, {"cpu": 1, "mem": 1}, queue="y"),
    ]
    machine = sim.Cluster.machines(1, cpu=8, mem=16)
    assert running_at(run("fair", jobs, machine, resource="cpu"), 0) == [4, 4]
    # dominant shares of a task: 3/16 and 2/16
    assert running_at(run("fair", jobs, machine), 0) == [3, 5]


def test_fair_takes_the_weights_of_a_cluster_that_has_them():
    jobs = [job("a", 0, [10] * 9, queue="x"), job("b", 0, [10] * 9, queue="y")]
    weighted = sim.Cluster.slots(4).with_queues("weighted", {"x": 3, "y": 1})
    assert running_at(run("fair", jobs, weighted), 0) == [3, 1]
    with pytest.raises(sim.InputError, match="weighted queues has weights of its own"):
        run("fair", jobs, weighted, weights={"x": 1})


def test_fair_checks_its_parameters():
    jobs = [job("a", 0, [10], queue="batch")]
    with pytest.raises(sim.InputError, match="did you mean 'batch'"):
        run("fair", jobs, weights={"bach": 1})
    with pytest.raises(sim.InputError, match="did you mean 'slot'"):
        run("fair", jobs, resource="slots")
    with pytest.raises(sim.InputError, match="weight of queue 'batch' must be positive"):
        policies.build("fair", weights={"batch": 0})


def drf_jobs(**names):
    # Ghodsi et al., NSDI 2011, §4.1: 9 CPUs, 18 GB; A's tasks (1 CPU, 4 GB), B's (3 CPUs, 1 GB)
    return [
        job("a", 0, [10] * 9, {"cpu": 1, "mem": 4}, user="A", queue="p"),
        job("b", 0, [10] * 9, {"cpu": 3, "mem": 1}, user="B", queue="p") | names,
    ]


NINE = sim.Cluster.machines(1, cpu=9, mem=18)


def test_drf_allocates_as_in_its_paper():
    assert running_at(run("drf", drf_jobs(), NINE), 0) == [3, 2]


def test_drf_is_between_users_or_queues():
    assert running_at(run("drf", drf_jobs(user="A"), NINE), 0) == [4, 0]  # one user: FIFO
    assert running_at(run("drf", drf_jobs(), NINE, by="queue"), 0) == [4, 0]
    assert running_at(run("drf", drf_jobs(queue="q"), NINE, by="queue"), 0) == [3, 2]
    hard = NINE.with_queues("weighted")
    assert running_at(run("drf", drf_jobs(queue="q"), hard, by="queue"), 0) == [3, 2]


SMALL = {"first_threshold_s": 2.0, "queues": 2}


def test_las_demotes_what_was_served():
    jobs = [job("a", 0, [1] * 10), job("b", 1, [1] * 2)]
    r = run("las", jobs, **SMALL)
    # a leaves the first queue at 2, b runs whole, then a goes on
    assert r.job_finish.tolist() == [12, 4]
    assert run("fifo", jobs).job_finish.tolist() == [10, 12]


def test_las_demotes_in_the_middle_of_a_task_too():
    jobs = [job("a", 0, [1.5] * 4), job("b", 1, [1])]
    r = run("las", jobs, **SMALL)
    assert r.job_start[1] == 3  # a crossed 2 s during its second task


def test_las_is_fifo_again_at_the_bottom():
    jobs = [job("a", 0, [1] * 10), job("b", 1, [1] * 3)]
    assert run("las", jobs, **SMALL).job_finish.tolist() == [12, 13]


def test_las_shares_by_weight_between_its_queues():
    jobs = [job("a", 0, [1] * 300), job("b", 5, [1] * 300)]
    r = run("las", jobs, sim.Cluster.slots(11), first_threshold_s=40.0, queues=2)
    assert running_at(r, 2) == [11, 0]
    # a has crossed 40 task seconds and b not: weights 10 to 1
    assert running_at(r, 5) == [1, 10]
    assert running_at(r, 7) == [1, 10]
    # b crosses too, and a came first
    assert running_at(r, 12) == [11, 0]
    flat = run("las", jobs, sim.Cluster.slots(11), first_threshold_s=40.0, queues=2, weight_decay=1)
    assert running_at(flat, 5) == [5, 6]


def test_las_demotes_queue_by_queue():
    jobs = [job("a", 0, [1] * 30), job("b", 15, [1] * 15), job("c", 18, [1])]
    r = run("las", jobs, first_threshold_s=1.0, growth=4.0, queues=3)
    # thresholds 1 and 4: a is in the last queue from 4 on; b has the first until 16 and the second
    # until 20, with c, which is new, before its last second there; then a, first of the last
    assert r.job_finish.tolist() == [35, 46, 19]


def test_las_with_thresholds_that_nobody_reaches_is_fifo():
    rng = np.random.default_rng(0)
    jobs = [job(f"j{i}", i, rng.exponential(5, 4)) for i in range(30)]
    las = run("las", jobs, sim.Cluster.slots(3), first_threshold_s=1e9)
    assert las.job_finish.tolist() == run("fifo", jobs, sim.Cluster.slots(3)).job_finish.tolist()


@pytest.mark.parametrize(
    "bad", [{"first_threshold_s": 0.0}, {"growth": 0.5}, {"queues": 0}, {"weight_decay": 0.0}]
)
def test_las_checks_its_parameters(bad):
    with pytest.raises(sim.InputError, match=f"policy las: {next(iter(bad))} must be"):
        policies.build("las", **bad)


def stage(name, *durations, parents=(), **demand):
    demand = demand or {"cpu": 1}
    parents = list(parents)
    return {"name": name, "durations_s": list(durations), "parents": parents, "demand": demand}


# short -> end and long -> end; deep is two steps away but its path is short
DAG = [
    stage("short", 1.0),
    stage("long", 5.0),
    stage("mid", 1.0, parents=["short"]),
    stage("wide", 2.0, 2.0),
    stage("end", 3.0, parents=["long"]),
]


def test_critical_path_goes_first_inside_a_job():
    r = run("critical_path", [{"submit_s": 0.0, "stages": DAG}])
    # paths: short 2, long 8, mid 1, wide 2, end 3; of equals the row decides
    assert stage_starts(r) == ["long", "end", "short", "wide", "mid"]


def test_bfs_takes_the_shallow_stages_first():
    r = run("bfs", [{"submit_s": 0.0, "stages": DAG}])
    assert stage_starts(r) == ["short", "long", "wide", "mid", "end"]


TWO = [
    {"submit_s": 0.0, "stages": [stage("a1", 2.0), stage("a2", 1.0, parents=["a1"])]},
    {"submit_s": 0.0, "stages": [stage("b1", 1.0), stage("b2", 9.0, parents=["b1"])]},
]


@pytest.mark.parametrize(
    ("policy", "across", "order"),
    [
        ("critical_path", "jobs", ["a1", "a2", "b1", "b2"]),
        ("critical_path", "stages", ["b1", "b2", "a1", "a2"]),
        ("bfs", "jobs", ["a1", "a2", "b1", "b2"]),
        ("bfs", "stages", ["a1", "b1", "a2", "b2"]),
    ],
)
def test_order_between_jobs_is_a_parameter(policy, across, order):
    assert stage_starts(run(policy, TWO, across=across)) == order


def test_tetris_takes_what_fills_the_machine_best():
    jobs = [
        job("a", 0, [10], {"cpu": 2, "mem": 1}),
        job("b", 0, [10], {"cpu": 6, "mem": 6}),
        job("c", 0, [10], {"cpu": 3, "mem": 4}),
    ]
    machine = sim.Cluster.machines(1, cpu=10, mem=10)
    # b first (12/10), then c (.3 × .4 + .4 × .4 of what is free) before a; a no longer fits
    assert running_at(run("tetris", jobs, machine), 0) == [0, 1, 1]
    assert running_at(run("fifo", jobs, machine), 0) == [1, 1, 0]


def test_tetris_aligns_demand_with_what_is_free():
    jobs = [
        job("m", 0, [10], {"cpu": 1, "mem": 8}),
        job("n", 0, [10], {"cpu": 1, "mem": 2}),
        job("c", 0, [10], {"cpu": 2, "mem": 0.5}),
    ]
    machine = sim.Cluster.machines(1, cpu=4, mem=10)
    # scores m 1.05, c .55, n .45; then 3 cpu and 2 mem are free: c .3875, n .2275
    assert running_at(run("tetris", jobs, machine), 0) == [1, 0, 1]
    assert running_at(run("fifo", jobs, machine), 0) == [1, 1, 0]


def test_tetris_breaks_ties_by_submission():
    jobs = [job(n, 0, [10], {"cpu": 3, "mem": 3}) for n in "abc"]
    assert started(run("tetris", jobs, sim.Cluster.machines(1, cpu=4, mem=4))) == "abc"
