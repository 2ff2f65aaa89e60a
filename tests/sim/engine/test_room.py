"""Memory of a run: by runs of like tasks, by tasks where each moves by itself."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from benchmarks.worlds import pool_jobs
from policies import Policy
from sim.base import memory
from sim.base.jit import JIT
from sim.cluster.faults import Outages
from sim.cluster.fits import check_task_room, run_bytes
from sim.engine import layout, session
from sim.plan import Plan, World
from sim.transforms.faults import fail_tasks

N = 1_400_000_000
"""Tasks of Alibaba's whole trace."""


def like_tasks(cpu: float = 0.0, n: int = N) -> sim.Workload:
    stages = {"job": [0, 1], "n_tasks": [n, 3], "duration_s": [1.0, 0.25]}
    jobs = {"job_id": ["a", "b"], "submit_s": [0.0, 0.5]}
    return sim.Workload.from_tables(jobs=jobs, stages={**stages, "demand_cpu": [cpu, cpu]})


@pytest.fixture(autouse=True)
def free_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 8e9)


@pytest.mark.parametrize("policy", ["fifo", "srpt"] if JIT else ["fifo"])
def test_like_tasks_of_any_number_run_on_a_pool(policy: str) -> None:
    result = sim.simulate(like_tasks(), sim.Cluster.slots(10_000_000), policies.build(policy))
    long, short = result.job_finish.tolist()
    assert short == (140.25 if policy == "fifo" else 1.25)
    assert 140.0 <= long <= 141.0
    batches = result.batches
    assert batches is not None
    assert batches.num_rows < 400
    assert int(batches["count"].to_numpy().sum()) == N + 3
    with pytest.raises(sim.InputError, match="a record of each of 1,400,000,003 tasks"):
        result.task_start  # noqa: B018


@pytest.mark.parametrize("fit", ["strict", "pack"])
def test_like_tasks_of_any_number_run_on_machines(fit: str) -> None:
    machines = sim.Cluster.machines(10, cpu=100_000)
    workload = like_tasks(1.0, 100_000_000)
    result = sim.simulate(workload, machines, policies.build("fifo", fit=fit))
    assert result.job_finish.tolist() == [100.0, 100.25]
    assert result.batches is not None
    assert result.batches.num_rows <= 1002


def test_tasks_that_may_all_run_at_once_need_memory_each() -> None:
    with pytest.raises(sim.InputError, match=r"84\.0 GB of memory") as caught:
        sim.simulate(like_tasks(), sim.Cluster.machines(10, cpu=4), policies.build("fifo"))
    assert caught.value.rule == "out of memory"


def test_records_that_exceed_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "NEGLIGIBLE_BYTES", 0)
    monkeypatch.setattr(layout, "MIN_RECORDS", 1)
    workload = pool_jobs(400, (70, 80), 0.95)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1_000)
    monkeypatch.setattr(session, "check_room", lambda *_: None)
    with pytest.raises(
        sim.InputError,
        match=r"records of \d+ batches .* a larger cluster, .* record=\"jobs\" keeps none",
    ):
        sim.simulate(workload, sim.Cluster.slots(100), policies.build("fifo"))
    sim.simulate(workload, sim.Cluster.slots(100), policies.build("fifo"), record="jobs")


@pytest.mark.parametrize("policy", ["fifo", "srpt", "tetris"])
@pytest.mark.parametrize(
    "cluster", [sim.Cluster.slots(50), sim.Cluster.machines(3, cpu=40, mem=9)], ids=["pool", "m"]
)
def test_the_state_of_a_run_is_within_its_bound(policy: str, cluster: sim.Cluster) -> None:
    workload = sim.synthesize("alibaba2018", jobs=200, seed=0)
    opened = session.begin_run(workload, cluster, policies.build(policy), 0, record_tasks=False)
    arrays = opened.arrays
    assert "BATCHES" in opened.features
    inputs = {id(column) for column in vars(workload.columns).values()}
    own = sum(a.nbytes for a in arrays.values() if id(a) not in inputs and id(a.base) not in inputs)
    assert own <= run_bytes(workload, cluster) <= 4 * own


@pytest.mark.parametrize("n", [1, 1000])
@pytest.mark.parametrize("policy", ["fifo", "tetris"])
def test_so_is_that_of_a_run_whose_attempts_may_stop(
    policy: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "MIN_RECORDS", 0)
    workload = sim.synthesize("alibaba2018", jobs=200, seed=0)
    failing = fail_tasks(workload, single=0.1)
    machines = sim.Cluster.machines(3 * n, cpu=40, mem=9)
    outages = Outages.from_columns([1], [5.0], [9.0])
    for world, cluster in (
        (failing, sim.Cluster.slots(50 * n)),
        (failing, machines),
        (workload, machines.with_outages(outages)),
    ):
        opened = session.begin_run(world, cluster, policies.build(policy), 0, record_tasks=True)
        inputs = {id(column) for column in vars(world.columns).values()}
        arrays = {k: a for k, a in opened.arrays.items() if {id(a), id(a.base)}.isdisjoint(inputs)}
        own = sum(a.nbytes for a in arrays.values())
        assert len(arrays["out_stop_task"]) == 2 * len(arrays["state_slot_free"])
        assert own <= run_bytes(world, cluster) <= 4 * own


class Evicts(Policy):
    """FIFO that may stop tasks."""

    name = "evicts"

    def prepare(self, world: World, plan: Plan) -> None:
        plan.evict = True


def test_a_policy_that_evicts_needs_memory_for_stopped_attempts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "NEGLIGIBLE_BYTES", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 120_000)
    with pytest.raises(sim.InputError, match="moves each of 1,003 tasks by itself"):
        sim.simulate(like_tasks(n=1000), sim.Cluster.slots(1000), Evicts())
    check_task_room(1003, 0)


def test_tasks_that_move_by_themselves_need_memory_each() -> None:
    lagging = sim.Cluster.slots(100).with_launch(np.array([0.5]))
    with pytest.raises(sim.InputError, match="moves each of 1,400,000,003 tasks by itself"):
        sim.simulate(like_tasks(), lagging, policies.build("fifo"))
