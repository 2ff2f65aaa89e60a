"""Preemption and checkpoints: worked by hand, and equal to the naive simulator."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from sim.base.errors import InputError, PolicyError
from sim.cluster.faults import Outages
from sim.engine.plan import Preemption, Right
from tests.examples import COMPILED_WIDE, examples
from tests.sim.engine.compared import compare
from tests.sim.engine.random_worlds import LEAN, draw_with

pytestmark = pytest.mark.skipif(COMPILED_WIDE, reason="in no wide variant")

TWO = sim.Cluster.machines(2, cpu=1)


def job(name, submit_s, *durations_s, gang=True, **more):
    stages = [{"durations_s": list(durations_s), "demand": more.pop("demand", {"cpu": 1})}]
    n = len(durations_s) if gang else 0
    return {"job_id": name, "submit_s": submit_s, "min_tasks": n, "stages": stages, **more}


def run(jobs, cluster=TWO, policy="priority", fit="strict", **preemption):
    preemption.setdefault("by", "priority")
    chosen = policies.build(policy, fit=fit, preemption=preemption)
    return sim.simulate(sim.Workload.from_jobs(jobs), cluster, chosen, record="tasks")


def times(result):
    table = result.jobs
    columns = (table["job_id"], table["start_s"], table["finish_s"])
    return {
        name: (start, end)
        for name, start, end in zip(*(c.to_pylist() for c in columns), strict=True)
    }


def stops(result):
    table = result.stops
    columns = (table["job_id"], table["start_s"], table["stop_s"], table["reason"])
    return [*zip(*(column.to_pylist() for column in columns), strict=True)]


LOW = job("low", 0, 100.0, 100.0)
HIGH = job("high", 25, 50.0, priority=2)


@pytest.mark.parametrize("fit", ["strict", "skip", "pack"])
@pytest.mark.parametrize(
    ("checkpoint_s", "restart_s", "end_s"),
    [
        (None, 0.0, 75 + 100),  # all is lost
        (10.0, 0.0, 75 + 80),  # 20 of 25 s are saved
        (25.0, 0.0, 75 + 75),
        (0.0, 0.0, 75 + 75),
        (10.0, 5.0, 75 + 80 + 5),
    ],
)
def test_a_gang_stops_whole_and_keeps_whole_intervals(fit, checkpoint_s, restart_s, end_s):
    low = LOW | {"checkpoint_s": checkpoint_s, "restart_s": restart_s}
    result = run([low, HIGH], fit=fit)
    assert times(result) == {"low": (0, end_s), "high": (25, 75)}
    assert stops(result) == [("low", 0, 25, "preempted")] * 2
    lost_s = end_s - restart_s - (75 + 75)
    assert result.stops["kept_s"].to_pylist() == pytest.approx([25 - lost_s] * 2)
    assert result.metrics["stops_mean"] == 0.5
    assert result.metrics["work_lost_mean_s"] == pytest.approx(lost_s)
    ran_s = 2 * (25 + end_s - 75) + 50
    assert result.metrics["work_lost"] == pytest.approx(2 * lost_s / ran_s)


@pytest.mark.parametrize(
    ("when", "end_s", "outcome", "reason"),
    [("suspend", 150, "done", "preempted"), ("cancel", 25, "preempted", "cancelled")],
)
def test_what_becomes_of_a_victim(when, end_s, outcome, reason):
    result = run([LOW | {"restart_s": 9.0}, HIGH], when=when)
    assert times(result)["low"] == (0, end_s)
    assert result.jobs["outcome"].to_pylist() == [outcome, "done"]
    assert stops(result) == [("low", 0, 25, reason)] * 2
    lost_s = 25.0 if when == "cancel" else 0.0
    assert result.metrics["work_lost_mean_s"] == lost_s
    assert result.metrics["work_lost"] == lost_s / 50


def test_a_job_that_is_stopped_before_it_ran_has_not_started():
    low, high = job("low", 0, 10.0, gang=False), job("high", 0, 50.0, gang=False, priority=2)
    for gang in (False, True):
        jobs = [j | {"min_tasks": int(gang)} for j in (low, high)]
        result = run(jobs, sim.Cluster.machines(1, cpu=1), policy="fifo")
        assert times(result) == {"low": (50, 60), "high": (0, 50)}
        assert stops(result) == []
        assert result.metrics["wait_mean_s"] == 25


def test_a_task_that_never_ran_does_not_restart():
    """It is placed at 10, where the gang before it in order lacks room, which then takes all."""
    late = job("late", 10, 30.0, restart_s=5.0)
    jobs = [job("busy", 0, 90.0, restart_s=5.0), late, job("high", 10, 5.0, 5.0, priority=1)]
    result = run(jobs, fit="skip")
    assert stops(result) == [("busy", 0, 10, "preempted")]
    assert times(result) == {"busy": (0, 15 + 5 + 90), "late": (15, 15 + 30), "high": (10, 15)}


def test_work_is_saved_again_and_again():
    """Stopped at 25 and, having run from 75 on, at 100: 20 s are saved each time."""
    low = LOW | {"checkpoint_s": 10.0}
    again = job("again", 100, 30.0, priority=1)
    assert times(run([low, HIGH, again]))["low"] == (0, 130 + 60)


def test_only_what_is_needed_stops():
    """Of four tasks of the lowest level the last started gives way to one, and two to the next."""
    jobs = [
        job("a", 0, 90.0, 90.0, gang=False),
        job("b", 1, 90.0, gang=False),
        job("c", 2, 90.0, gang=False, priority=1),
        job("one", 10, 5.0, priority=3),
        job("two", 12, 5.0, 5.0, priority=2),
    ]
    result = run(jobs, sim.Cluster.machines(4, cpu=1))
    assert stops(result) == [
        ("b", 1, 10, "preempted"),
        ("a", 0, 12, "preempted"),
        ("a", 0, 12, "preempted"),
    ]
    assert times(result)["one"] == (10, 15)
    assert times(result)["two"] == (12, 17)


@pytest.mark.parametrize(
    ("victims", "stopped"),
    [
        ("lowest_level", "new"),
        ("last_started", "new"),
        ("least_lost", "saved"),
        ("fewest_machines", "old"),
    ],
)
def test_the_order_of_victims(victims, stopped):
    jobs = [
        job("old", 0, 90.0),
        job("saved", 1, 90.0, checkpoint_s=9.0),
        job("new", 5, 90.0),
        job("high", 10, 5.0, priority=2),
    ]
    result = run(jobs, sim.Cluster.machines(3, cpu=1), victims=victims)
    assert [row[0] for row in stops(result)] == [stopped]


@pytest.mark.parametrize(
    ("victims", "stopped"), [("lowest_level", "wide"), ("fewest_machines", "b")]
)
def test_small_jobs_stop_first(victims, stopped):
    """Of the same level; a has a higher one."""
    wide = job("wide", 3, 90.0, 90.0, min_tasks=2)
    jobs = [job("a", 0, 90.0, priority=1), job("b", 1, 90.0), wide, job("high", 9, 5.0, priority=2)]
    result = run(jobs, sim.Cluster.machines(4, cpu=1), victims=victims)
    assert {row[0] for row in stops(result)} == {stopped}


def test_the_lowest_level_stops_first():
    jobs = [job("old", 0, 90.0), job("new", 5, 90.0, priority=1), job("high", 10, 5.0, priority=2)]
    assert [row[0] for row in stops(run(jobs))] == ["old"]


def test_a_victim_may_preempt_others():
    """The last started stops first, whatever its level, and then takes the room of the lowest."""
    jobs = [job("old", 0, 90.0), job("new", 5, 90.0, priority=1), job("high", 10, 5.0, priority=2)]
    result = run(jobs, victims="last_started")
    assert stops(result) == [("old", 0, 10, "preempted"), ("new", 5, 10, "preempted")]
    assert times(result)["new"] == (5, 100)


def test_a_victim_that_is_not_needed_is_spared():
    """The first victim is on the wrong machine: only the one on a machine of the class stops."""
    cluster = sim.Cluster.mixed([{"class": "a", "cpu": 1}, {"class": "b", "cpu": 1}])
    picky = job("high", 10, 5.0, priority=2)
    picky["stages"][0]["runs_on"] = "a"
    result = run([job("x", 0, 90.0, priority=1), job("y", 1, 90.0, priority=1), picky], cluster)
    assert stops(result) == [("x", 0, 10, "preempted")]


def test_nothing_stops_where_it_does_not_suffice():
    jobs = [
        job("low", 0, 90.0),
        job("mid", 0, 90.0, priority=2),
        job("high", 10, 5.0, 5.0, priority=1),
    ]
    result = run(jobs)
    assert stops(result) == []
    assert times(result)["high"] == (90, 95)


@pytest.mark.parametrize("may", [True, False])
def test_a_job_may_be_kept_from_preempting(may):
    result = run([LOW, HIGH | {"preempts": may}])
    assert times(result)["high"][0] == (25 if may else 100)


def test_a_grace_time():
    """The victim runs on for 10 s, and the job starts then, before one that came meanwhile."""
    late = job("late", 30, 5.0, priority=1)
    result = run([LOW, job("high", 25, 50.0, 50.0, priority=1), late], grace_s=10.0)
    assert stops(result) == [("low", 0, 35, "preempted")] * 2
    assert times(result)["high"] == (35, 85)


def test_a_victim_that_ends_within_its_grace_time():
    short = job("low", 0, 30.0, 30.0)
    result = run([short, job("high", 25, 50.0, 50.0, priority=1)], grace_s=10.0)
    assert stops(result) == []
    assert times(result) == {"low": (0, 30), "high": (30, 80)}


@pytest.mark.parametrize("gang", [True, False])
@pytest.mark.parametrize(("when", "start_s"), [("requeue", 45), ("cancel", 35)])
def test_notice_to_a_victim_that_begins_anew(when, start_s, gang):
    """One of two victims fails at 28, and begins again; only a job to be cancelled still stops."""
    low = [job(name, 0, 100.0, gang=gang) for name in ("fails", "runs on")]
    workload = sim.Workload.from_jobs([*low, job("high", 25, 50.0, 50.0, priority=1)])
    workload = workload.with_failures({"task": [0], "after_s": [28.0], "lost": [-1]})
    preemption = {"by": "priority", "when": when, "grace_s": 10.0}
    policy = policies.build("priority", fit="skip", preemption=preemption)
    result = sim.simulate(workload, TWO, policy, record="tasks")
    assert times(result)["high"] == (start_s, start_s + 50)
    reason = "cancelled" if when == "cancel" else "preempted"
    assert ("fails", 28, start_s, reason) in stops(result)


def test_a_notice_outlives_all_that_come_after_it():
    """Machine b's task has notice for 1000.5; until then many others have, and end before."""
    kinds = [{"class": "a", "cpu": 1}] * 4 + [{"class": "b", "cpu": 1}]
    jobs = [job("long", 0, 5000.0), job("first", 0.5, 10.0, priority=1)]
    for i in range(12):
        jobs.append(job(f"low {i}", 4 * i + 1, *[1.5] * 4, gang=False))
        jobs.append(job(f"high {i}", 4 * i + 2, *[1.0] * 4, priority=1))
    for row in jobs:
        row["stages"][0]["runs_on"] = "b" if row["job_id"] in ("long", "first") else "a"
    result = run(jobs, sim.Cluster.mixed(kinds), grace_s=1000.0)
    assert stops(result) == [("long", 0, 1000.5, "preempted")]
    assert times(result)["first"] == (1000.5, 1010.5)


