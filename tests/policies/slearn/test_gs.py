"""The generic scheduler: exact small schedules, and defined results for unusual inputs."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest

import policies
import sim
from policies.attained_service import LeastAttainedService
from policies.slearn import gs
from policies.slearn.kernels import pilots
from policies.slearn.pilots import n_pilots
from policies.slearn.posterior import Posterior
from policies.slearn.rules import PublishedScheduler
from policies.slearn.thin import thin_limit_at
from sim.engine.plan import Batch, Event, Plan, World

SAMPLING = ("slearn", "slearn_dag", "bayes", "adaptive_thin")
HISTORY = ("threesigma", "threesigma_tl", "point", "threesigma_dag", "point_dag")
PAPER = {**gs.GenericScheduler.fixed, "sampling_percent": 0.0}
"""The paper's rules, for policies with those of the published simulator."""
EVERY = (*SAMPLING, *HISTORY, "oracle", "gs", "las_dag")


def test_rules_of_the_published_simulator_are_fixed_in_the_base_at_their_defaults():
    added = {f.name: f.default for f in fields(PublishedScheduler)}
    base = {f.name for f in fields(gs.GenericScheduler)}
    assert {key: added[key] for key in added.keys() - base} == gs.GenericScheduler.fixed
    assert LeastAttainedService.fixed == {"between": added["between"]}
    assert not PublishedScheduler.fixed


@pytest.mark.parametrize(
    ("policy", "rule", "value", "owners"),
    [
        ("slearn", "turns", "entered", "slearn_code"),
        ("adaptive_thin", "turns", "entered", "slearn_code"),
        ("threesigma_tl", "leak_every", 3, "point_code, threesigma_code, threesigma_tl_code"),
        ("las_dag", "between", "strict", "las_code"),
    ],
)
def test_a_rule_names_the_policies_that_have_it(policy, rule, value, owners):
    message = f"{policy} has no parameter '{rule}'.* policies that have it: {owners} "
    with pytest.raises(sim.InputError, match=message):
        policies.build(policy, **{rule: value})
    paper = policies.spec(policy).fixed[rule]
    assert policies.build(policy, **{rule: paper}) == policies.build(policy)


def job(submit_s, *durations, **more):
    return {"submit_s": float(submit_s), "stages": [{"durations_s": list(durations)}], **more}


def run(policy, jobs, slots, history=None, **params):
    workload = sim.Workload.from_jobs(jobs)
    if history is not None:
        workload = workload.with_history(history)
    cluster = slots if isinstance(slots, sim.Cluster) else sim.Cluster.slots(slots)
    return sim.simulate(workload, cluster, policies.build(policy, **params), record="tasks")


def starts(result, row):
    """Return when the tasks of a job started, sorted."""
    tasks = np.repeat(np.arange(result.workload.n_jobs), job_sizes(result)) == row
    return sorted(result.task_start[tasks].tolist())


def job_sizes(result):
    c = result.workload.columns
    return np.diff(c.stage_task0[c.job_stage0])


def past(**columns):
    n = len(columns["mean_task_s"])
    times = {"submit_s": [-200.0] * n, "finish_s": [-100.0] * n, "n_tasks": [1] * n}
    return times | columns


def queue_of(policy, work, **params):
    """Return the queue of a job with one task of that size."""
    c = sim.Workload.from_jobs([job(0, work)]).columns
    plan = Plan(1, 1, 1)
    view = {"left": np.ones(1, "i4"), "running": np.zeros(1, "i4")}
    world = World(c, sim.Cluster.slots(1), 0, view)
    built = policies.build(policy, **params)
    memory = built.begin(world, plan)
    kinds = np.array([Event.JOB_ARRIVED], "i4")
    arrival = Batch(0.0, kinds, np.array([0], "i4"), np.zeros(1))
    built.react(memory, arrival, world, plan)
    return int(plan.jobs["queue"][0])


