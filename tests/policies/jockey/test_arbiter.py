"""The arbiter's work meter and order of jobs, the bound on utility, and the utility it gains."""

from itertools import permutations

import numpy as np
import pytest

import policies
import sim
from policies.base import Policy
from policies.estimates.profile import build_profile
from policies.jockey.arbiter import (
    PRIOR,
    RemainingWork,
    WorkMeter,
    best_order,
    finish_times_s,
)
from policies.jockey.bound import utility_bound
from policies.jockey.control import raw_allocation, training_profile
from sim.workload.utility import POINTS, utility_curve
from tests.policies.estimates.test_profile import ONE_RUN, TWO_STAGES, records
from tests.policies.jockey.worlds import training_of

PROFILE = build_profile(TWO_STAGES, records(ONE_RUN))  # 8 and 2 token seconds, in 2 tasks and 1


def test_as_in_training_at_first():
    assert WorkMeter(PROFILE, 3.0).factor(np.zeros(2)) == 1.0


def test_token_seconds_are_counted_between_looks():
    meter = WorkMeter(PROFILE, 0.0)
    meter.update(0.0, 2)
    meter.update(4.0, 2)
    meter.update(6.0, 0)
    assert meter.token_s == 8.0 + 2.0
    assert meter.factor(np.array([1.0, 0.0])) == pytest.approx((10 + 10 * PRIOR) / (8 + 10 * PRIOR))


def test_half_a_task_is_done_of_those_that_run():
    meter = WorkMeter(PROFILE, 0.0, running=2)
    meter.update(5.0, 2)
    want = (10 - 2 * (10 / 3) / 2 + 10 * PRIOR) / (4 + 10 * PRIOR)
    assert meter.factor(np.array([0.5, 0.0])) == pytest.approx(want)


U = utility_curve(POINTS)
MIN = 60.0


def left(late_min, work_min, least_min):
    """Build remaining work from minutes."""
    return RemainingWork(
        *(MIN * np.array(minutes, dtype=float) for minutes in (late_min, work_min, least_min))
    )


def expected(late_s, left_s):
    return U(late_s + left_s)


def test_ends_by_hand():
    """Of three tokens the first takes two at most, the next what it leaves."""
    jobs = left([0, 0, 0], [20, 30, 0], [10, 10, 0])
    ends = finish_times_s(jobs, np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]]), 3) / MIN
    assert ends[0].tolist() == pytest.approx([10, 10 + 20 / 3, 0])
    assert ends[1].tolist() == ends[2].tolist() == pytest.approx([20, 10, 0])


def test_work_is_conserved():
    rng = np.random.default_rng(0)
    for _ in range(20):
        jobs = left(np.zeros(5), rng.uniform(10, 90, 5), rng.uniform(1, 30, 5))
        orders = np.array([rng.permutation(5) for _ in range(4)])
        ends = finish_times_s(jobs, orders, 4)
        assert (ends >= np.maximum(jobs.least_s, jobs.work_s / 4) - 1e-6).all()
        assert (ends.max(axis=1) >= jobs.work_s.sum() / 4 - 1e-6).all()
        at_once = finish_times_s(jobs, orders, 10**6)
        np.testing.assert_allclose(at_once, np.tile(jobs.least_s, (4, 1)))


def test_a_late_job_waits_where_the_others_gain_more():
    """One token, three jobs of ten minutes due in 10, 20 and 30, and one due long ago."""
    jobs = left([60, -10, -20, -30], [60, 10, 10, 10], [10] * 4)
    assert best_order(jobs, [np.arange(4)], 1, expected).tolist() == [1, 2, 3, 0]
    small = left([60, -20, -30, -40], [10, 10, 10, 10], [10] * 4)  # there is time for it first
    assert best_order(small, [np.arange(4)[::-1]], 1, expected).tolist()[0] == 0


