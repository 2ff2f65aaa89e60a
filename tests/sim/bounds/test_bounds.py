"""Bounds: worked examples, the formulas restated slowly, and shapes of the answer."""

import itertools

import networkx as nx
import numpy as np
import pytest

import sim
from sim.bounds import bound_arrays
from sim.check.makespan import makespan_bound
from sim.workload.paths import critical_path_s, stage_depth, stage_tail_s, topological_order

NAMES = ("cp_len", "twork", "mod_cp", "new_lb")


def stage(name, durations, parents=(), **demand):
    return {
        "name": name,
        "durations_s": list(durations),
        "parents": parents if isinstance(parents, dict) else list(parents),
        "demand": demand or {"cpu": 1},
    }


def workload(*stages, **job):
    return sim.Workload.from_jobs([{"submit_s": 0.0, "stages": list(stages), **job}])


def bounds(w, cluster):
    return {name: float(v[0]) for name, v in bound_arrays(w.columns, cluster).items()}


def tight(w, cluster):
    return float(bound_arrays(w.columns, cluster, tight=True)["tight_lb"][0])


def test_chain_of_barriers_adds_its_parts():
    w = workload(
        stage("a", [1, 2, 3]), stage("b", [4, 5], ["a"]), stage("c", [1], ["a", "b"])
    )  # fmt: skip
    result = bounds(w, sim.Cluster.machines(2, cpu=1))
    # twork: (6 + 9 + 1) / 2; mod_cp: max(6 / 2, 3) + 4 + 1; parts {a} {b} {c}: 3 + 5 + 1
    assert result == {"cp_len": 9, "twork": 8, "mod_cp": 8, "new_lb": 9}


def test_wide_then_long_beats_each_bound_alone():
    wide, long = stage("wide", [1] * 100), stage("long", [30], ["wide"])
    result = bounds(workload(wide, long), sim.Cluster.slots(10))
    assert result == {"cp_len": 31, "twork": 13, "mod_cp": 40, "new_lb": 40}


def test_parts_are_cut_only_where_all_tasks_wait_for_all():
    a, b = stage("a", [1] * 8), stage("b", [2])
    after_both = stage("c", [3] * 4, ["a", "b"])
    after_a = stage("c", [3] * 4, ["a"])
    slots = sim.Cluster.slots(2)
    # {a, b} {c}: max(2, 10 / 2) + 12 / 2, where one path of mod_cp gives 4 + 3
    assert bounds(workload(a, b, after_both), slots)["new_lb"] == 11
    # no cut: twork (8 + 2 + 12) / 2 = 11, mod_cp 1 + 6
    assert bounds(workload(a, b, after_a), slots) == {
        "cp_len": 4, "twork": 11, "mod_cp": 7, "new_lb": 11,
    }  # fmt: skip


def test_one_to_one_path_is_followed_task_by_task():
    a = stage("a", [10, 1])
    b = stage("b", [1, 10], {"a": "one_to_one"})
    result = bounds(workload(a, b), sim.Cluster.slots(100))
    assert result["cp_len"] == 11  # not 20: the long tasks are of different pairs
    assert result["mod_cp"] == 11  # whole a, then the shortest of b


def test_tasks_without_a_partner_wait_for_nothing():
    a = stage("a", [10])
    b = stage("b", [1, 10], {"a": "one_to_one"})
    result = bounds(workload(a, b), sim.Cluster.slots(2))
    assert result == {
        "cp_len": 11,
        "twork": 10.5,
        "mod_cp": 11,
        "new_lb": 11,
    }  # and that is optimal


def test_no_task_waits_for_tasks_without_a_partner():
    a = stage("a", [1, 10])
    b = stage("b", [1], {"a": "one_to_one"})
    result = bounds(workload(a, b), sim.Cluster.slots(2))
    assert result == {"cp_len": 10, "twork": 6, "mod_cp": 10, "new_lb": 10}  # and that is optimal


def test_one_to_one_stages_cut_with_the_barriers_around_them():
    stages = [
        stage("a", [2] * 4),
        stage("b", [1] * 4, ["a"]),
        stage("c", [1] * 4, {"b": "one_to_one"}),
        stage("d", [3], ["c"]),
    ]
    # {a} {b, c} {d} on 2 slots: 4 + 4 + 3; with a fifth, free task in c there is no cut before b
    assert bounds(workload(*stages), sim.Cluster.slots(2))["new_lb"] == 11
    stages[2] = stage("c", [1] * 5, {"b": "one_to_one"})
    slots = sim.Cluster.slots(2)
    # {a, b, c} {d}: a and b and c are 17 task seconds, then d
    assert bounds(workload(*stages), slots)["new_lb"] == 17 / 2 + 3