@pytest.mark.parametrize("policy", ["drf", "fair"])
def test_queues_take_back_their_share(policy):
    """Four slots: b takes two of a's, and no third, by which it would have more than a."""
    jobs = [
        job("a", 0, *[100.0] * 4, gang=False, user="a", queue="a"),
        job("b", 10, *[50.0] * 3, gang=False, user="b", queue="b"),
    ]
    for row in jobs:
        row["stages"][0]["demand"] = {"cpu": 1}
    result = run(jobs, sim.Cluster.machines(4, cpu=1), policy, by="share")
    assert stops(result) == [("a", 0, 10, "preempted")] * 2
    assert times(result) == {"a": (0, 200), "b": (10, 110)}


@pytest.mark.parametrize("is_refused", [True, False])
def test_preemption_by_share_beside_a_job_that_partitions_refuse(is_refused):
    """Job a1 has no right at 10, when b2 starts behind it; a refused job is no cap to try again."""
    kinds = [{"class": name, "cpu": 1, "count": 2, "partitions": ["p"]} for name in "xy"]
    cluster = sim.Cluster.mixed(kinds).with_partitions({"p": {"max_nodes": 1}})
    jobs = [
        job("b1", 0, 100.0, 100.0, gang=False, queue="b"),
        job("a0", 0, 200.0, queue="a"),
        job("a1", 10, 5.0, queue="a"),
        job("b2", 10, 50.0, queue="b"),
    ]
    for row, kind in zip(jobs, "xyxy", strict=True):
        row["stages"][0]["runs_on"] = kind
    if is_refused:
        jobs.append(job("refused", 0, 1.0, queue="a") | {"n_nodes": 2})
    jobs = [{"partition": "p", "user": row["queue"], "n_nodes": 1, **row} for row in jobs]
    started = times(run(jobs, cluster, "drf", "per_class", by="share"))
    assert started["b2"][0] == 10
    assert started["a1"][0] == 100


