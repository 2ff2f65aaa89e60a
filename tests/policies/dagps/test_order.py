"""The order that the offline half hands to the online one."""

import numpy as np

import sim
from policies.dagps.offline import build_schedule
from policies.dagps.order import offline_order

CLUSTER = sim.Cluster.machines(1, a=20, b=20)


def fig2(e=0.01, template="", **more):
    """Fig. 2, its tasks each twice as long in a second job of one template."""
    rows = [("t0", 1, 8, 10, None), ("t1", e, 17, 0, None), ("t2", 1 - 4 * e, 8, 10, "t1")]
    rows += [("t3", e, 4, 12, None), ("t4", 1 - 2 * e, 4, 0, "t3")]
    stages = [
        {"name": n, "durations_s": [d], "demand": {"a": a, "b": b}, "parents": [p] if p else []}
        for n, d, a, b, p in rows
    ]
    return {"submit_s": 0.0, "template": template, "stages": stages, **more}


def test_pri_score_falls_from_one_to_zero_by_begin():
    single = {"submit_s": 1.0, "stages": [{"durations_s": [5], "demand": {"a": 1}}]}
    w = sim.Workload.from_jobs([fig2(), single])
    order = offline_order(w.columns, CLUSTER)
    begin = build_schedule(w, CLUSTER, 0).begin_s
    rank = np.argsort(np.argsort(begin, kind="stable"))
    np.testing.assert_array_equal(order.pri_score, [*(1 - rank / 4), 1.0])
    np.testing.assert_array_equal(order.stage_pri, order.pri_score)
    np.testing.assert_allclose(order.makespan_s, [1.02, 5], atol=1e-9)


def test_tasks_of_a_stage_go_by_begin():
    stages = [
        {"name": "a", "durations_s": [2, 2, 2]},
        {"name": "b", "durations_s": [4, 4, 4], "parents": {"a": "one_to_one"}},
    ]
    w = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])
    cluster = sim.Cluster.machines(2, cpu=1)
    order, begin = offline_order(w.columns, cluster), build_schedule(w, cluster).begin_s
    for stage in range(2):
        mine = slice(3 * stage, 3 * stage + 3)
        assert sorted(order.task_order[mine].tolist()) == [0, 1, 2]
        assert (np.diff(begin[mine][order.task_order[mine]]) >= 0).all()
    np.testing.assert_array_equal(order.stage_pri, order.pri_score.reshape(2, 3).max(axis=1))


def test_jobs_of_one_template_share_a_schedule_and_others_only_if_they_are_the_same():
    jobs = [fig2(template="x"), fig2(e=0.02, template="x"), fig2(template="y"), fig2(), fig2()]
    order = offline_order(sim.Workload.from_jobs([*jobs, fig2(e=0.02)]).columns, CLUSTER)
    assert order.n_built == 4
    np.testing.assert_array_equal(order.pri_score[:5], order.pri_score[5:10])
    np.testing.assert_allclose(order.makespan_s[[0, 1, 2, 5]], [1.02, 1.02, 1.02, 1.04])


def test_estimates_stand_in_for_durations():
    w = sim.Workload.from_jobs([fig2(e=0.2)])
    estimates = np.array([1, 0.01, 0.96, 0.01, 0.98])
    order = offline_order(w.columns, CLUSTER, stage_duration_s=estimates)
    as_thought = offline_order(sim.Workload.from_jobs([fig2()]).columns, CLUSTER)
    np.testing.assert_array_equal(order.pri_score, as_thought.pri_score)
    np.testing.assert_allclose(order.makespan_s, 1.02)
