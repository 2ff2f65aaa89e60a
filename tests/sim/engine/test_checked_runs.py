"""Checked runs: a broken account is caught, sound worlds stay as they are, others cost nothing."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from policies.base import Policy
from sim.base.errors import AccountError
from sim.base.jit import JIT, part, specialised
from sim.engine.kernels import resources
from sim.engine.kernels.resources import move
from sim.engine.plan import Event
from sim.engine.simulate import variant
from tests.examples import COMPILED_WIDE, examples
from tests.sim.engine.compared import compare
from tests.sim.engine.random_worlds import draw

pytestmark = pytest.mark.skipif(COMPILED_WIDE, reason="checks would be a variant of their own")


@pytest.fixture(autouse=True)
def _checked(monkeypatch):
    monkeypatch.setenv("SIM_CHECKS", "1")


class Corrupts(Policy):
    """Adds one to an entry of a view of the kernel's state, which policies may only read."""

    events = Event.JOB_DONE

    def __init__(self, view):
        object.__setattr__(self, "view", view)

    def prepare(self, world, plan):
        pass

    def react(self, memory, batch, world, plan):
        world.view[self.view].base[-1] += 1


def jobs(n=4):
    return sim.Workload.from_jobs(
        {
            "submit_s": float(j),
            "queue": f"q{j % 2}",
            "stages": [{"durations_s": [2.0, 3.0 + j], "demand": {"cpu": 1, "mem": 2}}],
        }
        for j in range(n)
    )


MACHINES = sim.Cluster.machines(2, cpu=2, mem=4).with_queues("weighted")


@pytest.mark.parametrize("cluster", [MACHINES, sim.Cluster.slots(3)], ids=["machines", "slots"])
@pytest.mark.parametrize(
    ("view", "text"),
    [
        ("running", "the count of running tasks of the job in row 3 is wrong"),
        ("left", "tasks of the job in row 3 do not add up"),
        ("done", "tasks of the job in row 3 do not add up"),
        ("started", "tasks of the job in row 3 do not add up"),
        ("stage_left", "tasks of the job in row 3 do not add up"),
    ],
)
def test_a_broken_count_of_tasks_is_caught(view, text, cluster):
    with pytest.raises(AccountError, match=text):
        sim.simulate(jobs(), cluster, Corrupts(view))


@part
def moves_too_much(st, j, machine, demand, row, times):
    move(st, j, machine, demand, row, times)
    if times < 0:
        st.state_mach_free[machine, 0] += 1


@part
def forgets_the_job(st, j, machine, demand, row, times):
    move(st, j, machine, demand, row, times)
    st.state_job_used[j, 0] = 0


@part
def forgets_the_queue(st, j, machine, demand, row, times):
    move(st, j, machine, demand, row, times)
    st.state_queue_used[st.state_job_queue[j], 1] -= times


@part
def forgets_the_organisation(st, j, machine, demand, row, times):
    move(st, j, machine, demand, row, times)
    st.state_org_used[st.w_job_org[j], 0] += 1


@part
def turns_back_time(st, j, machine, demand, row, times):
    move(st, j, machine, demand, row, times)
    if times < 0:
        st.state_f[0] -= 9.0


@pytest.mark.skipif(JIT, reason="a kernel that is compiled is cached by its sources")
@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (moves_too_much, "free and held resources of machine [01] are not its capacity"),
        (forgets_the_job, "the account of the job in row 0 is not what its tasks"),
        (forgets_the_queue, "the account of queue [01] is not what its jobs hold"),
        (forgets_the_organisation, "the account of organisation [01] is not what"),
        (turns_back_time, "time went back"),
    ],
)
def test_a_broken_account_is_caught(wrong, text, monkeypatch):
    monkeypatch.setattr(resources, "move", wrong)
    specialised.cache_clear()
    try:
        with pytest.raises(AccountError, match=text):
            sim.simulate(jobs(), MACHINES, policies.build("fifo"))
    finally:
        specialised.cache_clear()


def test_an_unchecked_run_compiles_no_checks(monkeypatch):
    arguments = jobs(), MACHINES, policies.build("fifo")
    with_checks = variant(*arguments)
    monkeypatch.setenv("SIM_CHECKS", "0")
    assert with_checks - variant(*arguments) == {"CHECKS"}
    with pytest.raises((AssertionError, sim.base.errors.DeadlockError)):  # of something else
        sim.simulate(jobs(), MACHINES, Corrupts("left"))


@pytest.mark.skipif(JIT, reason="`make fuzz TARGETS=worlds` compiles the checks of all variants")
def test_checked_worlds_are_equal():
    n_equal = 0
    for number in range(examples(400)):
        result = compare(draw(np.random.default_rng([57, number])))
        assert not result.differs, (number, result.differs)
        n_equal += not result.refused
    assert n_equal > examples(400) // 3


@pytest.mark.parametrize("policy", ["fifo", "srpt", "las"])
def test_accounts_hold_from_end_to_end_of_a_pool(policy):
    """The loop that goes from one end to the next keeps the accounts that it passes on."""
    rng = np.random.default_rng(3)
    workload = sim.Workload.from_jobs(
        {"submit_s": float(j), "stages": [{"durations_s": [*rng.uniform(1, 9, 6)]}]}
        for j in range(12)
    )
    result = sim.simulate(workload, sim.Cluster.slots(5), policies.build(policy))
    assert np.isfinite(result.job_finish).all()
