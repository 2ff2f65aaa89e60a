"""Values of jobs and their decay; Fig. 5 of the paper, with our own numbers."""

from __future__ import annotations

import numpy as np
import pytest

from policies.wing.lineage.aggregates import aggregate
from policies.wing.lineage.dependencies import Downloads, edges_from_pairs, share_of_inputs
from policies.wing.lineage.worth import COLUMNS, WAITS_S, JobGraph, decay_columns
from tests.policies.wing.lineage.value_functions import value_functions


def drawn(seed, n=40):
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.random(n) * 100)
    finish = submit + rng.random(n) * 5
    pairs = [(u, d) for d in range(n) for u in range(d) if finish[u] <= submit[d]]
    up, down = np.array([pairs[i] for i in rng.permutation(len(pairs))[: 2 * n]]).T
    taken = rng.integers(0, n, 30)
    return JobGraph(
        submit, finish, rng.integers(1, 9, n) * 1.0, up, down,
        rng.random(len(up)) < 0.7, rng.random(len(up)) < 0.5, taken,
        finish[taken] + rng.random(30) * 20, rng.integers(1, 5, 30),
    )  # fmt: skip


def one_by_one(past, column, omega, hops=10**6):
    """Walk every path from every job, up to a number of hops, as the formula has it."""
    n_inputs = np.bincount(past.down, minlength=len(column))
    into = [past.down[past.up == j] for j in range(len(column))]

    def walk(source, job, weight, left):
        total = 0.0
        for d in into[job] if left else ():
            share = weight / n_inputs[d]
            if past.submit_s[d] <= past.finish_s[source] + omega:
                total += share * column[d]
            total += walk(source, d, share, left - 1)
        return total

    return np.array([column[j] + walk(j, j, 1.0, hops) for j in range(len(column))])


@pytest.mark.parametrize("seed", range(4))
def test_worth_is_the_sum_over_all_paths(seed):
    past = drawn(seed)
    value = np.zeros(40)
    np.add.at(value, past.download_job, past.n_downloads)
    got = past.columns(omega_s=30.0)
    assert tuple(got) == COLUMNS
    assert got["value"].tolist() == value.tolist()
    assert got["compute_s"] is past.compute_s
    assert got["agg_value"] == pytest.approx(one_by_one(past, value, 30.0))
    assert got["agg_compute_s"] == pytest.approx(one_by_one(past, past.compute_s, 30.0))
    near = past.columns(omega_s=30.0, rounds=1)["agg_value"]
    assert near == pytest.approx(one_by_one(past, value, 30.0, hops=2))
    assert past.columns(omega_s=30.0, rounds=0)["agg_value"].tolist() == value.tolist()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rounds", [None, 1])
def test_later_jobs_alone_are_worth_the_same(seed, rounds):
    past = drawn(seed)
    whole = past.columns(omega_s=30.0, rounds=rounds)
    late = past.columns(omega_s=30.0, rounds=rounds, since_s=50.0)
    rows = past.submit_s >= 50.0
    assert 0 < rows.sum() < 40
    assert all(np.array_equal(late[name][rows], whole[name][rows]) for name in COLUMNS)
    assert np.isnan(late["agg_value"][~rows]).all()


def test_what_was_not_seen_to_its_end_is_not_known():
    past = drawn(7)
    rows, known = past.ended_before(60.0)
    assert (past.finish_s[rows] < 60).all()
    assert len(rows) == (past.finish_s < 60).sum()
    assert known.download_s.max() < 60
    got = known.columns(60.0, omega_s=30.0)
    assert np.array_equal(np.isfinite(got["agg_value"]), known.finish_s + 30 <= 60)
    assert np.array_equal(np.isfinite(got["value"]), np.isfinite(got["agg_value"]))
    selected = np.isfinite(got["agg_value"])
    inside = np.isin(past.up, rows) & np.isin(past.down, rows)
    assert len(known.up) == inside.sum() > 0
    value = np.bincount(known.download_job, known.n_downloads, len(rows))
    expected = one_by_one(known, value, 30.0)
    assert got["agg_value"][selected] == pytest.approx(expected[selected])