def test_hard_shares_preempt_within_their_queue():
    cluster = sim.Cluster.machines(4, cpu=1).with_queues("hard", {"a": 0.5, "b": 0.5})
    jobs = [
        job("a1", 0, 90.0, 90.0, queue="a"),
        job("b1", 0, 90.0, queue="b"),
        job("a2", 10, 5.0, queue="a", priority=1),
    ]
    assert [row[0] for row in stops(run(jobs, cluster))] == ["a1", "a1"]


def test_levels_by_quality_of_service():
    jobs = [
        job("scavenger", 0, 90.0, qos="low"),
        job("normal", 0, 90.0, qos="normal"),
        job("urgent", 10, 5.0, qos="high"),
    ]
    levels = {"low": 0, "normal": 1, "high": 2}
    when = {"low": "cancel", "normal": "requeue"}
    result = run(jobs, policy="fifo", by="qos", levels=levels, when=when)
    assert stops(result) == [("scavenger", 0, 10, "cancelled")]


@pytest.mark.parametrize("policy", ["easy", "conservative", "slurm"])
def test_backfilling(policy):
    """With reservations at its arrival; under Slurm's planner in a pass, a second later at most."""
    jobs = [LOW | {"requested_s": 200.0}, HIGH | {"requested_s": 60.0}]
    result = run(jobs, policy=policy, fit="skip")
    start_s, end_s = times(result)["high"]
    assert 25 <= start_s <= 25 + (policy == "slurm")
    assert end_s == start_s + 50
    assert {row[0] for row in stops(result)} == {"low"}


