"""Jobs that are ended at their limit of run time, computed by hand."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

import policies
import sim
from policies.base import Policy
from sim.cluster.faults import Outages
from sim.engine.plan import Event
from tests.examples import COMPILED_WIDE

pytestmark = pytest.mark.skipif(COMPILED_WIDE, reason="in no wide variant")

FIFO = policies.build("fifo")


def job(job_id, durations_s, limit_s=None, submit_s=0.0, **more):
    stages = [{"durations_s": durations_s, "demand": {"cpu": 1}}]
    job = {"job_id": job_id, "submit_s": submit_s, "stages": stages, **more}
    return job if limit_s is None else job | {"requested_s": limit_s}


def run(jobs, cluster, policy=FIFO):
    return sim.simulate(sim.Workload.from_jobs(jobs), cluster.with_enforced_limits(), policy)


def test_a_job_is_ended_at_its_limit_and_its_room_goes_on():
    """One slot: a runs from 0 to its limit, 5; b, which needs 3 s, from 5 to 8."""
    r = run([job("a", [9.0], 5.0), job("b", [3.0], 5.0)], sim.Cluster.slots(1))
    assert r.jobs["outcome"].to_pylist() == ["timeout", "done"]
    assert r.job_start.tolist() == [0.0, 5.0]
    assert r.job_finish.tolist() == [5.0, 8.0]
    assert r.stops.to_pylist() == [
        {"job_id": "a", "stage": 0, "task": 0, "machine": 0, "start_s": 0.0, "stop_s": 5.0,
         "reason": "timeout", "kept_s": 0.0}
    ]  # fmt: skip
    assert r.batches["machine"].to_pylist() == [-1, 0]
    assert r.metrics["jobs_failed"] == 0.5
    assert r.metrics["jct_mean_s"] == 8.0


def test_a_job_that_ends_at_its_limit_is_done():
    r = run([job("a", [5.0], 5.0)], sim.Cluster.slots(1))
    assert r.jobs["outcome"].to_pylist() == ["done"]


def test_limits_are_not_enforced_unless_asked():
    workload = sim.Workload.from_jobs([job("a", [9.0], 5.0)])
    r = sim.simulate(workload, sim.Cluster.slots(1), FIFO)
    assert r.jobs["outcome"].to_pylist() == ["done"]
    assert r.job_timeout is None


def test_time_counts_from_the_first_start_of_a_job_that_is_not_rigid():
    """One slot, tasks of 4 s, limit 10: the first run from 2 to 6 and to 10; 12 is the limit.

    The third, from 10 on, is stopped at 12; the fourth never starts.
    """
    r = run([job("b", [2.0]), job("a", [4.0] * 4, 10.0)], sim.Cluster.slots(1))
    assert r.jobs["outcome"].to_pylist() == ["done", "timeout"]
    assert r.job_finish.tolist() == [2.0, 12.0]
    assert r.stops["start_s"].to_pylist() == [10.0]
    assert r.task_finish[1:3].tolist() == [6.0, 10.0]


def test_a_gang_gives_back_its_slots():
    """Two slots: a gang of 2 holds both from 0 on, and is ended at 3; b follows with both."""
    gang = job("a", [9.0, 1.0], 3.0, min_tasks=2)
    r = run([gang, job("b", [1.0, 1.0])], sim.Cluster.slots(2))
    assert r.jobs["outcome"].to_pylist() == ["timeout", "done"]
    assert r.job_start.tolist() == [0.0, 3.0]
    assert r.job_finish.tolist() == [3.0, 4.0]


def test_readers_fail_as_where_an_input_is_missing():
    """a is ended at 2 s: what polls for it fails then, what is blind at its submission, 3 s.

    A reader that requires nothing of it runs, and so does one that ignores inputs.
    """
    poll = {"input_mode": "poll"}
    jobs = [
        job("a", [9.0], 2.0),
        job("poll", [1.0], inputs=["a"], **poll),
        job("poll again", [1.0], inputs=["poll"], **poll),
        job("soft", [1.0], inputs={"a": "soft"}, **poll),
        job("ignores", [1.0], inputs=["a"]),
        job("blind", [1.0], submit_s=3.0, inputs=["a"], input_mode="blind"),
    ]
    r = run(jobs, sim.Cluster.slots(10))
    outcomes = ["timeout", "failed", "failed", "done", "done", "failed"]
    assert r.jobs["outcome"].to_pylist() == outcomes
    assert r.metrics["jobs_failed"] == 4 / 6


def test_value_of_a_job_that_is_ended_is_not_attained():
    r = run([job("a", [9.0], 2.0, downloads=[20.0, 30.0])], sim.Cluster.slots(1))
    assert r.metrics["value_attained"] == 0.0


def test_utilization_counts_tasks_until_their_limit():
    """One of two slots runs from 0 to 4 s, when the last job is submitted: 4 / 8.

    Over all 5 s: 4 s of the first and 1 s of the second, of 10.
    """
    jobs = [job("a", [9.0], 4.0), job("b", [1.0], submit_s=4.0)]
    r = run(jobs, sim.Cluster.slots(2))
    assert r.metrics["utilization"] == 0.5
    assert r.metrics["utilization_makespan"] == 0.5


def test_a_reserved_start_comes_earlier_where_a_job_is_ended():
    """Two slots under EASY: a (2 slots) asks for 4 s and would take 9; b starts at 4."""
    jobs = [job("a", [9.0, 9.0], 4.0, min_tasks=2), job("b", [1.0, 1.0], 2.0, min_tasks=2)]
    r = run(jobs, sim.Cluster.slots(2), policies.build("easy", knowledge="declared"))
    assert r.job_start.tolist() == [0.0, 4.0]
    assert r.jobs["outcome"].to_pylist() == ["timeout", "done"]


def test_a_restart_does_not_renew_the_limit():
    """The machine is lost from 2 to 3: the task starts anew at 3, and its limit is over at 5."""
    cluster = sim.Cluster.machines(1, cpu=1).with_outages(Outages.from_columns([0], [2.0], [3.0]))
    r = run([job("a", [4.0], 5.0)], cluster)
    assert r.job_finish.tolist() == [5.0]
    assert r.stops["reason"].to_pylist() == ["machine lost", "timeout"]
    assert r.stops["start_s"].to_pylist() == [0.0, 3.0]


def test_time_counts_from_the_start_after_a_launch():
    """Placed at 0, launched after 1 s: the limit of 3 s is over at 4."""
    r = run([job("a", [4.0], 3.0)], sim.Cluster.slots(1).with_launch(1.0))
    assert r.job_start.tolist() == [1.0]
    assert r.job_finish.tolist() == [4.0]


@dataclass(frozen=True)
class Watches(Policy):
    """Notes which jobs fail, and how."""

    name: ClassVar[str] = "watches"
    events: ClassVar[Event] = Event.JOB_FAILED | Event.JOB_DONE

    def prepare(self, world, plan):
        return []

    def react(self, memory, batch, world, plan):
        for j in batch.rows(Event.JOB_FAILED):
            view = world.view
            memory.append((batch.now, int(view["failed"][j]), int(view["left"][j])))
            assert view["finish"][j] == batch.now
        SEEN[:] = memory


SEEN: list[tuple[float, int, int]] = []


def test_a_policy_is_told_that_a_job_failed():
    run([job("a", [9.0], 2.0), job("b", [9.0])], sim.Cluster.slots(2), Watches())
    assert SEEN == [(2.0, 2, 0)]


@pytest.mark.parametrize("limit_s", [0.0, None])
def test_a_job_without_a_limit_is_not_ended(limit_s):
    r = run([job("a", [9.0], limit_s), job("b", [2.0], 1.0)], sim.Cluster.slots(2))
    assert r.jobs["outcome"].to_pylist() == ["done", "timeout"]
