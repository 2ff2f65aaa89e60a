"""Guarantees of simulate(), on worlds small enough to work out by hand."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import policies
import sim
from policies.base import Policy
from sim.base.errors import PolicyError
from sim.engine.plan import NO_LIMIT, Event, Order, Queues


def job(submit_s, *stages, **columns):
    return {"submit_s": submit_s, "stages": list(stages), **columns}


def stage(*durations_s, **columns):
    return {"durations_s": list(durations_s), **columns}


def run(jobs, cluster, policy="fifo", **params):
    built = policies.build(policy, **params) if isinstance(policy, str) else policy
    return sim.simulate(sim.Workload.from_jobs(jobs), cluster, built, record="tasks")


@dataclass(frozen=True)
class Scripted(Policy):
    """Fills the plan by a function, and hands each batch to another."""

    prepare_with: object = None
    react_with: object = None
    listens: Event = Event.NONE
    seen: list = field(default_factory=list)

    @property
    def events(self):
        return self.listens

    def prepare(self, world, plan):
        if self.prepare_with:
            self.prepare_with(world, plan)

    def react(self, memory, batch, world, plan):
        self.seen.append((batch.now, batch.kind.tolist(), batch.row.tolist()))
        if self.react_with:
            self.react_with(batch, world, plan)


def test_a_barrier_waits_for_all_tasks_of_the_parent():
    r = run(
        [job(0, stage(1, 4, name="a"), stage(1, 1, name="b", parents=["a"]))], sim.Cluster.slots(9)
    )
    assert r.task_start.tolist() == [0, 0, 4, 4]
    assert r.job_finish.tolist() == [5]


def test_a_one_to_one_edge_waits_for_the_task_of_the_same_index():
    b = stage(1, 1, 1, name="b", parents={"a": "one_to_one"})
    r = run([job(0, stage(1, 4, name="a"), b)], sim.Cluster.slots(9))
    # the third task of b has no counterpart in a
    assert r.task_start.tolist() == [0, 0, 1, 4, 0]


def test_an_end_and_an_arrival_at_one_instant_are_placed_together():
    r = run([job(0, stage(2)), job(2, stage(9)), job(2, stage(1))], sim.Cluster.slots(1), "sjf")
    assert r.job_start.tolist() == [0, 3, 2]


def test_a_gang_starts_together_and_holds_its_slots_to_its_end():
    gang = job(0, stage(1, 5), stage(1, 1), min_tasks=2)
    gang["stages"][0]["name"], gang["stages"][1]["name"] = "a", "b"
    gang["stages"][1]["parents"] = ["a"]
    r = run([job(0, stage(3)), gang, job(0, stage(1))], sim.Cluster.slots(2))
    # it waits for both slots, keeps the idle one from 4 to 8, and job 2 gets one only then
    assert r.job_start.tolist() == [0, 3, 9]
    assert r.task_start.tolist() == [0, 3, 3, 8, 8, 9]


def rising(low, n_ticks):
    """Return a policy that raises the run limit of all jobs, of at first `low`, at some tick."""

    def lower(world, plan):
        plan.set_jobs(run_limit=low)
        plan.timer_s = 1.0

    def raise_later(batch, world, plan):
        if batch.now < n_ticks:
            plan.timer_s = batch.now + 1.0
        else:
            plan.set_jobs(run_limit=9)

    return Scripted(prepare_with=lower, react_with=raise_later, listens=Event.TIMER)


def test_a_gang_whose_limit_rises_fills_the_slots_that_it_has():
    r = run([job(0, stage(9, 9), min_tasks=2)], sim.Cluster.slots(2), rising(1, 3))
    assert r.task_start.tolist() == [0, 3]


def test_nothing_may_happen_for_thousands_of_ticks():
    r = run([job(0, stage(1))], sim.Cluster.slots(1), rising(0, 9000))
    assert r.task_start.tolist() == [9000]


def test_a_gang_spans_machines():
    jobs = [job(0, stage(1, 1, 1, demand={"cpu": 2}), min_tasks=3)]
    r = run(jobs, sim.Cluster.machines(2, cpu=4))
    assert r.task_start.tolist() == [0, 0, 0]
    assert sorted(r.task_machine.tolist()) == [0, 0, 1]


def test_hard_queues_keep_their_share_and_weighted_ones_lend_it():
    jobs = [job(0, stage(1, 1, 1, 1), queue="a"), job(1, stage(1), queue="b")]
    hard = run(jobs, sim.Cluster.slots(2).with_queues("hard", {"a": 0.5, "b": 0.5}))
    assert hard.task_start.tolist() == [0, 1, 2, 3, 1]
    lent = run(jobs, sim.Cluster.slots(2).with_queues("weighted", {"a": 0.5, "b": 0.5}))
    assert lent.task_start.tolist() == [0, 0, 1, 2, 1]


def test_strict_order_waits_where_skipping_does_not():
    jobs = [job(0, stage(2, demand={"cpu": 3})), job(0, stage(1, demand={"cpu": 3}))]
    jobs.append(job(0, stage(1, demand={"cpu": 1})))
    cluster = sim.Cluster.machines(1, cpu=4)
    assert run(jobs, cluster, fit="strict").job_start.tolist() == [0, 2, 2]
    assert run(jobs, cluster, fit="skip").job_start.tolist() == [0, 2, 0]


def test_packing_prefers_the_greatest_dot_product():
    jobs = [job(0, stage(1, demand={"cpu": 1, "mem": 1})), job(0, stage(1, demand={"cpu": 3}))]
    jobs.append(job(0, stage(1, demand={"cpu": 3, "mem": 2})))
    r = run(jobs, sim.Cluster.machines(1, cpu=4, mem=4), fit="pack")
    assert r.job_start.tolist() == [0, 1, 0]


def test_a_start_gate_holds_back_all_but_the_pilots_until_they_have_ended():
    policy = Scripted(
        prepare_with=lambda world, plan: plan.set_jobs(start_gate=1, notify_at=1),
        react_with=lambda batch, world, plan: plan.set_jobs(batch.row, start_gate=NO_LIMIT),
        listens=Event.TASKS_DONE,
    )
    r = run([job(0, stage(2, 1, 1))], sim.Cluster.slots(3), policy)
    assert r.task_start.tolist() == [0, 2, 2]
    assert policy.seen == [(2.0, [int(Event.TASKS_DONE)], [0])]


def test_an_overflow_queue_takes_surplus_room():
    def prepare(world, plan):
        plan.queues = Queues.make(2, tier=[0, 1], order=Order.FIFO)
        plan.set_jobs(start_gate=1, notify_at=1, overflow_queue=1)

    policy = Scripted(
        prepare_with=prepare,
        react_with=lambda batch, world, plan: plan.set_jobs(batch.row, start_gate=NO_LIMIT),
        listens=Event.TASKS_DONE,
    )
    r = run([job(0, stage(5, 1, 1)), job(0, stage(3, 1))], sim.Cluster.slots(3), policy)
    # both pilots first; the third slot goes to a second task of job 0, free of its gate
    assert r.task_start.tolist() == [0, 0, 1, 0, 2]


def test_a_run_limit_binds_at_every_instant():
    policy = Scripted(prepare_with=lambda world, plan: plan.set_jobs(run_limit=2))
    r = run([job(0, stage(1, 1, 1, 1, 1))], sim.Cluster.slots(9), policy)
    assert r.task_start.tolist() == [0, 0, 1, 1, 2]


def test_service_counts_running_tasks_and_is_told_when_crossed():
    policy = Scripted(
        prepare_with=lambda world, plan: plan.set_jobs(service_at=5.0), listens=Event.SERVICE
    )
    run([job(1, stage(4, 4))], sim.Cluster.slots(2), policy)
    assert policy.seen == [(3.5, [int(Event.SERVICE)], [0])]  # two tasks since 1 s


def test_a_timer_ticks_until_it_is_not_set_again():
    def tick(batch, world, plan):
        if batch.now < 2:
            plan.timer_s = batch.now + 1

    policy = Scripted(
        prepare_with=lambda world, plan: setattr(plan, "timer_s", 0.5),
        react_with=tick,
        listens=Event.TIMER,
    )
    run([job(0, stage(9))], sim.Cluster.slots(1), policy)
    assert [now for now, _, _ in policy.seen] == [0.5, 1.5, 2.5]


def test_events_are_deferred_in_a_callback_only_if_some_were_before():
    policy = Scripted(
        react_with=lambda batch, world, plan: setattr(plan, "deferred", Event.JOB_DONE),
        listens=Event.JOB_ARRIVED,
    )
    with pytest.raises(sim.PolicyError, match="only if some are from the start"):
        run([job(0, stage(9))], sim.Cluster.slots(1), policy)


def test_all_events_of_one_instant_come_as_one_batch():
    everything = Event.JOB_ARRIVED | Event.STAGE_DONE | Event.JOB_DONE
    policy = Scripted(listens=everything)
    run([job(0, stage(2)), job(2, stage(1))], sim.Cluster.slots(1), policy)
    done, stage_done, arrived = int(Event.JOB_DONE), int(Event.STAGE_DONE), int(Event.JOB_ARRIVED)
    assert policy.seen == [
        (0.0, [arrived], [0]),
        (2.0, [stage_done, done, arrived], [0, 0, 1]),
        (3.0, [stage_done, done], [1, 1]),
    ]


def test_a_task_order_says_which_task_of_a_stage_goes_first():
    def prepare(world, plan):
        plan.task_order = np.array([2, 0, 1], dtype=np.int32)

    r = run([job(0, stage(1, 1, 1))], sim.Cluster.slots(1), Scripted(prepare_with=prepare))
    assert r.task_start.tolist() == [1, 2, 0]


def test_a_gate_that_never_opens_is_a_deadlock_that_names_the_job():
    policy = Scripted(prepare_with=lambda world, plan: plan.set_jobs(start_gate=0))
    with pytest.raises(sim.DeadlockError, match=r"1 jobs can never go on.*'stuck'"):
        run([job(0, stage(1), job_id="stuck")], sim.Cluster.slots(1), policy)


def test_a_timer_that_only_ticks_is_a_deadlock_too():
    def tick(batch, world, plan):
        plan.timer_s = batch.now + 1

    policy = Scripted(
        prepare_with=lambda world, plan: (
            plan.set_jobs(start_gate=0),
            setattr(plan, "timer_s", 1.0),
        ),
        react_with=tick,
        listens=Event.TIMER,
    )
    with pytest.raises(sim.DeadlockError):
        run([job(0, stage(1))], sim.Cluster.slots(1), policy)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"key": np.nan}, "'key' holds a NaN"),
        ({"queue": 7}, "'queue' holds 7; valid: 0 to 0"),
        ({"run_limit": -1}, "'run_limit' holds -1"),
        ({"qeue": 0}, "did you mean 'queue'"),
        ({"key": "soon"}, "must be numeric"),
    ],
)
def test_nonsense_from_a_policy_is_named(columns, message):
    policy = Scripted(prepare_with=lambda world, plan: plan.set_jobs(**columns))
    with pytest.raises(sim.PolicyError, match=message):
        run([job(0, stage(1))], sim.Cluster.slots(1), policy)


def test_nonsense_in_a_callback_is_named():
    policy = Scripted(
        react_with=lambda batch, world, plan: plan.set_jobs(batch.row, key=np.nan),
        listens=Event.JOB_ARRIVED,
    )
    with pytest.raises(sim.PolicyError, match="NaN"):
        run([job(0, stage(1))], sim.Cluster.slots(1), policy)


def test_a_task_order_that_is_no_permutation_is_refused():
    def prepare(world, plan):
        plan.task_order = np.array([0, 0], dtype=np.int32)

    with pytest.raises(sim.PolicyError, match="permutation"):
        run([job(0, stage(1, 1))], sim.Cluster.slots(1), Scripted(prepare_with=prepare))


def test_a_timer_in_the_past_is_refused():
    policy = Scripted(
        react_with=lambda batch, world, plan: setattr(plan, "timer_s", batch.now),
        listens=Event.JOB_ARRIVED,
    )
    with pytest.raises(sim.PolicyError, match="later than now"):
        run([job(5, stage(1))], sim.Cluster.slots(1), policy)


def test_a_demand_that_no_machine_holds_is_refused_before_the_run():
    with pytest.raises(sim.InputError, match="'big'"):
        run(
            [job(0, stage(1, demand={"cpu": 9}), job_id="big")],
            sim.Cluster.machines(3, cpu=4),
        )


def test_records_do_not_change_the_run_and_the_tables_agree():
    jobs = [job(float(i), stage(1.5, 2.5), stage(1)) for i in range(5)]
    workload = sim.Workload.from_jobs(jobs)
    policy = policies.build("fifo")
    plain = sim.simulate(workload, sim.Cluster.slots(2), policy, record="jobs")
    full = sim.simulate(workload, sim.Cluster.slots(2), policy)
    assert plain.tasks is None
    with pytest.raises(sim.InputError, match="simulate with record='tasks', the default"):
        _ = plain.metrics
    assert plain.jobs.equals(full.jobs)
    last = full.tasks.group_by("job_id").aggregate([("finish_s", "max")])
    assert sorted(last["finish_s_max"].to_pylist()) == sorted(full.jobs["finish_s"].to_pylist())


def test_work_that_takes_no_time_is_done_at_once():
    r = run([job(3, stage(0, 0)), job(3, stage(0))], sim.Cluster.slots(1))
    assert r.job_finish.tolist() == [3, 3]


def test_a_resource_without_demand_changes_nothing():
    r = run([job(0, stage(1, 1))], sim.Cluster.machines(1, cpu=1, disk=0.5))
    assert r.task_start.tolist() == [0, 1]


def test_a_huge_machine_holds_everything():
    r = run([job(0, stage(1, 1, 1))], sim.Cluster.machines(1, cpu=1e15))
    assert r.task_start.tolist() == [0, 0, 0]


def test_remaining_work_counts_with_the_work_beyond_and_over_worth():
    def prepare(world, plan):
        plan.queues = Queues.make(1, order=Order.REMAINING)
        plan.set_jobs(worth=[1.0, 1.0, 4.0, 1.0], beyond=[0.0, 0.0, 0.0, 5.0])

    jobs = [job(0, stage(1)), job(0, stage(3)), job(0, stage(8)), job(0, stage(2))]
    # 1, 3, 8 / 4 = 2 and 2 + 5 = 7
    still = run(jobs, sim.Cluster.slots(1), Scripted(prepare_with=prepare))
    assert still.job_start.tolist() == [0, 9, 1, 12]
    changed = Scripted(
        prepare_with=prepare,
        react_with=lambda batch, world, plan: plan.set_jobs([2, 3], worth=[1.0, 7.0]),
        listens=Event.JOB_DONE,
    )
    weighed = run(jobs, sim.Cluster.slots(1), changed)
    assert weighed.job_start.tolist() == [0, 3, 6, 1]
    assert weighed.job_worth.tolist() == [1.0, 1.0, 1.0, 7.0]
    assert run(jobs, sim.Cluster.slots(1), Scripted()).job_worth is None


def test_worth_that_was_not_set_before_the_run_stays():
    policy = Scripted(
        react_with=lambda batch, world, plan: plan.set_jobs(0, worth=2.0), listens=Event.JOB_ARRIVED
    )
    with pytest.raises(PolicyError, match="set 'worth' in prepare, too"):
        run([job(0, stage(1))], sim.Cluster.slots(1), policy)
    prepared = Scripted(prepare_with=lambda world, plan: plan.set_jobs(worth=0.0))
    with pytest.raises(PolicyError, match="'worth' holds 0"):
        run([job(0, stage(1))], sim.Cluster.slots(1), prepared)
