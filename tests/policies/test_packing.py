"""Tetris, on examples small enough to follow by hand, and against a naive scheduler."""

import numpy as np
import pytest

import policies
import sim
from tests.policies.small import job, run, running_at, runs_of, stage, started
from tests.sim.engine import reference

ALIGNMENT = {"m": 0, "rp": 1}


def test_tetris_takes_the_task_that_fills_the_machine_best():
    jobs = [
        job("a", 0, [10], {"cpu": 2, "mem": 1}),
        job("b", 0, [10], {"cpu": 6, "mem": 6}),
        job("c", 0, [10], {"cpu": 3, "mem": 4}),
    ]
    machine = sim.Cluster.machines(1, cpu=10, mem=10)
    # b first (12/10), then c (.3 × .4 + .4 × .4 of what is free) before a; a no longer fits
    assert running_at(run("tetris", jobs, machine, **ALIGNMENT), 0) == [0, 1, 1]
    assert running_at(run("fifo", jobs, machine), 0) == [1, 1, 0]


def test_tetris_aligns_demand_with_free_resources():
    jobs = [
        job("m", 0, [10], {"cpu": 1, "mem": 8}),
        job("n", 0, [10], {"cpu": 1, "mem": 2}),
        job("c", 0, [10], {"cpu": 2, "mem": 0.5}),
    ]
    machine = sim.Cluster.machines(1, cpu=4, mem=10)
    # scores m 1.05, c .55, n .45; then 3 cpu and 2 mem are free: c .3875, n .2275
    assert running_at(run("tetris", jobs, machine, **ALIGNMENT), 0) == [1, 0, 1]
    assert running_at(run("fifo", jobs, machine), 0) == [1, 1, 0]


def test_tetris_weighs_alignment_against_remaining_work():
    """One machine of 10 cpu and 10 mem; durations are known.

    At 0 only the holder fits, whole: a = 2, p = 10 s · 2 = 20, so ε = m / 10 once it has started.
    At 10 the machine is free. The large task: a = 0.9 + 0.9 = 1.8, p = 30 · 1.8 = 54, and
    a - ε p = 1.8 - 5.4 m. The small one: a = 0.4, p = 5 · 0.4 = 2, 0.4 - 0.2 m. The large one goes
    first while m < 1.4 / 5.2.
    """
    jobs = [
        job("h", 0, [10], {"cpu": 10, "mem": 10}),
        job("l", 1, [30], {"cpu": 9, "mem": 9}),
        job("s", 2, [5], {"cpu": 2, "mem": 2}),
    ]
    machine = sim.Cluster.machines(1, cpu=10, mem=10)
    for m, order in ((0.0, "hls"), (0.26, "hls"), (0.28, "hsl"), (1.0, "hsl")):
        result = run("tetris", jobs, machine, m=m, knowledge="true")
        assert started(result) == order


def test_tetris_counts_all_unfinished_tasks_of_a_job():
    """The job of two short tasks has more left than that of one, in stages that can't start too."""
    wide = {"cpu": 4, "mem": 4}
    later = {"durations_s": [30.0], "demand": wide, "parents": ["a"]}
    jobs = [
        job("h", 0, [10], wide),
        {**job("d", 1, []), "stages": [stage("a", 4, **wide), later]},
        job("s", 2, [8], wide),
    ]
    machine = sim.Cluster.machines(1, **wide)
    assert started(run("tetris", jobs, machine, knowledge="true")) == "hsd"
    assert started(run("tetris", jobs, machine, **ALIGNMENT)) == "hds"


def test_tetris_learns_durations_during_the_run():
    """Templates whose runs were short go first, though their next run is long."""
    jobs = [*runs_of("quick", [1.0]), *runs_of("slow", [50.0])]
    jobs += [{"submit_s": 199.0, "template": "h", "stages": [{"durations_s": [2.0]}]}]
    for template, duration_s in (("slow", 1.0), ("quick", 50.0)):
        stages = [{"durations_s": [duration_s]}]
        jobs.append({"submit_s": 200.0, "template": template, "stages": stages})
    assert run("tetris", jobs).job_start[-2:].tolist() == [251, 201]
    assert run("tetris", jobs, knowledge="true").job_start[-2:].tolist() == [201, 202]


