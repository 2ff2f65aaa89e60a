"""Packing scores, on examples small enough to work out by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

import policies
import sim
from policies.base import Policy
from sim.engine.plan import Event, Queues
from sim.engine.plan.queues import Packing
from tests.sim.engine.test_kernel import assert_same


@dataclass(frozen=True)
class Packs(Policy):
    """A plan with the given packing and columns."""

    fit: str = "pack"
    packing: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)
    stages: dict[str, Any] = field(default_factory=dict)
    by_queue: bool = False
    refined: float | None = None
    name: ClassVar[str] = "packs"

    @property
    def events(self):
        return Event.NONE if self.refined is None else Event.STAGE_DONE

    def prepare(self, world, plan):
        plan.packing = Packing(**self.packing)
        for name, value in self.columns.items():
            setattr(plan, name, np.array(value))
        plan.set_stages(**self.stages)
        if self.by_queue:
            plan.queues = Queues.make(len(world.columns.queue_names))
            plan.set_jobs(queue=world.columns.job_queue)

    def react(self, memory, batch, world, plan):
        if batch.now == 2:
            assert world.view["stage_done_work"].tolist() == [2, 0, 0]
            assert world.view["stage_left"].tolist() == [0, 1, 1]
        plan.set_stages([1], jobs=[1], expected_s=self.refined)


def jobs_of(*rows):
    """Build one-stage jobs from (submit_s, durations_s, demand, queue)."""
    return sim.Workload.from_jobs(
        [
            {
                "submit_s": float(t),
                "queue": queue,
                "stages": [{"durations_s": durations, "demand": demand}],
            }
            for t, durations, demand, queue in rows
        ]
    )


def starts(workload, cluster, **policy):
    return sim.simulate(workload, cluster, Packs(**policy), record="tasks").task_start.tolist()


def test_a_bundle_may_leave_out_the_best_task():
    machine = sim.Cluster.machines(1, cpu=10)
    workload = jobs_of(*((0, [1.0], {"cpu": d}, "q") for d in (6, 5, 5)))
    # 6 alone scores 0.6, the two of 5 together 1.0 (§7.2)
    assert starts(workload, machine) == [0, 1, 1]
    assert starts(workload, machine, packing={"bundle": 2}) == [0, 1, 1]  # the best two are 6 and 5
    assert starts(workload, machine, packing={"bundle": 3}) == [1, 0, 0]


def test_a_bundle_takes_several_tasks_of_a_stage():
    machine = sim.Cluster.machines(1, cpu=10)
    workload = jobs_of((0, [1.0], {"cpu": 8}, "q"), (0, [1.0] * 4, {"cpu": 3}, "q"))
    assert starts(workload, machine, packing={"bundle": 3}) == [0, 1, 1, 1, 2]  # 8, or two of 3
    assert starts(workload, machine, packing={"bundle": 4}) == [1, 0, 0, 0, 2]


@pytest.mark.parametrize(("remaining", "second"), [(0.0, "long"), (0.5, "short")])
def test_remaining_work_lowers_the_score(remaining, second):
    workload = jobs_of(
        (0, [10.0], {"cpu": 1}, "q"), (1, [40.0], {"cpu": 1}, "q"), (2, [5.0], {"cpu": 1}, "q")
    )
    # after the first η = remaining · 1 / 10: 1 - 40 η against 1 - 5 η
    times = starts(workload, sim.Cluster.slots(1), packing={"remaining": remaining})
    assert times == ([0, 10, 50] if second == "long" else [0, 15, 10])


def test_expected_durations_replace_real_ones_in_remaining_work():
    workload = jobs_of(
        (0, [2.0], {"cpu": 1}, "q"), (1, [40.0], {"cpu": 1}, "q"), (1, [5.0], {"cpu": 1}, "q")
    )
    machine, packing = sim.Cluster.slots(1), {"remaining": 0.5}
    stages = {"expected_s": [10.0, 4.0, 5.0]}
    assert starts(workload, machine, packing=packing, stages=stages) == [0, 2, 42]
    # refined when the first has ended: the job seen as 4 s is now taken for 6 s
    times = starts(workload, machine, packing=packing, stages=stages, refined=6.0)
    assert times == [0, 7, 2]


def test_priority_multiplies_what_a_task_is_worth():
    workload = jobs_of((0, [1.0], {"cpu": 1}, "q"), (0, [1.0], {"cpu": 0.6}, "q"))
    machine = sim.Cluster.machines(1, cpu=1)
    assert starts(workload, machine) == [0, 1]
    assert starts(workload, machine, columns={"task_priority": [0.5, 1.0]}) == [1, 0]


def test_priority_alone_decides_where_alignment_does_not_count():
    workload = jobs_of((0, [1.0], {"cpu": 1}, "q"), (0, [1.0], {"cpu": 0.1}, "q"))
    machine = sim.Cluster.machines(1, cpu=1)
    columns = {"task_priority": [0.9, 1.0]}
    assert starts(workload, machine, columns=columns) == [0, 1]
    assert starts(workload, machine, columns=columns, packing={"aligned": False}) == [1, 0]


def test_a_rebased_priority_is_of_what_is_left_of_the_job():
    """The first job's second task is its last: of what is left it comes first."""
    workload = jobs_of((0, [1.0, 1.0], {"cpu": 1}, "q"), (0, [1.0], {"cpu": 0.9}, "q"))
    machine = sim.Cluster.machines(1, cpu=1)
    assert starts(workload, machine, columns={"task_priority": [1.0, 0.5, 1.0]}) == [0, 2, 1]
    columns = {"task_priority": [1.0, 0.0, 0.0]}
    assert starts(workload, machine, columns=columns, packing={"rebased": True}) == [0, 1, 2]
    # one that one other comes after counts half where two others have not started
    three = jobs_of((0, [1.0] * 3, {"cpu": 1}, "q"), (0, [1.0], {"cpu": 0.6}, "q"))
    columns = {"task_priority": [1.0, 1.0, 1.0, 1.0]}
    assert starts(three, machine, columns=columns, packing={"rebased": True}) == [1, 2, 3, 0]
    packing = {"rebased": True, "order": 0.5}
    assert starts(three, machine, columns=columns, packing=packing) == [0, 1, 2, 3]


