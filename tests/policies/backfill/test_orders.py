"""EASY and conservative backfilling: equal to plain Python, and on examples by hand."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from policies.estimates.durations import ENDLESS_S
from tests.policies.backfill import plain

SLOTS = 12


def rigid(rng, n=60, wrong=(1.0, 1.0, 2.0, 5.0, 20.0)):
    """Draw (submit, run, estimate, width) of jobs that arrive faster than they are served."""
    submit = np.round(np.cumsum(rng.exponential(2.0, n)), 1)
    run = np.round(rng.lognormal(1.5, 1.2, n), 1) + 0.1
    estimate = run * rng.choice(wrong, n)
    width = rng.choice([1, 1, 2, 3, 4, 7, SLOTS], n)
    return list(zip(submit.tolist(), run.tolist(), estimate.tolist(), width.tolist(), strict=True))


def workload(jobs, users=None):
    users = users or [""] * len(jobs)
    return sim.Workload.from_jobs(
        {
            "submit_s": submit,
            "stages": [{"durations_s": [run] * width}],
            "min_tasks": width,
            "requested_s": estimate,
            "user": user,
        }
        for (submit, run, estimate, width), user in zip(jobs, users, strict=True)
    )


def starts(jobs, name, slots=SLOTS, users=None, **params):
    w = workload(jobs, users)
    return sim.simulate(w, sim.Cluster.slots(slots), policies.build(name, **params)).job_start


@pytest.mark.parametrize("order", ["fcfs", "sjf"])
@pytest.mark.parametrize("wrong", [(1.0, 2.0, 5.0), (0.5, 0.9, 1.0, 4.0)], ids=["over", "under"])
def test_easy_equals_the_papers(order, wrong):
    for seed in range(8):
        jobs = rigid(np.random.default_rng(seed), wrong=wrong)
        ours = starts(jobs, "easy", order=order)
        theirs = plain.easy(jobs, SLOTS, order == "sjf")
        np.testing.assert_array_equal(ours - ours.min(), np.array(theirs) - min(theirs))
        exact = [(submit, run, run, width) for submit, run, _, width in jobs]
        theirs = plain.easy(exact, SLOTS, order == "sjf")
        ours = starts(jobs, "easy", order=order, knowledge="true")
        np.testing.assert_array_equal(ours - ours.min(), np.array(theirs) - min(theirs))


def test_true_run_times_of_zero_equal_the_papers():
    """A job of no time keeps its place in line as any other."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        ends_at_once = rng.random(60) < 0.4
        jobs = [
            (submit, 0.0 if at_once else run, 0.0 if at_once else run, width)
            for (submit, run, _, width), at_once in zip(rigid(rng), ends_at_once, strict=True)
        ]
        ours = starts(jobs, "easy", knowledge="true").tolist()
        assert ours == plain.easy(jobs, SLOTS)
        ours = starts(jobs, "conservative", knowledge="true").tolist()
        assert ours == plain.conservative(jobs, SLOTS)


def test_conservative_equals_the_papers():
    moved = 0
    for seed in range(6):
        jobs = rigid(np.random.default_rng(seed))
        ours, theirs = starts(jobs, "conservative"), np.array(plain.conservative(jobs, SLOTS))
        np.testing.assert_array_equal(ours, theirs)
        moved += (ours != starts(jobs, "easy", reservations=1000)).any()
    assert moved, "anew in order, jobs do move back: or else keeping their starts is not looked at"


# 4 slots: a runs on 3 until 10; b wants all, at 10; c fits beside a and ends by then; d does not
# end by then; e wants 1 for 2 s
HAND = [
    (0.0, 10.0, 10.0, 3),
    (1.0, 5.0, 5.0, 4),
    (2.0, 8.0, 8.0, 1),
    (2.0, 9.0, 9.0, 1),
    (2.0, 2.0, 2.0, 1),
]


def test_by_hand():
    assert starts(HAND, "fifo", 4).tolist() == [0, 10, 15, 15, 15]
    assert starts(HAND, "easy", 4).tolist() == [0, 10, 2, 15, 15]
    assert starts(HAND, "easy", 4, order="sjf").tolist() == [0, 10, 15, 15, 2]
    assert starts(HAND, "conservative", 4).tolist() == [0, 10, 2, 15, 15]
    assert starts(HAND, "conservative", 4, order="sjf").tolist() == [0, 10, 15, 15, 2]