def test_twork_takes_the_scarcest_resource():
    w = workload(stage("a", [10] * 4, cpu=1, mem=8))
    result = bounds(w, sim.Cluster.machines(2, mem=16, cpu=4))
    assert result["twork"] == pytest.approx(10 * 4 * 8 / 32)


def test_a_pool_of_slots_ignores_demands():
    w = workload(stage("a", [10] * 4, cpu=100))
    assert bounds(w, sim.Cluster.slots(2))["twork"] == 20


def test_hard_queues_bound_by_their_share_and_soft_ones_do_not():
    w = workload(stage("a", [1] * 8), queue="small")
    slots = sim.Cluster.slots(8)
    shares = {"small": 0.25, "other": 0.75}
    assert bounds(w, slots.with_queues("hard", shares))["twork"] == 4
    assert bounds(w, slots.with_queues("weighted", shares))["twork"] == 1
    assert bounds(w, slots)["twork"] == 1


def test_hard_queue_without_a_share_is_an_error():
    w = workload(stage("a", [1]), queue="small")
    with pytest.raises(sim.InputError, match="queue 'small' has jobs but no share"):
        bounds(w, sim.Cluster.slots(8).with_queues("hard", {"other": 0.5}))


def test_resource_that_the_cluster_lacks_is_an_error():
    w = workload(stage("a", [1], cpu=1, gpu=1))
    with pytest.raises(sim.InputError, match="'gpu', of which the cluster has none"):
        bounds(w, sim.Cluster.machines(1, cpu=1))


def test_zero_durations_and_single_tasks():
    w = workload(stage("a", [0.0]))
    assert bounds(w, sim.Cluster.slots(1)) == dict.fromkeys(NAMES, 0.0)


def test_table_has_a_row_a_job():
    jobs = [
        {"job_id": f"j{i}", "submit_s": float(i), "stages": [stage("a", [i + 1.0])]}
        for i in range(3)
    ]
    table = sim.lower_bound(sim.Workload.from_jobs(jobs), sim.Cluster.slots(1))
    assert table.column_names == ["job_id", *NAMES, "tight_lb"]
    assert table["job_id"].to_pylist() == ["j0", "j1", "j2"]
    assert table["new_lb"].to_pylist() == [1.0, 2.0, 3.0]


def test_dagps_figure_2():
    eps = 0.01
    w = workload(
        stage("t0", [1], x=8, y=10),
        stage("t1", [eps], x=17),
        stage("t2", [1 - 4 * eps], ["t1"], x=8, y=10),
        stage("t3", [eps], x=4, y=12),
        stage("t4", [1 - 2 * eps], ["t3"], x=4),
    )
    cluster = sim.Cluster.machines(1, x=20, y=20)
    assert bounds(w, cluster)["new_lb"] == 1
    assert tight(w, cluster) == pytest.approx(1 + 2 * eps)  # the optimum


def fig18(n):
    """DAGPS, Fig. 18: n short tasks as wide as the cluster, each before a long thin one."""
    eps = 1 / (100 * n)
    stages = []
    for i in range(1, n + 1):
        stages.append(stage(f"w{i}", [eps], r=n))
        stages.append(stage(f"l{i}", [1 - 2 * (i - 1) * eps], [f"w{i}"], r=1))
    return workload(*stages), sim.Cluster.machines(1, r=n), eps


@pytest.mark.parametrize("n", [2, 5, 20])
def test_dagps_figure_18(n):
    w, cluster, eps = fig18(n)
    result = bounds(w, cluster)
    assert result["cp_len"] == pytest.approx(1 + eps)
    thin = sum(1 - 2 * (i - 1) * eps for i in range(1, n + 1))
    assert result["twork"] == pytest.approx(n * eps + thin / n)
    assert result["new_lb"] == pytest.approx(max(result["cp_len"], result["twork"]))
    assert result["new_lb"] <= 1 + n * eps
    assert tight(w, cluster) == pytest.approx(1 + n * eps)  # the optimum


@pytest.mark.parametrize(("d", "k"), [(2, 3), (3, 4)])
def test_dagps_figure_17(d, k):
    stages = []
    for g in range(d):
        before = [f"r{g - 1}"] if g else []
        stages.append(stage(f"b{g}", [1] * (k - 1), before, **{f"x{g}": 1}))
        stages.append(stage(f"r{g}", [1], before, **{f"x{g}": 1}))
    w, cluster = workload(*stages), sim.Cluster.machines(1, **{f"x{g}": 1 for g in range(d)})
    result = bounds(w, cluster)
    # a path of d red tasks; k tasks a resource; d - 1 reds, then the blues of the last group
    assert result["cp_len"] == d
    assert result["twork"] == k
    assert result["mod_cp"] == d - 1 + k - 1
    assert result["new_lb"] <= k + d - 1
    assert tight(w, cluster) == k + d - 1  # the optimum