def test_remaining_work_may_be_of_what_has_not_started():
    """A task of the second job runs: 8 s of it are unfinished, 4 s pending; the third has 6 s."""
    two_machines = sim.Cluster.machines(2, cpu=1)
    times = [(0, [1.0]), (0, [4.0, 4.0]), (0.5, [6.0])]
    workload = jobs_of(*((t, tasks, {"cpu": 1}, "q") for t, tasks in times))
    for stages in ({}, {"expected_s": [1.0, 4.0, 6.0]}):
        assert starts(workload, two_machines, packing={"remaining": 1.0}, stages=stages)[3] == 1
        pending = {"remaining": 1.0, "pending": True}
        assert starts(workload, two_machines, packing=pending, stages=stages)[3] == 4


def test_a_task_is_worth_less_on_a_machine_it_does_not_prefer():
    two_machines = sim.Cluster.machines(2, cpu=1)
    workload = jobs_of(*((0, [1.0], {"cpu": d}, "q") for d in (1.0, 0.9)))

    def machines(remote):
        policy = Packs(packing={"remote": remote}, columns={"task_prefers": [1, -1]})
        return sim.simulate(workload, two_machines, policy, record="tasks").task_machine.tolist()

    assert machines(1.0) == [0, 1]
    assert machines(0.8) == [1, 0]


def test_a_queue_that_is_owed_enough_goes_first():
    tasks = [1.0] * 10
    workload = jobs_of((0, tasks, {"cpu": 1}, "a"), (0, tasks, {"cpu": 1}, "b"))
    times = starts(
        workload,
        sim.Cluster.slots(1),
        by_queue=True,
        packing={"unfairness": 3.0},
        columns={"task_priority": [1.0] * 10 + [0.5] * 10},
    )
    order = "".join("a" if t in times[:10] else "b" for t in sorted(times))
    # each start of a adds ½ to what b is owed; at 3 it is b's turn, and again after each of a's
    assert order == "aaaaaab" + "ab" * 4 + "b" * 5


def test_deficits_count_cost_by_fair_share_of_those_that_wait():
    workload = jobs_of((0, [1.0] * 6, {"cpu": 1}, "a"), (0, [1.0] * 6, {"cpu": 1}, "b"))
    machine = sim.Cluster.slots(1).with_queues("weighted", {"a": 3, "b": 1})
    times = starts(
        workload, machine, packing={"unfairness": 0.0}, stages={"cost": [2.0, 1.0]}, by_queue=False
    )
    order = "".join("a" if t in times[:6] else "b" for t in sorted(times))
    # a's share is ¾, b's ¼: -½ and +½ when a goes, +¾ and -¾ when b does
    assert order == "ababaababa" + "bb"


ONE = sim.Cluster.machines(1, cpu=4, disk=1, fungible=["disk"])


def finishes(last, **policy):
    workload = jobs_of(
        (0, [10.0], {"cpu": 1, "disk": 1}, "q"), (0, [1.0], {"cpu": 1}, "q"), (0.5, *last, "q")
    )
    policy = Packs(packing={"overbook": True}, **policy)
    return sim.simulate(workload, ONE, policy).job_finish.tolist()