@pytest.mark.parametrize(
    ("size", "queue"),
    [(0.0, 0), (999.9, 0), (1000.0, 1), (9999.0, 1), (1e4, 2), (9.9e11, 9), (1e12, 9)],
)
def test_ten_queues_of_tenfold_thresholds(size, queue):
    assert queue_of("oracle", size) == queue


def test_queues_share_by_weight():
    # of 11 slots the first queue gets ten, the second, of a tenth of its weight, one
    r = run("oracle", [job(0, *[10.0] * 99), job(0, *[10.0] * 500)], 11)
    assert starts(r, 0)[:11].count(0.0) == 10
    assert starts(r, 1).count(0.0) == 1


def test_pilots_run_before_the_others_of_their_job():
    # one slot: the pilot tells 3 x 4000 s, which is the third queue; the second job's pilot
    # goes before that, and its others, of the first queue, too
    jobs = [job(0, 4000.0, 4000.0, 4000.0), job(1, 10.0, 10.0, 10.0)]
    r = run("slearn", jobs, 1)
    assert starts(r, 0) == [0.0, 4030.0, 8030.0]
    assert starts(r, 1) == [4000.0, 4010.0, 4020.0]
    assert r.estimate_s.tolist() == [12000.0, 30.0]


def test_pilots_have_a_queue_between_the_first_and_the_second_or_share_the_second():
    # 3 x 400 s is the second queue, where the first job would stand before the second's pilot
    jobs = [job(0, 400.0, 400.0, 400.0), job(1, 10.0, 10.0, 10.0)]
    r = run("slearn", jobs, 1)
    assert starts(r, 0) == [0.0, 430.0, 830.0]
    assert starts(r, 1) == [400.0, 410.0, 420.0]
    shared = run("slearn_code", jobs, 1, **(PAPER | {"sampling_queue": "second"}))
    assert starts(shared, 0) == [0.0, 400.0, 800.0]
    assert starts(shared, 1) == [1200.0, 1210.0, 1220.0]


def test_strict_priority_leaves_nothing_to_later_queues():
    # of 11 slots the second queue has one by its weight, and none while the first wants all
    jobs = [job(0, *[10.0] * 99), job(0, *[10.0] * 500)]
    assert starts(run("oracle_code", jobs, 11), 1)[0] == 90.0
    assert starts(run("las_code", jobs, 11), 1)[0] == 90.0


def test_strict_priority_serves_pilots_after_the_first_queue_and_before_the_second():
    # one slot: the first's others are of the second queue, a thin job and a pilot come meanwhile
    jobs = [job(0, *[400.0] * 3), job(1, *[500.0] * 3), job(2, 30.0)]
    r = run("slearn_code", jobs, 1, **(PAPER | {"between": "strict"}))
    assert (starts(r, 2), starts(r, 1)[0], starts(r, 0)[1]) == ([400.0], 430.0, 930.0)


def test_inside_a_queue_by_submission_or_by_entry():
    # the pilot of the third ends at 401, that of the second at 500, and both are of one queue
    jobs = [job(0, 1.0), job(0, *[500.0] * 3), job(1, *[400.0] * 3)]
    submitted, entered = (
        run("slearn_code", jobs, 2, **(PAPER | {"turns": turns}))
        for turns in ("submitted", "entered")
    )
    assert (starts(submitted, 1)[1], starts(submitted, 2)[2]) == (500.0, 1000.0)
    assert (starts(entered, 1)[1], starts(entered, 2)[2]) == (801.0, 500.0)


@pytest.mark.parametrize(("up", "n"), [(False, 1), (True, 2)])
def test_pilots_are_rounded_down_or_up(up, n):
    r = run("slearn_code", [job(0, *[10.0] * 40)], 1, sampling_percent=3, pilots_up=up)
    assert r.estimate_s[0] == 400.0
    assert n_pilots(40, 3, up=up) == n


