"""Reservations on machines and in hard shares: against the naive simulator, and by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import policies
import sim
from sim.base.errors import InputError, PolicyError
from sim.base.jit import JIT
from sim.engine.plan import NO_LIMIT, Choice, Machine
from tests.examples import examples
from tests.sim.engine.strategies import launching
from tests.sim.engine.test_kernel import assert_same
from tests.sim.engine.test_reservations import AnyReservations, Reserving, rigid_workloads

QUEUES = ("q0", "q1", "q2")
FIRST = Choice()


@st.composite
def clusters(draw) -> sim.Cluster:
    """Draw a cluster that holds each job: equal or mixed machines, one of many CPUs, or slots.

    A job has up to six tasks, each of up to 2 of cpu and of mem.
    """
    fungible = draw(st.sampled_from([(), (), ("mem",)]))
    kind = draw(st.sampled_from(["equal", "mixed", "single", "slots"]))
    times = draw(st.sampled_from([1, 3])) if kind != "slots" else 3
    rows = [{"count": 2, "cpu": 2, "mem": 2}, {"cpu": 5, "mem": 6}, {"cpu": 4, "mem": 4}]
    cluster = {
        "equal": sim.Cluster.machines(
            6 * times,
            cpu=draw(st.sampled_from([2, 3])),
            mem=draw(st.sampled_from([2, 4])),
            fungible=fungible,
        ),
        "mixed": sim.Cluster.mixed(draw(st.permutations(rows)) * times, fungible=fungible),
        "single": sim.Cluster.machines(1, cpu=12 * times, mem=14 * times, fungible=fungible),
        "slots": sim.Cluster.slots(18),
    }[kind]
    if draw(st.integers(0, 3)) == 0:
        cluster = draw(launching(cluster))
    return cluster.with_queues("hard", dict.fromkeys(QUEUES, 1 / 3)) if times == 3 else cluster


@dataclass(frozen=True)
class AnyPlaces(AnyReservations):
    """Reservations with a random choice of machines, by all resources or without fungible ones."""

    def prepare(self, world, plan):
        super().prepare(world, plan)
        rng = np.random.default_rng([self.plan_seed, 4])
        rules = [Machine.FIRST, Machine.FASTEST, Machine.BEST_FIT, Machine.LEAST_DOT]
        plan.choice = Choice(Machine(rng.choice(rules)))
        rigid = [name for name in world.cluster.resources if name not in world.cluster.fungible]
        plan.fit_resources = tuple(rigid) if rng.random() < 0.3 else ()


@pytest.mark.parametrize("callbacks", [False, True])
@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1))
@settings(
    max_examples=examples(120),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
def test_same_bits_as_the_naive_simulator(callbacks, data, plan_seed):
    workload = data.draw(rigid_workloads(demands=True))
    cluster = data.draw(clusters())
    depth = data.draw(st.sampled_from([1, 1, 2, 3, NO_LIMIT, NO_LIMIT]))
    assert_same(workload, cluster, AnyPlaces("strict", (), plan_seed, depth, callbacks))


def crowd(n_jobs: int, width: int, shortest: float, queues: str = "a") -> sim.Workload:
    """Make rigid jobs of one-CPU tasks; requests are from `shortest` to 5 times the run."""
    rng = np.random.default_rng(n_jobs)
    jobs = []
    for submit_s in np.cumsum(rng.exponential(1.0, n_jobs)):
        n, run_s = int(rng.integers(1, width + 1)), round(float(rng.exponential(6.0)), 2)
        job = {"submit_s": float(submit_s), "queue": str(rng.choice(list(queues))), "min_tasks": n}
        job["stages"] = [{"durations_s": [run_s] * n, "demand": {"cpu": 1}}]
        jobs.append(
            job | {"requested_s": run_s * float(rng.choice([shortest, 1.0, 1.0, 2.0, 5.0]))}
        )
    return sim.Workload.from_jobs(jobs)


ALL_POLICIES = [
    ("easy", {}),
    ("easy", {"reservations": 3}),
    ("easy", {"order": "sjf", "knowledge": "run"}),
    ("conservative", {}),
    ("conservative", {"order": "sjf"}),
]


@pytest.mark.parametrize(("name", "params"), ALL_POLICIES)
def test_one_machine_of_many_cpus_is_a_pool_of_slots(name, params):
    workload, policy = crowd(400 if JIT else 120, 9, 0.8), policies.build(name, **params)
    pool = sim.simulate(workload, sim.Cluster.slots(24), policy)
    machine = sim.simulate(workload, sim.Cluster.machines(1, cpu=24), policy)
    assert (pool.job_start > pool.job_submit).mean() > 0.3
    np.testing.assert_array_equal(machine.job_start, pool.job_start)


@pytest.mark.parametrize(
    ("name", "params"), [("easy", {}), ("easy", {"reservations": 3}), ("conservative", {})]
)
def test_queues_with_hard_shares_are_pools_of_their_own(name, params):
    """As long as no job outlives its request, as an end elsewhere is a reason to look again."""
    n_jobs = 300 if JIT else 120
    workload, policy = crowd(n_jobs, 6, 1.0, "aab"), policies.build(name, **params)
    cluster = sim.Cluster.slots(20).with_queues("hard", {"a": 0.7, "b": 0.3})
    together = sim.simulate(workload, cluster, policy)
    queue = np.array(workload.jobs["queue"].to_pylist())
    for name, n_slots in (("a", 14), ("b", 6)):
        rows = np.flatnonzero(queue == name)
        alone = sim.simulate(workload.take(rows), sim.Cluster.slots(n_slots), policy)
        assert (alone.job_start > alone.job_submit).mean() > 0.3
        np.testing.assert_array_equal(together.job_start[rows], alone.job_start)


def placed(jobs, cluster, choice=FIRST, reservations=NO_LIMIT):
    """Run rigid jobs of (submit, run, width, CPUs of a task); return starts and machines."""
    workload = sim.Workload.from_jobs(
        {
            "submit_s": submit,
            "stages": [{"durations_s": [run] * width, "demand": {"cpu": cpu}}],
            "min_tasks": width,
        }
        for submit, run, width, cpu in jobs
    )
    policy = Choosing([run for _, run, _, _ in jobs], reservations, choice=choice)
    r = sim.simulate(workload, cluster, policy, record="tasks")
    return r.job_start.tolist(), r.task_machine.tolist()


@dataclass
class Choosing(Reserving):
    """Reserves room on machines by a choice."""

    choice: Choice = FIRST

    def begin(self, world, plan):
        super().begin(world, plan)
        plan.choice = self.choice


def test_room_that_is_free_in_turns_on_two_machines_holds_no_task():
    """From 0 on there is always one free CPU, first on the second machine, from 4 on the first.

    So a job of 5 s waits for the first, where slots are counted alone it would begin at once.
    """
    jobs = [(0, 4, 1, 1), (0, 1, 1, 1), (1, 6, 1, 2), (1, 5, 1, 1)]
    assert placed(jobs[:2], sim.Cluster.machines(2, cpu=1))[1] == [0, 1]
    mixed = sim.Cluster.mixed([{"cpu": 1}, {"cpu": 2}])
    assert placed(jobs, mixed) == ([0, 0, 1, 4], [0, 1, 1, 0])


def test_a_gang_keeps_the_machines_that_it_was_promised():
    """The third is promised both machines from 4 on; the fourth may use them until then only."""
    jobs = [(0, 4, 1, 2), (0, 2, 1, 1), (1, 3, 2, 2), (2, 2, 2, 1), (2, 3, 1, 1)]
    cluster = sim.Cluster.machines(2, cpu=2)
    for depth in (1, NO_LIMIT):
        starts, machines = placed(jobs, cluster, reservations=depth)
        assert starts == [0, 0, 4, 2, 7]
        assert machines == [0, 1, 0, 1, 1, 1, 0]


def test_a_gang_fills_the_machines_of_least_score():
    cluster = sim.Cluster.mixed([{"cpu": 4}, {"cpu": 2}, {"cpu": 3}])
    gang = [(0, 1, 4, 1)]
    assert placed(gang, cluster)[1] == [0, 0, 0, 0]
    for rule in (Machine.BEST_FIT, Machine.LEAST_DOT):
        assert placed(gang, cluster, Choice(rule))[1] == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("cluster", "choice", "match"),
    [
        (sim.Cluster.machines(3, cpu=2), Choice(Machine.PACKED), "plan.choice.machine is packed"),
        (sim.Cluster.machines(2, cpu=2), FIRST, "room for only 4 of them at once"),
        (
            sim.Cluster.machines(9, cpu=2).with_queues("hard", {"default": 0.25}),
            FIRST,
            "has a hard share of 4.5; give the queue a larger share",
        ),
    ],
)
def test_what_can_not_be_reserved_is_refused(cluster, choice, match):
    with pytest.raises((InputError, PolicyError), match=match):
        placed([(0, 1, 5, 1)], cluster, choice)
