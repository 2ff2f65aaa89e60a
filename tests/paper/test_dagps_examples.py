"""The worked examples of the DAGPS paper: Figs. 2, 17, 18 and 19, on one machine.

Grandl et al., *Do the hard stuff first: scheduling dependent computations in data-analytics
clusters*, MSR-TR-2016-19. The demands are reconstructed so that the paper's prose and footnotes
hold. Times that contain an ε, which a float can't hold exactly, are compared to 1e-9 s. DAGPS
reaches the optimum both as a schedule built offline and as the online policy alone; without the
offline order the online policy equals Tetris.
"""

import numpy as np
import pytest

import policies
import sim
from policies.dagps.build_schedule import build_schedule

NEAR = 1e-9


def stage(name, durations, demand, *parents):
    listed = durations if isinstance(durations, list) else [durations]
    return {"name": name, "durations_s": listed, "demand": demand, "parents": list(parents)}


def fig2(e):
    """Long tasks t0, t2 and t4 can run together, once t1 and t3 are out of the way."""
    return [
        stage("t0", 1, {"a": 8, "b": 10}),
        stage("t1", e, {"a": 17, "b": 0}),
        stage("t2", 1 - 4 * e, {"a": 8, "b": 10}, "t1"),
        stage("t3", e, {"a": 4, "b": 12}),
        stage("t4", 1 - 2 * e, {"a": 4, "b": 0}, "t3"),
    ]


def fig17(d, k):
    """In each of d groups one red task unlocks the next group; k - 1 others are equal to it."""
    stages = []
    for g in range(d):
        parents = [f"R{g - 1}"] if g else []
        stages.append(stage(f"B{g}", [1] * (k - 1), {f"r{g}": 1}, *parents))
        stages.append(stage(f"R{g}", 1, {f"r{g}": 1}, *parents))
    return stages


def fig18(n, e):
    """Each long task waits for a short one that takes the whole machine."""
    stages = []
    for i in range(1, n + 1):
        stages.append(stage(f"W{i}", e, {"r": n}))
        stages.append(stage(f"L{i}", 1 - 2 * (i - 1) * e, {"r": 1}, f"W{i}"))
    return stages


def fig19(d, e):
    """Each long task waits for a short one that can't run beside the long one before it."""
    stages = []
    for i in range(1, 2 * d - 1):
        own, before = f"r{(i + 1) // 2}", f"r{max(i // 2, 1)}"
        parents = [f"W{i - 1}"] if i > 1 else []
        stages.append(stage(f"W{i}", e, {before: 2 * (d - 1) + 1}, *parents))
        stages.append(stage(f"L{i}", 1, {own: 2 * (d - 1), f"r{d}": 2}, f"W{i}"))
    return stages


def makespan(policy, stages, capacity, seed=0):
    w = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])
    cluster = sim.Cluster.machines(1, **capacity)
    if policy == "dagps":
        return build_schedule(w, cluster).makespan_s
    built = {
        "online": lambda: policies.build("dagps", candidates="paper", knowledge="true"),
        "followed": lambda: policies.build("dagps", knowledge="true"),
        "orderless": lambda: policies.build("dagps", order_weight=0),
        "tetris": lambda: policies.build("tetris", m=0, rp=1),
    }.get(policy, lambda: policies.build(policy, fit="skip"))()
    result = sim.simulate(w, cluster, built, seed=seed)
    return float(result.job_finish[0])


@pytest.mark.parametrize("e", [0.01, 0.001])
def test_fig2_takes_three_times_the_optimum_unless_the_long_tasks_go_first(e):
    capacity = {"a": 20, "b": 20}
    for policy in ("critical_path", "tetris"):
        assert makespan(policy, fig2(e), capacity) == pytest.approx(3 - 4 * e, abs=NEAR)
    for policy in ("dagps", "online", "followed"):
        assert makespan(policy, fig2(e), capacity) == pytest.approx(1 + 2 * e, abs=NEAR)
    assert makespan("orderless", fig2(e), capacity) == pytest.approx(3 - 4 * e, abs=NEAR)


@pytest.mark.parametrize(("d", "k"), [(2, 3), (3, 5), (5, 4), (4, 20)])
def test_fig17_a_policy_blind_to_dependencies_takes_d_times_as_long(d, k):
    capacity = {f"r{g}": 1 for g in range(d)}
    assert makespan("fifo", fig17(d, k), capacity) == k * d  # blind: stages by index
    assert makespan("critical_path", fig17(d, k), capacity) == k + d - 1
    for policy in ("dagps", "online", "followed"):
        assert makespan(policy, fig17(d, k), capacity) == k + d - 1


@pytest.mark.long
def test_fig17_a_red_task_at_a_random_place_costs_half_of_it_on_average():
    """Each group's red task runs at a uniform place, and the next group begins behind it."""
    d, k = 4, 10
    capacity = {f"r{g}": 1 for g in range(d)}
    rng = np.random.default_rng(17)
    spans = []
    for _ in range(400):
        stages = []
        for g in range(d):
            parents = [f"R{g - 1}"] if g else []
            before = int(rng.integers(0, k))  # of the group's like tasks, how many stand above
            parts = [(f"B{g}", before), (f"R{g}", 1), (f"A{g}", k - 1 - before)]
            stages += [stage(n, [1] * x, {f"r{g}": 1}, *parents) for n, x in parts if x]
        spans.append(makespan("fifo", stages, capacity))
    expected = (d - 1) * (k + 1) / 2 + k
    sigma = np.sqrt((d - 1) * (k * k - 1) / 12 / len(spans))
    assert abs(np.mean(spans) - expected) < 4 * sigma
    assert sigma < 0.3


@pytest.mark.parametrize("n", [2, 5, 10, 40])
def test_fig18_critical_path_takes_n_times_as_long(n):
    e = 1 / (100 * n)
    cp = makespan("critical_path", fig18(n, e), {"r": n})
    assert cp == pytest.approx(n * (1 - (n - 2) * e), abs=NEAR)
    for policy in ("dagps", "online", "followed"):
        assert makespan(policy, fig18(n, e), {"r": n}) == pytest.approx(1 + n * e, abs=NEAR)


@pytest.mark.parametrize("d", [2, 3, 4, 6])
def test_fig19_tetris_takes_2d_minus_2_times_as_long(d):
    e = 0.001
    capacity = {f"r{i}": 4 * (d - 1) for i in range(1, d + 1)}
    n = 2 * d - 2
    assert makespan("tetris", fig19(d, e), capacity) == pytest.approx(n * (1 + e), abs=NEAR)
    for policy in ("dagps", "online", "followed"):
        assert makespan(policy, fig19(d, e), capacity) == pytest.approx(1 + n * e, abs=NEAR)
    assert makespan("orderless", fig19(d, e), capacity) == pytest.approx(n * (1 + e), abs=NEAR)