@pytest.mark.parametrize("backfill", [True, False])
def test_slurm_preempts_for_no_job_behind_one_that_waits_for_the_same_nodes(backfill):
    """A pass ends at `wide`, for which no preemption suffices; a plan lets `high` go ahead."""
    rows = [
        job("first", 0, 900.0, priority=9, requested_s=900.0),
        job("low", 0, 900.0, requested_s=900.0),
        job("wide", 5, 10.0, 10.0, priority=8, requested_s=10.0),
        job("high", 25, 50.0, priority=2, requested_s=60.0),
    ]
    chosen = policies.build("slurm", backfill=backfill, preemption={"by": "priority"})
    result = sim.simulate(sim.Workload.from_jobs(rows), TWO, chosen, record="tasks")
    start_s = times(result)["high"][0]
    if backfill:
        assert 25 <= start_s <= 25 + 31
        assert stops(result)[0] == ("low", times(result)["first"][0], start_s, "preempted")
    else:
        assert start_s > times(result)["wide"][1] > 900
        assert not stops(result)


def test_a_checkpoint_outlives_a_machine():
    cluster = sim.Cluster.machines(1, cpu=1).with_outages(Outages.from_columns([0], [25.0], [40.0]))
    low = job("low", 0, 100.0, checkpoint_s=10.0, restart_s=5.0)
    result = sim.simulate(sim.Workload.from_jobs([low]), cluster, policies.build("fifo"))
    assert times(result)["low"] == (0, 40 + 5 + 80)