def test_in_the_given_order_nothing_is_drawn():
    in_order = PAPER | {"pilot_order": "given"}
    r = run("slearn_code", [job(0, 5.0, 20.0, 80.0, 320.0)], 4, **in_order)
    assert r.estimate_s[0] == 4 * 5.0
    last = run("slearn_code", [job(0, 320.0, 80.0, 20.0, 5.0)], 4, **in_order)
    assert last.estimate_s[0] == 4 * 320.0


def test_the_first_tasks_to_end_may_be_the_evidence():
    # all run at once, and the pilot is the longest
    jobs = [job(0, 320.0, 80.0, 20.0, 5.0)]
    params = PAPER | {"pilot_order": "given", "sampling_percent": 50}
    assert run("slearn_code", jobs, 4, **params).estimate_s[0] == 2 * (320.0 + 80.0)
    params["evidence"] = "ended"
    assert run("slearn_code", jobs, 4, **params).estimate_s[0] == 2 * (5.0 + 20.0)


def test_an_unknown_job_counts_as_any_or_goes_first_or_last():
    known = past(mean_task_s=[5000.0] * 4, user=["v"] * 4)
    crowd = [job(0, *[1.0] * 2), job(0, 1.0, 1.0, user="w")]
    for unknown, size in (("all", 10_000.0), ("first", None), ("last", None)):
        r = run("point_code", crowd, 1, known, unknown=unknown, judged_by="statistic", leak_every=0)
        assert r.estimate_s[1] == size if size else math.isnan(r.estimate_s[1])
    assert queue_of("threesigma_code", 1.0, unknown="last") == 9
    assert queue_of("threesigma_code", 1.0, unknown="first") == 0


def test_every_nth_job_may_be_known_on_arrival():
    # the second comes while the first runs, which took 8 s in truth; one job of 2 s has ended
    jobs = [job(0, 8.0, job_id="a-6", user="u"), job(1, 8.0, job_id="b", user="u")]
    known = past(mean_task_s=[2.0], user=["u"])
    for leak_every, second in ((0, 2.0), (3, 5.0), (4, 2.0)):
        params = {"features": "user", "unscored": "last", "leak_every": leak_every}
        r = run("threesigma_code", jobs, 1, known, judged_by="statistic", **params)
        assert r.estimate_s.tolist() == [2.0, second]


def test_thin_jobs_go_first_without_an_estimate():
    jobs = [job(0, 10.0), job(1, 50.0, 50.0, 50.0), job(2, 7.0, 7.0)]
    r = run("slearn", jobs, 1)
    assert starts(r, 2) == [10.0, 17.0]
    assert starts(r, 1) == [24.0, 74.0, 124.0]
    assert np.isnan(r.estimate_s).tolist() == [True, False, True]
    sampled = run("slearn", jobs, 1, thin_limit=2)
    assert starts(sampled, 1)[0] == 10.0
    assert sampled.estimate_s[2] == 14.0


def test_idle_slots_take_tasks_of_sampled_jobs_first_come_first_served():
    jobs = [job(0, 10.0, 10.0, 10.0), job(0, 10.0, 10.0, 10.0)]
    r = run("slearn", jobs, 3)
    # both pilots, and of what is left the slot takes the first job's
    assert starts(r, 0) == [0.0, 0.0, 10.0]
    assert starts(r, 1) == [0.0, 10.0, 10.0]


def test_estimate_is_the_mean_of_the_pilots_alone():
    # all run at once, the short ones end first; the pilot is drawn, and it alone counts
    durations = [5.0, 20.0, 80.0, 320.0]
    r = run("slearn", [job(0, *durations)], 4)
    assert r.estimate_s[0] in [4 * d for d in durations]
    seen = {
        sim.simulate(r.workload, r.cluster, policies.build("slearn"), seed=s).estimate_s[0]
        for s in range(20)
    }
    assert len(seen) > 1  # random pilots


@pytest.mark.parametrize(("percent", "n"), [(1.0, 1), (3.0, 3), (10.0, 10), (100.0, 100)])
def test_a_fixed_ratio_samples_that_percentage(percent, n):
    r = run("slearn", [job(0, *[10.0] * 100), job(1, *[10.0] * 100)], n, sampling_percent=percent)
    # the second job's pilots wait behind the first's: as many as there are slots
    assert starts(r, 0)[: n + 1].count(0.0) == n