@pytest.mark.parametrize("d", [2, 3])
def test_dagps_figure_19(d):
    n, eps, cap = 2 * d - 2, 0.001, 4 * (d - 1)
    stages = []
    for i in range(1, n + 1):
        wide = f"x{max(1, (i - 1 + 1) // 2)}"
        thin = {f"x{(i + 1) // 2}": 2 * (d - 1), f"x{d}": 2}
        stages.append(stage(f"w{i}", [eps], [f"w{i - 1}"] if i > 1 else [], **{wide: cap // 2 + 1}))
        stages.append(stage(f"l{i}", [1], [f"w{i}"], **thin))
    resources = {f"x{r}": cap for r in range(1, d + 1)}
    result = bounds(workload(*stages), sim.Cluster.machines(1, **resources))
    assert result["cp_len"] == pytest.approx(1 + n * eps)  # equal to the optimum
    assert result["new_lb"] == pytest.approx(1 + n * eps)
    by_resource = dict.fromkeys(resources, 0.0)
    for s in stages:
        for r, amount in s["demand"].items():
            by_resource[r] += s["durations_s"][0] * amount / cap
    assert result["twork"] == pytest.approx(max(by_resource.values()))


def test_makespan_counts_late_work():
    jobs = [
        {"submit_s": 5.0, "stages": [stage("a", [1])]},
        {"submit_s": 15.0, "stages": [stage("a", [1] * 20)]},
    ]
    w = sim.Workload.from_jobs(jobs)
    assert makespan_bound(w, sim.Cluster.slots(2)) == 10 + 20 / 2
    assert makespan_bound(w, sim.Cluster.slots(100)) == 10 + 1


def test_makespan_counts_each_hard_queue_alone():
    jobs = [{"submit_s": 0.0, "queue": q, "stages": [stage("a", [1] * 8)]} for q in ("x", "x", "y")]
    w = sim.Workload.from_jobs(jobs)
    assert makespan_bound(w, sim.Cluster.slots(4)) == 6
    # two jobs of 8 in a queue of 2 slots
    assert makespan_bound(w, sim.Cluster.slots(4).with_queues("hard")) == 8


def random_workload(seed, n_jobs=30, kinds=("barrier", "one_to_one")):
    """Jobs of up to seven stages, listed in random order, with edges of the given kinds."""
    rng = np.random.default_rng(seed)
    jobs = []
    for j in range(n_jobs):
        n = int(rng.integers(1, 8))
        order = rng.permutation(n)
        stages = []
        for i in order:
            parents = {
                f"s{p}": str(rng.choice(kinds)) for p in range(i) if rng.random() < 2 / (i + 1)
            }
            durations = rng.integers(0, 10, int(rng.integers(1, 5)))
            demand = {"cpu": int(rng.integers(0, 3)), "mem": int(rng.integers(1, 4))}
            stages.append(stage(f"s{i}", durations.tolist(), parents, **demand))
        jobs.append({"submit_s": float(j), "stages": stages})
    return sim.Workload.from_jobs(jobs)


def slow_tasks(w, job):
    """Return the tasks of a job as (stage, index) -> (duration, parents among the tasks)."""
    c = w.columns
    rows = range(int(c.job_stage0[job]), int(c.job_stage0[job + 1]))
    size = {s: int(c.stage_task0[s + 1] - c.stage_task0[s]) for s in rows}
    tasks = {
        (s, i): (float(c.task_duration[c.stage_task0[s] + i]), set())
        for s in rows
        for i in range(size[s])
    }
    for p in rows:
        for e in range(int(c.edge0[p]), int(c.edge0[p + 1])):
            child = int(c.edge_child[e])
            if c.edge_kind[e] == 0:
                pairs = itertools.product(range(size[p]), range(size[child]))
            else:
                pairs = ((i, i) for i in range(min(size[p], size[child])))
            for i, k in pairs:
                tasks[child, k][1].add((p, i))
    return tasks


def slow_finish(tasks):
    """Return the earliest finish of each task on an unlimited cluster."""
    finish = {}

    def visit(t):
        if t not in finish:
            duration, parents = tasks[t]
            finish[t] = max((visit(p) for p in parents), default=0.0) + duration
        return finish[t]

    for t in tasks:
        visit(t)
    return finish


@pytest.mark.parametrize("seed", range(5))
def test_longest_paths_agree_with_a_slow_search(seed):
    w = random_workload(seed)
    cp_len = critical_path_s(w.columns)
    tails = stage_tail_s(w.columns)
    for job in range(w.n_jobs):
        tasks = slow_tasks(w, job)
        assert cp_len[job] == max(slow_finish(tasks).values())
        mirrored = {t: (d, set()) for t, (d, _) in tasks.items()}
        for t, (_, parents) in tasks.items():
            for p in parents:
                mirrored[p][1].add(t)
        tail = slow_finish(mirrored)
        for s in {s for s, _ in tasks}:
            assert tails[s] == max(v for (row, _), v in tail.items() if row == s)


@pytest.mark.parametrize("seed", range(3))
def test_depths_agree_with_networkx(seed):
    w = random_workload(seed)
    c = w.columns
    graph = nx.DiGraph()
    graph.add_nodes_from(range(w.n_stages))
    parent = np.repeat(np.arange(w.n_stages), np.diff(c.edge0))
    graph.add_edges_from(zip(parent.tolist(), c.edge_child.tolist(), strict=True))
    for depth, stages in enumerate(nx.topological_generations(graph)):
        assert (stage_depth(c)[stages] == depth).all()


def test_a_cycle_is_an_error_that_names_the_job():
    w = sim.Workload.from_tables(
        jobs={"job_id": ["a", "b"], "submit_s": [0.0, 1.0]},
        stages={"job": [0, 1, 1], "n_tasks": [1, 1, 1], "duration_s": [1.0, 1.0, 1.0]},
        stage_edges={"parent": [1, 2], "child": [2, 1]},
        validate=False,
    )
    with pytest.raises(sim.InputError, match="job in row 1 form a cycle"):
        topological_order(w.columns)


@pytest.mark.parametrize("seed", range(5))
def test_parts_and_formulas_agree_with_the_paper_over_barriers(seed):
    w = random_workload(seed, kinds=("barrier",))
    cluster = sim.Cluster.machines(2, cpu=3, mem=4)
    result = bound_arrays(w.columns, cluster)
    for job in range(w.n_jobs):
        slow = slow_bounds(w, job, cluster)
        assert {k: float(v[job]) for k, v in result.items()} == pytest.approx(slow)


def slow_bounds(w, job, cluster):
    """Fig. 9 word by word: enumerate paths, and every way to cut into totally ordered parts."""
    c = w.columns
    rows = list(range(int(c.job_stage0[job]), int(c.job_stage0[job + 1])))
    children = {s: {int(v) for v in c.edge_child[c.edge0[s] : c.edge0[s + 1]]} for s in rows}
    demand = c.stage_demand * c.quantum
    total = np.array([cluster.total[cluster.resources.index(r)] for r in c.resources])

    def twork(stages):
        return float((c.stage_work[stages] @ demand[stages] / total).max())

    def paths(s, inside):
        inner = [p for child in children[s] & inside for p in paths(child, inside)]
        return [[s, *p] for p in inner] or [[s]]

    def formulas(stages):
        inside = set(stages)
        all_paths = [p for s in stages for p in paths(s, inside)]
        cp = max(sum(c.stage_max_s[p]) for p in all_paths)
        mod = max(
            max(twork([s]), c.stage_max_s[s]) + sum(c.stage_min_s[o] for o in p if o != s)
            for p in all_paths
            for s in p
        )
        return {"cp_len": float(cp), "twork": twork(stages), "mod_cp": float(mod)}

    def reach(s):
        return {s}.union(*(reach(child) for child in children[s]))

    below = {s: reach(s) for s in rows}
    order = sorted(rows, key=lambda s: -len(below[s]))
    cuts = [
        k
        for k in range(1, len(order))
        if all(v in below[u] for u in order[:k] for v in order[k:])
    ]  # fmt: skip
    parts = np.split(np.array(order), cuts)
    new_lb = sum(max(formulas(list(map(int, part))).values()) for part in parts)
    return {**formulas(rows), "new_lb": new_lb}


@pytest.mark.parametrize("seed", range(5))
def test_new_lb_is_the_greatest_and_order_is_topological(seed):
    w = random_workload(seed, n_jobs=200)
    c = w.columns
    result = bound_arrays(c, sim.Cluster.machines(3, cpu=2, mem=3))
    assert (result["new_lb"] >= np.maximum.reduce([result[n] for n in NAMES])).all()
    position = np.empty(w.n_stages, int)
    position[topological_order(c)] = np.arange(w.n_stages)
    parent = np.repeat(np.arange(w.n_stages), np.diff(c.edge0))
    assert (position[parent] < position[c.edge_child]).all()
    assert (stage_depth(c)[parent] < stage_depth(c)[c.edge_child]).all()