def test_a_failed_attempt_keeps_nothing():
    low = sim.Workload.from_jobs([job("low", 0, 100.0, checkpoint_s=10.0)])
    failing = low.with_failures({"task": [0], "after_s": [25.0], "lost": [-1]})
    result = sim.simulate(failing, sim.Cluster.machines(1, cpu=1), policies.build("fifo"))
    assert times(result)["low"] == (0, 125)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": "colour"}, "colour"),
        ({"by": "qos"}, "levels does not say"),
        ({"by": "priority", "levels": {"a": 1}}, "set by to that column"),
        ({"victims": "youngest"}, "youngest"),
        ({"when": "kill"}, "kill"),
        ({"grace_s": "soon"}, "grace_s must be a number, not 'soon'"),
        ({"in_queue": "no"}, "in_queue must be"),
        ({"by": "qos", "levels": {"a": "high"}}, "levels must be a mapping"),
        ({"when": {"low": "cancel"}}, "names values of a column"),
        ({"grace": 3}, "grace_s"),
    ],
)
def test_options_that_do_not_go_together(options, words):
    with pytest.raises(InputError, match=words):
        run([LOW | {"qos": "low"}], **options)


@pytest.mark.parametrize("grace_s", [-1.0, np.inf])
def test_a_grace_time_is_a_number_of_seconds(grace_s):
    with pytest.raises(PolicyError, match="grace_s"):
        Preemption(grace_s=grace_s)


def test_a_queue_takes_back_what_it_lent():
    """Two queues of 2 CPUs each: b has lent both, takes them back, and does not borrow more."""
    tree = {name: {"parent": "all", "nominal": {"cpu": 2}} for name in "ab"}
    cluster = sim.Cluster.machines(4, cpu=1).with_quotas(tree)
    jobs = [
        job("a", 0, *[90.0] * 4, gang=False, queue="a"),
        job("b", 10, *[50.0] * 3, gang=False, queue="b"),
    ]
    result = run(jobs, cluster, "kueue", by="quota")
    assert stops(result) == [("a", 0, 10, "preempted")] * 2
    assert times(result)["b"] == (10, 110)


def test_a_task_takes_back_what_it_needs_whatever_a_later_stage_needs():
    """Queue b has lent both: a's first task needs 2 CPUs, its quota; the one after it needs 3."""
    tree = {name: {"parent": "all", "nominal": {"cpu": 2}} for name in "ab"}
    cluster = sim.Cluster.machines(1, cpu=4).with_quotas(tree)
    stages = [
        {"name": "two", "durations_s": [5.0], "demand": {"cpu": 2}},
        {"name": "three", "durations_s": [5.0], "demand": {"cpu": 3}, "parents": ["two"]},
    ]
    jobs = [
        job("b", 0, *[90.0] * 4, gang=False, queue="b"),
        {"job_id": "a", "submit_s": 10, "queue": "a", "stages": stages},
        job("gang", 500, 1.0, queue="a"),
    ]
    result = run(jobs, cluster, "kueue", by="quota")
    assert stops(result)[:2] == [("b", 0, 10, "preempted")] * 2
    assert times(result)["a"][0] == 10


@pytest.mark.parametrize("in_queue", [True, False])
def test_quotas_and_priorities_within_a_queue(in_queue):
    """The queue has its quota in use: only within it can the more important job find room."""
    tree = {name: {"parent": "all", "nominal": {"cpu": 2}, "borrow": {"cpu": 0}} for name in "ab"}
    cluster = sim.Cluster.machines(4, cpu=1).with_quotas(tree)
    jobs = [job("low", 0, 90.0, 90.0, queue="a"), job("high", 10, 5.0, queue="a", priority=1)]
    result = run(jobs, cluster, "kueue", by="quota", in_queue=in_queue)
    assert times(result)["high"][0] == (10 if in_queue else 90)


def test_quotas_are_needed():
    with pytest.raises(PolicyError, match=r"set cluster\.quotas"):
        run([LOW], by="quota")


def test_rights_that_exclude_each_other():
    with pytest.raises(PolicyError, match="in turn for ever"):
        Preemption(Right.LEVEL | Right.SHARE)


def test_queues_of_equal_shares_do_not_take_room_from_each_other():
    """Use is counted in cpu, of which nobody demands any: by it nobody has a right to room."""
    jobs = [job(name, i, 9.0, queue=name, demand={"mem": 1}) for i, name in enumerate("ab")]
    cluster = sim.Cluster.machines(1, cpu=1, mem=1)
    options = {"preemption": {"by": "share"}, "resource": "cpu"}
    workload = sim.Workload.from_jobs(jobs)
    result = sim.simulate(workload, cluster, policies.build("fair", **options), record="tasks")
    assert stops(result) == []


