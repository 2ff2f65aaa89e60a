"""The bound on the mean completion time of a stream: below the optimum, below every schedule."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import policies
import sim
from sim.bounds.kernels.srpt import srpt
from sim.bounds.stream import mean_jct_bound


def job(submit_s, *stages):
    """Build a job from stages of (durations_s, cpu, mem, parents)."""
    return {
        "submit_s": float(submit_s),
        "stages": [
            {
                "name": f"s{i}",
                "durations_s": [float(d) for d in durations],
                "demand": {"cpu": cpu, "mem": mem},
                "parents": [f"s{p}" for p in parents],
            }
            for i, (durations, cpu, mem, parents) in enumerate(stages)
        ],
    }


def naive_srpt(release, work):
    """Run a second at a time the job with the least remaining work, the first of those."""
    remaining, done, now = list(work), [0.0] * len(work), 0
    while any(remaining):
        available = [
            j for j, release_s in enumerate(release) if release_s <= now and remaining[j] > 0
        ]
        now += 1
        if available:
            job = min(available, key=lambda j: (remaining[j], j))
            remaining[job] -= 1
            done[job] = now
    return done


@pytest.mark.parametrize("seed", range(30))
def test_srpt_agrees_with_a_second_at_a_time(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    release = np.sort(rng.integers(0, 15, n)).astype(float)
    work = rng.integers(1, 9, n).astype(float)
    ours = np.sort(srpt(release, work))
    assert ours.tolist() == sorted(naive_srpt(release, work))


def test_no_work_is_done_at_once():
    assert srpt(np.array([0.0, 2.0]), np.array([3.0, 0.0])).tolist() == [3.0, 2.0]


def test_the_later_of_alone_and_pooled_completions_counts():
    machine = sim.Cluster.machines(1, cpu=1, mem=1)
    # both are 4 s of the cpu: one ends at 4 s, the other at 8 s
    same = [job(0, ([4], 1, 0.1, [])), job(0, ([4], 1, 0.1, []))]
    assert mean_jct_bound(sim.Workload.from_jobs(same), machine) == 6.0
    # half of it each, side by side: no more than they need alone
    halves = [job(0, ([4], 0.5, 0.1, [])), job(0, ([4], 0.5, 0.1, []))]
    assert mean_jct_bound(sim.Workload.from_jobs(halves), machine) == 4.0
    # the first completion by what it needs alone (5 s, no cpu to speak of), the second by the work
    mixed = [job(0, ([5], 0.2, 0.2, [])), job(0, ([6], 1, 0.1, []))]
    assert mean_jct_bound(sim.Workload.from_jobs(mixed), machine) == pytest.approx((5 + 7) / 2)


def chain(*jobs):
    """Build jobs of one task a piece that fills the machine: (submit_s, s, inputs)."""
    return [
        {**job(submit_s, ([duration_s], 1, 0.1, [])), "job_id": str(j), "input_mode": "poll"}
        | {"inputs": [str(i) for i in inputs]}
        for j, (submit_s, duration_s, inputs) in enumerate(jobs)
    ]


def naive_bound_of_chain(jobs):
    """Add the work of jobs that wait for no other, shortest remaining first, and the rest alone."""
    free = sorted((submit, duration) for submit, duration, inputs in jobs if not inputs)
    ends = sorted(naive_srpt(*zip(*free, strict=True)))
    return (
        sum(ends)
        - sum(submit for submit, _ in free)
        + sum(duration for _, duration, inputs in jobs if inputs)
    ) / len(jobs)


def least_mean_of_chain(jobs, horizon):
    """Try every start in whole seconds; a job is submitted when it has its inputs."""
    best = np.inf
    for starts in itertools.product(range(horizon), repeat=len(jobs)):
        ends = [start + job[1] for start, job in zip(starts, jobs, strict=True)]
        submits = [max([submit, *(ends[i] for i in inputs)]) for submit, _, inputs in jobs]
        spans = sorted(zip(starts, ends, strict=True))
        is_alone = all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
        if is_alone and all(s <= start for s, start in zip(submits, starts, strict=True)):
            waits = [end - submit for end, submit in zip(ends, submits, strict=True)]
            best = min(best, float(np.mean(waits)))
    return best


def test_a_job_that_polls_counts_by_itself():
    """A schedule can make its input late, so that it does not wait: 4, then 8, then 4 s."""
    jobs = [(0, 4, []), (0, 4, [0]), (0, 4, [])]
    workload, machine = sim.Workload.from_jobs(chain(*jobs)), sim.Cluster.machines(1, cpu=1, mem=1)
    assert mean_jct_bound(workload, machine) == pytest.approx((4 + 8 + 4) / 3)
    assert least_mean_of_chain(jobs, 9) == pytest.approx((4 + 8 + 4) / 3)


@pytest.mark.parametrize("seed", range(12))
def test_with_polls_the_bound_is_at_most_the_optimum_and_that_at_most_any_schedule(seed):
    rng = np.random.default_rng(seed)
    submits, durations = np.sort(rng.integers(0, 3, 4)).tolist(), rng.integers(1, 4, 4).tolist()
    inputs = [[int(i) for i in range(j) if rng.random() < 0.4] for j in range(4)]
    jobs = list(zip(submits, durations, inputs, strict=True))
    workload, machine = sim.Workload.from_jobs(chain(*jobs)), sim.Cluster.machines(1, cpu=1, mem=1)
    bound = mean_jct_bound(workload, machine)
    assert bound == pytest.approx(naive_bound_of_chain(jobs))
    best = least_mean_of_chain(jobs, 11)
    assert bound <= best * (1 + 1e-9)
    run = sim.simulate(workload, machine, policies.build("srpt"))
    assert best <= float((run.job_finish - run.job_submit).mean()) * (1 + 1e-9)


def test_jobs_that_do_not_end_leave_the_mean():
    machine = sim.Cluster.machines(1, cpu=1, mem=1)
    workload = sim.Workload.from_jobs([job(0, ([4], 1, 0.1, [])) for _ in range(3)])
    assert mean_jct_bound(workload, machine, np.array([True, False, True])) == 6.0
    assert np.isnan(mean_jct_bound(workload, machine, np.zeros(3, bool)))


def small(seed):
    """Draw two or three jobs of at most five tasks in all, in whole seconds."""
    rng = np.random.default_rng(seed)
    jobs, n_left = [], 5
    for submit_s in np.sort(rng.integers(0, 5, int(rng.integers(2, 4)))):
        stages = []
        for s in range(int(rng.integers(1, 3))):
            n = min(int(rng.integers(1, 3)), n_left)
            if n == 0:
                break
            n_left -= n
            demand = rng.choice([0.3, 0.5, 0.7, 1.0], 2)
            stages.append(
                (rng.integers(1, 6, n), float(demand[0]), float(demand[1]), [0] * (s > 0))
            )
        if stages:
            jobs.append(job(submit_s, *stages))
    return jobs


def optimum(jobs):
    """Try every order of the tasks, each as early as it fits on one machine: one is the best."""
    tasks = [
        (j, s, float(d))
        for j, job_row in enumerate(jobs)
        for s, stage in enumerate(job_row["stages"])
        for d in stage["durations_s"]
    ]
    best = np.inf
    for order in itertools.permutations(range(len(tasks))):
        placed = []  # (begin, end, job, stage)
        for i in order:
            j, s, duration = tasks[i]
            stage, begin = jobs[j]["stages"][s], jobs[j]["submit_s"]
            placed_parents = [p for p in placed if p[2] == j and f"s{p[3]}" in stage["parents"]]
            parents = [x for x in tasks if x[0] == j and f"s{x[1]}" in stage["parents"]]
            if len(placed_parents) < len(parents):
                break  # a child before its parent: some other order
            begin = max([begin, *(p[1] for p in placed_parents)])
            ends = sorted({begin, *(p[1] for p in placed if p[1] > begin)})
            start = next(
                start for start in ends if _fits(jobs, placed, stage, start, start + duration)
            )
            placed.append((start, start + duration, j, s))
        else:
            done = [max(p[1] for p in placed if p[2] == j) for j in range(len(jobs))]
            waits = [end - job_row["submit_s"] for end, job_row in zip(done, jobs, strict=True)]
            best = min(best, float(np.mean(waits)))
    return best


def _fits(jobs, placed, stage, begin, end):
    for time in [begin, *(p[0] for p in placed if begin < p[0] < end)]:
        running = [jobs[p[2]]["stages"][p[3]] for p in placed if p[0] <= time < p[1]]
        for name in ("cpu", "mem"):
            if sum(other["demand"][name] for other in [*running, stage]) > 1 + 1e-9:
                return False
    return True


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_is_at_most_the_optimum_and_that_at_most_any_schedule(seed):
    jobs = small(seed)
    workload, machine = sim.Workload.from_jobs(jobs), sim.Cluster.machines(1, cpu=1, mem=1)
    bound, best = mean_jct_bound(workload, machine), optimum(jobs)
    assert bound <= best * (1 + 1e-9)
    for name in ("fifo", "tetris", "srpt"):
        run = sim.simulate(workload, machine, policies.build(name))
        assert best <= float((run.job_finish - run.job_submit).mean()) * (1 + 1e-9)


def test_the_bound_is_the_optimum_on_one_machine_with_one_task_at_a_time():
    """Tasks of a second that fill it: what has least left first is a schedule, too."""
    jobs = [job(t, ([1] * n, 1, 1, [])) for t, n in ((0, 5), (1, 1), (2, 3), (2, 1))]
    workload, machine = sim.Workload.from_jobs(jobs), sim.Cluster.machines(1, cpu=1, mem=1)
    assert mean_jct_bound(workload, machine) == pytest.approx((10 + 1 + 4 + 1) / 4)
