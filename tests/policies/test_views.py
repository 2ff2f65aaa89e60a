"""Views raise where a policy reads a column that it does not declare to know."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import sim
from policies.base import Policy
from policies.check.unknown import recurring
from policies.knows import OMNISCIENT, Knows
from policies.list_scheduling import Strip
from policies.orders import Fifo
from policies.views import DECLARED, TRUTHS, Reader, UndeclaredError, View, cut, hidden, restrict
from sim.engine.plan import NO_LIMIT, Batch, Ended, Event, Plan, World
from sim.transforms import fail_tasks
from sim.workload.columns import Columns
from tests.sim.engine import reference

SLOTS = sim.Cluster.slots(3)
NOTHING = Knows()


@dataclass(frozen=True)
class Peeks(Policy):
    """A policy that reads a column before the run, or as a job arrives."""

    column: str = "job_work"
    early: bool = True
    declares: Knows = NOTHING

    name: ClassVar[str] = "peeks"
    events = Event.JOB_ARRIVED

    @property
    def knows(self) -> Knows:
        return self.declares

    def prepare(self, world: World, plan: Plan) -> None:
        if self.early:
            plan.set_jobs(key=_numbers(getattr(world.columns, self.column)))

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        if not self.early:
            values = _numbers(getattr(world.columns, self.column))
            plan.set_jobs(batch.row, key=values[batch.row])


def _numbers(values: np.ndarray) -> np.ndarray:
    return np.nan_to_num(values, nan=1e9)


@pytest.fixture(scope="module")
def workload() -> sim.Workload:
    return recurring(0, n_jobs=8)


def run_by_kernel(workload: sim.Workload, policy: Policy) -> np.ndarray:
    return sim.simulate(workload, SLOTS, policy).job_start


def run_by_reference(workload: sim.Workload, policy: Policy) -> np.ndarray:
    return reference.simulate(workload, SLOTS, policy).job_start


@pytest.mark.parametrize("run", [run_by_kernel, run_by_reference])
@pytest.mark.parametrize("early", [True, False])
def test_a_column_that_is_not_declared_raises(workload, run, early):
    cheat = Peeks(early=early)
    with pytest.raises(UndeclaredError) as caught:
        run(workload, cheat)
    words = ("peeks", "world.columns.job_work", "declared demands", "durations='true'", "reads=all")
    assert all(word in str(caught.value) for word in words)
    declared = dataclasses.replace(cheat, declares=Knows(durations="true"))
    unlocked = dataclasses.replace(cheat, reads="all")
    np.testing.assert_array_equal(run(workload, declared), run(workload, unlocked))
    assert (run(workload, declared) != run(workload, Fifo())).any()


def test_the_switch_makes_an_oracle():
    assert not Peeks().may_know.is_oracle
    assert Peeks(reads="all").may_know == OMNISCIENT


@pytest.mark.parametrize("name", [*DECLARED, *TRUTHS, "training"])
def test_each_column_raises_unless_it_is_known(workload, name):
    world = World(workload.columns, SLOTS, 0, {})
    with pytest.raises(UndeclaredError, match=name):
        getattr(restrict(world, Reader("p", Knows())).columns, name)
    seen = restrict(world, Reader("p", OMNISCIENT)).columns
    assert getattr(seen, name) is getattr(workload.columns, name) or name == "training"


def test_the_view_of_a_policy_is_of_its_declaration(workload):
    columns = workload.columns
    world = World(columns, SLOTS, 0, {})
    blind = restrict(world, Reader("p", Knows())).columns
    np.testing.assert_array_equal(blind.job_n_tasks, columns.job_n_tasks)
    assert {f.name for f in dataclasses.fields(columns)} - hidden(Knows()).keys() <= vars(
        blind
    ).keys()
    assert not {"priority", "deadline_s", "requested_s"} & {*blind.features.jobs.column_names}
    with pytest.raises(UndeclaredError, match=r"the history's mean_task_s.*'learnt'"):
        blind.features.history_column("mean_task_s")
    learns = restrict(world, Reader("p", Knows(durations="learnt"))).columns
    assert len(learns.features.history_column("mean_task_s")) == 12
    assert len(learns.training) == len(columns.training)
    assert np.isfinite(learns.job_requested).any()
    with pytest.raises(AttributeError, match="no column 'nothing'"):
        _ = blind.nothing


def test_a_view_is_made_once_and_holds_no_copies(workload):
    world = World(workload.columns, SLOTS, 0, {})
    reader = Reader("p", Knows(durations="true"))
    first, second = (restrict(world, reader) for _ in range(2))
    assert restrict(first, Reader("q", Knows())) is first
    assert first.columns.features is second.columns.features
    assert first.columns.task_duration is workload.columns.task_duration


def test_what_is_cut_off_is_not_there(workload):
    known = cut(workload.columns, Knows())
    assert not known.keys() & {*TRUTHS, *DECLARED, "training"}
    view = View(pickle.loads(pickle.dumps(known)), Reader("p", Knows()))
    with pytest.raises(UndeclaredError, match="task_duration"):
        _ = view.task_duration
    np.testing.assert_array_equal(view.stage_n_tasks, workload.columns.stage_n_tasks)


@dataclass(frozen=True)
class Learns(Policy):
    """A policy that notes what it may know of stages that have ended."""

    events = Event.STAGE_DONE | Event.JOB_ARRIVED
    seen: ClassVar[list[tuple[np.ndarray, np.ndarray]]] = []

    def prepare(self, world: World, plan: Plan) -> Ended:
        return world.once_ended(_work)

    def react(self, memory: Ended, batch: Batch, world: World, plan: Plan) -> None:
        memory.take(batch)
        self.seen.append((world.view["stage_left"].copy(), memory.column.copy()))


def _work(columns: Columns) -> np.ndarray:
    return columns.stage_work


@pytest.mark.parametrize("run", [run_by_kernel, run_by_reference])
def test_a_stage_that_has_ended_is_known(workload, run):
    Learns.seen.clear()
    run(workload, Learns())
    assert len(Learns.seen) > 10
    for left, known in Learns.seen:
        expected = np.where(left == 0, workload.columns.stage_work, np.nan)
        np.testing.assert_array_equal(known, expected)
    assert not np.isnan(Learns.seen[-1][1]).any()


def test_preemption_by_priority_is_known_by_levels(workload):
    first = Fifo(preemption={"by": "priority"})
    assert first.may_know.values == "declared"
    plain = sim.simulate(workload, SLOTS, Fifo()).job_finish
    assert (sim.simulate(workload, SLOTS, first).job_finish != plain).any()


@pytest.mark.parametrize("knowledge", ["true", "declared"])
def test_strip_does_not_know_which_jobs_will_lose_outputs(knowledge):
    """With declared durations no job has gates then; with true ones those that lose none."""
    failing = fail_tasks(recurring(0), single=0.1, lost=0.1)
    gates = []

    @dataclass(frozen=True)
    class Watched(Strip):
        def begin(self, world, plan):
            memory = super().begin(world, plan)
            gates.append(plan.jobs["start_gate"] < NO_LIMIT)
            return memory

    assert np.isfinite(sim.simulate(failing, SLOTS, Watched(knowledge=knowledge)).job_finish).all()
    assert gates[0].any() == (knowledge == "true")
