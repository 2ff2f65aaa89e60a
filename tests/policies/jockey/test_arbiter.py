"""The arbiter's pace and timetable, the bound it is held against, and what it earns."""

from itertools import permutations

import numpy as np
import pytest

import policies
import sim
from policies.base import Policy
from policies.jockey.arbiter import (
    PRIOR,
    Choice,
    Pace,
    _first_fit,
    best_timetable,
    timetable,
    utility_bound,
)
from policies.jockey.control import POINTS, profile_of_job, raw_allocation, utility
from policies.jockey.profile import profile_of
from tests.policies.jockey.test_profile import ONE_RUN, TWO_STAGES, records
from tests.policies.jockey.worlds import training_of

PROFILE = profile_of(TWO_STAGES, records(ONE_RUN))  # 8 and 2 token seconds, in 2 tasks and 1


def test_as_in_training_at_first():
    assert Pace(PROFILE, 3.0).factor(np.zeros(2)) == 1.0


def test_token_seconds_are_counted_between_looks():
    pace = Pace(PROFILE, 0.0)
    pace.look(0.0, 2)
    pace.look(4.0, 2)
    pace.look(6.0, 0)
    assert pace.held_s == 8.0 + 2.0
    assert pace.factor(np.array([1.0, 0.0])) == pytest.approx((10 + 10 * PRIOR) / (8 + 10 * PRIOR))


def test_half_a_task_is_done_of_those_that_run():
    pace = Pace(PROFILE, 0.0, running=2)
    pace.look(5.0, 2)
    want = (10 - 2 * (10 / 3) / 2 + 10 * PRIOR) / (4 + 10 * PRIOR)
    assert pace.factor(np.array([0.5, 0.0])) == pytest.approx(want)


U = utility(POINTS)
MIN = 60.0


def choice(tokens, takes_min, deadline_min):
    takes_s = MIN * np.array(takes_min, dtype=float)
    return Choice(np.array(tokens), takes_s, (takes_s - MIN * deadline_min)[:, None])


def drawn(rng, n):
    jobs = []
    for _ in range(n):
        work, serial = rng.uniform(10, 200), rng.uniform(1, 8)
        tokens = np.array([1, 2, 4, 8])
        jobs.append(choice(tokens, serial + work / tokens, rng.uniform(5, 60)))
    return jobs


def test_the_first_fit_is_that_of_a_loop():
    rng = np.random.default_rng(0)
    for _ in range(50):
        free = rng.integers(0, 5, 12)
        tokens, steps = np.array([1, 2, 3, 4]), rng.integers(1, 6, 4)
        longer = np.concatenate([free, np.full(20, 9)])
        for a, n, got in zip(tokens, steps, _first_fit(free, tokens, steps), strict=True):
            want = next(k for k in range(13) if (longer[k : k + n] >= a).all())
            assert got in (want, 12) if want + n > 12 else got == want


def test_a_timetable_by_hand():
    """Two jobs of 20 and 30 token minutes on two tokens."""
    jobs = [choice([1, 2], [20, 10], 10), choice([1, 2], [30, 15], 30)]
    found = timetable(jobs, [0, 1], 2, U, MIN)
    assert found.tokens.tolist() == [2, 2]
    assert found.start.tolist() == [0, 10]
    assert found.value.tolist() == [1.0, 1.0]
    turned = timetable(jobs, [1, 0], 2, U, MIN)
    assert turned.tokens.tolist() == [1, 1]  # as little as meets the deadline of the first
    assert turned.start.tolist() == [0, 0]
    assert turned.value.tolist() == [-1.0, 1.0]  # ten minutes late
    best = best_timetable(jobs, [[1, 0]], 2, U, MIN)
    assert best.total == 2.0


def test_no_instant_takes_more_than_there_is():
    rng = np.random.default_rng(1)
    for _ in range(30):
        jobs = drawn(rng, 6)
        plan = timetable(jobs, rng.permutation(6).tolist(), 9, U, MIN)
        used = np.zeros(5000)
        for job, a, k in zip(jobs, plan.tokens, plan.start, strict=True):
            takes = job.takes_s[job.tokens == a][0]
            used[k : k + int(np.ceil(takes / MIN))] += a
        assert used.max() <= 9


def test_the_order_found_is_near_the_best_of_all():
    rng = np.random.default_rng(2)
    lost = []
    for _ in range(10):
        jobs = drawn(rng, 5)
        every = [timetable(jobs, o, 8, U, MIN).total for o in permutations(range(5))]
        found = best_timetable(jobs, [range(5), range(4, -1, -1)], 8, U, MIN).total
        assert found <= max(every) + 1e-9
        lost.append((max(every) - found) / max(max(every) - np.mean(every), 1e-9))
    assert np.mean(lost) < 0.25