def test_value_falls_as_downloads_pass_and_readers_come():
    """A has five downloads; B (blind, worth 6) and C (polls, worth 3) can't do without it."""
    h = 3600.0
    past = JobGraph(
        submit_s=np.array([0.0, 2.5 * h, 5 * h, 5 * h]),
        finish_s=np.array([0.2, 2.6, 5.1, 5.1]) * h,
        compute_s=np.ones(4),
        up=np.array([0, 0, 0]),
        down=np.array([1, 2, 3]),
        hard=np.array([True, True, False]),
        waits=np.array([False, True, False]),
        download_job=np.array([0, 0, 1, 2, 3]),
        download_s=np.array([1.0, 10.0, 20.0, 20.0, 20.0]) * h,
        n_downloads=np.array([2, 3, 6, 3, 4]),
    )
    got = past.columns()
    assert got["agg_value"].tolist() == [18, 6, 3, 4]
    waits = [w / h for w in WAITS_S]
    assert waits == [0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 96]
    own = [5, 5, 5, 3, 3, 3, 0, 0, 0, 0]  # by the very instant is in time
    assert [got[c][0] for c in decay_columns("value")] == own
    both = [18, 18, 18, 16, 10, 7, 4, 4, 4, 4]
    assert [got[c][0] for c in decay_columns("agg_value")] == both
    assert [got[c][0] for c in decay_columns("rescued")] == [18, 18, 18, 16, 10, 10, 7, 7, 7, 7]


def test_what_late_completion_leaves_is_the_value_function():
    past = drawn(3)
    got = past.columns()
    edges = edges_from_pairs(40, past.up, past.down)
    edge = {(u, d): h for u, d, h in zip(past.up, past.down, past.hard, strict=True)}
    hard = np.array([edge[pair] for pair in zip(edges.upstream, edges.downstream, strict=True)])
    weight = share_of_inputs(edges) * hard
    order = np.lexsort((past.download_s, past.download_job))
    loads = Downloads(past.download_job[order], past.download_s[order], past.n_downloads[order])
    functions = value_functions(
        edges, loads, past.submit_s, got["agg_value"], wt_fn=lambda _: weight
    )
    steps = zip(WAITS_S, decay_columns("agg_value"), strict=True)
    for wait, column in steps:
        for job in range(40):
            lost = functions.worth[job] - functions.value_at(job, past.submit_s[job] + wait)
            assert got[column][job] == pytest.approx(max(got["agg_value"][job] - lost[()], 0.0))


HOUR = 3600.0
A, B, C, D, E = range(5)
EDGES = edges_from_pairs(5, [A, A, C, C], [B, C, D, E])
LOCAL = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
SUBMIT = np.array([0.0, 1.0, 2.0, 3.0, 3.0]) * HOUR
NO_DOWNLOADS = Downloads(np.empty(0, np.int32), np.empty(0), np.empty(0, np.int32))


def test_aggregate_values_of_figure_5():
    assert aggregate(EDGES, LOCAL).tolist() == [15, 2, 12, 4, 5]


@pytest.mark.parametrize(
    ("hours", "worth"), [(0, 15), (1, 15), (1.01, 13), (2, 13), (2.01, 1), (99, 1)]
)
def test_value_of_a_decays_as_figure_5_draws_it(hours, worth):
    whole = aggregate(EDGES, LOCAL)
    functions = value_functions(EDGES, NO_DOWNLOADS, SUBMIT, whole, local=LOCAL)
    assert functions.value_at(A, hours * HOUR) == worth


def test_downloads_before_completion_are_lost():
    edges = edges_from_pairs(2, [0], [1])
    downloads = Downloads(
        np.array([0, 0, 1], np.int32), np.array([5.0, 9.0, 20.0]), np.array([2, 1, 4], np.int32)
    )
    local = downloads.per_job(2)
    assert local.tolist() == [3, 4]
    functions = value_functions(edges, downloads, np.array([0.0, 7.0]), aggregate(edges, local))
    values = functions.value_at(
        np.array([0, 0, 0, 0, 0, 1]), np.array([5.0, 6.0, 7.0, 8.0, 10.0, 0.0])
    )
    assert values.tolist() == [7, 5, 5, 1, 0, 4]


def test_a_job_gives_each_input_an_equal_share():
    edges = edges_from_pairs(4, [0, 1, 2], [2, 2, 3])
    assert aggregate(edges, np.array([0.0, 0.0, 1.0, 8.0])).tolist() == [4.5, 4.5, 9, 8]