def test_later_stages_are_corrected_by_the_sampled_one():
    stages = [
        {"name": "m", "durations_s": [20.0] * 4, "application": "m"},
        {"name": "r", "durations_s": [100.0] * 3, "application": "r", "parents": ["m"]},
    ]
    jobs = [{"submit_s": 0.0, "stages": stages}]
    history = past(mean_task_s=[10.0, 50.0], application=["m", "r"])
    # history says 10 and 50, the pilot took 20: twice as long throughout
    assert run("slearn_dag", jobs, 4, history).estimate_s[0] == 4 * 20 + 3 * 50 * 2
    assert run("slearn", jobs, 4, history).estimate_s[0] == 7 * 20
    assert run("threesigma_dag", jobs, 4, history).estimate_s[0] == 4 * 10 + 3 * 50
    assert run("point_dag", jobs, 4, history).estimate_s[0] == 4 * 10 + 3 * 50
    assert run("slearn_dag", jobs, 4).estimate_s[0] == 7 * 20  # no history: the pilot's mean


def test_gang_tasks_start_together_and_are_all_pilots():
    jobs = [job(0, 10.0, 20.0, 30.0, 40.0, min_tasks=4)]
    r = run("slearn", jobs, 4)
    assert starts(r, 0) == [0.0] * 4
    assert r.estimate_s[0] == 100.0


@pytest.mark.parametrize(
    ("load", "limit"), [(0.0, 6), (1.0, 6), (1.2, 5), (2.0, 3), (3.0, 2), (100.0, 2)]
)
def test_thin_limit_falls_as_the_load_rises(load, limit):
    assert thin_limit_at(load, 6) == limit
    assert thin_limit_at(load, 1) == 1


def test_adaptive_thin_follows_waiting_tasks():
    crowd = [job(0, *[100.0] * 8)]
    alone = run("adaptive_thin", [job(0, 5.0, 5.0, 5.0, 5.0)], 4)
    behind = run("adaptive_thin", [*crowd, job(1, 5.0, 5.0, 5.0, 5.0)], 2)
    assert np.isnan(alone.estimate_s[0])  # thin: fewer than 6
    assert behind.estimate_s[1] == 20.0  # 8 tasks for 2 slots: sampled, as only below 2 is thin


@pytest.mark.parametrize("code", ["oracle", "las", "slearn", "threesigma", "point"])
def test_the_presets_of_the_authors_code_finish_all_jobs(code):
    jobs = [job(i, *[1.0 + i] * (i + 1), job_id=f"job_{i}", user="u") for i in range(6)]
    for slots in (1, 3, sim.Cluster.machines(2, cpu=2)):
        r = run(f"{code}_code", jobs, slots, past(mean_task_s=[3.0]))
        assert np.isfinite(r.job_finish).all()


@pytest.mark.parametrize("policy", EVERY)
@pytest.mark.parametrize("history", [None, {"mean_task_s": [3.0, 5.0]}], ids=["none", "nameless"])
def test_jobs_without_features(policy, history):
    jobs = [job(0, *[5.0] * 4), job(1, 5.0), job(2, 5.0, 5.0, 5.0)]
    r = run(policy, jobs, 2, history and past(**history))
    assert np.isfinite(r.job_finish).all()
    if policy in HISTORY and history is None:
        # nothing has ended: nothing is known of the first job; then one has
        assert math.isnan(r.estimate_s[0])


def test_without_history_a_job_goes_first_as_if_it_were_small():
    assert queue_of("threesigma", 1e6) == 0