def test_a_full_machine_takes_one_more_where_that_gains_more_than_it_costs():
    # at 1 s something ends: 9 s of waiting saved against 0.1 s of its own and 0.9 s of the other's
    times = finishes(([1.0], {"cpu": 1, "disk": 0.1}))
    assert times == pytest.approx([10.1, 1, 2.1])
    # 100 s of its own would be lost: it waits
    assert finishes(([100.0], {"cpu": 1, "disk": 1})) == [10, 1, 110]
    # and so it does where the one that is there counts a hundred times as much
    weight = {"weight": [100.0, 1.0, 1.0]}
    assert finishes(([1.0], {"cpu": 1, "disk": 0.1}), stages=weight) == [10, 1, 11]


def test_a_resource_that_a_task_does_not_take_does_not_delay_it():
    """Five tasks share a network; the sixth takes a tenth of a disk that is in use for 9 s more."""
    cluster = sim.Cluster.machines(1, cpu=10, disk=1, net=1, fungible=["disk", "net"])
    rows = [({"cpu": 1, "net": 1}, [10.0] * 5), ({"cpu": 1, "disk": 1}, [10.0])]
    rows += [({"cpu": 1}, [1.0]), ({"cpu": 1, "disk": 0.1}, [5.0])]
    workload = jobs_of(
        *((0.5 * (i == 3), tasks, demand, "q") for i, (demand, tasks) in enumerate(rows))
    )
    policy = Packs(packing={"overbook": True}, fit_resources=("cpu", "disk"))
    result, _ = assert_same(workload, cluster, policy)
    assert result.task_start.tolist() == [0] * 7 + [1]


def test_a_machine_whose_room_is_held_for_a_gang_is_not_overbooked():
    stage = {"durations_s": [10.0], "demand": {"cpu": 1, "disk": 1}}
    gang = {"submit_s": 0.0, "min_tasks": 2}
    gang["stages"] = [stage | {"name": "first"}, stage | {"parents": ["first"]}]
    short = {"durations_s": [1.0, 1.0], "demand": {"cpu": 1}}
    late = {"durations_s": [1.0], "demand": {"cpu": 1, "disk": 0.5}}
    jobs = [gang, {"submit_s": 0.0, "stages": [short]}, {"submit_s": 0.5, "stages": [late]}]
    cluster = sim.Cluster.machines(2, cpu=2, disk=1, fungible=["disk"])
    policy = Packs(packing={"overbook": True}, stages={"weight": [100.0, 100.0, 1.0, 1.0]})
    result, _ = assert_same(sim.Workload.from_jobs(jobs), cluster, policy)
    assert result.task_start.tolist() == [0, 10, 0, 0, 20]


def test_rigid_resources_stay_within_capacity():
    assert finishes(([1.0], {"cpu": 4, "disk": 0.1})) == [10, 1, 11]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("remaining", -1),
        ("order", -0.5),
        ("remote", 1.5),
        ("bundle", 0),
        ("bundle", 33),
        ("unfairness", np.nan),
    ],
)
def test_a_parameter_out_of_its_range_is_an_error(name, value):
    with pytest.raises(sim.PolicyError, match=f"packing: {name} must be"):
        Packing(**{name: value})


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"columns": {"task_priority": [1.0]}}, "task_priority must hold a finite number"),
        ({"columns": {"task_priority": [1.0, -1.0]}}, "task_priority must hold .* at least 0"),
        ({"columns": {"task_prefers": [-2, 0]}}, "task_prefers must hold .* at least -1"),
    ],
)
def test_a_column_that_is_nonsense_is_an_error(policy, message):
    workload = jobs_of(*((0, [1.0], {"cpu": 1}, "q") for _ in range(2)))
    with pytest.raises(sim.PolicyError, match=message):
        starts(workload, sim.Cluster.machines(1, cpu=1), **policy)


@pytest.mark.parametrize("short", [0, 1])
def test_of_two_kinds_that_align_as_well_the_first_in_order_starts(short):
    durations_s, demands = [5.0, 5.0], [{"cpu": 2, "mem": 1}, {"cpu": 1, "mem": 2}]
    durations_s[short] = 3.0
    jobs = [
        {"submit_s": 0.0, "stages": [{"durations_s": [s], "demand": d}]}
        for s, d in zip(durations_s, demands, strict=True)
    ]
    workload, cluster = sim.Workload.from_jobs(jobs), sim.Cluster.machines(1, cpu=2, mem=2)
    result = sim.simulate(workload, cluster, policies.build("sjf", fit="pack"))
    assert result.job_start.tolist() == [3.0 * short, 3.0 * (1 - short)]