def test_easy_delays_the_second_where_conservative_does_not():
    # 4 slots: a has 3 until 4, then b; c wants all at 8; d lasts beyond that, but not beside b
    jobs = [(0.0, 4.0, 4.0, 3), (1.0, 4.0, 4.0, 3), (1.0, 4.0, 4.0, 4), (2.0, 20.0, 20.0, 1)]
    assert starts(jobs, "easy", 4).tolist() == [0, 4, 22, 2]
    assert starts(jobs, "conservative", 4).tolist() == [0, 4, 8, 12]


@pytest.mark.parametrize("limit_s", [None, 0, ENDLESS_S])
def test_a_job_without_a_request_counts_as_endless(limit_s):
    # b has the room from 10 on; c is taken to last beyond that
    jobs = [(0.0, 10.0, 10.0, 3), (1.0, 5.0, 5.0, 4), (2.0, 1.0, limit_s, 1)]
    for name in ("easy", "conservative", "multifactor_easy", "multifactor_conservative"):
        assert starts(jobs, name, 4).tolist() == [0, 10, 15]
    # the first is endless: c ends before that, though its request is the longest
    jobs = [(0.0, 10.0, limit_s, 3), (1.0, 5.0, 5.0, 4), (2.0, 1.0, 1e6, 1)]
    for name in ("easy", "conservative", "multifactor_easy", "multifactor_conservative"):
        assert starts(jobs, name, 4).tolist() == [0, 10, 2]


@pytest.mark.parametrize("name", ["slurm", "multifactor_slurm"])
def test_slurm_plans_a_job_without_a_limit_for_a_year(name):
    jobs = [(0.0, 600.0, 600.0, 3), (10.0, 300.0, 300.0, 4), (20.0, 60.0, None, 1)]
    late = starts(jobs, name, 4)
    jobs[2] = (20.0, 60.0, 480.0, 1)
    in_time = starts(jobs, name, 4)
    assert in_time[2] < 100 < 600 < late[1] < late[2]
    jobs[0], jobs[2] = (0.0, 600.0, 0.0, 3), (20.0, 60.0, 1e6, 1)
    assert starts(jobs, name, 4)[2] < 100


def test_a_job_without_a_request_has_no_estimated_size():
    jobs = [(0.0, 10.0, 12.0, 3), (0.0, 5.0, None, 4)]
    for name in ("easy", "conservative", "slurm"):
        r = sim.simulate(workload(jobs), sim.Cluster.slots(4), policies.build(name))
        np.testing.assert_array_equal(r.estimate_s, [36, np.nan])


def test_predictions_are_the_mean_of_the_users_last_two():
    # u's first two jobs last 2 and 4 s; the third is taken to last 3 s, as if it had not asked
    # for 50, and so fits before b's reservation at 20; v's is not
    jobs = [(0.0, 2.0, 50.0, 1), (0.0, 4.0, 50.0, 1), (5.0, 15.0, 15.0, 3), (6.0, 9.0, 9.0, 4)]
    users = ["u", "u", "w", "w"]
    late = (8.0, 3.0, 50.0, 1)
    assert starts([*jobs, late], "easy", 4, [*users, "v"], knowledge="run")[4] == 29
    assert starts([*jobs, late], "easy", 4, [*users, "u"], knowledge="run")[4] == 8


def test_a_prediction_that_proves_too_short_is_corrected():
    # the third of u is taken to last 3 s from 5 on, and at 8 to last 63: what lasts 10 s then fits
    # before b's reservation at 68, and did not before that at 8
    jobs = [(0.0, 2.0, 500.0, 1), (0.0, 4.0, 500.0, 1), (5.0, 100.0, 500.0, 1)]
    jobs += [(6.0, 9.0, 9.0, 4), (7.0, 10.0, 10.0, 3)]
    users = ["u", "u", "u", "w", "w"]
    got = starts(jobs, "easy", 4, users, knowledge="run")
    assert got.tolist() == [0, 0, 5, 105, 8]


def test_unplannable_jobs_are_errors():
    loose = sim.Workload.from_jobs([{"submit_s": 0, "stages": [{"durations_s": [1, 2]}]}])
    with pytest.raises(sim.InputError, match="the job in row 0 is none"):
        sim.simulate(loose, sim.Cluster.slots(4), policies.build("easy", knowledge="true"))
    silent = workload([(0.0, 1.0, None, 2)])
    for knowledge in ("declared", "run"):
        with pytest.raises(sim.InputError, match="no job has one; set"):
            sim.simulate(silent, sim.Cluster.slots(4), policies.build("easy", knowledge=knowledge))
