"""Graphs: built in several ways, selected, reversed and ordered."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim.base.errors import InputError
from sim.base.random import stream
from sim.dags import Graphs
from tests.sim.dags.small import assorted, graphs_of, job_of

JOBS = assorted(60, 9)


def test_jobs_come_back_as_they_were_given():
    graphs = graphs_of(*JOBS)
    assert [job_of(graphs, j) for j in range(len(JOBS))] == [(n, sorted(e)) for n, e in JOBS]
    assert graphs.n_jobs == 60
    assert graphs.job_n_stages.tolist() == [n for n, _ in JOBS]
    assert graphs.job_n_edges.tolist() == [len(edges) for _, edges in JOBS]
    assert graphs.n_stages == sum(n for n, _ in JOBS)
    assert graphs.n_edges == sum(len(edges) for _, edges in JOBS)
    assert graphs.stage_job.tolist() == [j for j, (n, _) in enumerate(JOBS) for _ in range(n)]


def test_a_workload_gives_its_edges():
    fork = {
        "submit_s": 0.0,
        "stages": [
            {"name": "a", "durations_s": [1.0]},
            {"name": "b", "durations_s": [1.0, 2.0], "parents": ["a"]},
            {"name": "c", "durations_s": [1.0], "parents": ["a"]},
        ],
    }
    lone = {"submit_s": 1.0, "stages": [{"name": "x", "durations_s": [1.0]}]}
    graphs = Graphs.from_workload(sim.Workload.from_jobs([fork, lone, fork | {"submit_s": 2.0}]))
    assert [job_of(graphs, j) for j in range(3)] == [
        (3, [(0, 1), (0, 2)]),
        (1, []),
        (3, [(0, 1), (0, 2)]),
    ]


def test_edges_may_come_in_any_order():
    graphs = graphs_of(*JOBS)
    shuffled = stream(0, "test").permutation(graphs.n_edges)
    other = Graphs.from_edges(
        graphs.job_n_stages, graphs.edge_parent[shuffled], graphs.edge_child[shuffled]
    )
    assert (other.edge0 == graphs.edge0).all()
    assert (other.edge_child == graphs.edge_child).all()


@pytest.mark.parametrize("rows", [[], [5], [3, 3, 0], list(range(59, -1, -1))])
def test_take_picks_jobs_in_any_order_as_often_as_named(rows):
    graphs = graphs_of(*JOBS)
    taken = graphs.take(rows)
    assert [job_of(taken, i) for i in range(len(rows))] == [job_of(graphs, j) for j in rows]
    assert taken.n_jobs == len(rows)


def test_take_by_mask_and_by_size_agree():
    graphs = graphs_of(*JOBS)
    expected = [job for job in range(60) if JOBS[job][0] >= 6]
    for taken in (graphs.take(graphs.job_n_stages >= 6), graphs.at_least(6)):
        assert [job_of(taken, i) for i in range(taken.n_jobs)] == [
            job_of(graphs, j) for j in expected
        ]


def test_reversed_turns_every_edge_round():
    graphs = graphs_of(*JOBS)
    for job in range(60):
        n, edges = job_of(graphs, job)
        assert job_of(graphs.reversed, job) == (n, sorted((c, p) for p, c in edges))


def test_by_child_lists_each_childs_edges():
    graphs = graphs_of(*JOBS)
    in0, in_edge = graphs.by_child
    for stage in range(graphs.n_stages):
        mine = in_edge[in0[stage] : in0[stage + 1]]
        assert mine.tolist() == np.flatnonzero(graphs.edge_child == stage).tolist()


def test_the_order_puts_parents_first_and_keeps_jobs_together():
    graphs = graphs_of(*JOBS)
    place = np.empty(graphs.n_stages, dtype=np.int64)
    place[graphs.order] = np.arange(graphs.n_stages)
    assert (place[graphs.edge_parent] < place[graphs.edge_child]).all()
    assert (graphs.stage_job[graphs.order] == graphs.stage_job).all()


def test_a_cycle_is_an_error_that_names_the_job():
    graphs = graphs_of((2, [(0, 1)]), (3, [(0, 1), (1, 2), (2, 1)]))
    with pytest.raises(InputError, match="row 1 form a cycle"):
        _ = graphs.order