@pytest.mark.parametrize("policy", EVERY)
def test_tasks_of_no_length(policy):
    jobs = [job(0, *[0.0] * 5, user="u"), job(1, *[0.0] * 5, user="u"), job(1, 0.0)]
    r = run(policy, jobs, 2, past(mean_task_s=[0.0, 0.0, 0.0, 0.0], user=["u"] * 4))
    assert r.job_finish.tolist() == [0.0, 1.0, 1.0]
    known = r.estimate_s[~np.isnan(r.estimate_s)]
    assert (known == 0).all()
    assert math.isnan(r.metrics["prediction_error_p50"])


@pytest.mark.parametrize("policy", EVERY)
@pytest.mark.parametrize("limit", [0, 3])
def test_one_task_jobs(policy, limit):
    params = {} if policy == "las_dag" else {"thin_limit": limit}
    r = run(policy, [job(0, 8.0), job(0, 4.0)], 1, **params)
    assert sorted(r.job_finish.tolist()) in ([4.0, 12.0], [8.0, 12.0])
    if policy == "slearn" and limit == 0:
        assert r.estimate_s.tolist() == [8.0, 4.0]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"thin_limit": -1}, "thin_limit must be a whole number of at least 0"),
        ({"sampling_percent": -1.0}, "sampling_percent must be a number from 0 to 100"),
        ({"sampling_percent": 101.0}, "sampling_percent must be a number from 0 to 100"),
        ({"window_days": -1.0}, "window_days must be a number of at least 0"),
        ({"bins": 1}, "bins must be a whole number of at least 2"),
        ({"queues": 0}, "queues must be a whole number from 1 to 1000"),
    ],
)
def test_parameters_out_of_range_are_errors(params, message):
    with pytest.raises(sim.InputError, match=f"policy slearn: {message}"):
        policies.build("slearn", **params)


def test_one_queue_is_enough():
    r = run("slearn", [job(0, *[5.0] * 4), job(1, 5.0)], 2, queues=1)
    assert np.isfinite(r.job_finish).all()


@pytest.mark.parametrize("source", ["cosmos", "recurring"])
def test_the_load_is_that_of_all_jobs_before(source, monkeypatch):
    # jobs of cosmos wait for inputs, and arrive out of order
    options = {"scale": 0.02} if source == "cosmos" else {"jobs": 120, "preset": "2sigma"}
    w = sim.synthesize(source, seed=0, **options)
    cluster = sim.Cluster.slots(max(4, int(w.columns.job_min_tasks.max())))
    seen = []

    def check_waiting(self, job, *rest):
        chosen = choose(self, job, *rest)
        if self._n_waiting:
            assert self._n_waiting[-1] == np.count_nonzero(self._view["left"][:job])
            seen.append(job)
        return chosen

    def check_counts(left, running, *rest):
        counts = count(left, running, *rest)
        assert counts == (left[: rest[-1]].sum(), running[: rest[-1]].sum())
        seen.append(rest[-1])
        return counts

    choose, count = Posterior._choose_n_pilots, pilots.count_unfinished
    monkeypatch.setattr(Posterior, "_choose_n_pilots", check_waiting)
    monkeypatch.setattr(pilots, "count_unfinished", check_counts)
    for name in ("bayes", "adaptive_thin"):
        seen.clear()
        sim.simulate(w, cluster, policies.build(name, thin_limit=1 + (name != "bayes")))
        assert len(seen) > 20


@pytest.mark.parametrize("max_repairs", [0, 10**6])
def test_turns_are_those_of_a_stable_sort(max_repairs, monkeypatch):
    monkeypatch.setattr(gs, "MAX_REPAIRS", max_repairs)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(1, 200, rng.integers(1, 50))
        task0 = np.concatenate([[0], np.cumsum(sizes)])
        stage = np.repeat(np.arange(len(sizes)), sizes)
        draws, nearly = rng.random(len(stage)), rng.integers(1, 20, len(stage)) * 2.0**-53
        draws = np.choose(rng.integers(0, 3, len(stage)), [draws, nearly, 1.0 - nearly])
        key = stage + draws  # equal ones, and some that are rounded to the next stage
        np.testing.assert_array_equal(gs._order(key, stage, task0), np.argsort(key, kind="stable"))