def test_the_bound_by_hand():
    assert utility_bound([0.0], [5 * MIN], [100 * MIN], [0.0], 10, U) == 0.0  # 5 min late
    assert utility_bound([0.0], [5 * MIN], [100 * MIN], [15 * MIN], 10, U) == -1.0
    assert utility_bound([0.0], [20 * MIN], [100 * MIN], [15 * MIN], 10, U) == 1.0
    # two of ten minutes each, both due in ten: one is in time, the other ten minutes late (0 in
    # all); the bound lets the late half of both end all the way from there to ten minutes late
    two = utility_bound([0.0, 0.0], [600.0] * 2, [6000.0] * 2, [0.0, 0.0], 10, U, step_s=1.0)
    assert two == pytest.approx(1.0, abs=0.01)


class InOrder(Policy):
    """The job of least key first."""

    def prepare(self, world, plan):
        plan.set_jobs(key=self.keys)


def test_no_order_of_jobs_beats_the_bound():
    rng = np.random.default_rng(3)
    for _ in range(8):
        rows = [
            {
                "submit_s": float(MIN * rng.integers(0, 10)),
                "deadline_s": float(MIN * rng.uniform(3, 25)),
                "stages": [{"durations_s": (MIN * rng.uniform(1, 6, 8)).tolist()}],
            }
            for _ in range(4)
        ]
        workload = sim.Workload.from_jobs(rows)
        c = workload.columns
        bound = utility_bound(c.job_submit, c.job_deadline, c.job_work, c.stage_max_s, 4, U)
        for keys in permutations(range(4)):
            policy = InOrder()
            object.__setattr__(policy, "keys", np.array(keys, float))
            done = sim.simulate(workload, sim.Cluster.slots(4), policy)
            assert U(done.job_finish - c.job_submit - c.job_deadline).sum() <= bound + 1e-9


def crowded(seed, over, n=20):
    """Make jobs of three stages whose static needs add up to `over` times the cluster."""
    rng = np.random.default_rng(seed)

    def stages(sizes, means, factor):
        lengths = [
            (factor * m * rng.lognormal(-0.125, 0.5, k)).tolist()
            for k, m in zip(sizes, means, strict=True)
        ]
        names = ("map", "join", "reduce")
        return [
            {"name": names[s], "durations_s": lengths[s], "parents": [names[s - 1]] if s else []}
            for s in range(3)
        ]

    rows, training = [], []
    for i in range(n):
        sizes, means = rng.integers((60, 60, 8), (400, 400, 60)), rng.uniform(15, 90, 3)
        alone = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages(sizes, means, 1.0)}])
        before = sim.simulate(alone, sim.Cluster.slots(30), policies.build("fifo"), record="tasks")
        training.append(training_of(before, f"t{i}"))
        rows.append(
            {
                "submit_s": float(rng.uniform(0, 300)),
                "template": f"t{i}",
                "queue": f"q{i}",  # fair sharing is between queues
                "deadline_s": float(rng.choice([1800, 2400, 3000])),
                "stages": stages(sizes, means, rng.lognormal(0, 0.1)),
            }
        )
    pooled = {k: np.concatenate([np.asarray(t[k]) for t in training]) for k in training[0]}
    workload = sim.Workload.from_jobs(rows).with_training(pooled)
    jockey = policies.build("jockey", runs=20)
    needs = []
    for row, deadline in enumerate(workload.columns.job_deadline.tolist()):
        left = jockey.model(profile_of_job(workload.columns, row)).left_s(np.zeros(3))
        needs.append(raw_allocation(jockey.law, jockey.worth, deadline, 0.0, left))
    return workload, sim.Cluster.slots(int(sum(needs) / over))


def test_the_arbiter_earns_most_of_what_can_be_earned():
    """20 jobs whose static needs add up to more than the cluster has."""
    workload, cluster = crowded(14, 1.5)
    c = workload.columns
    shortest = sim.bounds.bound_arrays(c, cluster, False)["cp_len"]
    bound = utility_bound(
        c.job_submit, c.job_deadline, c.job_work, shortest, int(cluster.total[0]), U
    )
    earned, late = {}, {}
    for name, params in {
        "fair": {},
        "jockey": {"runs": 20},
        "jockey_arbiter": {"runs": 20},
    }.items():
        result = sim.simulate(workload, cluster, policies.build(name, **params))
        over_s = result.job_finish - c.job_submit - c.job_deadline
        earned[name], late[name] = float(U(over_s).sum()), int((over_s > 0).sum())
    assert earned["fair"] < bound - 0.5  # there is something to earn
    way = (earned["jockey_arbiter"] - earned["fair"]) / (bound - earned["fair"])
    assert 0.9 <= way <= 1.0 + 1e-9
    assert late["jockey_arbiter"] == 0
    assert late["jockey"] < late["fair"]