def test_best_order_is_near_the_optimum():
    rng = np.random.default_rng(2)
    losses = []
    for _ in range(10):
        work = rng.uniform(10, 200, 6)
        jobs = left(-rng.uniform(5, 60, 6), work, work / rng.uniform(1, 8, 6))
        every = np.array(list(permutations(range(6))))
        values = expected(jobs.late_s, finish_times_s(jobs, every, 8)).sum(axis=1)
        order = best_order(jobs, [np.arange(6)], 8, expected)
        value = expected(jobs.late_s, finish_times_s(jobs, order[None], 8)).sum()
        losses.append((values.max() - value) / (values.max() - values.mean()))
    assert min(losses) >= -1e-9
    assert np.mean(losses) < 0.05


def test_the_bound_by_hand():
    assert utility_bound([0.0], [5 * MIN], [100 * MIN], [0.0], 10, U) == 0.0  # 5 min late
    assert utility_bound([0.0], [5 * MIN], [100 * MIN], [15 * MIN], 10, U) == -1.0
    assert utility_bound([0.0], [20 * MIN], [100 * MIN], [15 * MIN], 10, U) == 1.0
    # two of ten minutes each, both due in ten: one is in time, the other ten minutes late (0 in
    # all); the bound lets the late half of both end all the way from there to ten minutes late
    two = utility_bound([0.0, 0.0], [600.0] * 2, [6000.0] * 2, [0.0, 0.0], 10, U, step_s=1.0)
    assert two == pytest.approx(1.0, abs=0.01)
    whole = [[0.0, 0.0], [600.0] * 2, [6000.0] * 2, [0.0, 0.0], 10, U]
    assert utility_bound(*whole, step_s=10.0, whole=True) == pytest.approx(0.0, abs=0.1)


class InOrder(Policy):
    """The job with the lowest key first."""

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
        args = (c.job_submit, c.job_deadline, c.job_work, c.stage_max_s, 4, U)
        relaxed, bound = utility_bound(*args), utility_bound(*args, whole=True)
        assert bound <= relaxed + 1e-6
        for keys in permutations(range(4)):
            policy = InOrder()
            object.__setattr__(policy, "keys", np.array(keys, float))
            done = sim.simulate(workload, sim.Cluster.slots(4), policy)
            assert U(done.job_finish - c.job_submit - c.job_deadline).sum() <= bound + 1e-9


def crowded(seed, over, n=20):
    """Make jobs of three stages that statically need `over` times the cluster's tokens."""
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
        left = jockey.model(training_profile(workload.columns, row)).left_s(np.zeros(3))
        needs.append(raw_allocation(jockey.law, jockey.utility_curve, deadline, 0.0, left))
    return workload, sim.Cluster.slots(int(sum(needs) / over))


@pytest.mark.parametrize("over", [1.0, 1.6, 2.2, 3.0])
@pytest.mark.long
def test_the_arbiter_attains_most_of_the_utility_bound(over):
    """20 jobs whose static needs add up to more than the cluster has."""
    workload, cluster = crowded(14, over)
    c = workload.columns
    shortest = sim.bounds.bound_arrays(c, cluster, False)["cp_len"]
    bound = utility_bound(
        c.job_submit, c.job_deadline, c.job_work, shortest, int(cluster.total[0]), U
    )
    earned = {}
    for name, params in {
        "fair": {},
        "jockey": {"runs": 20},
        "jockey_arbiter": {"runs": 20},
    }.items():
        result = sim.simulate(workload, cluster, policies.build(name, **params))
        earned[name] = float(U(result.job_finish - c.job_submit - c.job_deadline).sum())
    assert earned["jockey_arbiter"] <= bound + 1e-6
    other = max(earned["fair"], earned["jockey"])
    assert earned["jockey_arbiter"] >= other + (0.5 if over > 2.2 else 0.8) * (bound - other)


