"""Policies of kinds of machines: shares, matchings, rounds and prices worked out by hand.

Speeds and steps of Gavel's are those of `tests/policies_tests.py` in its repository.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import policies
import sim
from policies.baselines.fair_shares import shares
from policies.baselines.kinds import Kinds
from policies.baselines.simplex import maximise
from sim.base.errors import InputError
from sim.check.schedule import check_schedule
from sim.engine.plan import World
from tests.examples import COMPILED_WIDE

pytestmark = pytest.mark.skipif(COMPILED_WIDE, reason="no wide variant selects classes")

NAMES = ("v100", "p100", "k80")
IN_ROUNDS = ("hadar", "las_kinds", "max_min_kinds")


def job(seconds, speed=(1.0, 1.0, 1.0), n_tasks=1, submit_s=0.0, **more):
    """Return a job that lasts some seconds at speed 1."""
    stage = {"durations_s": [float(seconds)] * n_tasks, "demand": {"gpu": 1}}
    stage["speed"] = dict(zip(NAMES, speed, strict=True))
    return {"submit_s": submit_s, "stages": [stage], **more}


def machines(v100=0, p100=0, k80=0):
    counts = zip(NAMES, (v100, p100, k80), strict=True)
    return sim.Cluster.mixed(
        [{"class": name, "count": n, "devices": {"gpu": 1}} for name, n in counts if n]
    )


def run(name, jobs, cluster, **options):
    result = sim.simulate(sim.Workload.from_jobs(jobs), cluster, policies.build(name, **options))
    check_schedule(result)
    return result


def kinds_of(jobs, cluster):
    return Kinds.before(World(sim.Workload.from_jobs(jobs).columns, cluster, 0, {}))


def test_kinds_have_the_codes_of_all_partitions_and_the_room_of_what_fits():
    kinds = [{"class": "x", "cpu": 4, "partitions": [p]} for p in ("a", "b*")]
    cluster = sim.Cluster.mixed(
        [*kinds, {"class": "y", "cpu": 1, "devices": {"gpu": 1}, "partitions": ["b*"]}]
    )
    stage = {"durations_s": [1.0], "demand": {"cpu": 2}, "speed": {"x": 3.0}}
    only_y = {"submit_s": 0, "stages": [{**stage, "demand": {"cpu": 1}, "runs_on": "y"}]}
    by_kind = kinds_of([{"submit_s": 0, "stages": [stage]}, only_y], cluster)
    assert by_kind.bits.tolist() == [0b011, 0b100, -1]
    assert by_kind.speed.tolist() == [[3.0, 0.0, 3.0], [0.0, 1.0, 1.0]]
    assert by_kind.share.tolist() == [[0.25, 1.0, 0.25], [0.125, 1.0, 1 / 9]]


def test_shares_are_those_of_gavels_example():
    # x of a V100 for the first and 1 - x for the second, and the rest of their time on P100s:
    # normalised, 24/11 x + 12/11 (1 - x) = 9/5 (1 - x) + 6/5 x, so x = 13/31 and both have 48/31
    jobs = [job(1, (2.0, 1.0, 0.5)), job(1, (3.0, 2.0, 1.0))]
    kinds = kinds_of(jobs, machines(1, 2, 3))
    share = shares(kinds, np.arange(2))
    expected = np.array([[13, 18, 0, 0], [18, 13, 0, 0]]) / 31
    assert share == pytest.approx(expected, abs=1e-12)
    assert (share * kinds.worth).sum(axis=1) == pytest.approx([48 / 31] * 2)


def test_a_job_of_twice_the_size_has_half_of_the_time():
    jobs = [job(1, n_tasks=2, min_tasks=2), job(1)]
    assert shares(kinds_of(jobs, machines(2)), np.arange(2))[:, 0].tolist() == [0.5, 1.0]


def test_without_speeds_all_kinds_are_alike():
    jobs = [job(1, (9.0, 1.0, 1.0)), job(1), job(1)]
    share = shares(kinds_of(jobs, machines(1, 1)), np.arange(3), by_speed=False)
    assert share.sum(axis=1) == pytest.approx([2 / 3] * 3)


def test_what_harms_nobody_is_not_left():
    # a kind on which one of the jobs alone may run
    jobs = [job(1), job(1)]
    jobs[0]["stages"][0]["runs_on"] = "v100"
    share = shares(kinds_of(jobs, machines(1, 1)), np.arange(2))
    assert share.tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_the_simplex_method_finds_the_optimum_of_another_solver():
    rng = np.random.default_rng(0)
    for _ in range(60):
        n, m = rng.integers(1, 25, 2)
        limits = rng.choice([0, 0, 0.5, 1, 2, 3], (m, n)) * rng.random((m, n))
        limits = np.vstack([limits, np.ones(n)])
        right = np.append(rng.choice([0.0, 1.0, 1.0, 2.5], m), 3.0)
        gain = rng.normal(size=n)
        x = maximise(gain, limits, right)
        assert (limits @ x <= right + 1e-9).all()
        assert gain @ x == pytest.approx(-linprog(-gain, A_ub=limits, b_ub=right).fun, abs=1e-9)


def test_a_matching_has_the_least_total_of_gavels_example():
    # no other assignment of the four jobs to workers and positions has less: 1,150 s, which
    # 150 + 500 / 3 + 1000 / 3 + 500 is, with the fourth job on a K80
    speeds = [(2.0, 1.0, 0.5), (3.0, 2.0, 1.0), (4.0, 3.0, 2.0), (1.0, 1.0, 1.0)]
    jobs = [job(n, s) for n, s in zip((300, 500, 1000, 500), speeds, strict=True)]
    assert run("allox", jobs, machines(2, 1, 3)).job_finish.sum() == pytest.approx(1150.0)


def test_a_job_waits_for_a_fast_worker_if_that_ends_sooner():
    # on the K80 the second lasts 1,000 s: behind the first it ends at 200, before it at 100
    jobs = [job(100, (1.0, 1.0, 0.1)), job(100, (1.0, 1.0, 0.1), submit_s=10.0)]
    result = run("allox", jobs, machines(v100=1, k80=1))
    assert result.task_machine.tolist() == [0, 0]
    assert result.job_finish.tolist() == [100.0, 200.0]
    # at 60 s it is as good on the K80
    sooner = run("allox", [jobs[0], job(100, (1.0, 1.0, 0.6), submit_s=10.0)], machines(1, 0, 1))
    assert sooner.job_start.tolist() == [0.0, 10.0]


def test_the_shorter_of_two_waiting_jobs_goes_first_on_a_worker():
    jobs = [job(50), job(100), job(10)]
    assert run("allox", jobs, machines(1)).job_start.tolist() == [10.0, 60.0, 0.0]


def test_a_window_looks_at_the_first_jobs_alone():
    jobs = [job(50), job(100), job(10)]
    assert run("allox", jobs, machines(1), window=1).job_start.tolist() == [0.0, 50.0, 150.0]


@pytest.mark.parametrize("name", ["las_kinds", "max_min_kinds"])
def test_two_jobs_change_places_in_rounds(name):
    # 200 and 100 of 600 s a round, in turn: both have 300 of each two rounds
    jobs = [job(600, (2.0, 1.0, 1.0)), job(600, (2.0, 1.0, 1.0))]
    result = run(name, jobs, machines(v100=1, k80=1), round_s=100.0)
    assert result.job_finish.tolist() == [400.0, 400.0]
    assert result.stops["stop_s"].to_pylist() == [100.0, 100.0, 200.0, 200.0, 300.0, 300.0]
    assert {*result.stops["reason"].to_pylist()} == {"preempted"}


def test_least_attained_service_goes_first_on_the_fastest_kind():
    # of 3 jobs of 400 s at speeds 2 and 1: the first and second, then the third and second, when
    # all have had as much, then the first (done at 300) and second, then the third and second
    jobs = [job(400, (2.0, 1.0, 1.0)) for _ in range(3)]
    result = run("las_kinds", jobs, machines(v100=1, k80=1), round_s=100.0)
    assert result.job_finish.tolist() == [300.0, 400.0, 400.0]
    assert result.job_start.tolist() == [0.0, 0.0, 100.0]


@pytest.mark.parametrize("name", IN_ROUNDS)
def test_a_round_begins_with_the_first_job_and_keeps_later_ones_waiting(name):
    jobs = [job(250, submit_s=7.0), job(30, submit_s=50.0), job(10, submit_s=400.0)]
    result = run(name, jobs, machines(v100=2), round_s=100.0)
    assert result.job_start.tolist() == [7.0, 107.0, 400.0]
    assert result.stops.num_rows == 0


@pytest.mark.parametrize("name", IN_ROUNDS)
def test_jobs_without_room_on_any_kind_run_on_all(name):
    jobs = [job(100, n_tasks=2, min_tasks=2), job(100), job(100)]
    result = run(name, jobs, machines(v100=1, k80=1), round_s=50.0)
    assert np.isfinite(result.job_finish).all()
    # what runs on two kinds leaves no room for others
    assert result.job_finish.max() == 200.0


def test_work_that_no_checkpoint_saved_may_be_lost():
    jobs = [job(250), job(250)]
    suspended = run("las_kinds", jobs, machines(v100=1), round_s=100.0)
    assert suspended.job_finish.tolist() == [450.0, 550.0]
    jobs = [{**row, "checkpoint_s": 40.0} for row in jobs]
    requeued = run("las_kinds", jobs, machines(v100=1), round_s=100.0, when="requeue")
    assert requeued.stops["kept_s"].to_pylist()[:2] == [80.0, 80.0]
    assert (requeued.job_finish > suspended.job_finish).all()


def test_a_price_grows_with_the_use_of_a_kind():
    # each takes half of the V100s. Utilities over shares are 0.002, 0.002 and 0.2, so the price of
    # 0.0005 grows to 0.01 once the first has its half: too much for the second, not for the third
    jobs = [job(1000), job(1000), job(10)]
    result = run("hadar", jobs, machines(v100=2), round_s=10.0)
    assert result.job_start.tolist() == [0.0, 10.0, 0.0]
    assert result.job_finish.tolist() == [1000.0, 1010.0, 10.0]


def test_a_job_moves_to_the_kind_of_the_greatest_gain():
    # both gain most on the V100: the first has it, and the second when that is done, with 540 s
    # left of 600
    jobs = [job(600, (2.0, 1.0, 1.0)), job(600, (2.0, 1.0, 0.2))]
    result = run("hadar", jobs, machines(v100=1, k80=1), round_s=100.0)
    assert result.job_finish.tolist() == [300.0, pytest.approx(570.0)]


def test_preemption_by_others_is_refused():
    with pytest.raises(InputError, match=r"las_kinds: jobs stop between rounds"):
        run("las_kinds", [job(1)], machines(1), preemption={"by": "priority"})


@pytest.mark.parametrize("name", ["allox", *IN_ROUNDS])
def test_tasks_that_demand_nothing_run_beside_the_others(name):
    jobs = [job(20), job(20), job(20)]
    for row in jobs[1:]:
        row["stages"][0]["demand"] = {"gpu": 0}
    assert run(name, jobs, machines(v100=1)).job_start.tolist() == [0.0, 0.0, 0.0]