def test_a_queue_gets_no_share_by_stopping_its_own():
    """Two queues of 5 CPUs. Without its `low`, which need not stop, a had 3 with `high`, b 4.

    So b would take the room back at each instant that follows.
    """
    cluster = sim.Cluster.mixed([{"class": "x", "cpu": 5}, {"class": "y", "cpu": 5}])
    jobs = [
        job("first", 0, 100.0, user="a", priority=2, demand={"cpu": 2}),
        job("b", 1, *[20.0] * 5, gang=False, user="b"),
        job("low", 2, 100.0, user="a", demand={"cpu": 3}),
        job("high", 3, 20.0, user="a", priority=1),
    ]
    for row in jobs:
        row["stages"][0]["runs_on"] = "y" if row["job_id"] in ("b", "high") else "x"
    result = run(jobs, cluster, "drf", fit="skip", by="share", in_queue=True)
    assert stops(result) == []
    assert times(result)["high"] == (21, 41)


def test_only_what_was_borrowed_is_taken_back():
    """Queue b has borrowed memory, and its GPUs are within its quota, until it takes a second."""
    tree = {name: {"parent": "all", "nominal": {"mem": 2, "gpu": 1}} for name in "ab"}
    kinds = [{"class": "x", "mem": 4, "gpu": 1}, {"class": "y", "mem": 1, "gpu": 1}]
    cluster = sim.Cluster.mixed(kinds).with_quotas(tree)
    gpu = {"mem": 0, "gpu": 1}
    jobs = [
        job("mem", 0, 50.0, queue="b", demand={"mem": 4, "gpu": 0}),
        job("y", 1, 50.0, queue="b", demand=gpu),
        job("a", 10, 5.0, queue="a", demand=gpu),
        job("x", 20, 5.0, queue="b", demand=gpu),
    ]
    for row in jobs:
        row["stages"][0]["runs_on"] = "x" if row["job_id"] in ("mem", "x") else "y"
    result = run(jobs, cluster, "kueue", fit="skip", by="quota")
    assert stops(result) == [("y", 1, 20, "preempted")]
    assert times(result)["a"] == (20, 25)


def test_same_bits_in_random_worlds():
    """Of every mechanism with preemption, and checkpoints without it."""
    n_equal = 0
    for number in range(examples(160)):
        rng = np.random.default_rng([57, number])
        on = set(LEAN[rng.integers(len(LEAN))]) | {str(rng.choice(["preemption", "checkpoints"]))}
        result = compare(draw_with(rng, on))
        assert not result.differs, (number, result.differs)
        n_equal += not result.refused
    assert n_equal >= examples(160) // 2


def test_slurm_plans_as_if_those_that_may_be_preempted_were_gone():
    """w needs all three machines: it is planned for 500 s, when r ends, and takes that of v then.

    So b, of 700 s, does not pass it on the free one. Were v to end at its limit of 1,000 s, it did.
    """

    def limited(name, submit_s, run_s, limit_s, n=1, qos="normal"):
        return job(name, submit_s, *[run_s] * n, requested_s=limit_s, qos=qos)

    jobs = [
        limited("v", 0.0, 900.0, 1000.0, qos="low"),
        limited("r", 0.0, 500.0, 500.0),
        limited("w", 20.0, 100.0, 100.0, n=3),
        limited("b", 40.0, 10.0, 700.0),
    ]
    cluster = sim.Cluster.machines(3, cpu=1)

    def started(levels):
        preemption = {"by": "qos", "levels": levels}
        policy = policies.build("slurm", interval_s=1, preemption=preemption)
        result = sim.simulate(sim.Workload.from_jobs(jobs), cluster, policy)
        return {name: start for name, (start, _) in times(result).items()}

    own = started({"normal": 1, "low": 0})
    assert 500.0 <= own["w"] < 510.0
    assert own["b"] > 500.0
    nobody = started({"normal": 0, "low": 0})
    assert nobody["w"] > 900.0
    assert nobody["b"] < 60.0
