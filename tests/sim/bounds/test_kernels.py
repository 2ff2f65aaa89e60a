"""The loops behind ``tight_lb`` against slow restatements: packings, waves, pairs that wait."""

from __future__ import annotations

import functools
import itertools

import networkx as nx
import numpy as np
import pytest

from sim.bounds.kernels import bounds, gaps
from sim.workload.runs import find_runs
from tests.sim.bounds.test_bounds import random_workload, slow_tasks


@pytest.mark.parametrize("seed", range(4))
def test_stages_wait_for_all_of_each_other_as_their_tasks_do(seed):
    w = random_workload(seed, n_jobs=40)
    c = w.columns
    for job in range(w.n_jobs):
        first, last = int(c.job_stage0[job]), int(c.job_stage0[job + 1])
        graph = nx.DiGraph()
        tasks = slow_tasks(w, job)
        graph.add_nodes_from(tasks)
        graph.add_edges_from((p, t) for t, (_, parents) in tasks.items() for p in parents)
        below = nx.transitive_closure_dag(graph)
        tasks_of = {s: [t for t in tasks if t[0] == s] for s in range(first, last)}
        order = list(
            nx.topological_sort(
                nx.DiGraph([(p[0], t[0]) for p, t in graph.edges] or [(first, last)])
            )
        )
        order = [s for s in order if s < last] + [s for s in tasks_of if s not in order]
        position = {s: i for i, s in enumerate(order)}
        child0, child, kind = [0], [], []
        for s in order:
            for e in range(int(c.edge0[s]), int(c.edge0[s + 1])):
                child.append(position[int(c.edge_child[e])])
                kind.append(int(c.edge_kind[e]))
            child0.append(len(child))
        waits_for_all = gaps.waits_for_all(
            np.array(child0), np.array(child, int), np.array(kind, int),
            np.array([len(tasks_of[s]) for s in order]),
        )  # fmt: skip
        for s, t in itertools.combinations(order, 2):
            waits = all(below.has_edge(a, b) for a in tasks_of[s] for b in tasks_of[t])
            # a pair that is found holds; pairs that only sizes of 1 make may be missed
            assert waits or not waits_for_all[position[s], position[t]]
            direct = any(
                int(c.edge_child[e]) == t and c.edge_kind[e] == 0
                for e in range(int(c.edge0[s]), int(c.edge0[s + 1]))
            )
            assert waits_for_all[position[s], position[t]] or not direct


def configurations(demand, n_tasks, exclusive, room):
    """Yield every multiset of tasks that one machine can run at once."""
    for counts in itertools.product(*(range(n + 1) for n in n_tasks)):
        used = np.array(counts) @ demand
        together = [i for i, n in enumerate(counts) if n]
        if (used <= room).all() and not any(
            exclusive[i, j] for i, j in itertools.combinations(together, 2)
        ):
            yield np.array(counts)


@pytest.mark.parametrize("seed", range(25))
def test_lifted_weights_are_valid_and_cannot_be_raised(seed):
    rng = np.random.default_rng(seed)
    n, room = int(rng.integers(1, 6)), np.array([10, 10])
    demand = rng.integers(0, 11, (n, 2))
    n_tasks = rng.integers(1, 4, n)
    exclusive = rng.random((n, n)) < 0.2
    exclusive = np.triu(exclusive, 1) | np.triu(exclusive, 1).T
    weight = bounds.lift(rng.permutation(n), demand, n_tasks, exclusive, room)
    possible = list(configurations(demand, n_tasks, exclusive, room))
    assert max(weight @ x for x in possible) <= 1 + 1e-9
    everything = np.arange(n)
    heaviest = bounds.heaviest(room, everything, n, demand, n_tasks, weight, exclusive)
    assert heaviest == pytest.approx(max(weight @ x for x in possible))
    for s in range(n):
        raised = weight + 1e-6 * (everything == s)
        assert max(raised @ x for x in possible) > 1


@pytest.mark.parametrize("seed", range(25))
def test_waves_are_below_every_way_to_share_slots(seed):
    rng = np.random.default_rng(seed)
    durations = rng.integers(0, 9, int(rng.integers(1, 7))).astype(float)
    slots = int(rng.integers(1, 4))
    best = min(
        max(durations[np.array(slot_of_task) == k].sum() for k in range(slots))
        for slot_of_task in itertools.product(range(slots), repeat=len(durations))
    )
    task0 = np.array([0, len(durations)])
    runs = find_runs(durations, task0)
    bound = bounds.stage_waves(runs.stage0, runs.task0, runs.duration_s, np.array([slots]))
    assert durations.max() <= bound[0] <= best
    every_task = np.arange(len(durations) + 1)
    assert bound == bounds.stage_waves(task0, every_task, durations, np.array([slots]))


def slow_span(child0, child, kind, n_tasks, shortest, whole, energy):
    """Return the gap from the begin to the end by its definition, over every subset of stages."""
    g = len(n_tasks)
    end = g + 1
    inner = range(1, end)
    edges = {
        t: [(int(child[e]) + 1, int(kind[e])) for e in range(child0[t - 1], child0[t])]
        for t in inner
    }
    edges[0] = [(c, 0) for c in inner]

    @functools.cache
    def gap(t, s):
        bounds_s = [0.0] if t == 0 or s == end else []
        for c, one_to_one in edges[t]:
            if not one_to_one:
                bounds_s.append(lead(c, s))
            elif n_tasks[c - 1] >= n_tasks[t - 1] and c < s and gap(c, s) is not None:
                bounds_s.append(shortest[c - 1] + gap(c, s))
        between = range(t + 1, s)
        chained = [c for c in between if gap(t, c) is not None and lead(c, s) is not None]
        bounds_s += [gap(t, c) + lead(c, s) for c in chained]
        linked = [c for c in between if gap(t, c) is not None and gap(c, s) is not None]
        if bounds_s:
            for n in range(1, len(linked) + 1):
                for chosen in itertools.combinations(linked, n):
                    work = energy[list(chosen)].sum(axis=0).max()
                    head = min(gap(t, c) for c in chosen)
                    bounds_s.append(head + work + min(gap(c, s) for c in chosen))
        return max((k for k in bounds_s if k is not None), default=None)

    @functools.cache
    def lead(t, s):
        if t >= s:
            return 0.0 if t == s else None
        bounds_s = [] if gap(t, s) is None else [whole[t - 1] + gap(t, s)]
        for c, one_to_one in edges[t]:
            later = lead(c, s)
            if one_to_one and n_tasks[c - 1] <= n_tasks[t - 1] and later is not None:
                bounds_s.append(shortest[t - 1] + later)
        return max(bounds_s, default=None)

    return gap(0, end)


@pytest.mark.parametrize("seed", range(60))
def test_gaps_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    g = int(rng.integers(2, 7))
    pairs = [(a, b) for a in range(g) for b in range(a + 1, g) if rng.random() < 0.45]
    child0 = np.cumsum([0, *(sum(p == a for p, _ in pairs) for a in range(g))])
    child = np.array([b for _, b in pairs], int)
    kind = (rng.random(len(pairs)) < 0.4).astype(int)
    n_tasks = rng.integers(1, 4, g)
    shortest = rng.integers(0, 5, g).astype(float)
    energy = np.zeros((g + 2, 3))
    energy[1:-1] = rng.integers(0, 8, (g, 3))
    whole = np.maximum(shortest, energy[1:-1].max(axis=1)) + rng.integers(0, 4, g)
    arguments = (child0, child, kind, n_tasks, shortest, whole, energy)
    assert gaps.close_gaps(*arguments) == slow_span(*arguments)
