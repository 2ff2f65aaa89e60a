"""Limits of Slurm's cycles: by hand, and by the policy's options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

import policies
import sim
from policies.backfill.cycles import cycle_options
from policies.base import Policy
from policies.knows import Knows
from sim.base.errors import PolicyError
from sim.engine.plan import Depth, Order, Queues, Replan


@dataclass(frozen=True)
class ByHand(Policy):
    """The main loop passes at 0, 3, 6 s and so on; plans begin at 0.5 s, 10 s after each other."""

    options: dict[str, Any] = field(default_factory=dict)

    name: ClassVar[str] = "by-hand"
    knows = Knows(durations="true")

    def prepare(self, world, plan):
        plan.queues = Queues.make(1, order=Order.FIFO)
        longest = np.maximum.reduceat(world.columns.stage_max_s, world.columns.job_stage0[:-1])
        plan.set_jobs(expected_s=longest)
        defaults = {"interval_s": 10.0, "cycle_s": 0.0, "completing_s": 0.0, "resolution_s": 1}
        options = {"plan_phase_s": 0.5, "main_depth": 100} | defaults | self.options
        for name in ("depths", "main_depths"):
            options[name] = tuple(Depth(np.array(g, "i4"), k) for g, k in options.get(name, ()))
        for name in ("reserved_in", "array", "throttle"):
            if name in options:
                options[name] = np.array(options[name], "i4")
        plan.replan = Replan(**options)


def starts(jobs, slots, **options):
    """Return the starts of jobs of so many tasks and s, submitted at 0 or at a third number."""
    workload = sim.Workload.from_jobs(
        [
            {
                "submit_s": (*job, 0.0)[2],
                "min_tasks": job[0],
                "stages": [{"durations_s": [float(job[1])] * job[0]}],
            }
            for job in jobs
        ]
    )
    run = sim.simulate(workload, sim.Cluster.slots(slots), ByHand(options=options))
    return run.jobs["start_s"].to_pylist()


#: one of 100 s; one that waits for both slots; three of 5 s that may pass it
FIVE = [(1, 100), (2, 9), (1, 5), (1, 5), (1, 5)]


def test_all_jobs_are_tried_without_limits():
    # 0.5 s: the third; the main loop bars the slots for the second; then a plan each 10 s
    assert starts(FIVE, 2) == [0.0, 100.0, 0.5, 10.5, 20.5]


def test_a_user_s_jobs_beyond_the_first_few_are_not_tried():
    users = [0, 1, 1, 1, 2]
    jobs = [(1, 100), (3, 9), *FIVE[2:]]
    assert starts(jobs, 3, depths=[(users, 2)]) == [0.0, 100.0, 0.5, 10.5, 0.5]
    assert starts(jobs, 3, depths=[(users, 1)]) == [0.0, 100.0, 109.0, 109.0, 0.5]


def test_groups_of_several_kinds_count_together():
    users, partitions = [0, 1, 1, 2, 3], [0, 0, 0, 0, 1]
    got = starts(FIVE, 2, depths=[(users, 1), (partitions, 2)])
    assert got == [0.0, 100.0, 109.0, 0.5, 10.5]  # the third does not count in its partition


def test_a_plan_starts_so_many():
    jobs = [(1, 100), (4, 9), (1, 5), (1, 5), (1, 5)]
    assert starts(jobs, 4) == [0.0, 100.0, 0.5, 0.5, 0.5]
    assert starts(jobs, 4, starts=2) == [0.0, 100.0, 0.5, 0.5, 10.5]


def test_a_pass_of_the_main_loop_starts_and_tries_so_many():
    jobs = [(1, 50)] * 5
    late = {"plans": False, "main_interval_s": 20}
    assert starts(jobs, 5, **late) == [0.0] * 5
    assert starts(jobs, 5, **late, main_starts=2) == [0.0, 0.0, 20.0, 20.0, 40.0]
    in_partitions = [([0, 0, 0, 1, 1], 2)]
    assert starts(jobs, 5, **late, main_depths=in_partitions) == [0.0, 0.0, 20.0, 0.0, 0.0]


def test_reservations_count_by_partition():
    # two of 100 and 200 s; one that waits for all three slots, one for two; one of 150 s
    jobs = [(1, 100), (1, 200), (3, 9), (2, 40), (1, 150)]
    assert starts(jobs, 3)[4] > 200  # it would delay the fourth, which is to start at 100 s
    assert starts(jobs, 3, reserved=1)[4] == 0.5
    assert starts(jobs, 3, reserved=1, reserved_in=[0, 0, 0, 1, 1])[4] > 200


ARRAY = [-1, -1, 0, 0, 0, 0, -1]
"""One of 100 s on two slots; one that waits for all three; four elements of two; one of 5 s."""
WITH_ARRAY = [(2, 100), (3, 9), (2, 9), (2, 9), (2, 9), (2, 9), (1, 5)]


def test_an_array_gets_so_many_reservations():
    # the plan's table takes four: the array alone would fill it
    everything = starts(WITH_ARRAY, 3, depth=5)
    assert everything[6] > 100
    assert starts(WITH_ARRAY, 3, depth=5, array=ARRAY, array_reserved=1)[6] == 0.5


def test_an_array_is_not_tried_beyond_its_throttle():
    assert starts(WITH_ARRAY, 3, depth=5, array=ARRAY, throttle=[1] * 7)[6] == 0.5


def test_elements_behind_one_that_does_not_start_do_not_count_in_the_main_loop():
    kinds = [{"class": "a", "cpu": 1}, {"class": "b", "cpu": 1}]

    def stage(seconds, machine_class):
        return {"durations_s": [seconds], "runs_on": machine_class, "demand": {"cpu": 1}}

    rows = [stage(50.0, "a"), *[stage(9.0, "a")] * 3, stage(9.0, "b")]
    workload = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": [row]} for row in rows])
    # after an event it tries three jobs, and all of them from 20 s on
    options = {"plans": False, "main_depth": 2, "main_phase": 20}
    for array, start_s in (([-1] * 5, 20.0), ([-1, 0, 0, 0, -1], 0.0)):
        policy = ByHand(options=options | {"array": array})
        run = sim.simulate(workload, sim.Cluster.mixed(kinds), policy)
        assert run.jobs["start_s"].to_pylist()[4] == start_s


def test_a_plan_ends_as_its_time_is_over():
    # a second for each job: the fourth and fifth are never reached while others wait before them
    slow = {"job_cycle_s": 1.0, "interval_s": 7.0}
    assert starts(FIVE, 2, **slow)[2] == 0.5
    assert starts(FIVE, 2, **slow, max_s=1.0)[2] > 100


def test_what_came_meanwhile_ends_a_plan_that_does_not_continue():
    jobs = [(1, 100), (2, 9), (2, 9), (1, 5), (1, 200, 1.0)]
    slow = {"job_cycle_s": 1.0, "yield_s": 1.0, "sleep_s": 0.5}
    # a part is a job and takes 1.5 s: the fourth job is the plan's third
    assert starts(jobs, 2, **slow, continues=True)[3] == 0.5 + 3.0
    assert starts(jobs, 2, **slow, continues=False)[3] > 10
    assert starts(jobs[:4], 2, **slow, continues=False)[3] == 3.5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"depths": [([0], 1)]}, "whole number of at least -1"),
        ({"depths": [([0] * 5, 0)]}, "at_most must be at least 1"),
        ({"array": [-2] * 5}, "array must have"),
        ({"throttle": [-1] * 5}, "throttle must have"),
        ({"yield_s": float("nan")}, "yield_s must be at least 0"),
    ],
)
def test_options_out_of_range_are_refused(options, words):
    with pytest.raises(PolicyError, match=words):
        starts(FIVE, 2, **options)


def test_groups_of_the_policy_are_users_accounts_and_partitions():
    jobs = [
        {"user": "ann", "account": "x", "partition": "a|b", "array": "1", "throttle": 3},
        {"user": "ann", "account": "y", "partition": "b", "array": "1", "throttle": 2},
        {"user": "", "account": "x", "partition": "a", "array": "", "throttle": 0},
    ]
    stages = [{"durations_s": [1.0], "demand": {"cpu": 1}}]
    w = sim.Workload.from_jobs([{"submit_s": 0, "stages": stages, **job} for job in jobs])
    kinds = [{"cpu": 4, "partitions": ["a*", "b"]}]
    policy = policies.build(
        "slurm", user_depth=5, partition_depth=6, user_partition_depth=7, main_partition_depth=8
    )
    options = cycle_options(policy, w.columns, sim.Cluster.mixed(kinds))
    per_user_partition, per_partition, per_user = options["depths"]
    assert per_user_partition.group.tolist()[2] == -1
    assert len({*per_user_partition.group.tolist()}) == 3
    assert (per_user_partition.at_most, per_partition.at_most, per_user.at_most) == (7, 6, 5)
    assert per_partition.group.tolist() == options["reserved_in"].tolist() == [0, 1, 0]
    assert per_user.group.tolist() == [0, 0, -1]
    assert (options["array"].tolist(), options["throttle"].tolist()) == ([0, 0, -1], [2, 2, 0])
    by_account = policies.build("slurm", user_depth=5, association_depth=1)
    (per_account,) = cycle_options(by_account, w.columns, sim.Cluster.mixed(kinds))["depths"]
    assert (per_account.at_most, len({*per_account.group.tolist()})) == (1, 3)
