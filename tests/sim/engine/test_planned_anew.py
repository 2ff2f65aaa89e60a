"""Reservations and plans that outlive faults: what becomes impossible is planned anew, by hand."""

import math

import pytest

import policies
import sim
from sim.cluster.faults import Outages
from tests.examples import COMPILED_WIDE

PLANNERS = ["easy", "conservative"]


def job(job_id, run_s, submit_s=0.0, n=1, limit_s=None, **more):
    """Return a rigid job of n tasks of one CPU, and its limit: as long as it runs, or another."""
    stages = [{"durations_s": [run_s] * n, "demand": {"cpu": 1}}]
    job = {"job_id": job_id, "submit_s": submit_s, "stages": stages, "min_tasks": n}
    return job | {"requested_s": limit_s or run_s} | more


def run(jobs, n_machines, policy, outages, **options):
    """Run on machines of one CPU; rows of outages are (machine, from, until), or a drain's."""
    cluster = sim.Cluster.machines(n_machines, cpu=1)
    cluster = cluster.with_outages(
        Outages.from_columns(*zip(*(row[:3] for row in outages), strict=True), False, [
            len(row) > 3 for row in outages
        ])
    )  # fmt: skip
    plan = policies.build(policy, **options)
    return sim.simulate(sim.Workload.from_jobs(jobs), cluster, plan)


@pytest.mark.parametrize(
    ("policy", "ends"), [("easy", [4.0, 10.0, 11.0]), ("conservative", [4.0, 11.0, 5.0])]
)
def test_a_job_that_is_stopped_goes_behind_reservations_that_are_kept(policy, ends):
    """Machine 1 is lost at 2 s for good, and b waits again, the first in order.

    EASY reserves machine 0 for it at 4 s, and c follows. Conservatively c keeps its start there, at
    4 s, which is still possible, and b follows at 5 s.
    """
    jobs = [job("a", 4.0), job("b", 6.0), job("c", 1.0, submit_s=1.0)]
    assert run(jobs, 2, policy, [(1, 2.0, math.inf)]).job_finish.tolist() == ends


@pytest.mark.parametrize("policy", PLANNERS)
def test_a_job_that_fits_no_machine_meanwhile_has_no_reservation(policy):
    """c needs both machines, of which one is lost from 1 to 9 s: d passes it, and e, too.

    Machine 1 is back at 9 s; 0 is free at 10 s, when e has ended: c starts then.
    """
    jobs = [
        job("a", 3.0),
        job("b", 1.0),
        job("c", 1.0, submit_s=1.0, n=2),
        job("d", 5.0, submit_s=3.0),
        job("e", 2.0, submit_s=4.0),
    ]
    result = run(jobs, 2, policy, [(1, 1.0, 9.0)])
    assert result.job_start.tolist() == [0.0, 0.0, 10.0, 3.0, 8.0]


@pytest.mark.parametrize("policy", PLANNERS)
def test_a_machine_that_is_back_is_planned_with_again(policy):
    """Machine 1 is lost from 2 to 3 s: b starts anew at 3 s, and c has the machine at 8 s."""
    jobs = [job("a", 10.0), job("b", 5.0), job("c", 5.0, submit_s=1.0)]
    result = run(jobs, 2, policy, [(1, 2.0, 3.0)])
    assert result.job_start.tolist() == [0.0, 0.0, 8.0]
    assert result.task_machine.tolist() == [0, 1, 1]


@pytest.mark.parametrize("policy", PLANNERS)
def test_a_reservation_leaves_a_machine_that_is_drained(policy):
    """c is to follow b on machine 1 at 5 s; from 4 s on that takes nothing new."""
    jobs = [job("a", 10.0), job("b", 5.0), job("c", 5.0, submit_s=1.0)]
    result = run(jobs, 2, policy, [(1, 4.0, 99.0, "drain")])
    assert result.job_start.tolist() == [0.0, 0.0, 10.0]
    assert result.task_machine.tolist() == [0, 1, 0]


@pytest.mark.parametrize("policy", PLANNERS)
def test_reserved_room_of_a_gang_is_sought_anew(policy):
    """c is to have machines 0 and 1 at 4 s; 1 is lost at 2 s, so that it has 0 and 2 at 6 s.

    d, of 3 s, would then pass it at 4 s on machine 0 until 7 s: it does not.
    """
    jobs = [
        job("a", 4.0),
        job("b", 2.0),
        job("other", 6.0),
        job("c", 1.0, submit_s=1.0, n=2),
        job("d", 3.0, submit_s=1.0),
    ]
    result = run(jobs, 3, policy, [(1, 2.0, 99.0)])
    assert result.job_start.tolist() == [0.0, 0.0, 0.0, 6.0, 7.0]


@pytest.mark.parametrize(("policy", "ends"), [("easy", [6.0, 7.0]), ("conservative", [7.0, 3.0])])
def test_a_failed_attempt_moves_what_is_behind_it(policy, ends):
    """a, of 4 s, fails at 2 s and waits again; b, of 1 s, was to have the machine at 4 s.

    EASY: a runs from 2 to 6 s. Conservatively b keeps its start, before which a does not fit, so
    that b is moved ahead to 2 s, and a to 3 s.
    """
    workload = sim.Workload.from_jobs([job("a", 4.0), job("b", 1.0, submit_s=1.0)])
    workload = workload.with_failures({"task": [0], "after_s": [2.0], "lost": [-1]})
    result = sim.simulate(workload, sim.Cluster.machines(1, cpu=1), policies.build(policy))
    assert result.job_finish.tolist() == ends


def test_slurm_plans_anew_without_a_lost_node():
    """b waits for a node from 1 s on, behind a and other; node 0 is lost at 2 s, and a, too.

    a, first in order, has node 1 once other has ended at about 10 s, and b once a has, 4 s later.
    """
    jobs = [job("a", 4.0), job("other", 10.0), job("b", 1.0, submit_s=1.0)]
    result = run(jobs, 2, "slurm", [(0, 2.0, math.inf)], interval_s=1, requeue_s=0)
    a, other, b = result.job_finish.tolist()
    assert other < 12.0
    assert other + 4.0 <= a < other + 7.0
    assert a + 1.0 <= b < a + 4.0


@pytest.mark.skipif(COMPILED_WIDE, reason="in no wide variant")
@pytest.mark.parametrize("policy", PLANNERS)
def test_a_machine_lost_within_a_reservation(policy):
    """From 2 to 12 s machine 0 is reserved for a and b; it is lost from 3 to 5 s.

    a, of 4 s, runs anew from 5 to 9 s, and b, of 3 s, from 9 to 12 s. Without the loss b would be
    done by 9 s.
    """
    jobs = [job("a", 4.0, reservation="r"), job("b", 3.0, reservation="r"), job("c", 20.0)]
    cluster = sim.Cluster.machines(2, cpu=1).with_outages(Outages.from_columns([0], [3.0], [5.0]))
    rows = [{"name": "r", "machine": 0, "from_s": 2.0, "until_s": 12.0}]
    workload = sim.Workload.from_jobs(jobs)
    result = sim.simulate(workload, cluster.with_reservations(rows), policies.build(policy))
    assert result.job_finish.tolist() == [9.0, 12.0, 20.0]
    assert result.task_machine.tolist() == [0, 0, 1]
