"""Reservations: the kernel against the naive simulator, and small worlds worked out by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sim
from policies.base import Policy
from policies.knows import Knows
from sim.base.errors import InputError, PolicyError
from sim.cluster.faults import Outages
from sim.engine.plan import NO_LIMIT, Event, Order, Queues
from tests.examples import examples
from tests.sim.engine.strategies import DURATIONS
from tests.sim.engine.test_kernel import assert_same


@st.composite
def rigid_workloads(draw, max_jobs: int = 9, demands: bool = False) -> sim.Workload:
    """Draw rigid jobs, most of one stage, some of a few with edges, or of a single task.

    With `demands` they are in three queues, and a task demands up to 2 of cpu and of mem.
    """
    jobs, clock = [], 0.0
    min_jobs = draw(st.sampled_from([1, max_jobs]))
    pauses = draw(st.sampled_from([(0.0, 0.0, 0.5, 1.0, 2.5), (0.0, 0.5)]))
    for _ in range(draw(st.integers(min_jobs, max_jobs))):
        clock += draw(st.sampled_from(pauses))
        stages = [{"name": "s0", "durations_s": draw(st.lists(DURATIONS, min_size=1, max_size=4))}]
        if draw(st.integers(0, 4)) == 0:
            more = draw(st.lists(DURATIONS, min_size=1, max_size=2))
            parents = draw(st.sampled_from([[], ["s0"]]))
            stages.append({"name": "s1", "durations_s": more, "parents": parents})
        n_tasks = sum(len(stage["durations_s"]) for stage in stages)
        gang = n_tasks > 1 or draw(st.booleans())
        job = {"submit_s": clock, "stages": stages, "min_tasks": n_tasks if gang else 0}
        if demands:
            job["queue"] = draw(st.sampled_from(["q0", "q1", "q2"]))
            for stage in stages:
                stage["demand"] = {
                    "cpu": draw(st.sampled_from([0, 1, 2, 2])),
                    "mem": draw(st.sampled_from([0, 1, 2])),
                }
        jobs.append(job)
    return sim.Workload.from_jobs(jobs)


@dataclass(frozen=True)
class AnyReservations(Policy):
    """Reservations with random expectations and keys, changed at random in callbacks."""

    plan_seed: int = 0
    reservations: int = 1
    callbacks: bool = False

    name: ClassVar[str] = "any-reservations"
    knows = Knows(durations="true")

    @property
    def events(self) -> Event:  # type: ignore[override]
        return Event.TIMER | Event.JOB_ARRIVED if self.callbacks else Event.NONE

    def prepare(self, world, plan):
        rng = np.random.default_rng(self.plan_seed)
        n = len(world.columns.job_submit)
        order = rng.choice([Order.KEY, Order.FIFO, Order.REMAINING])
        plan.queues = Queues.make(1, order=order)
        plan.reservations = self.reservations
        longest = np.maximum.reduceat(world.columns.stage_max_s, world.columns.job_stage0[:-1])
        wrong = rng.choice([0.0, 0.5, 1.0, 1.0, 1.0, 2.0, 10.0], n)
        if rng.random() < 0.4:  # the widest take no time, so that their reservations are empty
            wrong[world.columns.job_n_tasks >= rng.choice([3, 4])] = 0.0
        plan.set_jobs(
            key=rng.integers(0, 3, n).astype(float),
            fill_key=rng.integers(0, 3, n).astype(float),
            expected_s=wrong * longest,
        )
        plan.timer_s = 1.25 if self.callbacks else np.inf

    def react(self, memory, batch, world, plan):
        rng = np.random.default_rng([self.plan_seed, int(batch.now * 1000)])
        n = len(world.columns.job_submit)
        some = rng.permutation(n)[: rng.integers(0, n + 1)]
        values = rng.integers(0, rng.choice([2, 6]), (2, len(some))).astype(float)
        plan.set_jobs(some, expected_s=values[0], fill_key=values[1])
        if batch.now < 40:
            plan.timer_s = batch.now + 1.25


@pytest.mark.parametrize("callbacks", [False, True])
@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1))
@settings(
    max_examples=examples(80),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
def test_same_bits_as_the_naive_simulator(callbacks, data, plan_seed):
    workload = data.draw(rigid_workloads())
    cluster = sim.Cluster.slots(data.draw(st.integers(6, 9)))
    depth = data.draw(st.sampled_from([1, 1, 2, 3, NO_LIMIT, NO_LIMIT]))
    policy = AnyReservations("strict", (), plan_seed, depth, callbacks)
    assert_same(workload, cluster, policy)


@dataclass
class Reserving:
    """Reserves room for a number of jobs, with the given expected run times."""

    expected_s: object = None
    reservations: int = NO_LIMIT
    queues: int = 1
    fill_key: object = 0.0
    name: str = "reserving"
    events: Event = Event.NONE

    def begin(self, world, plan):
        plan.queues = Queues.make(self.queues, order=Order.FIFO)
        plan.reservations = self.reservations
        plan.set_jobs(fill_key=self.fill_key)
        if self.expected_s is not None:
            plan.set_jobs(expected_s=self.expected_s)


def rigid(*jobs):
    """Make jobs of (submit, run, width)."""
    return sim.Workload.from_jobs(
        {"submit_s": submit, "stages": [{"durations_s": [run] * width}], "min_tasks": width}
        for submit, run, width in jobs
    )


def starts(workload, slots, *args):
    return sim.simulate(workload, sim.Cluster.slots(slots), Reserving(*args)).job_start.tolist()


def test_reservations_for_all_are_never_moved_back():
    """At 2 four slots are free; what was planned for 4 is in the way of the first that waits.

    So that begins at 9 instead of 10 by the plan of 2, and at 7 by that of 7, while the other moves
    ahead; planned anew the first goes first, and the other later than it was told.
    """
    w = rigid((0, 2, 2), (0, 2, 2), (1, 3, 4), (1, 5, 2))
    expected = [10, 4, 3, 5]
    assert starts(w, 4, expected) == [0, 0, 7, 2]
    assert starts(w, 4, expected, 99) == [0, 0, 2, 5]


def test_jobs_behind_a_reservation_start_by_their_fill_key():
    """The second waits for the first; until then a slot is free, for jobs of a second."""
    keys = [0, 0, 4, 3, 5, 1, 2, 6]
    w = rigid((0, 10, 2), (1, 5, 3), *[(1, 1, 1)] * 6)
    assert starts(w, 3, [10, 5, 1, 1, 1, 1, 1, 1], 1, 1, keys) == [0, 10, *keys[2:]]


def test_a_job_that_outlasts_what_was_expected_may_end_at_any_moment():
    # from 3 on the first should have ended: the third would delay the second, the last, which is
    # expected to take no time, would not
    w = rigid((0, 10, 2), (1, 4, 3), (5, 1, 1), (6, 2, 1))
    for depth in (1, NO_LIMIT):
        assert starts(w, 3, [3, 4, 1, 0], depth) == [0, 10, 14, 6]


CROWD = [(0, 10, 4), (1, 0, 8), *((2 + i / 2, 10, 4) for i in range(60))]


@pytest.mark.parametrize("depth", [1, 2, NO_LIMIT])
@pytest.mark.parametrize(
    "cluster",
    [
        sim.Cluster.slots(8),
        sim.Cluster.machines(2, cpu=4),
        sim.Cluster.slots(8).with_queues("hard", {"default": 1.0}),
    ],
    ids=["slots", "machines", "hard share"],
)
def test_a_reservation_of_no_time_begins_at_its_time(cluster, depth):
    """The second, of all slots, is first in line and expected to take no time, from 10 on."""
    expected = [run for _, run, _ in CROWD]
    for second_s in (0, 3):  # as expected, or longer than expected
        jobs = [CROWD[0], (1, second_s, 8), *CROWD[2:]]
        got = sim.simulate(rigid(*jobs), cluster, Reserving(expected, depth)).job_start.tolist()
        assert got[:4] == [0, 10, 10 + second_s, 10 + second_s]
    # what ends by then may pass
    got = sim.simulate(rigid(*CROWD[:2], (2, 8, 4)), cluster, Reserving([10, 0, 8], depth))
    assert got.job_start.tolist() == [0, 10, 2]


def test_reservations_of_no_time_follow_each_other():
    """At 10 the first ends; three that take no time, each of all slots, then one more."""
    w = rigid((0, 10, 4), *((1 + i, 0, 8) for i in range(3)), (4, 5, 8), (5, 7, 4), (5, 5, 4))
    expected = [10, 0, 0, 0, 5, 7, 5]
    assert starts(w, 8, expected) == [0, 10, 10, 10, 10, 15, 5]
    assert starts(w, 8, expected, 1) == [0, 10, 10, 10, 10, 15, 5]


def test_a_reservation_of_no_time_is_kept_behind_one_that_should_have_ended():
    """From 3 on the first may end at any moment: what outlasts this instant does not start."""
    w = rigid((0, 10, 2), (1, 0, 3), (5, 1, 1))
    for depth in (1, NO_LIMIT):
        assert starts(w, 3, [3, 0, 1], depth) == [0, 10, 10]


@pytest.mark.parametrize(
    ("args", "match"),
    [
        ((), "needs the job column 'expected_s' for all jobs; the job in row 0 has none"),
        ((1.0, -1), "must be 0 to"),
        ((1.0, 1, 2), "needs one queue, and the plan has 2"),
        ((float("inf"),), "'expected_s' holds inf; valid: 0"),
    ],
)
def test_a_plan_that_can_not_be_kept(args, match):
    with pytest.raises(PolicyError, match=match):
        starts(rigid((0, 1, 2)), 2, *args)


def test_jobs_and_clusters_without_reservations_are_refused():
    loose = sim.Workload.from_jobs([{"submit_s": 0, "stages": [{"durations_s": [1, 2, 3]}]}])
    with pytest.raises(InputError, match="it has 3 tasks, of which 0 start together"):
        starts(loose, 4, 1.0)


def test_weighted_queues_are_reserved_for_by_what_they_use():
    """Of three slots a runs on one until 9; so b's job goes first at 1, though it came later.

    From 4 on b uses nothing, so its wide job has the reservation, for 9, which a's last would
    delay. At 9 neither uses anything, and a is the first queue.
    """
    jobs = [(0, 9, 1, "a"), (1, 2, 2, "a"), (1, 3, 2, "b"), (1, 2, 3, "b"), (2, 6, 1, "a")]
    w = sim.Workload.from_jobs(
        {"submit_s": t, "queue": queue, "min_tasks": n, "stages": [{"durations_s": [s] * n}]}
        for t, s, n, queue in jobs
    )
    cluster = sim.Cluster.slots(3).with_queues("weighted")
    fast, _ = assert_same(w, cluster, Reserving([9.0, 2.0, 3.0, 2.0, 6.0], 1))
    assert fast.job_start.tolist() == [0, 4, 1, 15, 9]


def test_a_rigid_job_whose_machine_is_lost_waits_again_and_is_planned_anew():
    """Machine 0 is lost from 2 to 6: its job of both begins again at 6, and lasts until 10.

    The small one behind it runs on machine 1 meanwhile, from 2 to 4, as it is expected to end
    before any room for the other is known; the last waits for the first, to which 10 was reserved.
    """
    w = rigid((0, 4, 2), (1, 2, 1), (3, 1, 2))
    lost = Outages.from_columns([0], [2.0], [6.0])
    cluster = sim.Cluster.machines(2, cpu=1).with_outages(lost)
    jobs = [
        {
            "submit_s": t, "min_tasks": n,
            "stages": [{"durations_s": [s] * n, "demand": {"cpu": 1}}],
        }
        for t, s, n in ((0.0, 4.0, 2), (1.0, 2.0, 1), (3.0, 1.0, 2))
    ]  # fmt: skip
    w = sim.Workload.from_jobs(jobs)
    for depth in (1, NO_LIMIT):
        fast, _ = assert_same(w, cluster, Reserving([4.0, 2.0, 1.0], depth))
        assert fast.task_start.tolist() == [6, 6, 2, 10, 10]
