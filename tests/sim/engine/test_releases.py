"""Begin times, dependencies between jobs and singletons: worked examples, by hand.

Jobs have one task of `length_s`, on more slots than they need unless an example says so.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import policies
import sim
from sim.cluster.faults import Outages
from sim.engine.plan import Event
from tests.examples import COMPILED_WIDE
from tests.sim.engine import reference
from tests.sim.engine.test_inputs import job

pytestmark = pytest.mark.skipif(COMPILED_WIDE, reason="in no wide variant")

MANY = sim.Cluster.slots(9)
NEVER = math.nan


def run(jobs, cluster=MANY, policy="fifo"):
    """Run the kernel; check that the naive simulator says the same."""
    workload = sim.Workload.from_jobs(jobs)
    result = sim.simulate(workload, cluster, policies.build(policy))
    naive = reference.simulate(workload, cluster, policies.build(policy))
    for name in ("job_submit", "job_eligible", "job_start", "job_finish", "job_failed"):
        np.testing.assert_array_equal(getattr(result, name), getattr(naive, name), name)
    return result


def eligible(result):
    rows = result.jobs.to_pylist()
    return {row["job_id"]: row["eligible_s"] for row in rows}


def outcomes(result):
    return {row["job_id"]: row["outcome"] for row in result.jobs.to_pylist()}


def failing(name, submit_s=1.0):
    """Return a job that fails at its submission, as its input is late."""
    return job(name, submit_s, input_mode="blind", inputs=["a"])


def test_each_kind_of_dependency():
    """Job a runs from 0 to 5, b fails at 1.

    after a + 2 s: 0 + 2. afterok a: 5. afternotok b: 1. afterany a and b: max(5, 1). after b, which
    never starts: when it is cancelled, 1. afterok b and afternotok a: never.
    """
    result = run(
        [
            job("a", length_s=5.0),
            job("start", after={"after": {"a": 2.0}}),
            job("ok", after={"afterok": ["a"]}),
            job("not ok", after={"afternotok": ["b"]}),
            job("any end", after={"afterany": ["a", "b"]}),
            job("cancelled", after={"after": ["b"]}),
            job("never", after={"afterok": ["b"]}),
            job("nor this", after={"afternotok": ["a"]}),
            failing("b"),
        ]
    )
    assert eligible(result) == pytest.approx(
        {
            **{"a": 0.0, "start": 2.0, "ok": 5.0, "not ok": 1.0, "any end": 5.0},
            **{"cancelled": 1.0, "never": NEVER, "nor this": NEVER, "b": NEVER},
        },
        nan_ok=True,
    )
    assert {name for name, how in outcomes(result).items() if how == "never released"} == {
        "never",
        "nor this",
    }
    assert outcomes(result)["b"] == "failed"
    assert result.metrics["jobs_failed"] == 3 / 9


def test_waits_count_from_submission():
    """Job b is submitted at 1, eligible at 5, and there is room: it waits for 4 s; a for none."""
    result = run([job("a", length_s=5.0), job("b", 1.0, after={"afterok": ["a"]})])
    assert result.job_submit.tolist() == [0.0, 1.0]
    assert result.job_eligible.tolist() == [0.0, 5.0]
    assert result.metrics["wait_mean_s"] == (0.0 + 4.0) / 2
    assert result.metrics["jct_mean_s"] == (5.0 + 5.0) / 2


def test_a_job_is_eligible_from_its_begin_on():
    """Not before its submission (2, begin 1), its begin (6), or its dependency (a ends at 5)."""
    result = run(
        [
            job("a", length_s=5.0),
            job("begins", 0.0, begin_s=6.0),
            job("both", 0.0, begin_s=3.0, after={"afterok": ["a"]}),
            job("later", 0.0, begin_s=6.0, after={"afterok": ["a"]}),
            job("past", 2.0, begin_s=1.0),
        ]
    )
    assert list(eligible(result).values()) == [0.0, 6.0, 5.0, 6.0, 2.0]


def test_the_first_come_is_the_first_eligible():
    """One slot: a runs until 4; c is eligible at 2, before b, whose begin is 3, and goes first."""
    jobs = [job("a", length_s=4.0), job("b", begin_s=3.0), job("c", 2.0)]
    assert run(jobs, sim.Cluster.slots(1)).job_start.tolist() == [0.0, 5.0, 4.0]


def test_any_of_several():
    """Job a runs from 0 to 4, b from 0 to 2.

    Both of (afterok b, afterok a): 4; any: 2. Of (after b + 10 s, afterok a) the second, at 4,
    comes before the first, known at 0. Of (afternotok a, afterok b) the first can never be met;
    of (afternotok a, afternotok b) none.
    """
    both = {"afterok": ["a", "b"]}
    result = run(
        [
            job("a", length_s=4.0),
            job("b", length_s=2.0),
            job("all", after=both),
            job("any", after=both, after_needs="any"),
            job("mended", 0.0, after={"after": {"b": 10.0}, "afterok": ["a"]}, after_needs="any"),
            job("one left", after={"afternotok": ["a"], "afterok": ["b"]}, after_needs="any"),
            job("none left", after={"afternotok": ["a", "b"]}, after_needs="any"),
        ]
    )
    assert eligible(result) == pytest.approx(
        {
            **{"a": 0.0, "b": 0.0, "all": 4.0, "any": 2.0, "mended": 4.0, "one left": 2.0},
            "none left": NEVER,
        },
        nan_ok=True,
    )


def test_a_singleton_waits_for_earlier_and_for_running_jobs_of_its_name():
    """Job a runs from 0 to 3; c, no singleton and later than b, from 2 to 6.

    So b is eligible at 6 and runs until 7. d waits for it, though no job of its name runs at 6.
    Those of another name or user do not wait.
    """

    def named(name, submit_s, length_s, **more):
        return job(name, submit_s, length_s, **{"job_name": "x", "user": "u", **more})

    result = run(
        [
            named("a", 0.0, 3.0),
            named("b", 1.0, 1.0, singleton=True),
            named("c", 2.0, 4.0),
            named("d", 2.5, 1.0, singleton=True),
            named("other name", 2.5, 1.0, singleton=True, job_name="y"),
            named("other user", 2.5, 1.0, singleton=True, user="v"),
        ]
    )
    assert list(eligible(result).values()) == [0.0, 6.0, 2.0, 7.0, 2.5, 2.5]


@pytest.mark.parametrize("unmet", ["wait", "fail"])
def test_a_job_that_can_never_start_waits_or_is_cancelled(unmet):
    """Job a runs until 2, so b can never start.

    If it waits, c, which needs its end, and d, a singleton of its name, do so too. If it is
    cancelled at 2, c is eligible then, d too, and e, which needs its success, is cancelled with it.
    """
    cluster = MANY.with_unmet_dependencies(unmet)
    result = run(
        [
            job("a", length_s=2.0),
            job("b", after={"afternotok": ["a"]}, job_name="x"),
            job("c", after={"afterany": ["b"]}),
            job("d", job_name="x", singleton=True),
            job("e", after={"afterok": ["b"]}),
        ],
        cluster,
    )
    waits = ["done", *["never released"] * 4]
    assert list(outcomes(result).values()) == (
        waits if unmet == "wait" else ["done", "failed", "done", "done", "failed"]
    )
    if unmet == "fail":
        assert list(eligible(result).values())[2:4] == [2.0, 2.0]


def test_a_dependency_that_fails_before_its_job_is_submitted_cancels_it_then():
    """Job a ends at 1; b is submitted, and cancelled, at 3, which is when c is eligible."""
    jobs = [job("a"), job("c", 0.0, after={"afternotok": ["b"]})]
    jobs += [job("b", 3.0, after={"afternotok": ["a"]})]
    result = run(jobs, MANY.with_unmet_dependencies("fail"))
    assert outcomes(result) == {"a": "done", "c": "done", "b": "failed"}
    assert eligible(result)["c"] == 3.0


def test_jobs_that_wait_for_each_other_end_the_run():
    """The first waits for the second to end, the second, a singleton, for the first."""

    class Ticks:
        """A policy with a timer, which would go on for ever."""

        name, events = "ticks", Event.TIMER

        def begin(self, world, plan):
            plan.timer_s = 1.0
            self.n = 0

        def react(self, memory, batch, world, plan):
            self.n += 1
            plan.timer_s = batch.now + 1.0

    jobs = [
        job("first", job_name="x", after={"afterany": ["second"]}),
        job("second", job_name="x", singleton=True),
        job("third", 3.0),
    ]
    ticks = Ticks()
    result = sim.simulate(sim.Workload.from_jobs(jobs), MANY, ticks)
    assert list(outcomes(result).values()) == ["never released", "never released", "done"]
    assert ticks.n == 4  # until the last job ended, at 4
    assert result.metrics["jobs_failed"] == 2 / 3
    alone = run(jobs[:2])
    assert list(outcomes(alone).values()) == ["never released"] * 2
    assert alone.metrics["jobs_failed"] == 1.0


def test_a_start_stays_met_though_its_machine_is_lost():
    """Job a starts at 0 and again at 3, as its only machine is lost from 1 to 3: b is free at 2."""
    outages = Outages.from_columns([0], [1.0], [3.0])
    cluster = sim.Cluster.machines(1, cpu=2).with_outages(outages)
    result = run([job("a", length_s=5.0), job("b", after={"after": {"a": 2.0}})], cluster)
    assert result.job_eligible.tolist() == [0.0, 2.0]
    assert result.job_finish.tolist() == [8.0, 4.0]


def test_a_start_is_when_room_is_taken():
    """Starts lag 1 s behind: a takes its slot at 0, so b is eligible at 0 and starts at 1, too."""
    jobs = [job("a", length_s=5.0), job("b", after={"after": ["a"]})]
    result = run(jobs, MANY.with_launch(1.0))
    assert result.job_start.tolist() == [1.0, 1.0]
    assert result.job_eligible.tolist() == [0.0, 0.0]


def test_times_may_be_epoch_seconds():
    zero = 1_700_000_000.0
    result = run([job("a", zero, 2.0), job("b", zero, begin_s=zero + 7.5)])
    assert result.job_eligible.tolist() == [zero, zero + 7.5]
    assert result.jobs["eligible_s"].to_pylist() == [zero, zero + 7.5]


def test_a_polling_job_is_submitted_when_inputs_and_dependencies_are_there():
    """Its input is made at 2, so it may be submitted at 3, and is at 5, when b has ended."""
    result = run(
        [
            job("a", length_s=2.0),
            job("b", length_s=5.0),
            job(
                "c",
                input_mode="poll",
                poll_lag_s=1.0,
                inputs=["a"],
                after={"afterok": ["b"]},
            ),
        ]
    )
    assert (result.job_submit[2], result.job_eligible[2]) == (5.0, 5.0)


def test_without_such_jobs_there_is_no_column():
    result = sim.simulate(sim.Workload.from_jobs([job("a")]), MANY, policies.build("fifo"))
    assert result.job_eligible is None
    assert "eligible_s" not in result.jobs.column_names


def test_a_cluster_refuses_another_outcome():
    with pytest.raises(sim.InputError, match="valid: wait, fail"):
        MANY.with_unmet_dependencies("drop")


def test_nodes_complete_a_planned_job_before_those_that_depend_on_its_end_are_eligible():
    """Slurm's planner lets nodes complete a job for 0.1 s; one that waits for its start does not.

    Of a parent that was not begun nothing is to complete.
    """
    jobs = [
        job("a", length_s=5.0),
        job("b", after={"afterok": ["a"]}),
        job("c", after={"after": ["a"]}),
        job("d", after={"afterany": {"a": 2.0}}),
        failing("e"),
        job("f", after={"afternotok": ["e"]}),
    ]
    result = run([row | {"requested_s": 60.0} for row in jobs], policy="slurm")
    start, done = result.job_start[0], result.job_finish[0]
    times = {"b": done + 0.1, "c": start, "d": done + 0.1 + 2.0, "f": 1.0}
    assert {name: eligible(result)[name] for name in times} == times
