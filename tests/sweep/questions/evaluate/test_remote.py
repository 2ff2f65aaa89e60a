"""A policy that decides in another process has the same bits as in this one."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import policies
import sim
from policies.check.unknown import recurring
from sim.base.errors import PolicyError
from sim.check.worlds import MACHINES, SLOTS
from sim.engine.plan import Plan, Queues
from sweep.questions.evaluate import messages, plans
from sweep.questions.evaluate.processes import Budget, Nursery
from sweep.questions.evaluate.remote import Remote, read_text

WRAPPED = """
import policies

class Own(type(policies.build({name!r}, **{params!r}))):
    def __new__(cls):
        return object.__new__(cls)

    def __init__(self):
        vars(self).update(vars(policies.build({name!r}, **{params!r})))
"""
POLICIES = {
    "fifo": {},
    "srpt": {"knowledge": "history"},
    "las": {},
    "drf": {},
    "tetris": {},
    "fgd": {},
    "las_dag": {},
    "tez_cp": {},
    "priority": {},
    "random": {},
}


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    processes = Nursery()
    yield processes
    processes.close()


@pytest.mark.parametrize("name", POLICIES)
def test_same_bits_as_in_this_process(nursery: Nursery, tmp_path: Path, name: str) -> None:
    file = tmp_path / "own.py"
    file.write_text(WRAPPED.format(name=name, params=POLICIES[name]))
    workload, cluster = recurring(0), SLOTS if name == "las" else MACHINES
    remote = Remote(nursery, read_text(file, 256), Budget(60))
    remote_run = sim.simulate(workload, cluster, remote, seed=3)
    local_run = sim.simulate(workload, cluster, policies.build(name, **POLICIES[name]), seed=3)
    for column in ("job_start", "job_finish", "task_start", "task_machine"):
        np.testing.assert_array_equal(getattr(remote_run, column), getattr(local_run, column))


def test_frames_are_read_as_they_were_written() -> None:
    content = {"a": np.arange(6.0).reshape(2, 3), "b": [1, None, "x", np.zeros(0, np.int32)]}
    data = messages.pack(content)
    n_text, n_body = messages.HEAD.unpack(data[: messages.HEAD.size])
    text, body = data[messages.HEAD.size :][:n_text], data[messages.HEAD.size + n_text :]
    assert len(body) == n_body
    read = messages.unpack(text, body)
    np.testing.assert_array_equal(read["a"], content["a"])
    assert read["b"][:3] == [1, None, "x"]
    assert read["b"][3].dtype == np.int32
    for wrong in (
        b"{",
        b'{"\\u0000array": ["|O", 1]}',
        b'{"\\u0000array": ["<f8", 99]}',
        b"1" * 5000,
    ):
        with pytest.raises(messages.BadMessageError):
            messages.unpack(wrong, b"x")
    with pytest.raises(messages.BadMessageError, match="belong to no array"):
        messages.unpack(b"1", b"x")


def test_plan_is_filled_as_it_was_described() -> None:
    noted = plans.NotedPlan(3, 4, 5)
    noted.queues = Queues.make(2, weight=[1, 2], demote_at=[5, np.inf], demote_to=[1, -1])
    noted.set_jobs(key=[2, 1, 0], queue=1)
    noted.set_stages(expected_s=2.0)
    plan = Plan(3, 4, 5)
    data = messages.pack(plans.describe(noted))
    n = messages.HEAD.size + messages.HEAD.unpack(data[: messages.HEAD.size])[0]
    plans.fill(plan, messages.unpack(data[messages.HEAD.size : n], data[n:]))
    assert plan.jobs["key"].tolist() == [2, 1, 0]
    assert plan.stages["expected_s"].tolist() == [2.0] * 4
    assert plan.queues.demote_to.tolist() == [1, -1]
    with pytest.raises(PolicyError, match="malformed"):
        plans.fill(plan, {})


def test_a_plan_that_selects_classes_crosses_though_all_are_selected() -> None:
    noted, plan = plans.NotedPlan(2, 2, 2), Plan(2, 2, 2)
    noted.note_jobs([0])
    noted.set_jobs(runs_on=-1)
    data = messages.pack(plans.describe(noted))
    n = messages.HEAD.size + messages.HEAD.unpack(data[: messages.HEAD.size])[0]
    plans.fill(plan, messages.unpack(data[messages.HEAD.size : n], data[n:]))
    assert plan.selects_classes


def test_all_of_a_plan_crosses() -> None:
    """A new attribute of a plan has to be sent, or be left out here with a reason."""
    sent = {*plans.NUMBERS, *plans.RECORDS, *plans.TASKS, *plans.MOVING}
    sent |= {"fit_resources", "events", "estimate_s", "jobs", "stages"}
    # of the run; its size; follow from columns
    left_out = {"pinned", "n_tasks", "weighs_jobs", "selects_classes"}
    names = {name for name in vars(Plan(1, 1, 1)) if not name.startswith("_")}
    assert names == sent | left_out
    assert inspect.signature(Plan.set_jobs)
