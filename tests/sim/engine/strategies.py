"""Random small worlds for property tests: workloads, clusters, and a policy that fills anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from hypothesis import strategies as st

import sim
from policies.base import Policy
from sim.base.arrays import ranges
from sim.cluster.faults import Outages, Slowdowns
from sim.engine.plan import Batch, Event, Learning, Order, Plan, Queues, World
from sim.engine.plan.queues import Packing

DURATIONS = st.one_of(
    st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]),
    st.floats(0.01, 7.0, allow_nan=False).map(lambda x: round(x, 3)),
)


DEFERRED = Event.STAGE_DONE | Event.JOB_DONE | Event.SERVICE
WORTHS = [1.0, 0.1, 3.0, 1e9]
"""Worth of jobs."""


@st.composite
def workloads(draw, max_jobs: int = 7, gangs: bool = True, inputs: bool = False) -> sim.Workload:
    """Draw a workload of DAG jobs with both kinds of edges, two resources and three queues.

    With `inputs` jobs may need what earlier ones make.
    """
    jobs = []
    clock = 0.0
    for i in range(draw(st.integers(1, max_jobs))):
        clock += draw(st.sampled_from([0.0, 0.0, 1.0, 2.5]))
        stages = []
        for s in range(draw(st.integers(1, 4))):
            stage = {
                "name": f"s{s}",
                "durations_s": draw(st.lists(DURATIONS, min_size=1, max_size=5)),
                "demand": {"cpu": draw(st.integers(0, 4)), "mem": draw(st.sampled_from([0, 1, 3]))},
            }
            parents = {
                f"s{p}": draw(st.sampled_from(["barrier", "one_to_one"]))
                for p in range(s)
                if draw(st.integers(0, 2)) == 0
            }
            if parents:
                stage["parents"] = parents
            stages.append(stage)
        job = {
            "job_id": f"j{i}",
            "submit_s": clock,
            "queue": draw(st.sampled_from(["q0", "q1", "q2"])),
            "user": draw(st.sampled_from(["u0", "u1"])),
            "priority": draw(st.integers(0, 2)),
            "stages": stages,
        }
        if inputs and i and draw(st.integers(0, 2)):
            job["input_mode"] = draw(st.sampled_from(["none", "blind", "poll", "poll"]))
            job["poll_lag_s"] = draw(st.sampled_from([0.0, 0.0, 1.5]))
            kinds = st.sampled_from(["hard", "hard", "soft"])
            job["inputs"] = {f"j{u}": draw(kinds) for u in range(i) if draw(st.integers(0, 2)) == 0}
        if gangs and draw(st.integers(0, 3)) == 0:
            n = sum(len(s["durations_s"]) for s in stages)
            job["min_tasks"] = draw(st.integers(1, min(3, n)))
        jobs.append(job)
    return sim.Workload.from_jobs(jobs)


@st.composite
def failures(draw, workload: sim.Workload) -> sim.Workload:
    """Let some attempts of a workload's tasks fail, some of them for want of a parent's output."""
    c = workload.columns
    readers: list[list[int]] = [[] for _ in range(workload.n_tasks)]
    parents = np.repeat(np.arange(workload.n_stages), np.diff(c.edge0))
    for p, g, kind in zip(parents, c.edge_child, c.edge_kind, strict=True):
        parent_tasks = range(int(c.stage_task0[p]), int(c.stage_task0[p + 1]))
        for i, task in enumerate(range(int(c.stage_task0[g]), int(c.stage_task0[g + 1]))):
            readers[task] += parent_tasks if kind == 0 else parent_tasks[i : i + 1]
    rows = []
    for task, read in enumerate(readers):
        for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2]))):
            part = draw(st.sampled_from([0.0, 0.5, 1.0]))
            lost = draw(st.sampled_from([-1, *read]))
            rows.append((task, part * float(c.task_duration[task]), lost))
    if not rows:
        return workload
    return workload.with_failures(
        dict(zip(("task", "after_s", "lost"), zip(*rows, strict=True), strict=True))
    )


@st.composite
def clusters(
    draw, workload: sim.Workload, outages: bool = False, launches: bool = False
) -> sim.Cluster:
    """Draw a cluster on which `workload` fits, of each kind and queue mode.

    With `outages` machines are lost, and everything is slower at times; with `launches` starts lag.
    """
    mode = draw(st.sampled_from(["global", "weighted", "hard"]))
    if draw(st.booleans()):
        cluster = sim.Cluster.slots(draw(st.integers(9 if mode == "hard" else 3, 12)))
    else:
        n = draw(st.integers(9, 12) if mode == "hard" else st.integers(3, 5))
        fungible = draw(st.sampled_from([(), ("mem",), ("cpu",), ("cpu", "mem")]))
        cluster = sim.Cluster.machines(n, cpu=draw(st.integers(4, 6)), mem=3, fungible=fungible)
    if outages:
        times = st.sampled_from([0.0, 0.5, 1.0, 2.5, 3.0])
        rows = []
        for machine in range(cluster.n_machines):
            clock = 0.0
            for _ in range(draw(st.integers(0, 2))):
                down_s = clock + draw(times)
                clock = down_s + draw(times) + 0.5
                rows.append((machine, down_s, clock))
        cluster = cluster.with_outages(
            Outages.from_columns(*(zip(*rows, strict=True) if rows else [[]] * 3))
        )
        times_s = sorted(draw(st.sets(st.sampled_from([0.0, 0.75, 2.0, 3.5, 6.0]), max_size=4)))
        speeds = [draw(st.sampled_from([0.3, 0.5, 2.0])) for _ in times_s[1:]]
        cluster = cluster.with_slowdowns(Slowdowns.from_columns(times_s[:-1], times_s[1:], speeds))
    if launches:
        cluster = draw(launching(cluster))
    if mode == "global":
        return cluster
    names = workload.columns.queue_names
    return cluster.with_queues(mode, {name: 1 / len(names) for name in names})


@st.composite
def launching(draw, cluster: sim.Cluster) -> sim.Cluster:
    """Draw lags of starts, of all kinds, and of stages."""
    lags = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.5])
    constant, values = lags, st.lists(lags, min_size=1, max_size=4)
    bounds = st.tuples(lags, lags).map(lambda pair: {"low": min(pair), "high": max(pair)})
    cluster = cluster.with_stage_lag(draw(lags))
    return cluster.with_launch(draw(st.one_of(constant, values, bounds)), draw(st.integers(0, 99)))


@dataclass(frozen=True)
class AnyPlan(Policy):
    """Fills every column with something, drawn from its seed, and changes it in callbacks."""

    plan_seed: int = 0
    callbacks: bool = False
    evicts: bool = False

    name: ClassVar[str] = "any-plan"
    learns: ClassVar[float] = 0.0  # how often at least

    @property
    def events(self) -> Event:  # type: ignore[override]
        if not self.callbacks:
            return Event.NONE
        rng = np.random.default_rng(self.plan_seed)
        refined = Event.REFINED if self.plan_seed % 2 else Event.NONE
        return refined | Event(int(rng.integers(0, 256)) | int(Event.TASKS_DONE | Event.JOB_DONE))

    def prepare(self, world: World, plan: Plan) -> np.random.Generator:
        rng = np.random.default_rng([self.plan_seed, 1])
        n = int(rng.integers(1, 4))
        tier = rng.integers(0, 2, n)
        demoting = rng.random(n) < 0.5
        target = (np.arange(n) + 1) % n
        demoting &= target > np.arange(n)  # never round in circles
        plan.queues = Queues.make(
            n,
            weight=rng.choice([1.0, 2.0, 10.0], n),
            tier=tier,
            order=rng.integers(0, len(Order), n),
            demote_at=np.where(demoting, rng.uniform(0.5, 5.0, n), np.inf),
            demote_to=target,
        )
        plan.share = int(rng.integers(-1, len(world.cluster.resources)))
        plan.fit_resources = tuple(
            name
            for name in world.cluster.resources
            if name not in world.cluster.fungible or rng.random() < 0.4
        )
        jobs = len(world.columns.job_submit)
        plan.set_jobs(
            key=rng.integers(0, 3, jobs).astype(float),
            queue=rng.integers(0, n, jobs),
            service_at=np.where(rng.random(jobs) < 0.3, rng.uniform(0, 6, jobs), np.inf),
            notify_at=rng.integers(0, 4, jobs),
        )
        if rng.random() < 0.5:
            plan.set_jobs(worth=rng.choice(WORTHS, jobs), beyond=rng.choice([0.0, 0.0, 3.0], jobs))
        if rng.random() < 0.5:
            plan.set_jobs(run_limit=rng.choice([1, 2, 2**31 - 1], jobs))
        if self.callbacks and rng.random() < 0.7:
            # a gate is opened when its first tasks have ended, so that nothing waits for ever
            gate = np.where(rng.random(jobs) < 0.5, 1, 2**31 - 1)
            overflow = rng.integers(-1, n, jobs) if rng.random() < 0.5 else -1
            plan.set_jobs(start_gate=gate, notify_at=1, overflow_queue=overflow)
        if self.evicts:
            limit = rng.choice([0, 1, 2, 2**31 - 1], jobs)
            overflow = np.where(limit == 0, 0, rng.integers(-1, n, jobs))
            plan.set_jobs(run_limit=limit, overflow_queue=overflow)
            plan.evict = True
        plan.set_stages(
            key=rng.integers(0, 2, len(world.columns.stage_job)).astype(float),
            weight=rng.choice([1.0, 2.0], len(world.columns.stage_job)),
        )
        if rng.random() < 0.5:
            sizes = np.diff(world.columns.stage_task0)
            plan.task_order = np.concatenate([rng.permutation(k) for k in sizes]).astype("i4")
        self.fill_packing(rng, world, plan)
        if rng.random() < 0.5:
            plan.timer_s = float(rng.uniform(0.1, 3.0))
        plan.first_ended = bool(rng.random() < 0.5)
        if self.plan_seed % 5 < 2:
            plan.deferred = DEFERRED
        return rng

    def fill_packing(self, rng: np.random.Generator, world: World, plan: Plan) -> None:
        n_tasks = world.columns.n_tasks
        n_stages = len(world.columns.stage_job)
        plan.packing = Packing(
            remaining=float(rng.choice([0.0, 0.2, 2.0])),
            order=float(rng.choice([1.0, 0.5])),
            rebased=bool(rng.random() < 0.5),
            pending=bool(rng.random() < 0.5),
            remote=float(rng.choice([1.0, 0.5])),
            bundle=int(rng.choice([1, 3, 8])),
            overbook=bool(rng.random() < 0.5),
            unfairness=float(rng.choice([np.inf, 0.0, 1.5, 4.0])),
            aligned=bool(rng.random() < 0.75),
        )
        if rng.random() < 0.5:
            plan.task_priority = rng.choice([0.0, 0.3, 0.7, 1.0, 4.0], n_tasks)
        if rng.random() < 0.5:
            plan.task_prefers = rng.integers(-1, 4, n_tasks).astype("i4")
        plan.set_stages(cost=rng.choice([0.5, 1.0, 3.0], n_stages))
        if rng.random() < max(self.learns, 0.4):
            plan.set_stages(expected_s=rng.choice([0.0, 1.0, 4.0], n_stages))
            self.fill_learning(n_stages, plan)

    def fill_learning(self, n_stages: int, plan: Plan) -> None:
        rng = np.random.default_rng([self.plan_seed, 3])
        if rng.random() < max(self.learns, 0.6):
            plan.learning = Learning(
                np.stack([rng.integers(-1, 3, n_stages), rng.choice([-1, 3, 4], n_stages)]).astype(
                    np.int32
                ),
                *(np.array([value] * 5) for value in (np.nan, 0.0, 0.0)),
                runs=np.zeros(3, dtype=np.int64),
                guess_s=2.0,
                prior_tasks=float(rng.choice([0.5, 2.0])),
                refresh_s=float(rng.choice([0.125, 0.5, 3.0])),
                estimates=bool(rng.random() < 0.5),
            )

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        rng = np.random.default_rng([self.plan_seed, 2, len(batch.kind), int(batch.now * 1000)])
        opened = batch.rows(Event.TASKS_DONE)
        if len(opened):
            plan.set_jobs(opened, start_gate=2**31 - 1)
        n = len(world.columns.job_submit)
        n_changed = n if rng.random() < 0.5 else 1
        picked = rng.permutation(n)[: rng.integers(0, n_changed + 1)]
        if len(picked):
            plan.set_jobs(
                picked,
                key=rng.integers(0, 3, len(picked)).astype(float),
                queue=rng.integers(0, len(plan.queues.weight), len(picked)),
            )
            if plan.weighs_jobs:
                worth = rng.choice(WORTHS, len(picked))
                plan.set_jobs(picked, worth=worth, beyond=rng.choice([0.0, 5.0]))
            if self.evicts:
                limit = rng.choice([0, 1, 3], len(picked))
                plan.set_jobs(picked, run_limit=limit, overflow_queue=0)
            if not np.isnan(plan.stages["expected_s"]).any():
                stages = np.flatnonzero(np.isin(world.columns.stage_job, picked))
                plan.set_stages(
                    stages, jobs=picked, expected_s=rng.choice([0.5, 2.0, 5.0], len(stages))
                )
        unstarted = picked[np.isnan(world.view["start"][picked])]
        if len(unstarted):
            self.change_tasks(rng, unstarted, world, plan)
        if (batch.kind == int(Event.TIMER)).any():
            plan.timer_s = batch.now + 1.25
        if self.plan_seed % 5 < 2:
            plan.deferred = DEFERRED if rng.random() < 0.7 else Event.NONE

    def change_tasks(
        self, rng: np.random.Generator, jobs: np.ndarray, world: World, plan: Plan
    ) -> None:
        c = world.columns
        stages = np.flatnonzero(np.isin(c.stage_job, jobs))
        rows = ranges(c.stage_task0[stages], c.stage_task0[stages + 1])
        sizes = np.diff(c.stage_task0)[stages]
        values = {
            "order": np.concatenate([rng.permutation(k) for k in sizes]),
            "priority": rng.choice([0.0, 0.3, 0.7, 1.0, 4.0], len(rows)),
            "prefers": rng.integers(-1, 4, len(rows)),
        }
        for name, value in values.items():
            if getattr(plan, f"task_{name}") is not None:
                plan.set_tasks(rows, **{name: value})