def naive_tetris(jobs, n_machines, capacity, m):
    """Return the start of each task, by a schedule made second by second.

    Durations and arrivals are whole seconds, and the mean duration of a stage is known. Machines
    hold powers of two, so that no sum of work is rounded; alignment is rounded as by the kernel,
    which counts resources in millionths.
    """
    quanta = {r: round(c * 1e6) for r, c in capacity.items()}
    tasks = []  # stage, duration
    stages = []  # job, demand, mean work of a task, parents, rows of tasks
    for j, jb in enumerate(jobs):
        rows = {}
        for st in jb["stages"]:
            demand = [round(st["demand"][r] * 1e6) for r in capacity]
            fractions = sum(st["demand"][r] / capacity[r] for r in capacity)
            rows[st["name"]] = len(stages)
            durations = st["durations_s"]
            own = range(len(tasks), len(tasks) + len(durations))
            tasks += [(len(stages), d) for d in durations]
            parents = [rows[p] for p in st["parents"]]
            mean = sum(durations) / len(durations) * fractions
            stages.append((j, demand, mean, parents, own))
    free = [list(quanta.values()) for _ in range(n_machines)]
    scale = [1.0 / float(c) ** 2 for c in quanta.values()]
    start, end, place = {}, {}, {}
    ended = set()
    sum_a = sum_p = 0.0

    def left(j):
        return sum(
            mean * sum(t not in ended for t in own)
            for job_row, _, mean, _, own in stages
            if job_row == j
        )

    now = 0
    while len(ended) < len(tasks):
        for t in [t for t in start if t not in ended and end[t] == now]:
            ended.add(t)
            for r, d in enumerate(stages[tasks[t][0]][1]):
                free[place[t]][r] += d
        for machine in range(n_machines):
            while True:
                best = None
                for j, demand, _, parents, own in stages:
                    waiting = [t for t in own if t not in start]
                    if jobs[j]["submit_s"] > now or not waiting:
                        continue
                    if any(t not in ended for p in parents for t in stages[p][4]):
                        continue
                    room = free[machine]
                    if any(d > f for d, f in zip(demand, room, strict=True)):
                        continue
                    a = sum(f * s * d for f, s, d in zip(room, scale, demand, strict=True))
                    p = left(j)
                    score = a - (m * sum_a / sum_p if sum_p else 0.0) * p
                    if best is None or score > best[0]:
                        best = score, a, p, waiting[0], demand
                if best is None:
                    break
                _, a, p, t, demand = best
                sum_a, sum_p = sum_a + a, sum_p + p
                start[t], end[t], place[t] = now, now + tasks[t][1], machine
                for r, d in enumerate(demand):
                    free[machine][r] -= d
        now += 1
    return [start[t] for t in range(len(tasks))]


def dags(seed, n_jobs=12):
    """Make jobs of whole seconds, with powers of two as numbers of tasks."""
    rng = np.random.default_rng(seed)
    jobs = []
    for t in np.sort(rng.integers(0, 30, n_jobs)).tolist():
        stages = []
        for s in range(int(rng.integers(1, 4))):
            durations = rng.integers(1, 20, 2 ** int(rng.integers(0, 3))).astype(float)
            parents = [f"s{p}" for p in range(s) if rng.random() < 0.6]
            cpu, mem = rng.integers(1, 7, 2).tolist()
            stages.append(stage(f"s{s}", *durations, parents=parents, cpu=cpu, mem=mem))
        template = f"t{rng.integers(4)}"
        jobs.append({"submit_s": float(t), "template": template, "stages": stages})
    return jobs


@pytest.mark.parametrize("m", [0.0, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("seed", range(6))
def test_tetris_equals_a_naive_scheduler(seed, m):
    capacity = {"cpu": 8, "mem": 8}
    jobs = dags(seed)
    cluster = sim.Cluster.machines(2, **capacity)
    result = run("tetris", jobs, cluster, m=m, knowledge="true")
    assert result.task_start.tolist() == naive_tetris(jobs, 2, capacity, m)
    if m == 0:
        alignment = run("tetris", jobs, cluster, **ALIGNMENT)
        assert result.task_start.tolist() == alignment.task_start.tolist()


@pytest.mark.parametrize("knowledge", ["history", "run", "true"])
@pytest.mark.parametrize("name", ["tetris", "tez_tetris"])
@pytest.mark.parametrize("seed", range(3))
def test_tetris_has_the_bits_of_the_naive_simulator(seed, name, knowledge):
    jobs = [{**jb, "queue": "xy"[i % 2]} for i, jb in enumerate(dags(seed, 20))]
    workload = sim.Workload.from_jobs(jobs)
    cluster = sim.Cluster.machines(2, cpu=10, mem=9)
    policy = policies.build(name, knowledge=knowledge, refresh_s=3.0)
    fast = sim.simulate(workload, cluster, policy, record="tasks")
    slow = reference.simulate(workload, cluster, policy)
    np.testing.assert_array_equal(fast.task_start, slow.task_start)
    np.testing.assert_array_equal(fast.task_machine, slow.task_machine)


def test_tez_tetris_serves_queues_by_use_and_short_jobs_inside_each():
    rows = [("h", 0, 10, "x"), ("k", 0, 100, "x"), ("l", 1, 40, "x"), ("s", 2, 5, "x")]
    rows += [("o", 3, 45, "y")]  # x holds a half when the first ends, y nothing
    demand = {"cpu": 4, "mem": 4}
    jobs = [job(name, t, [d], demand, queue=queue) for name, t, d, queue in rows]
    machine = sim.Cluster.machines(1, cpu=8, mem=8)
    assert started(run("tez_tetris", jobs, machine, knowledge="true")) == "hkosl"
    assert started(run("tez_tetris", jobs, machine, **ALIGNMENT)) == "hkols"


def test_tetris_declares_what_it_knows():
    sources = {"true": "true", "history": "learnt", "run": "learnt", "declared": "declared"}
    known = {k: policies.build("tetris", knowledge=k).knows.durations for k in sources}
    assert known == sources
    assert policies.build("tetris").knowledge == "history"
    assert policies.build("tetris").learns_from == ()  # it learns from the run, too
    assert policies.build("tez_tetris", m=0, knowledge="true").knows.durations == "nothing"


def test_tetris_breaks_ties_by_submission():
    jobs = [job(n, 0, [10], {"cpu": 3, "mem": 3}) for n in "abc"]
    assert started(run("tetris", jobs, sim.Cluster.machines(1, cpu=4, mem=4))) == "abc"
