"""Quotas by class of machine, and strategies of queues: readings of Kueue's documentation by hand.

Kueue v0.19, *Cluster queue*: flavors and borrowing semantics, flavorFungibility, queueing strategy.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

import policies
import sim
from policies.base import Policy
from policies.knows import Knows
from sim.base.errors import InputError
from sim.engine.plan import Order, Queues, Replan
from tests.examples import COMPILED_WIDE, examples
from tests.sim.engine import outcome, reference
from tests.sim.engine.compared import STUCK, kernel_outcome
from tests.sim.engine.random_worlds import QUEUES, build, draw_with

pytestmark = pytest.mark.skipif(COMPILED_WIDE, reason="in no wide variant")

SPOT, STEADY, OTHER = 0, 1, 2
"""Machines of the cluster below."""


def machines(tree, **gpus):
    """Build a machine of 8 CPUs of class spot, one of class steady, and one without a class."""
    kinds = [{"class": "spot", "cpu": 8}, {"class": "steady", "cpu": 8}, {"cpu": 8}]
    for kind in kinds[:2] if gpus else ():
        kind["gpu"] = gpus[kind["class"]]
    return sim.Cluster.mixed(kinds).with_quotas(tree)


def job(name, queue, submit_s, n, duration_s=10.0, gang=False, **demand):
    stage = {"durations_s": [duration_s] * n, "demand": demand or {"cpu": 1}}
    more = {"min_tasks": n} if gang else {}
    return {"job_id": name, "queue": queue, "submit_s": submit_s, "stages": [stage], **more}


def run(jobs, cluster, policy="fifo", **params):
    """Run jobs by the kernel, which equals the naive simulator.

    Returns the tasks of each job by start and machine: ``{(0.0, SPOT): 4}``.
    """
    workload = sim.Workload.from_jobs(jobs)
    built = policies.build(policy, **params) if isinstance(policy, str) else policy
    result = sim.simulate(workload, cluster, built, record="tasks")
    naive = reference.simulate(workload, cluster, built)
    for name in ("job_start", "job_finish", "task_start", "task_machine"):
        np.testing.assert_array_equal(getattr(result, name), getattr(naive, name), err_msg=name)
    placed = {}
    rows = workload.columns.stage_job.repeat(workload.columns.stage_n_tasks).tolist()
    pairs = zip(result.task_start.tolist(), result.task_machine.tolist(), strict=True)
    for row, pair in zip(rows, pairs, strict=True):
        own = placed.setdefault(jobs[row]["job_id"], {})
        own[pair] = own.get(pair, 0) + 1
    return placed


def quotas_of_a(**flavors):
    """Build the tree of one queue with a quota of CPUs by class."""
    return {"a": {"nominal": {"cpu": flavors}}}


def test_a_queue_tries_its_flavors_in_its_order():
    """12 tasks of 1 CPU and quotas of 4 and 8: those of the first flavor first, the rest behind."""
    jobs = [job("j", "a", 0, 12)]
    assert run(jobs, machines(quotas_of_a(spot=4, steady=8))) == {
        "j": {(0, SPOT): 4, (0, STEADY): 8}
    }
    assert run(jobs, machines(quotas_of_a(steady=8, spot=2))) == {
        "j": {(0, STEADY): 8, (0, SPOT): 2, (10, STEADY): 2}
    }


def test_a_queue_uses_no_flavor_that_it_does_not_name():
    """Ten tasks and a quota of 8 of spot machines: two wait, though 16 CPUs of others are idle."""
    assert run([job("j", "a", 0, 10)], machines(quotas_of_a(spot=8))) == {
        "j": {(0, SPOT): 8, (10, SPOT): 2}
    }


def test_a_flavor_of_several_classes_has_one_quota():
    tree = {"a": {"nominal": {"cpu": {"spot|steady": 10}}}}
    assert run([job("j", "a", 0, 12)], machines(tree)) == {
        "j": {(0, SPOT): 8, (0, STEADY): 2, (10, SPOT): 2}
    }


def test_a_share_is_of_each_flavor():
    """Half of spot, and of all the others together, for a queue that names none: 4 and 8 CPUs."""
    tree = {"a": {"nominal": {"cpu": "50%"}}, "b": {"nominal": {"cpu": {"spot": "50%"}}}}
    assert run([job("j", "a", 0, 14), job("k", "b", 0, 5)], machines(tree)) == {
        "j": {(0, SPOT): 4, (0, STEADY): 8, (10, SPOT): 2},
        "k": {(0, SPOT): 4, (10, SPOT): 1},
    }


def test_a_gang_is_of_one_flavor():
    """Gangs of 4 with quotas of 4 and 6: one in each; the third waits, with 2 CPUs left."""
    jobs = [job(name, "a", 0, 4, gang=True) for name in "xyz"]
    assert run(jobs, machines(quotas_of_a(spot=4, steady=6))) == {
        "x": {(0, SPOT): 4},
        "y": {(0, STEADY): 4},
        "z": {(10, SPOT): 4},
    }


def test_a_gang_that_fits_no_flavor_is_refused():
    """7 CPUs of 4 + 6: more than any flavor has."""
    workload = sim.Workload.from_jobs([job("j", "a", 0, 7, gang=True)])
    with pytest.raises(InputError, match="may use, and borrow, at most 6"):
        sim.simulate(workload, machines(quotas_of_a(spot=4, steady=6)), policies.build("fifo"))


def test_a_gang_takes_all_resources_of_a_flavor():
    """Two CPUs and two GPUs: spot machines have GPUs in the quota, and only one CPU in it."""
    tree = {"a": {"nominal": {"cpu": {"spot": 1, "steady": 4}, "gpu": {"spot": 4, "steady": 4}}}}
    jobs = [job("j", "a", 0, 2, gang=True, cpu=1, gpu=1), job("k", "a", 0, 1, cpu=1, gpu=1)]
    assert run(jobs, machines(tree, spot=4, steady=4)) == {
        "j": {(0, STEADY): 2},
        "k": {(0, SPOT): 1},
    }


def test_what_takes_nothing_of_a_resource_with_flavors_runs_anywhere():
    """GPUs have quotas by class, CPUs none: a gang of 20 CPUs spans all machines."""
    tree = {"a": {"nominal": {"gpu": {"spot": 2}}}}
    jobs = [job("g", "a", 0, 3, cpu=1, gpu=1), job("c", "a", 0, 20, gang=True)]
    assert run(jobs, machines(tree, spot=2, steady=2), fit="skip") == {
        "g": {(0, SPOT): 2, (10, SPOT): 1},
        "c": {(0, SPOT): 6, (0, STEADY): 8, (0, OTHER): 6},
    }


BORROWING = {
    "a": {"parent": "all", "nominal": {"cpu": {"spot": 2, "steady": 4}}},
    "b": {"parent": "all", "nominal": {"cpu": {"spot": 4}}},
}


@pytest.mark.parametrize(
    ("choice", "a", "b"),
    [
        ("first", {(0, SPOT): 4}, {(10, SPOT): 4}),
        ("least_borrowing", {(0, STEADY): 4}, {(1, SPOT): 4}),
    ],
)
def test_borrowing_or_the_next_flavor(choice, a, b):
    """Kueue's whenCanBorrow: MayStopSearch and TryNextFlavor.

    A gang of 4 of a borrows 2 of spot, or fits its quota of steady. b's of 4 has what is left.
    """
    tree = BORROWING | {"a": BORROWING["a"] | {"flavor_choice": choice}}
    jobs = [job("x", "a", 0, 4, gang=True), job("y", "b", 1, 4, gang=True)]
    assert run(jobs, machines(tree)) == {"x": a, "y": b}


def test_a_queue_borrows_no_flavor_that_it_does_not_name():
    """b may borrow 2 CPUs of spot from a, and none of steady."""
    assert run([job("y", "b", 0, 8)], machines(BORROWING)) == {"y": {(0, SPOT): 6, (10, SPOT): 2}}


def test_limits_are_of_each_flavor():
    """b lends 1 of its 4, and a borrows at most 3 of spot: 2 + 1. Of steady it has its own 4."""
    tree = {
        "a": BORROWING["a"] | {"borrow": {"cpu": {"spot": 3}}},
        "b": BORROWING["b"] | {"lend": {"cpu": {"spot": 1}}},
    }
    assert run([job("x", "a", 0, 9)], machines(tree)) == {
        "x": {(0, SPOT): 3, (0, STEADY): 4, (10, SPOT): 2}
    }


def test_who_borrows_in_its_flavor_waits_for_who_does_not():
    """At 10 s 6 CPUs of spot are free. x was first and would borrow 2; y is within its quota of 4.

    x, of the first flavor alone, would leave y 2; so y starts, and x when y ends.
    """
    tree = {
        "a": {"parent": "all", "nominal": {"cpu": {"spot": 2}}},
        "b": {"parent": "all", "nominal": {"cpu": {"spot": 4}}},
    }
    jobs = [
        job("all", "a", 0, 6, gang=True),
        job("x", "a", 1, 4, gang=True),
        job("y", "b", 2, 4, gang=True),
    ]
    for policy in ("fifo", "kueue"):
        assert run(jobs, machines(tree), policy) == {
            "all": {(0, SPOT): 6},
            "x": {(20, SPOT): 4},
            "y": {(10, SPOT): 4},
        }


def test_a_quota_is_taken_back_in_its_flavor():
    """x borrowed spot, z runs on steady. y takes back what it lent: x stops, and z goes on."""
    jobs = [
        job("x", "a", 0, 6, gang=True),
        job("z", "a", 0, 4, 30.0, gang=True),
        job("y", "b", 1, 4, gang=True),
    ]
    preemption = {"by": "quota", "when": "requeue"}
    placed = run(jobs, machines(BORROWING), "kueue", preemption=preemption)
    assert placed == {"x": {(11, SPOT): 6}, "z": {(0, STEADY): 4}, "y": {(1, SPOT): 4}}


def test_room_is_reserved_in_the_flavor_that_is_free_first():
    """r of 4 fits spot at 30, steady at 10: it is reserved steady. c ends by then, d does not."""
    jobs = [
        job("x", "a", 0, 4, 30.0, gang=True),
        job("y", "a", 0, 4, 10.0, gang=True),
        job("r", "a", 1, 4, 5.0, gang=True),
        job("c", "a", 2, 1, 8.0),
        job("d", "a", 2, 1, 9.0),
    ]
    for row, requested_s in zip(jobs, (30, 10, 5, 8, 9), strict=True):
        row["requested_s"] = requested_s
    assert run(jobs, machines(quotas_of_a(spot=4, steady=5)), "easy") == {
        "x": {(0, SPOT): 4},
        "y": {(0, STEADY): 4},
        "r": {(10, STEADY): 4},
        "c": {(2, STEADY): 1},
        "d": {(10, STEADY): 1},
    }


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"a": {"nominal": {"cpu": {"spot": 1, "spot|steady": 2}}}}, "in the flavors 'spot' and"),
        ({"a": {"nominal": {"cpu": {"sport": 1}}}}, "did you mean 'spot'"),
        ({"a": {"nominal": {"cpu": {"spot": 1}}}, "b": {"nominal": {"cpu": 4}}}, "a share such as"),
        (
            {"a": {"nominal": 3}, "b": {"nominal": {"cpu": {"spot": 1}}}},
            "quotas.a.nominal: 3 of cpu",
        ),
        ({"a": {"nominal": {"cpu": {"spot": -1}}}}, "nominal.cpu.spot"),
        ({"a": {"strategy": "fifo"}}, "quotas.a.strategy"),
        ({"a": {"flavor_choice": "last"}}, "quotas.a.flavor_choice"),
    ],
)
def test_errors_name_the_value_and_the_way_out(tree, message):
    with pytest.raises(InputError, match=message):
        machines(tree)


def test_a_job_without_a_flavor_is_refused_before_the_run():
    jobs = [job("j", "a", 0, 1)]
    jobs[0]["stages"][0]["runs_on"] = "steady"
    with pytest.raises(InputError, match="no machine of a flavor of its queue 'a'"):
        sim.simulate(
            sim.Workload.from_jobs(jobs), machines(quotas_of_a(spot=8)), policies.build("fifo")
        )


# ---- strategies

STRATEGIES = {
    "a": {"nominal": {"slot": 8}, "strategy": "strict"},
    "b": {"nominal": {"slot": 8}, "strategy": "skip"},
}


@pytest.mark.parametrize("fit", ["strict", "skip"])
def test_a_job_that_waits_blocks_its_queue_or_lets_it_pass(fit):
    """Of 8 slots each queue takes 2 for 10 s; a gang of 8 waits in both, and a task behind it.

    That of b passes its gang at 2; that of a starts when a2 has ended, and so before b2.
    """
    jobs = [job(f"{q}1", q, 0, 2, gang=True) for q in "ab"]
    jobs += [job(f"{q}2", q, 1, 8, gang=True) for q in "ab"]
    jobs += [job(f"{q}3", q, 2, 1, 5.0) for q in "ab"]
    for row in jobs:
        row["stages"][0].pop("demand")
    placed = run(jobs, sim.Cluster.slots(8).with_quotas(STRATEGIES), fit=fit)
    starts = {name: min(time for time, _ in own) for name, own in placed.items()}
    assert starts == {"a1": 0, "b1": 0, "a2": 10, "b2": 25, "a3": 20, "b3": 2}


def test_a_strategy_needs_no_quota():
    """Rows without amounts limit nothing."""
    tree = {"a": {"strategy": "strict"}, "b": {"strategy": "skip"}}
    jobs = [
        job("a1", "a", 0, 6),
        job("a2", "a", 1, 1, cpu=4),
        job("a3", "a", 2, 1),
        job("b1", "b", 3, 1),
    ]
    cluster = sim.Cluster.machines(1, cpu=8).with_quotas(tree)
    assert run(jobs, cluster) == {
        "a1": {(0, 0): 6}, "a2": {(10, 0): 1}, "a3": {(10, 0): 1}, "b1": {(3, 0): 1}
    }  # fmt: skip


@pytest.mark.parametrize(("policy", "params"), [("fifo", {"fit": "pack"}), ("easy", {})])
def test_a_strategy_means_nothing_where_nothing_waits_in_order(policy, params):
    jobs = [job("j", "a", 0, 1) | {"requested_s": 10}]
    cluster = sim.Cluster.machines(1, cpu=8).with_quotas({"a": {"strategy": "strict"}})
    with pytest.raises(sim.PolicyError, match="has a strategy of a queue"):
        sim.simulate(sim.Workload.from_jobs(jobs), cluster, policies.build(policy, **params))


def with_strategies(world, strategies):
    """Return a world whose queues have strategies, and quotas that limit nothing."""
    tree = {name: {"strategy": strategy} for name, strategy in strategies.items()}
    cluster = world["cluster"] | {"quotas": {"tree": tree, "by_share": True}}
    return world | {"cluster": cluster}


@pytest.mark.parametrize("fit", ["strict", "skip"])
def test_queues_of_one_strategy_are_the_fit_to_the_bit(fit):
    """Worlds of all mechanisms, with a fourth queue of the other strategy and a job at the end."""
    n_equal, other = 0, {"strict": "skip", "skip": "strict"}[fit]
    for number in range(examples(30)):
        rng = np.random.default_rng([63, number])
        more = {"gangs", "devices", "outages", "callbacks", "inputs"}
        on = {fit} - {"strict"} | {name for name in more if rng.random() < 0.3}
        world = draw_with(rng, on)
        stage = {"name": "s", "durations_s": [1.0], "demand": {}, "parents": {}}
        last = {"job_id": "last", "submit_s": 100.0, "queue": "q3", "stages": [stage]}
        world["jobs"].append(last)
        same = with_strategies(world, dict.fromkeys([*QUEUES, "q3"], ""))
        mixed = with_strategies(world, dict.fromkeys(QUEUES, fit) | {"q3": other})
        try:
            build(same)
            expected = kernel_outcome(same)
        except (InputError, sim.PolicyError):
            continue
        result = kernel_outcome(mixed)
        assert (result is STUCK) == (expected is STUCK), number
        assert not outcome.differences(result, expected), (number, sorted(on))
        n_equal += 1
    assert n_equal >= examples(30) / 4


class Planner(Policy):
    """Polls at each second, and plans by true run times half a second later if anything changed."""

    name: ClassVar[str] = "planner"
    knows = Knows(durations="true")

    def prepare(self, world, plan):
        plan.queues = Queues.make(1, order=Order.FIFO)
        first_stages = world.columns.job_stage0[:-1]
        plan.set_jobs(expected_s=np.maximum.reduceat(world.columns.stage_max_s, first_stages))
        plan.replan = Replan(
            interval_s=1.0,
            cycle_s=0.0,
            resolution_s=1,
            first_window_s=1,
            main_delay_s=0,
            completing_s=0.0,
            plan_phase_s=1.5,
        )


def test_a_plan_takes_the_flavor_in_which_a_job_starts_first():
    """All of spot is in use until 100 s, and half of steady until 60 s, by gangs of b.

    v cannot start at 1 s, and is planned on steady at 60 s, where spot would be free at 100 s. So w
    goes before it on steady, and x, which takes until 91 s, does not: it is planned on spot, where
    it starts as soon as b's gang ends. y has a quota of one CPU of steady: it is not tried there.
    """
    quotas = {"spot": 16, "steady": 16}
    tree = quotas_of_a(**quotas) | {
        "b": {"nominal": {"cpu": quotas}},
        "c": {"nominal": {"cpu": {"spot": 8, "steady": 1}}},
    }
    jobs = [
        job("s", "b", 0, 8, 100.0, gang=True),
        job("t", "b", 0, 4, 60.0, gang=True),
        job("v", "a", 1, 8, 50.0, gang=True),
        job("w", "a", 1, 2, 50.0, gang=True),
        job("x", "a", 1, 2, 90.0, gang=True),
        job("y", "c", 1, 2, 10.0, gang=True),
    ]
    assert run(jobs, machines(tree), Planner()) == {
        "s": {(0, SPOT): 8},
        "t": {(0, STEADY): 4},
        "v": {(60, STEADY): 8},
        "w": {(1.5, STEADY): 2},
        "x": {(100, SPOT): 2},
        "y": {(100, SPOT): 2},
    }


def test_a_plan_is_by_the_quotas_of_now():
    """With a quota of 8 of steady, 4 of them in use by t, v is not planned there: x goes before it.

    Planned on spot for 100 s, v starts on steady as soon as its quota allows it, at 91 s.
    """
    tree = quotas_of_a(spot=16, steady=8) | {"b": {"nominal": {"cpu": {"spot": 16}}}}
    jobs = [
        job("s", "b", 0, 8, 100.0, gang=True),
        job("t", "a", 0, 4, 60.0, gang=True),
        job("v", "a", 1, 8, 50.0, gang=True),
        job("x", "a", 1, 2, 90.0, gang=True),
    ]
    assert run(jobs, machines(tree), Planner()) == {
        "s": {(0, SPOT): 8},
        "t": {(0, STEADY): 4},
        "v": {(91, STEADY): 8},
        "x": {(1, STEADY): 2},
    }


def test_plans_in_several_flavors_as_in_the_naive_simulator():
    """Backlogs of gangs in three queues, of which most wait, with several planned starts."""
    tree = quotas_of_a(spot=16, steady=16) | {
        "b": {"nominal": {"cpu": {"steady": 16, "spot": 16}}},
        "c": {"nominal": {"cpu": {"spot": 6, "steady": 16}}, "flavor_choice": "least_borrowing"},
    }
    for seed in range(examples(60)):
        rng = np.random.default_rng([8, seed])
        jobs = [
            job(
                f"j{i}",
                str(rng.choice(["a", "b", "c"])),
                float(rng.choice([0, 0, 1, 2])),
                int(rng.choice([1, 2, 3, 4, 6])),
                float(rng.choice([2.0, 5.0, 5.0, 8.0, 13.0, 20.0])),
                gang=True,
            )
            for i in range(int(rng.integers(4, 11)))
        ]
        run(jobs, machines(tree), Planner())