def test_needs_that_fit_are_the_allocations():
    workload, cluster = crowded(14, 0.5)
    result = sim.simulate(workload, cluster, policies.build("jockey_arbiter", runs=20))
    tokens = result.limits["tokens"].to_numpy()
    assert 0 < tokens.max() <= 100  # and never all


@pytest.mark.parametrize(("by_path", "finish_s"), [(True, 40.0), (False, 60.0)])
def test_the_longest_path_of_a_job_goes_first(by_path, finish_s):
    """Two slots; what is behind `long` takes 30 s, and nothing is behind the wide stage."""
    stages = [
        {"name": "wide", "durations_s": [10.0] * 4},
        {"name": "long", "durations_s": [10.0]},
        {"name": "end", "durations_s": [30.0], "parents": ["long"]},
    ]
    job = {"submit_s": 0.0, "template": "a", "deadline_s": 300.0, "stages": stages}
    alone, cluster = sim.Workload.from_jobs([job]), sim.Cluster.slots(2)
    before = sim.simulate(alone, cluster, policies.build("fifo"), record="tasks")
    workload = alone.with_training(training_of(before, "a"))
    policy = policies.build("jockey_arbiter", runs=2, max_tokens=2, longest_path_first=by_path)
    assert sim.simulate(workload, cluster, policy).job_finish.tolist() == [finish_s]


def test_greedy_allocations_use_about_all_tokens():
    workload, cluster = crowded(14, 1.6, n=6)
    policy = policies.build("jockey_arbiter", runs=20, fill="greedy")
    result = sim.simulate(workload, cluster, policy)
    limits = result.limits
    at_s, job, tokens = (limits[name].to_numpy() for name in ("time_s", "job", "tokens"))
    n_tokens, totals = np.zeros(6), []
    for instant in np.unique(at_s):
        now = at_s == instant
        n_tokens[job[now]] = tokens[now]
        totals.append(n_tokens[result.job_finish > instant].sum())
    total = int(cluster.total[0])
    assert 0.9 * total < max(totals) <= total


def naive_ends(jobs, order, total):
    """Serve jobs in one order, an end at a time."""
    rate_max = {j: min(jobs.work_s[j] / max(jobs.least_s[j], 1e-9), total) for j in order}
    work, now, end = dict(enumerate(jobs.work_s)), 0.0, np.zeros(len(order))
    running = [j for j in order if work[j] > 0]
    while running:
        before, rate = 0.0, {}
        for j in running:
            through = before + rate_max[j]
            rate[j] = min(max(total - (through - rate_max[j]), 0.0), rate_max[j])
            before = through
        ends_in = {j: work[j] / rate[j] for j in running if rate[j] > 0}
        step = min(ends_in.values())
        now += step
        for j in [j for j in ends_in if ends_in[j] <= step * (1 + 1e-12)]:
            end[j] = now
            running.remove(j)
        for j in rate:
            work[j] -= rate[j] * step
    return end


def test_ends_and_their_utility_equal_the_naive_ones():
    rng = np.random.default_rng(3)
    arbiter = policies.build("jockey_arbiter", utility=((0, 1), (5, 0.3), (10, -1), (1000, -9)))
    for _ in range(20):
        n = int(rng.integers(1, 7))
        work_s = rng.lognormal(4, 2, n) * (rng.random(n) < 0.9)
        jobs = RemainingWork(rng.normal(-200, 300, n), work_s, rng.lognormal(3, 1, n))
        orders = np.array([rng.permutation(n) for _ in range(4)])
        ends_s = finish_times_s(jobs, orders, 8)
        for order, end_s in zip(orders, ends_s, strict=True):
            assert end_s.tolist() == naive_ends(jobs, order.tolist(), 8).tolist()
        slack, curve = arbiter.slack, arbiter.utility_curve
        cases = [ends_s / slack, ends_s, ends_s * slack]
        mean = sum(curve(jobs.late_s + case) for case in cases) / 3
        assert arbiter.expected(jobs.late_s, ends_s).tolist() == mean.tolist()
