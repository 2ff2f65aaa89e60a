"""Periodic planning: the kernel against the naive simulator, and the model against real logs."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import policies
import sim
from policies.base import Policy
from policies.knows import Knows
from sim.base.errors import InputError
from sim.cluster.faults import Outages
from sim.engine.plan import Depth, Event, Order, Queues, Replan
from tests.examples import examples
from tests.sim.engine.judge_replan import judge, read, settings_of
from tests.sim.engine.reference_replan import Job, Running, Settings, State, backfill_cycle, choose
from tests.sim.engine.test_kernel import assert_same


@dataclass(frozen=True)
class AnyReplan(Policy):
    """Periodic planning with random options, limits and keys, changed at random in callbacks."""

    plan_seed: int = 0
    callbacks: bool = False

    name: ClassVar[str] = "any-replan"
    knows = Knows(durations="true")

    @property
    def events(self) -> Event:  # type: ignore[override]
        return Event.TIMER | Event.JOB_ARRIVED if self.callbacks else Event.NONE

    def prepare(self, world, plan):
        rng = np.random.default_rng(self.plan_seed)
        n = len(world.columns.job_submit)
        plan.queues = Queues.make(1, order=rng.choice([Order.KEY, Order.FIFO, Order.REMAINING]))
        longest = np.maximum.reduceat(world.columns.stage_max_s, world.columns.job_stage0[:-1])
        no_time = 0.6 if rng.random() < 0.3 else 0.1
        wrong = rng.choice([0.5, 1.0, 1.0, 1.0, 2.0, 10.0], n) * (rng.random(n) >= no_time)
        plan.set_jobs(key=rng.integers(0, 3, n).astype(float), expected_s=np.ceil(wrong * longest))

        def pick(*values):
            return values[rng.integers(0, len(values))]

        resolution_s = pick(1, 1, 1, 2, 60)
        plan.replan = Replan(
            plans=bool(rng.integers(0, 5)),
            interval_s=pick(1.0, 1.0, 2.0, 3.5),
            cycle_s=pick(0.0, 0.01, 0.3),
            job_cycle_s=pick(0.0, 0.05),
            cycle_factors=pick(1.0, np.array([0.5, 2.0, 0.0])),
            resolution_s=resolution_s,
            window_s=max(pick(3, 40, 86_400), resolution_s),
            first_window_s=pick(1, 30, 30),
            linear_s=pick(0, 0, 1),
            kill_wait_s=pick(0, 5, 30),
            depth=pick(2, 5, 500, 500),
            reserved=pick(0, 0, 1, 2),
            main_depth=pick(0, 100),
            main_interval_s=pick(1, 7, 60),
            main_delay_s=pick(0, 3),
            completing_s=pick(0.0, 0.25, 1.5, rng.choice([0.1, 0.75, 3.0], n)),
            clock_s=float(rng.integers(0, 100)) + pick(0.0, 0.5, 0.7),
            poll_phase_s=pick(0.0, 0.3),
            main_phase=int(rng.integers(0, 7)),
            plan_phase_s=pick(0.0, 0.5, 0.9),
        )
        if rng.random() < 0.5:
            plan.replan = dataclasses.replace(plan.replan, requeue_s=pick(0.5, 3.0, 40.0))
        plan.replan = self._leaves_out(plan.replan, world.columns)
        if rng.random() < 0.4:
            by = rng.integers(-1, len(world.cluster.resources), n).astype("i4")
            plan.replan = dataclasses.replace(plan.replan, fits_by=by)
        plan.timer_s = 1.25 if self.callbacks else np.inf

    def _leaves_out(self, options, columns):
        """Draw what cycles leave out: groups, arrays, and the time of plans."""
        rng, n = np.random.default_rng([self.plan_seed, 8]), len(columns.job_submit)
        changes = {}
        if rng.random() < 0.4:
            changes |= {
                "max_s": rng.choice([0.2, 1.0, 5.0]),
                "yield_s": rng.choice([0.1, 0.25, 0.5, 1.0]),
                "sleep_s": rng.choice([0.0, 0.25, 0.5]),
                "continues": bool(rng.random() < 0.6),
                "job_cycle_s": rng.choice([0.05, 0.1, 0.3]),
            }
        if rng.random() < 0.4:
            changes |= {
                name: tuple(
                    Depth(rng.integers(-1, 3, n).astype("i4"), int(rng.integers(1, 4)))
                    for _ in range(rng.integers(0, 3))
                )
                for name in ("depths", "main_depths")
            }
            changes |= {"starts": int(rng.integers(0, 4)), "main_starts": int(rng.integers(0, 4))}
        if rng.random() < 0.3:
            changes["reserved_in"] = rng.integers(0, 3, n).astype("i4")
        if rng.random() < 0.4:
            array = rng.integers(-1, 3, n).astype("i4")
            table = columns.features.jobs
            if {"array", "throttle"} <= {*table.column_names} and rng.random() < 0.7:
                names = table["array"].to_pylist()
                array = np.array([sorted({*names}).index(a) if a else -1 for a in names], "i4")
                changes["throttle"] = np.array(table["throttle"].to_pylist(), "i4")
            elif rng.random() < 0.5:
                changes["throttle"] = rng.integers(0, 3, n).astype("i4")
            changes |= {"array": array, "array_reserved": int(rng.integers(0, 3))}
        return dataclasses.replace(options, **changes)

    def react(self, memory, batch, world, plan):
        rng = np.random.default_rng([self.plan_seed, int(batch.now * 1000)])
        n = len(world.columns.job_submit)
        some = rng.permutation(n)[: rng.integers(0, n + 1)]
        plan.set_jobs(some, key=rng.integers(0, 6, len(some)).astype(float))
        if batch.now < 40:
            plan.timer_s = batch.now + 1.25


@st.composite
def rigid_workloads(draw, resources=("cpu",), max_jobs: int = 12) -> sim.Workload:
    """Draw rigid jobs of one stage, or of a few, or of a single task, often many at once."""
    jobs, clock = [], 0.0
    seconds = st.sampled_from([0.0, 1.0, 2.5, 4.0, 7.25, 30.0, 70.0])
    for _ in range(draw(st.integers(1, max_jobs))):
        clock += draw(st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.5, 20.0]))
        demand = {"cpu": draw(st.sampled_from([1, 1, 2, 3]))}
        if "mem" in resources:
            demand["mem"] = draw(st.integers(0, 4))
        stages = [{"name": "s0", "durations_s": draw(st.lists(seconds, min_size=1, max_size=5))}]
        if draw(st.integers(0, 5)) == 0:
            parents = draw(st.sampled_from([[], ["s0"]]))
            more = draw(st.lists(seconds, min_size=1, max_size=2))
            stages.append({"name": "s1", "durations_s": more, "parents": parents})
        stages = [stage | {"demand": demand} for stage in stages]
        n_tasks = sum(len(stage["durations_s"]) for stage in stages)
        gang = n_tasks > 1 or draw(st.booleans())
        jobs.append({"submit_s": clock, "stages": stages, "min_tasks": n_tasks if gang else 0})
    return sim.Workload.from_jobs(jobs)


def _settings(n: int) -> settings:
    return settings(
        max_examples=examples(n),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=True,
    )


@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1), callbacks=st.booleans())
@_settings(80)
def test_same_bits_as_the_naive_simulator_on_slots(data, plan_seed, callbacks):
    workload = data.draw(rigid_workloads())
    cluster = sim.Cluster.slots(data.draw(st.integers(7, 11)))
    assert_same(workload, cluster, AnyReplan("strict", (), plan_seed, callbacks))


@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1), callbacks=st.booleans())
@_settings(80)
def test_same_bits_as_the_naive_simulator_on_machines(data, plan_seed, callbacks):
    workload = data.draw(rigid_workloads(("cpu", "mem")))
    count = data.draw(st.sampled_from([1, 2, 3, 4, 9]))
    cluster = sim.Cluster.machines(count, cpu=-(-21 // count) + 2, mem=-(-28 // count) + 4)
    assert_same(workload, cluster, AnyReplan("strict", (), plan_seed, callbacks))


REAL = Path(__file__).parents[2] / "real" / "slurm"
RUNS = (
    "kth1-backfill-basic-1",
    "kth1-backfill_short-basic-1",
    "kth1-builtin-basic-1",
    "synth1-backfill-basic-1",
    "synth1-backfill_short-basic-1",
)


def test_the_model_starts_what_a_real_slurm_started():
    """Put into the state that a log shows at each cycle, run by run, and in quiet moments."""
    described = json.loads((REAL / "runs.json").read_text())["settings"]
    identical = cycles = 0
    for run in RUNS:
        setup = described[run.rpartition("-")[0]]
        jobs, clock_s = read(REAL / run)
        verdict = judge(
            jobs,
            clock_s,
            (setup["n_nodes"], setup["cpus_per_node"]),
            settings_of(setup["parameters"]),
            speed=setup["speed"],
            backfills=setup["scheduler"] == "backfill",
        )
        assert verdict.identical >= 0.88 * verdict.cycles, (run, verdict)
        assert verdict.false_starts <= 0.02 * verdict.quiet, (run, verdict)
        identical += verdict.identical
        cycles += verdict.cycles
    assert cycles > 300
    assert identical >= 0.97 * cycles


def test_other_settings_are_told_from_the_right_ones():
    """Of a run that plans all jobs: with a reservation for the first alone, other jobs start."""
    jobs, clock_s = read(REAL / RUNS[1])
    wrong = judge(jobs, clock_s, (64, 1), Settings(resolution_s=1, reserve=1), speed=60)
    assert wrong.identical < 0.97 * wrong.cycles


def test_nodes_by_consecutive_best_fit():
    free = [[1], [1], [0], [1], [1], [1], [0], [1]]
    everything = set(range(8))
    assert choose(free, everything, Job(0, 1, 60)) == {7: 1}  # the tightest row
    assert choose(free, everything, Job(0, 3, 60)) == {3: 1, 4: 1, 5: 1}
    # no row is wide enough: first the widest, then the tightest that suffices
    assert choose(free, everything, Job(0, 4, 60)) == {3: 1, 4: 1, 5: 1, 7: 1}
    assert choose(free, everything, Job(0, 7, 60)) is None


def test_nodes_of_the_least_weight_come_first():
    free, everything = [[1], [2], [1], [2]], set(range(4))
    weights = [5, 5, 1, 9]
    assert choose(free, everything, Job(0, 1, 60), weights=weights) == {2: 1}
    assert choose(free, everything, Job(0, 3, 60), weights=weights) == {2: 1, 1: 2}
    assert choose(free, everything, Job(0, 7, 60), weights=weights) is None


def test_jobs_run_on_nodes_of_the_least_weight():
    kinds = [{"class": "big", "cpu": 2, "weight": 9}, {"class": "small", "cpu": 4, "weight": 2}]
    jobs = [
        {
            "submit_s": 0.0,
            "requested_s": 60.0,
            "stages": [{"durations_s": [60.0], "demand": {"cpu": 2}}],
        }
    ] * 3
    workload = sim.Workload.from_jobs(jobs)
    cluster = sim.Cluster.mixed(kinds)
    run = sim.simulate(workload, cluster, policies.build("slurm"), record="tasks")
    assert run.tasks["machine"].to_pylist() == [1, 1, 0]


def test_a_demand_of_one_quantum_takes_room():
    """Two tasks of a quantum of CPU: a node that has no more has room for one of them."""
    quantum = 1e-6
    stages = [{"durations_s": [60.0, 60.0], "demand": {"cpu": quantum}}]
    jobs = [{"submit_s": 0.0, "requested_s": 60.0, "min_tasks": 2, "stages": stages}]
    workload = sim.Workload.from_jobs(jobs)
    run = sim.simulate(workload, sim.Cluster.machines(2, cpu=quantum), policies.build("slurm"))
    assert run.task_machine.tolist() == [0, 1]


def test_no_two_tasks_share_a_node():
    free, everything = [[4], [4], [1]], {0, 1, 2}
    assert choose(free, everything, Job(0, 2, 60, one_per_node=True)) == {0: 1, 1: 1}
    assert choose(free, everything, Job(0, 4, 60, one_per_node=True)) is None
    stages = [{"durations_s": [60.0, 60.0], "demand": {"cpu": 1}}]
    job = {"submit_s": 0.0, "requested_s": 60.0, "min_tasks": 2, "stages": stages}
    workload = sim.Workload.from_jobs([job, {**job, "one_per_node": True}])
    cluster = sim.Cluster.machines(2, cpu=4)
    run = sim.simulate(workload, cluster, policies.build("slurm"), record="tasks")
    assert run.tasks["machine"].to_pylist() == [0, 0, 0, 1]
    wide = sim.Workload.from_jobs([{**job, "one_per_node": True}])
    with pytest.raises(InputError, match="no two share a machine"):
        sim.simulate(wide, sim.Cluster.machines(1, cpu=4), policies.build("slurm"))


def test_nodes_are_compared_by_what_is_free_of_a_resource():
    """One task a node: the fullest node with room, and the row of least that is free."""
    free = [[4, 9], [3, 9], [0, 0], [2, 9], [9, 9]]
    everything = set(range(5))

    def chosen(tasks, fits_by):
        job = Job(0, tasks, 60, (1, 1), one_per_node=True, fits_by=fits_by)
        return choose(free, everything, job)

    assert chosen(1, -1) == {0: 1}  # one task fits each node: the first
    assert chosen(1, 0) == {1: 1}  # of nodes 0 and 1, with 7, as 3 and 4 have 11
    assert chosen(2, -1) == chosen(2, 0) == {0: 1, 1: 1}
    assert chosen(1, 1) == {0: 1}  # 18 is free of the second in either row
    # a row that does not suffice, behind one that does, and has more: as in Slurm
    free = [[1], [1], [0], [9]]
    everything = set(range(4))
    job = Job(0, 2, 60, one_per_node=True)
    assert choose(free, everything, job) == {0: 1, 1: 1}
    assert choose(free, everything, dataclasses.replace(job, fits_by=0)) == {3: 1, 0: 1}


@pytest.mark.parametrize(("gpu", "node"), [(0, 1), (1, 0)])
def test_slurm_goes_by_free_cpus_unless_a_job_takes_gpus(gpu, node):
    """The first job leaves 5 of 8 CPUs of the second node: the fuller one, if that counts."""
    kinds = [{"class": "a", "cpu": 8, "gpu": 2}, {"class": "b", "cpu": 8, "gpu": 2}]

    def a_job(submit_s, cpu, gpu, **more):
        stages = [{"durations_s": [600.0], "demand": {"cpu": cpu, "gpu": gpu}, **more}]
        by_node = {"requested_s": 600.0, "one_per_node": True}
        return {"submit_s": submit_s, "stages": stages, **by_node}

    jobs = [a_job(0.0, 3, 0, runs_on="b"), a_job(10.0, 4, gpu)]
    workload, cluster = sim.Workload.from_jobs(jobs), sim.Cluster.mixed(kinds)
    run = sim.simulate(workload, cluster, policies.build("slurm"), record="tasks")
    assert run.tasks["machine"].to_pylist() == [1, node]


def test_a_reservation_takes_whole_nodes():
    """One node of four CPUs: the second job waits for it, so the third must end before."""
    state = State(now=0, free=[[2]], completing=set(), running=[Running(600, {0: 2})])
    waiting = [Job(1, 4, 600), Job(2, 1, 900), Job(3, 1, 300)]
    assert [job for job, _ in backfill_cycle(state, waiting, Settings())] == [3]
    # without a reservation nothing is in the way
    assert [job for job, _ in backfill_cycle(state, waiting[1:], Settings())] == [2, 3]


def test_ends_in_one_window_are_taken_together():
    """Job 9 fits nodes 0 and 2 from 100 on, but 100 + 20 + 30 is the end of the first window."""
    job, other = Job(9, 2, 60), Job(10, 1, 140)

    def started(second_end):
        running = [Running(100, {0: 1}), Running(second_end, {1: 1})]
        state = State(now=0, free=[[0], [0], [1]], completing=set(), running=running)
        return backfill_cycle(state, [job, other], Settings())

    assert started(150) == [(10, {2: 1})]  # job 9 is planned at 150, on nodes 0 and 1
    assert started(151) == []  # at 100, on nodes 0 and 2


def test_ends_on_nodes_that_are_planned_on_count():
    """Job 9 runs on nodes 0 and 2; the end on node 1 counts if it is planned on that, too."""

    def started(planned_on):
        job, other = Job(9, 2, 60, usable=planned_on, runs_on=frozenset({0, 2})), Job(10, 1, 110)
        running = [Running(100, {0: 1}), Running(150, {1: 1})]
        state = State(now=0, free=[[0], [0], [1]], completing=set(), running=running)
        return backfill_cycle(state, [job, other], Settings())

    assert started(frozenset({0, 1, 2})) == [(10, {2: 1})]  # planned at 150, rounded to 120
    assert started(frozenset({0, 2})) == []  # at 100, rounded to 60


def test_a_limit_of_no_time_is_planned_for():
    """The second, of all slots, is planned for 60, when the first should have ended."""
    replan = Replan(completing_s=0.0, clock_s=0.0, poll_phase_s=0.5, plan_phase_s=5.0)
    narrow = [(2.0 + i, 60, 2) for i in range(30)]
    got = starts([(0.2, 60, 2), (0.7, 0, 4), *narrow], 4, replan)
    assert 60 <= got[1] <= min(got[2:])
    assert got[1] < 65


def starts(jobs, slots, replan, key=0.0):
    """Return the starts of rigid jobs (submission, run, tasks) with exact limits, by key."""
    return run(jobs, sim.Cluster.slots(slots), replan, key).job_start.tolist()


def run(jobs, cluster, replan, key=0.0):
    workload = sim.Workload.from_jobs(
        {"submit_s": submit, "stages": [{"durations_s": [run] * tasks}], "min_tasks": tasks}
        for submit, run, tasks in jobs
    )

    class Exact:
        name, events = "exact", Event.NONE

        def begin(self, world, plan):
            plan.queues = Queues.make(1, order=Order.KEY)
            plan.set_jobs(key=key, expected_s=[run for _, run, _ in jobs])
            plan.replan = replan

    return sim.simulate(workload, cluster, Exact())


def test_jobs_start_at_polls_and_plans():
    replan = Replan(completing_s=0.25, poll_phase_s=0.5, main_phase=50, plan_phase_s=7.0)
    # polls at 0.5, 1.5, ...; a pass 3 s after the one before, at the earliest; a plan at 7
    assert starts([(0.2, 60, 2), (0.7, 60, 1), (4.7, 10, 2)], 4, replan) == [0.5, 3.5, 61.5]
    # the second has to wait for room; the third passes it with the first plan
    assert starts([(0.2, 60, 2), (0.7, 60, 4), (1.0, 20, 1)], 4, replan)[2] == 7.0
    main_loop = Replan(plans=False, completing_s=0.25, poll_phase_s=0.5, main_phase=50)
    assert starts([(0.2, 60, 2), (0.7, 60, 4), (1.0, 20, 1)], 4, main_loop) == [0.5, 61.5, 122.5]


def test_nodes_that_are_reserved_anew_are_a_change_to_plan_for():
    """The last job comes while the first waits: the thread plans again at 37 and 67, no earlier."""
    replan = Replan(completing_s=0.25, poll_phase_s=0.5, main_phase=50, plan_phase_s=7.0)
    jobs = [(0.2, 60, 3), (0.2, 60, 2), (40.2, 20, 1)]
    assert starts(jobs, 4, replan, key=[1, 0, 2]) == [61.5, 0.5, 61.5]


def test_a_requeued_job_is_not_looked_at_for_a_time():
    """Its node is lost at 10; on the other it starts with the next pass, or after another job."""
    jobs = [(0.2, 60, 1), (11.7, 5, 1)]
    lost = sim.Cluster.machines(2, cpu=1).with_outages(Outages.from_columns([0], [10.0], [900.0]))
    replan = Replan(completing_s=0.25, poll_phase_s=0.5, main_phase=50, plan_phase_s=700.0)
    for requeue_s, ends in [(0.0, [70.5, 76.5]), (40.0, [110.5, 18.5]), (40.6, [170.5, 18.5])]:
        options = dataclasses.replace(replan, requeue_s=requeue_s)
        assert run(jobs, lost, options).job_finish.tolist() == ends


@pytest.mark.parametrize("number", [49, 69])
def test_same_bits_where_a_plan_has_many_steps(number):
    """Of 200 backlogs as these, six show that a cut moves the steps behind it."""
    rng = np.random.default_rng([7, number])
    workload, n_nodes = backlog(rng)
    cluster = sim.Cluster.machines(n_nodes, cpu=1, mem=1.0)
    assert_same(workload, cluster, AnyReplan(plan_seed=int(rng.integers(2**32))))


def backlog(rng: np.random.Generator) -> tuple[sim.Workload, int]:
    """Draw up to 39 rigid jobs at once, of as many nodes as there are, or fewer."""
    n_jobs, n_nodes = int(rng.integers(15, 40)), int(rng.integers(4, 8))
    jobs, submit_s = [], 0.0
    for _ in range(n_jobs):
        submit_s += float(rng.choice([0, 0, 0.5]))
        is_wide = rng.random() < 0.5
        width = int(rng.integers(1, n_nodes + 1)) if is_wide else int(rng.integers(1, 3))
        run_s = float(rng.integers(1, 20))
        stage = {"durations_s": [run_s] * width, "demand": {"cpu": 1}}
        priority, min_tasks = int(rng.integers(3)), width if width > 1 else 0
        job = {"submit_s": submit_s, "priority": priority, "min_tasks": min_tasks}
        jobs.append(job | {"stages": [stage]})
    return sim.Workload.from_jobs(jobs), n_nodes
